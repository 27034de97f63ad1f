"""The examples, compiled: the losses of the same lines eager, and no new plan once an epoch has been seen."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest
from beside_eager import counted

import tenon

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


def example(path):
    """The module of an example, loaded anew."""
    spec = importlib.util.spec_from_file_location(f"compiled_{path.replace('/', '_')}", EXAMPLES / f"{path}.py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(EXAMPLES))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(EXAMPLES))
    return module


def test_digits(monkeypatch):
    digits = example("digits/digits")
    pixels, labels = digits.load_digits(digits.DATA)
    planned = []

    def epochs(steps, shown):
        for step in steps:
            before = counted()
            yield step
            planned.append(counted() - before)

    monkeypatch.setattr(digits, "EPOCHS", 3)
    monkeypatch.setattr(digits, "progress_bar", epochs)
    losses, accuracy, _, predicted = digits.train(pixels, labels, 5)
    # The first step, which makes the optimizer's state, another, and the last batch, which is smaller. Where everything is
    # recorded, the second epoch is the first whose shuffling follows a step.
    for options, expected in (({}, [3, 0, 0]), ({"threshold": 0}, [3, 1, 0])):
        planned.clear()
        ours = tenon.compile(digits.train, **options)(pixels, labels, 5)
        assert ours[0] == losses and ours[1] == accuracy and ours[3].tolist() == predicted.tolist()
        assert planned == expected


@pytest.mark.parametrize("command", [
    [sys.executable, str(EXAMPLES / "digits/digits.py")], [str(ROOT / "build/digits/digits")],
], ids=["python", "cpp"])  # fmt: skip
def test_digits_as_a_command(command, tmp_path):
    if not pathlib.Path(command[-1]).exists():
        pytest.skip("examples/digits is not built; ./test builds it")

    def losses(*flags):
        subprocess.run([*command, "--losses", str(tmp_path / "losses"), *flags], check=True, capture_output=True)
        return (tmp_path / "losses").read_bytes()

    assert losses("--compile") == losses()


def test_convnet():
    module = example("convnet")
    pixels, labels = module.load_digits(module.DATA)
    images, labels = pixels[:700].view(-1, 1, 8, 8), labels[:700]

    def run(train):
        tenon.manual_seed(0)
        return train(images, labels, 3, 50, 1e-2)

    losses, _, predicted = run(module.train)
    for options in ({}, {"threshold": 0}):
        ours = run(tenon.compile(module.train, **options))
        assert ours[0] == losses and ours[2].tolist() == predicted.tolist()


def test_convnet_plans_nothing_after_its_first_epoch():
    module = example("convnet")
    model = module.ConvNet()
    optimizer = tenon.optim.AdamW(model.parameters(), lr=0.01)
    x, y = tenon.rand(70, 1, 8, 8), tenon.randint(0, 10, (70,))

    @tenon.compile
    def step(rows):
        loss = module.F.cross_entropy(model(x[rows]), y[rows], label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    planned = []
    for _ in range(4):
        before = counted()
        for start in range(0, 70, 32):
            step(slice(start, start + 32))
        planned.append(counted() - before)
    # The first step of an optimizer makes its state, so the second epoch's first batch is new too.
    assert planned[2:] == [0, 0], planned


def test_gpt():
    module = example("gpt")

    def run(train):
        tenon.manual_seed(0)
        model = module.GPT(context=8, width=16, layers=2, heads=2)
        rows = tenon.randint(0, 27, (50, 8))
        return train(model, rows, 12, 16, 2e-3), [p.tolist() for p in model.parameters()]

    expected = run(module.train)
    for options in ({}, {"threshold": 0}):
        compiled = tenon.compile(module.train, **options)
        assert run(compiled) == expected
    before = counted()
    assert run(compiled) == expected
    assert counted() == before


def test_gpt_samples():
    module = example("gpt")
    tenon.manual_seed(0)
    model = module.GPT(context=8, width=16, layers=2, heads=2)
    tenon.manual_seed(1)
    expected = model.sample(5, 0.8, top=5).tolist()
    for options in ({}, {"threshold": 0}):
        tenon.manual_seed(1)
        assert tenon.compile(model.sample, **options)(5, 0.8, top=5).tolist() == expected
