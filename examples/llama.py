"""A block of Llama: Touvron et al. (2023). Root mean square norm, rotary positions, grouped heads, a gated MLP.

The program trains a small model to say a sequence of tokens backwards."""

from __future__ import annotations

import argparse

import tenon
import tenon.nn.functional as F
from tenon import nn


def rotary_table(length: int, size: int, base: float = 10000.0) -> tuple[tenon.Tensor, tenon.Tensor]:
    """cos and sin [length, size // 2] of the angles position * base ** (-2i / size), in the default dtype."""
    dtype = tenon.get_default_dtype()
    frequency = base ** (-tenon.arange(0, size, 2, dtype=dtype) / size)
    angles = tenon.outer(tenon.arange(length, dtype=dtype), frequency)
    return angles.cos(), angles.sin()


def rotate(x: tenon.Tensor, cos: tenon.Tensor, sin: tenon.Tensor) -> tenon.Tensor:
    """Turns the pairs (x[..., i], x[..., size // 2 + i]) of x [N, heads, T, size] by the angles of their positions."""
    a, b = x.chunk(2, dim=-1)
    return tenon.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class Attention(nn.Module):
    """Causal attention [N, T, width] to the same, where `heads` queries share `groups` keys and values."""

    def __init__(self, width: int, heads: int, groups: int) -> None:
        super().__init__()
        self.size = width // heads
        self.wq = nn.Linear(width, heads * self.size, bias=False)
        self.wk = nn.Linear(width, groups * self.size, bias=False)
        self.wv = nn.Linear(width, groups * self.size, bias=False)
        self.wo = nn.Linear(heads * self.size, width, bias=False)

    def forward(self, x: tenon.Tensor, cos: tenon.Tensor, sin: tenon.Tensor) -> tenon.Tensor:
        q, k, v = (w(x).unflatten(2, (-1, self.size)).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.wo(y.transpose(1, 2).flatten(2))


class SwiGLU(nn.Module):
    """down(silu(gate(x)) * up(x))."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: tenon.Tensor) -> tenon.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, groups: int) -> None:
        super().__init__()
        self.attention_norm, self.attention = nn.RMSNorm(width, eps=1e-5), Attention(width, heads, groups)
        self.mlp_norm, self.mlp = nn.RMSNorm(width, eps=1e-5), SwiGLU(width, 8 * width // 3)

    def forward(self, x: tenon.Tensor, cos: tenon.Tensor, sin: tenon.Tensor) -> tenon.Tensor:
        x = x + self.attention(self.attention_norm(x), cos, sin)
        y: tenon.Tensor = x + self.mlp(self.mlp_norm(x))
        return y


class Llama(nn.Module):
    """Tokens [N, T] int64, T <= context, to logits [N, T, vocabulary]."""

    def __init__(
        self, vocabulary: int = 16, context: int = 16, width: int = 48, layers: int = 2, heads: int = 6, groups: int = 2
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads, groups) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)
        self.head = nn.Linear(width, vocabulary, bias=False)
        cos, sin = rotary_table(context, width // heads)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, tokens: tenon.Tensor) -> tenon.Tensor:
        x, length = self.tokens(tokens), tokens.shape[1]
        for block in self.blocks:
            x = block(x, self.cos[:length], self.sin[:length])
        return self.head(self.norm(x))


def mirrored(count: int, half: int, vocabulary: int) -> tenon.Tensor:
    """Rows of `half` random tokens followed by the same in reverse."""
    left = tenon.randint(0, vocabulary, (count, half))
    return tenon.cat([left, left.flip(1)], dim=1)


def loss_of(model: nn.Module, rows: tenon.Tensor) -> tenon.Tensor:
    """Cross entropy of the second half."""
    half = rows.shape[1] // 2
    return F.cross_entropy(model(rows[:, :-1])[:, half - 1 :].flatten(0, 1), rows[:, half:].flatten())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch", type=int, default=64)
    options = parser.parse_args()

    tenon.manual_seed(0)
    model = Llama()
    optimizer = tenon.optim.AdamW(model.parameters(), lr=5e-3)
    schedule = tenon.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
    for step in range(options.steps):
        loss = loss_of(model, mirrored(options.batch, 8, 16))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    rows = mirrored(256, 8, 16)
    with tenon.inference_mode():
        said = model(rows[:, :-1])[:, 7:].argmax(-1)
    print(f"tokens said right: {(said == rows[:, 8:]).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
