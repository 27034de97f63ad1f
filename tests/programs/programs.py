"""The programs of examples/ with models and batches small enough for a test, on Tenon or on PyTorch.

An example imports `tenon`; to run on PyTorch it is loaded with PyTorch's modules under that name, so that a line which
only Tenon understands, or only PyTorch, fails. Parameters and batches come from NumPy, so that both have the same.
"""

import importlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np

EXAMPLES = Path(__file__).parents[2] / "examples"
STEPS = 3


def load(name, framework):
    """The module examples/NAME.py with `framework`, tenon or torch, as what it calls tenon."""
    root = framework.__name__
    for part in ("nn.functional", "nn.utils", "optim.lr_scheduler", "utils.data"):
        importlib.import_module(f"{root}.{part}")
    hidden = {n: m for n, m in sys.modules.items() if n.partition(".")[0] in ("tenon", "digits")}
    given = {"tenon" + n[len(root) :]: m for n, m in sys.modules.items() if n.partition(".")[0] == root}
    for n in hidden:
        del sys.modules[n]
    sys.modules.update(given)
    sys.path.insert(0, str(EXAMPLES))
    try:
        spec = importlib.util.spec_from_file_location(f"{name}_on_{root}", EXAMPLES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(EXAMPLES))
        for n in [n for n in sys.modules if n.partition(".")[0] in ("tenon", "digits")]:
            del sys.modules[n]
        sys.modules.update(hidden)
    return module


def fill(model, rng):
    """Gives parameters and buffers values that depend on `rng` and on their order alone."""
    values = {}
    for key, value in model.state_dict().items():
        if value.dim() == 0 or key.endswith(("cos", "sin")):
            continue
        shape = tuple(value.shape)
        if key.endswith("running_var"):
            values[key] = rng.uniform(0.5, 1.5, shape)
        elif len(shape) == 1 and key.endswith("weight"):
            values[key] = rng.uniform(0.8, 1.2, shape)
        else:
            values[key] = rng.normal(0, np.prod(shape[1:]) ** -0.5 if len(shape) > 1 else 0.1, shape)
    return values


@dataclass
class Program:
    """`model(module, f)` and `loss(module, f, model, *batch)` for the example's module and a framework; the batch is made
    by `batch(rng)` from NumPy arrays; `optimizer(f, parameters)` is the example's own."""

    name: str
    model: Callable
    batch: Callable
    loss: Callable
    optimizer: Callable
    clip: float = 0.0


def _classify(m, f, model, images, labels):
    return f.nn.functional.cross_entropy(model(images), labels)


def _images(count, channels, size, classes):
    def batch(rng):
        return rng.normal(size=(count, channels, size, size)), rng.integers(0, classes, count)

    return batch


def _lora(m, f):
    model = m.classifier(width=12)
    m.adapt(model, rank=2)
    return model


PROGRAMS = [
    Program(
        "convnet",
        lambda m, f: m.ConvNet(channels=4),
        _images(6, 1, 8, 10),
        lambda m, f, model, x, y: f.nn.functional.cross_entropy(model(x), y, label_smoothing=0.05),
        lambda f, p: f.optim.AdamW(p, lr=1e-2),
    ),
    Program(
        "resnet",
        lambda m, f: m.ResNet(width=4, classes=7),
        _images(3, 3, 45, 7),
        _classify,
        lambda f, p: f.optim.SGD(p, lr=0.01, momentum=0.9),
    ),
    Program(
        "unet",
        lambda m, f: m.UNet(width=4, depth=2),
        lambda rng: (rng.normal(size=(2, 1, 16, 12)), rng.integers(0, 2, (2, 1, 16, 12)).astype(np.float64)),
        lambda m, f, model, x, y: f.nn.functional.binary_cross_entropy_with_logits(model(x), y),
        lambda f, p: f.optim.Adam(p, lr=3e-3),
    ),
    Program(
        "vit",
        lambda m, f: m.ViT(width=12, layers=2, heads=2),
        _images(4, 1, 8, 10),
        _classify,
        lambda f, p: f.optim.AdamW(p, lr=2e-3, weight_decay=0.05),
        clip=1.0,
    ),
    Program(
        "gpt",
        lambda m, f: m.GPT(context=12, width=16, layers=2, heads=2),
        lambda rng: (np.concatenate([np.zeros((5, 1), np.int64), rng.integers(0, 27, (5, 11))], 1),),
        lambda m, f, model, rows: m.loss_of(model, rows),
        lambda f, p: f.optim.AdamW(p, lr=2e-3, betas=(0.9, 0.95)),
        clip=1.0,
    ),
    Program(
        "llama",
        lambda m, f: m.Llama(width=24),
        lambda rng: (rng.integers(0, 16, (4, 12)),),
        lambda m, f, model, rows: m.loss_of(model, rows),
        lambda f, p: f.optim.AdamW(p, lr=5e-3),
        clip=1.0,
    ),
    Program(
        "moe",
        lambda m, f: m.Regressor(width=8, hidden=12, experts=5),
        lambda rng: (rng.normal(size=(30, 2)), rng.normal(size=(30, 1))),
        lambda m, f, model, x, y: m.loss_of(model, x, y),
        lambda f, p: f.optim.Adam(p, lr=3e-3),
    ),
    Program(
        "lora",
        _lora,
        lambda rng: (rng.uniform(size=(9, 64)), rng.integers(0, 10, 9)),
        _classify,
        lambda f, p: f.optim.Adam(p, lr=5e-3),
    ),
]


@dataclass
class Run:
    """What a program computed: the loss before each step and after the last, and the state after it, as float64."""

    losses: list
    state: dict

    def summary(self):
        """One number for each entry of the state: its sum weighted by position, which a wrong element changes."""
        return {
            key: float(np.dot(value.ravel(), np.cos(np.arange(value.size)))) for key, value in self.state.items()
        }


def prepared(program, framework, compiled=lambda step: step):
    """(model, batch, step, loss_of): a batch in the default dtype, and two functions of it that return the loss: a training step
    that is `compiled`, and the forward pass alone."""
    f = framework
    module = load(program.name, f)
    model = program.model(module, f)
    rng = np.random.default_rng(sum(program.name.encode()))
    state = model.state_dict()
    with f.no_grad():
        for key, value in fill(model, rng).items():
            state[key].copy_(f.tensor(value))
    batch = [f.tensor(a) for a in program.batch(rng)]
    batch = [t.to(f.get_default_dtype()) if t.is_floating_point() else t for t in batch]
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = program.optimizer(f, parameters)

    def loss_of(*batch):
        return program.loss(module, f, model, *batch)

    @compiled
    def step(*batch):
        loss = loss_of(*batch)
        optimizer.zero_grad()
        loss.backward()
        if program.clip:
            f.nn.utils.clip_grad_norm_(parameters, program.clip)
        optimizer.step()
        return loss

    return model, batch, step, loss_of


def run(program, framework, steps=STEPS, compiled=lambda step: step):
    """Trains in float64, by a step that is `compiled`."""
    f = framework
    before = f.get_default_dtype()
    f.set_default_dtype(f.float64)
    try:
        model, batch, step, loss_of = prepared(program, f, compiled)
        losses = [step(*batch).item() for _ in range(steps)]
        losses.append(loss_of(*batch).item())
        state = {k: np.asarray(v.detach().numpy(), dtype=np.float64) for k, v in model.state_dict().items()}
    finally:
        f.set_default_dtype(before)
    return Run(losses, state)
