"""ResNet-18: He et al., "Deep Residual Learning for Image Recognition" (CVPR 2016). Parameters have torchvision's names."""

from __future__ import annotations

import argparse
import time

import tenon
import tenon.nn.functional as F
from tenon import nn


class BasicBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut, [N, inputs, H, W] to [N, outputs, H / stride, W / stride]."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: tenon.Tensor) -> tenon.Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(x)) + shortcut, inplace=True)


class ResNet(nn.Module):
    """Images [N, 3, H, W] to logits [N, classes]; `blocks` in each of four stages, whose widths double from `width` on."""

    def __init__(self, blocks: tuple[int, ...] = (2, 2, 2, 2), width: int = 64, classes: int = 1000) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        inputs = width
        for stage, count in enumerate(blocks):
            outputs = width << stage
            layers = [BasicBlock(inputs, outputs, 1 if stage == 0 else 2)]
            layers += [BasicBlock(outputs, outputs) for _ in range(count - 1)]
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
            inputs = outputs
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inputs, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: tenon.Tensor) -> tenon.Tensor:
        x = self.maxpool(F.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def main() -> None:
    parser = argparse.ArgumentParser(description="Times forward and backward of ResNet-18 on random images.")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args()

    tenon.manual_seed(0)
    model = ResNet()
    images = tenon.randn(options.batch, 3, options.size, options.size)
    labels = tenon.randint(0, 1000, (options.batch,))
    optimizer = tenon.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters")
    for step in range(options.steps):
        start = time.perf_counter()
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}, {1000 * (time.perf_counter() - start):.0f} ms")


if __name__ == "__main__":
    main()
