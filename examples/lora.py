"""LoRA: Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models" (2021).

A classifier is trained on the digits 0 to 4, frozen, and adapted to all ten with updates of low rank."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable

import tenon
import tenon.nn.functional as F
from digits.digits import DATA, HELD_OUT, load_digits
from tenon import nn


class LoRALinear(nn.Module):
    """A frozen linear layer plus `scale * B @ A`, where A is [rank, in_features] and B, at first zero, [out_features, rank]."""

    def __init__(self, base: nn.Linear, rank: int = 4, alpha: float = 8.0) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.scale = alpha / rank
        self.A = nn.Parameter(tenon.empty(rank, base.in_features))
        self.B = nn.Parameter(tenon.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))

    def forward(self, x: tenon.Tensor) -> tenon.Tensor:
        return self.base(x) + self.scale * F.linear(F.linear(x, self.A), self.B)

    def merged(self) -> nn.Linear:
        """The linear layer with the update added to its weight."""
        layer = nn.Linear(self.base.in_features, self.base.out_features)
        with tenon.no_grad():
            layer.weight.copy_(self.base.weight + self.scale * self.B @ self.A)
            if layer.bias is not None and self.base.bias is not None:
                layer.bias.copy_(self.base.bias)
        return layer


def classifier(width: int = 128) -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))


def adapt(model: nn.Module, rank: int) -> list[nn.Parameter]:
    """Puts a LoRALinear in the place of every linear layer; returns the parameters that are left to train."""
    for name, module in list(model.named_children()):
        if isinstance(module, nn.Linear):
            setattr(model, name, LoRALinear(module, rank))
    return [p for p in model.parameters() if p.requires_grad]


def train(
    model: nn.Module, parameters: Iterable[nn.Parameter], pixels: tenon.Tensor, labels: tenon.Tensor, steps: int, lr: float
) -> None:
    optimizer = tenon.optim.Adam(parameters, lr=lr)
    for _ in range(steps):
        batch = tenon.randint(0, len(labels), (64,))
        loss = F.cross_entropy(model(pixels[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--rank", type=int, default=4)
    options = parser.parse_args()

    tenon.manual_seed(0)
    pixels, labels = load_digits(DATA)
    test, rest = (pixels[:HELD_OUT], labels[:HELD_OUT]), (pixels[HELD_OUT:], labels[HELD_OUT:])

    def accuracy(model: nn.Module) -> float:
        with tenon.inference_mode():
            return float((model(test[0]).argmax(1) == test[1]).float().mean())

    model = classifier()
    small = rest[1] < 5
    train(model, model.parameters(), rest[0][small], rest[1][small], options.steps, 2e-3)
    print(f"trained on 0 to 4: accuracy on ten digits {accuracy(model):.3f}")
    count = sum(p.numel() for p in model.parameters())
    adapters = adapt(model, options.rank)
    train(model, adapters, *rest, options.steps, 5e-3)
    print(f"adapted with {sum(p.numel() for p in adapters):,} numbers beside {count:,}: {accuracy(model):.3f}")
    merged = nn.Sequential(*(m.merged() if isinstance(m, LoRALinear) else m for m in model))
    print(f"merged into the weights: {accuracy(merged):.3f}")


if __name__ == "__main__":
    main()
