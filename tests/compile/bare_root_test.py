"""The examples, compiled, where nothing is installed that could help: no compiler, no libraries of vendors."""

import os
import pathlib
import subprocess
import sys

import pytest

import tenon

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(tenon.__file__).parents[1]
DIGITS, DATA = ROOT / "build/digits/digits", ROOT / "data/digits.csv.gz"

#: Trains eagerly and compiled; nothing but the standard library and Tenon is there.
PROGRAM = """
import shutil
import sys

sys.path.insert(0, sys.argv[1])
import convnet
import gpt
import tenon
from digits import digits

assert not [name for name in ("cc", "gcc", "g++", "clang", "ld", "as", "sh") if shutil.which(name)]
for name in ("numpy", "tqdm"):
    try:
        __import__(name)
    except ImportError:
        continue
    raise AssertionError(name)
pixels, labels = digits.load_digits(sys.argv[2])
digits.EPOCHS = 2

def train_gpt():
    model = gpt.GPT(context=8, width=16, layers=2, heads=2)
    losses = gpt.train(model, tenon.randint(0, 27, (50, 8)), 12, 16, 2e-3)
    return losses, [p.tolist() for p in model.parameters()]

def train_convnet():
    losses, _, predicted = convnet.train(pixels[:700].view(-1, 1, 8, 8), labels[:700], 2, 50, 1e-2)
    return losses, predicted.tolist()

def train_digits():
    losses, accuracy, _, predicted = digits.train(pixels, labels, 5)
    return losses, accuracy, predicted.tolist()

for train in (train_digits, train_convnet, train_gpt):
    tenon.manual_seed(0)
    expected = train()
    for options in ({}, {"threshold": 0}):
        tenon.manual_seed(0)
        compiled = tenon.compile(train, **options)
        assert compiled() == expected, (train.__name__, options)
    assert compiled.explain().planned > 0, train.__name__
"""


def in_bare_root(*command, show=(), libraries_of=()):
    """What the command prints there; it sees the package, and the files in `show`."""
    # The package of a build folder is made of links to its source.
    show = [PACKAGE, ROOT / "python", *show]
    libraries_of = [tenon._C.__file__, *libraries_of]
    options = [o for path in show for o in ("--show", path)]
    options += [o for path in libraries_of for o in ("--libraries-of", path)]
    done = subprocess.run(
        [ROOT / "scripts/bare_root.sh", "--python", sys.executable, *options, *command],
        env={**os.environ, "PYTHONPATH": str(PACKAGE)}, capture_output=True, text=True,
    )
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_python():
    in_bare_root("python", "-c", PROGRAM, ROOT / "examples", DATA, show=[ROOT / "examples", DATA])


def test_cpp(tmp_path):
    if not DIGITS.exists():
        pytest.skip("examples/digits is not built; ./test builds it")
    for name, flags in (("eager", []), ("compiled", ["--compile"])):
        in_bare_root(
            DIGITS, "--data", DATA, "--losses", tmp_path / name, *flags,
            show=[DIGITS, DATA, tmp_path], libraries_of=[DIGITS],
        )
    assert (tmp_path / "compiled").read_bytes() == (tmp_path / "eager").read_bytes()
