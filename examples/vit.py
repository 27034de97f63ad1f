"""A vision transformer on the digits: Dosovitskiy et al., "An Image is Worth 16x16 Words" (2021)."""

from __future__ import annotations

import argparse

import tenon
import tenon.nn.functional as F
from digits.digits import DATA, HELD_OUT, load_digits
from tenon import nn


class ViT(nn.Module):
    """Images [N, channels, size, size] to logits [N, classes]: patches, a class token, pre-norm encoder layers."""

    def __init__(
        self,
        size: int = 8,
        patch: int = 2,
        channels: int = 1,
        width: int = 64,
        layers: int = 4,
        heads: int = 4,
        classes: int = 10,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(channels, width, patch, stride=patch)
        self.token = nn.Parameter(tenon.zeros(1, 1, width))
        self.position = nn.Parameter(tenon.empty(1, (size // patch) ** 2 + 1, width).normal_(std=0.02))
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, images: tenon.Tensor) -> tenon.Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = tenon.cat([self.token.expand(len(x), -1, -1), x], dim=1) + self.position
        return self.head(self.encoder(x)[:, 0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    options = parser.parse_args()

    tenon.manual_seed(0)
    pixels, labels = load_digits(DATA)
    images = pixels.view(-1, 1, 8, 8)
    model = ViT()
    optimizer = tenon.optim.AdamW(model.parameters(), lr=options.lr, weight_decay=0.05)
    for epoch in range(options.epochs):
        for batch in (HELD_OUT + tenon.randperm(len(labels) - HELD_OUT)).split(options.batch):
            loss = F.cross_entropy(model(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")
    model.eval()
    with tenon.inference_mode():
        accuracy = (model(images[:HELD_OUT]).argmax(1) == labels[:HELD_OUT]).float().mean().item()
    print(f"accuracy on {HELD_OUT} held-out digits: {accuracy:.4f}")


if __name__ == "__main__":
    main()
