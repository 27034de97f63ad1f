"""U-Net: Ronneberger, Fischer, Brox, "U-Net: Convolutional Networks for Biomedical Image Segmentation" (2015).

It learns to separate bright discs from a noisy background with dark discs."""

from __future__ import annotations

import argparse

import tenon
import tenon.nn.functional as F
from tenon import nn


def double_conv(inputs: int, outputs: int) -> nn.Sequential:
    """Two 3x3 convolutions, each with normalisation and ReLU; the size stays."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.GroupNorm(4, outputs),
        nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        nn.GroupNorm(4, outputs),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    """Images [N, channels, H, W] to logits [N, classes, H, W]; H and W are multiples of 2 ** depth."""

    def __init__(self, channels: int = 1, classes: int = 1, width: int = 16, depth: int = 3) -> None:
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        self.down = nn.ModuleList(
            double_conv(inputs, outputs) for inputs, outputs in zip([channels, *widths], widths)
        )
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in reversed(widths[:-1]))
        self.merge = nn.ModuleList(double_conv(2 * w, w) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: tenon.Tensor) -> tenon.Tensor:
        skips = []
        for level, conv in enumerate(self.down):
            x = conv(x if level == 0 else F.max_pool2d(x, 2))
            skips.append(x)
        skips.pop()
        for up, merge in zip(self.up, self.merge):
            x = merge(tenon.cat([up(x), skips.pop()], dim=1))
        return self.head(x)


def discs(count: int, size: int) -> tuple[tenon.Tensor, tenon.Tensor]:
    """Images [count, 1, size, size] and the masks of their bright discs, both float32."""
    y, x = tenon.meshgrid(tenon.arange(size), tenon.arange(size), indexing="ij")
    centre = tenon.rand(count, 2, 2, 1, 1) * size
    radius = size * (0.1 + 0.15 * tenon.rand(count, 2, 1, 1))
    inside = (y - centre[:, :, 0]) ** 2 + (x - centre[:, :, 1]) ** 2 < radius**2
    bright, dark = inside.unbind(1)
    images = bright.float() - (dark & ~bright).float() + 0.3 * tenon.randn(count, size, size)
    return images.unsqueeze(1), bright.float().unsqueeze(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--size", type=int, default=32)
    options = parser.parse_args()

    tenon.manual_seed(0)
    model = UNet()
    optimizer = tenon.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(options.steps):
        images, masks = discs(options.batch, options.size)
        loss = F.binary_cross_entropy_with_logits(model(images), masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    images, masks = discs(64, options.size)
    with tenon.inference_mode():
        predicted, true = model(images) > 0, masks > 0
    overlap = (predicted & true).sum() / (predicted | true).sum()
    print(f"intersection over union on 64 new images: {overlap.item():.3f}")


if __name__ == "__main__":
    main()
