"""A convolutional network on the digits of data/digits.csv.gz: 8x8 images, ten classes."""

from __future__ import annotations

import argparse

import tenon
import tenon.nn.functional as F
from digits.digits import DATA, HELD_OUT, draw, load_digits
from tenon import nn
from tenon.utils.data import DataLoader, TensorDataset


class ConvNet(nn.Module):
    """Two convolutions, a pool, and a linear layer; images [N, 1, 8, 8] to logits [N, classes]."""

    def __init__(self, channels: int = 16, classes: int = 10) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, 2 * channels, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Linear(2 * channels * 4 * 4, classes)

    def forward(self, images: tenon.Tensor) -> tenon.Tensor:
        return self.classifier(self.features(images).flatten(1))


def train(
    images: tenon.Tensor, labels: tenon.Tensor, epochs: int, batch: int, lr: float
) -> tuple[list[float], tenon.Tensor, tenon.Tensor]:
    """Trains on all but the held-out rows; returns (loss of every step, true labels, predicted labels)."""
    order = tenon.randperm(len(labels))
    test, rest = order[:HELD_OUT], order[HELD_OUT:]
    loader = DataLoader(TensorDataset(images[rest], labels[rest]), batch_size=batch, shuffle=True)
    model = ConvNet()
    optimizer = tenon.optim.AdamW(model.parameters(), lr=lr)
    schedule = tenon.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=lr, total_steps=epochs * len(loader))

    losses = []
    for _ in range(epochs):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y, label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
    model.eval()
    with tenon.inference_mode():
        return losses, labels[test], model(images[test]).argmax(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--compile", action="store_true", help="compute operators together, fused (docs/compile.md)")
    parser.add_argument("--picture", help="draw loss and confusion matrix here")
    options = parser.parse_args()

    tenon.manual_seed(0)
    pixels, labels = load_digits(DATA)
    run = tenon.compile(train) if options.compile else train
    losses, truth, predicted = run(pixels.view(-1, 1, 8, 8), labels, options.epochs, options.batch, options.lr)
    accuracy = (predicted == truth).float().mean().item()
    print(f"accuracy on {HELD_OUT} held-out digits: {accuracy:.4f} after {len(losses)} steps")
    if options.picture:
        draw(options.picture, losses, truth, predicted)


if __name__ == "__main__":
    main()
