"""A mixture of experts: Shazeer et al., "Outrageously Large Neural Networks" (2017), with two experts for each token.

Each expert runs on the tokens that chose it, and on no others. The program fits a function of two regimes."""

from __future__ import annotations

import argparse

import tenon
import tenon.nn.functional as F
from tenon import nn


class MixtureOfExperts(nn.Module):
    """Tokens [T, width] to (mixed outputs [T, width], balance loss []); each token goes to its `top` best experts."""

    def __init__(self, width: int, hidden: int, experts: int = 8, top: int = 2) -> None:
        super().__init__()
        self.top = top
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width)) for _ in range(experts)
        )

    def forward(self, x: tenon.Tensor) -> tuple[tenon.Tensor, tenon.Tensor]:
        probabilities = self.router(x).softmax(-1)
        weights, chosen = probabilities.topk(self.top, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        result = tenon.zeros_like(x)
        for number, expert in enumerate(self.experts):
            token, place = tenon.where(chosen == number)
            if len(token):
                result = result.index_add(0, token, expert(x[token]) * weights[token, place].unsqueeze(-1))
        # Fedus et al., "Switch Transformers" (2022): the share of tokens times the share of probability.
        share = F.one_hot(chosen, len(self.experts)).float().mean((0, 1))
        return result, len(self.experts) * (share * probabilities.mean(0)).sum()


class Regressor(nn.Module):
    """Points [T, inputs] to (values [T, 1], balance loss [])."""

    def __init__(self, inputs: int = 2, width: int = 32, hidden: int = 64, experts: int = 8) -> None:
        super().__init__()
        self.enter = nn.Linear(inputs, width)
        self.norm = nn.LayerNorm(width)
        self.mixture = MixtureOfExperts(width, hidden, experts)
        self.leave = nn.Linear(width, 1)

    def forward(self, x: tenon.Tensor) -> tuple[tenon.Tensor, tenon.Tensor]:
        x = self.enter(x)
        mixed, balance = self.mixture(self.norm(x))
        return self.leave(x + mixed), balance


def points(count: int) -> tuple[tenon.Tensor, tenon.Tensor]:
    """Points of the square [-1, 1]^2 and sin(4x) left of the diagonal, y^2 right of it."""
    x = tenon.rand(count, 2) * 2 - 1
    return x, tenon.where(x[:, :1] < x[:, 1:], tenon.sin(4 * x[:, :1]), x[:, 1:] ** 2)


def loss_of(model: nn.Module, x: tenon.Tensor, y: tenon.Tensor) -> tenon.Tensor:
    predicted, balance = model(x)
    loss: tenon.Tensor = F.mse_loss(predicted, y) + 0.01 * balance
    return loss


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--batch", type=int, default=256)
    options = parser.parse_args()

    tenon.manual_seed(0)
    model = Regressor()
    optimizer = tenon.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(options.steps):
        loss = loss_of(model, *points(options.batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    x, y = points(2048)
    with tenon.inference_mode():
        error = F.mse_loss(model(x)[0], y).sqrt()
        chosen = model.mixture.router(model.norm(model.enter(x))).topk(2).indices
    print(f"root mean square error on 2048 new points: {error.item():.4f}")
    print("tokens of each expert:", F.one_hot(chosen, 8).sum((0, 1)).tolist())


if __name__ == "__main__":
    main()
