"""Trains a classifier of handwritten digits: the same model, step for step, as digits.cc."""

from __future__ import annotations

import argparse
import gzip
import pathlib
import struct
import sys
import zlib
from collections.abc import Iterable, Iterator

import tenon
import tenon.nn.functional as F
from tenon import nn

DATA = pathlib.Path(__file__).parents[2] / "data" / "digits.csv.gz"
HELD_OUT, BATCH, EPOCHS = 360, 32, 30


def load_digits(path: str | pathlib.Path) -> tuple[tenon.Tensor, tenon.Tensor]:
    """The file at `path` as (pixels [N, 64] float32 from 0 to 1, labels [N] int64).

    Raises OSError for a file that cannot be read, and ValueError naming the line of one that is malformed.
    """
    rows = []
    with gzip.open(path, "rt") as file:
        for number, line in enumerate(lines_of(file, path), 1):
            try:
                row = [int(field) for field in line.split(",")]
            except ValueError as error:
                raise ValueError(f"{path}:{number}: {error}") from None
            if len(row) != 65 or not all(0 <= v <= 16 for v in row) or row[-1] > 9:
                raise ValueError(f"{path}:{number}: expected 64 pixels from 0 to 16 and a label from 0 to 9")
            rows.append(row)
    if not rows:
        raise ValueError(f"{path}: no rows")
    if len(rows) <= HELD_OUT:
        raise ValueError(f"{path}: {len(rows)} rows, expected more than the {HELD_OUT} that are held out")
    table = tenon.tensor(rows)
    return table[:, :64].to(tenon.float32) / 16, table[:, 64]


def lines_of(file: Iterable[str], path: str | pathlib.Path) -> Iterator[str]:
    """The lines of a gzipped file; ValueError where it ends too early or is no text."""
    try:
        yield from file
    except (EOFError, UnicodeDecodeError, zlib.error) as error:
        raise ValueError(f"{path}: damaged: {error}") from None


def train(
    pixels: tenon.Tensor, labels: tenon.Tensor, seed: int, perturb: bool = False, progress: bool = True
) -> tuple[list[float], float, tenon.Tensor, tenon.Tensor]:
    """Trains once, on the device of the data; returns (loss of every step, accuracy, true labels, predicted labels of the
    held-out rows)."""
    tenon.manual_seed(seed)
    device = labels.device
    order = tenon.randperm(len(labels), device=device)
    test, rest = order[:HELD_OUT], order[HELD_OUT:]

    model = nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
    ).to(device)
    if perturb:
        with tenon.no_grad():
            model[0].weight[0, 20] += 0.5
    optimizer = tenon.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)

    losses = []
    for epoch in progress_bar(range(EPOCHS), progress):
        shuffled = rest[tenon.randperm(len(rest), device=device)]
        for batch in shuffled.split(BATCH):
            loss = F.cross_entropy(model(pixels[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())

    with tenon.inference_mode():
        predicted = model(pixels[test]).argmax(1)
    truth = labels[test]
    accuracy = (predicted == truth).to(tenon.float64).mean().item()
    return losses, accuracy, truth, predicted


def progress_bar(steps: Iterable[int], shown: bool) -> Iterable[int]:
    """`steps` with a bar on standard error where tqdm is installed."""
    if not shown:
        return steps
    try:
        from tqdm import tqdm
    except ImportError:
        return steps
    bar: Iterable[int] = tqdm(steps, desc="digits", unit="epoch")
    return bar


def draw(path: str | pathlib.Path, losses: list[float], truth: tenon.Tensor, predicted: tenon.Tensor) -> None:
    """Saves the loss of every step and the confusion matrix as one picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    confusion = [[0] * 10 for _ in range(10)]
    for t, p in zip(truth.tolist(), predicted.tolist()):
        confusion[t][p] += 1
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5))
    left.semilogy(losses, linewidth=0.7)
    left.set(title="Training loss", xlabel="step", ylabel="cross entropy")
    right.imshow(confusion, cmap="Blues")
    right.set(title="Held-out digits", xlabel="predicted", ylabel="true", xticks=range(10), yticks=range(10))
    for t in range(10):
        for p in range(10):
            if confusion[t][p]:
                colour = "white" if confusion[t][p] > 20 else "black"
                right.text(p, t, confusion[t][p], ha="center", va="center", color=colour)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=DATA, help="the digits file")
    parser.add_argument("--losses", help="write the loss of every step (float32) and the accuracy (float64) here")
    parser.add_argument("--picture", help="draw loss and confusion matrix here")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=0, help="train with seeds 1 to N instead; print the mean accuracy")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="where to train, such as openreg:1 (docs/backends.md)")
    parser.add_argument("--compile", action="store_true", help="compute operators together, fused (docs/compile.md)")
    parser.add_argument("--kernels", action="store_true", help="print which kernel each operator ran, and how often")
    parser.add_argument("--perturb", action="store_true", help="change one initial weight first")
    options = parser.parse_args()

    if options.threads:
        tenon.set_num_threads(options.threads)
    try:
        pixels, labels = load_digits(options.data)
    except (OSError, ValueError) as error:
        sys.exit(f"digits: {error}")

    pixels, labels = pixels.to(options.device), labels.to(options.device)
    run = tenon.compile(train) if options.compile else train
    if options.seeds:
        runs = [run(pixels, labels, seed, progress=False)[1] for seed in range(1, options.seeds + 1)]
        print(f"mean accuracy over {options.seeds} other seeds: {sum(runs) / len(runs):.4f}")
        return
    tenon.set_kernel_reporting(options.kernels)
    losses, accuracy, truth, predicted = run(pixels, labels, options.seed, options.perturb)
    for operator, kernel, calls in tenon.kernel_counts() if options.kernels else ():
        print(f"{operator:32} {kernel:20} {calls:8}")
    print(f"accuracy on {HELD_OUT} held-out rows: {accuracy:.4f}")
    if options.losses:
        with open(options.losses, "wb") as file:
            file.write(struct.pack(f"<{len(losses)}fd", *losses, accuracy))
    if options.picture:
        draw(options.picture, losses, truth, predicted)
        print(f"loss and confusion matrix: {options.picture}")


if __name__ == "__main__":
    main()
