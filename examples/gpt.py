"""A character GPT that learns to spell: it reads a list of words and then makes up new ones.

The list is /usr/share/dict/words (Debian's package wamerican), or any text file with a word in each line. The model is
GPT-2's: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019)."""

from __future__ import annotations

import argparse
import pathlib

import tenon
import tenon.nn.functional as F
from tenon import nn

END = 0  # before and after each word; the letters a to z are 1 to 26


class KVCache:
    """Keys and values of the positions that a layer has seen: two tensors [N, heads, capacity, size]."""

    def __init__(self, batch: int, heads: int, capacity: int, size: int) -> None:
        self.keys = tenon.zeros(batch, heads, capacity, size)
        self.values = tenon.zeros(batch, heads, capacity, size)
        self.length = 0

    def append(self, keys: tenon.Tensor, values: tenon.Tensor) -> tuple[tenon.Tensor, tenon.Tensor]:
        """Adds keys and values [N, heads, T, size]; returns all so far. Raises ValueError beyond the capacity."""
        end = self.length + keys.shape[2]
        if end > self.keys.shape[2]:
            raise ValueError(f"the cache holds {self.keys.shape[2]} positions, {end} are needed")
        self.keys[:, :, self.length : end] = keys
        self.values[:, :, self.length : end] = values
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]


class Attention(nn.Module):
    """Causal self-attention, [N, T, width] to the same."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)

    def forward(self, x: tenon.Tensor, cache: KVCache | None = None) -> tenon.Tensor:
        split = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        q, k, v = split.unbind(0)
        if cache is not None:
            k, v = cache.append(k, v)
        # A single new position sees all that are in the cache.
        y = F.scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] > 1)
        return self.projection(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x: tenon.Tensor, cache: KVCache | None = None) -> tenon.Tensor:
        x = x + self.attention(self.norm1(x), cache)
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Tokens [N, T] int64, T <= context, to logits [N, T, vocabulary]."""

    def __init__(
        self, vocabulary: int = 27, context: int = 24, width: int = 64, layers: int = 4, heads: int = 4
    ) -> None:
        super().__init__()
        self.context, self.heads = context, heads
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens: tenon.Tensor, caches: list[KVCache] | None = None) -> tenon.Tensor:
        start = 0 if caches is None else caches[0].length
        x = self.tokens(tokens) + self.positions(tenon.arange(start, start + tokens.shape[1]))
        for i, block in enumerate(self.blocks):
            x = block(x, None if caches is None else caches[i])
        return self.head(self.norm(x))

    def new_caches(self, batch: int) -> list[KVCache]:
        size = self.tokens.weight.shape[1] // self.heads
        return [KVCache(batch, self.heads, self.context, size) for _ in self.blocks]

    @tenon.inference_mode()
    def sample(self, count: int, temperature: float = 1.0, top: int = 0) -> tenon.Tensor:
        """`count` rows of at most context - 1 tokens, drawn one after the other; `top` > 0 keeps the likeliest only."""
        caches = self.new_caches(count)
        token = tenon.full((count, 1), END, dtype=tenon.int64)
        rows = []
        for _ in range(self.context - 1):
            logits = self(token, caches)[:, -1] / temperature
            if top:
                least = logits.topk(top).values[:, -1:]
                logits = logits.masked_fill(logits < least, -float("inf"))
            token = tenon.multinomial(logits.softmax(-1), 1)
            rows.append(token)
        return tenon.cat(rows, 1)


def load_words(path: str | pathlib.Path, context: int) -> tuple[list[str], tenon.Tensor]:
    """The words of lower-case letters that fit, as tokens [words, context]: END, letters, then END to the end."""
    found = {w for w in pathlib.Path(path).read_text("utf-8").split() if w.isascii() and w.isalpha() and w.islower()}
    words = sorted(w for w in found if len(w) < context - 1)
    if not words:
        raise ValueError(f"{path}: no words of lower-case letters")
    rows = [[END, *(ord(c) - 96 for c in w)] + [END] * (context - 1 - len(w)) for w in words]
    return words, tenon.tensor(rows)


def loss_of(model: nn.Module, rows: tenon.Tensor) -> tenon.Tensor:
    """Cross entropy of each next character, up to the END of a word."""
    inputs, targets = rows[:, :-1], rows[:, 1:].clone()
    after = (targets == END).cumsum(1) > 1
    return F.cross_entropy(model(inputs).flatten(0, 1), targets.masked_fill(after, -1).flatten(), ignore_index=-1)


def train(model: nn.Module, rows: tenon.Tensor, steps: int, batch: int, lr: float) -> list[float]:
    """Trains on random rows, with a rate that falls to nothing; returns the loss of every step."""
    optimizer = tenon.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.95))
    schedule = tenon.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    losses = []
    for step in range(steps):
        loss = loss_of(model, rows[tenon.randint(0, len(rows), (batch,))])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % 100 == 0:
            print(f"step {step}: loss {losses[-1]:.4f}")
    return losses


def draw(path: str | pathlib.Path, losses: list[float]) -> None:
    """Saves the loss of every step as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    axes.plot(losses, linewidth=0.7)
    axes.set(title="A character GPT", xlabel="step", ylabel="cross entropy of a character")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--words", default="/usr/share/dict/words")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--compile", action="store_true", help="compute operators together, fused (docs/compile.md)")
    parser.add_argument("--picture", help="draw the loss here")
    options = parser.parse_args()

    tenon.manual_seed(0)
    model = GPT()
    words, rows = load_words(options.words, model.context)
    print(f"{len(words):,} words, {sum(p.numel() for p in model.parameters()):,} parameters")
    run = tenon.compile(train) if options.compile else train
    losses = run(model, rows, options.steps, options.batch, options.lr)
    known = set(words)
    for row in model.sample(options.samples, options.temperature, top=10).tolist():
        word = "".join(chr(96 + t) for t in (row[: row.index(END)] if END in row else row))
        print(word, "(in the list)" if word in known else "")
    if options.picture:
        draw(options.picture, losses)


if __name__ == "__main__":
    main()
