"""compile(relaxed=True) with oneDNN: within the bound that docs/compile.md gives, from float64 as NumPy computes it."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from bare_root_test import in_bare_root
from scipy.special import erf, expit

import tenon
import tenon.nn.functional as F

rng = np.random.default_rng(12)


def region_of(compiled):
    """What the report of a function of one region says of it."""
    (segment,) = compiled.explain().of("segment")
    assert segment["regions"], segment["opaque"]
    return segment["regions"][0]


def relaxed(fn):
    return tenon.compile(fn, threshold=0, relaxed=True)


def product(x, w, b):
    return F.gelu(x @ w + b)


@pytest.fixture(scope="module")
def onednn():
    compiled = relaxed(product)
    compiled(tenon.ones(64, 256), tenon.ones(256, 256), tenon.ones(256))
    for why in region_of(compiled)["refused"]:
        if "is not installed" in why:
            pytest.skip(why)


needs_onednn = pytest.mark.usefixtures("onednn")


def of_arrays(*arrays):
    return [tenon.tensor(a.tolist(), dtype=tenon.float32) for a in arrays]


def check(actual, exact, magnitude, terms):
    """`magnitude`: the sum of the absolute values of `terms` products, for each element."""
    assert actual.dtype == tenon.float32 and list(actual.shape) == list(exact.shape)
    bound = 1.2 * (terms + 2) * 2.0**-24 * magnitude + 2.0**-18 * (1 + np.abs(exact))
    error = np.abs(actual.double().numpy() - exact)
    assert (error <= bound).all(), (error / bound).max()


FUNCTIONS = {
    "gelu": (F.gelu, lambda y: y * (1 + erf(y / 2**0.5)) / 2),
    "gelu_tanh": (
        lambda y: F.gelu(y, approximate="tanh"),
        lambda y: y / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (y + 0.044715 * y**3))),
    ),
    "silu": (F.silu, lambda y: y * expit(y)),
    "sigmoid": (tenon.sigmoid, expit),
    "tanh": (tenon.tanh, np.tanh),
    "abs": (tenon.abs, np.abs),
    "nothing": (lambda y: y, lambda y: y),
}

LAYOUTS = {
    "contiguous": lambda x, w: (x, w),
    "transposed": lambda x, w: (x.t().contiguous().t(), w.t().contiguous().t()),
    "rows with gaps": lambda x, w: (tenon.cat([x, x], 1)[:, : x.shape[1]], tenon.cat([w, w], 1)[:, : w.shape[1]]),
}


@needs_onednn
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("m, k, n", [(64, 256, 256), (130, 333, 257)])
def test_products(m, k, n, name, layout):
    ours, exactly = FUNCTIONS[name]
    x, w, b = (rng.normal(size=s).astype(np.float32) for s in ((m, k), (k, n), (n,)))
    w *= k**-0.5

    @relaxed
    def f(x, w, b):
        y = ours(x @ w + b)
        return y, y.sum(1)

    a, c = LAYOUTS[layout](*of_arrays(x, w))
    y, rows = f(a, c, of_arrays(b)[0])
    assert region_of(f)["engine"] == "onednn"
    x, w, b = (t.astype(np.float64) for t in (x, w, b))
    exact, magnitude = exactly(x @ w + b), np.abs(x) @ np.abs(w) + np.abs(b)
    check(y, exact, magnitude, k)
    check(rows, exact.sum(1), magnitude.sum(1), k + n)


@needs_onednn
def test_linear_residual_and_numbers_that_change():
    x, w, b, r = (rng.normal(size=s).astype(np.float32) for s in ((64, 256), (256, 256), (256,), (64, 256)))
    x, w, b, r = of_arrays(x, w / 16, b, r)

    def program(x, w, b, r, scale, factor):
        y = F.linear(x, w, b)
        return F.silu(tenon.add(y * scale - 1, r, alpha=factor)).tanh_()

    f = relaxed(program)
    for scale, factor in ((2.0, 1.0), (0.5, 1.0), (-3.0, 1.0), (2.0, 1.5)):
        # oneDNN has no factor: with 1.5, the plan runs another engine.
        error = (f(x, w, b, r, scale, factor) - program(x, w, b, r, scale, factor)).abs().max().item()
        assert error < 2e-5 if factor == 1 else error == 0
    report = region_of(f)
    assert report["engine"] == "onednn" and report["operators"][0] == "aten::addmm"


@needs_onednn
@pytest.mark.parametrize("bias", ["row", "matrix", "column"])
def test_addmm_with_factors(bias):
    x, w = of_arrays(rng.normal(size=(64, 256)), rng.normal(size=(256, 128)))
    c = of_arrays(rng.normal(size={"row": (128,), "matrix": (64, 128), "column": (64, 1)}[bias]))[0]

    def program(c, x, w, beta, alpha):
        return F.gelu(tenon.addmm(c, x, w, beta=beta, alpha=alpha))

    f = relaxed(program)
    for beta, alpha in ((1.0, 1.0), (0.5, 1.0), (1.0, 2.0)):
        expected = program(c, x, w, beta, alpha)
        assert (f(c, x, w, beta, alpha) - expected).abs().max().item() <= (1e-4 if beta == alpha == 1 else 0)
    if bias == "column":  # which oneDNN has not
        assert not f.explain().of("segment")[0]["regions"]
    else:
        assert region_of(f)["engine"] == "onednn"


@needs_onednn
def test_what_comes_before_is_made_first():
    x, w, b = of_arrays(rng.normal(size=(64, 300)), rng.normal(size=(300, 256)), rng.normal(size=256))

    def program(x, w, b):
        return F.gelu((x.to(tenon.float16).to(tenon.float32) * 0.5) @ (w * 0.1) + b)

    f = relaxed(program)
    # Relaxed, x is not rounded on the way.
    expected = F.gelu((x * 0.5) @ (w * 0.1) + b)
    assert (f(x, w, b) - expected).abs().max().item() < 2e-5
    assert region_of(f)["engine"] == "onednn"


@needs_onednn
def test_batches():
    q, k = of_arrays(rng.normal(size=(4, 64, 64)), rng.normal(size=(4, 64, 96)))

    def program(q, k):
        return (F.gelu(tenon.bmm(q, k) * 0.125), q.sum())[0]

    f = relaxed(program)
    assert (f(q, k) - program(q, k)).abs().max().item() < 2e-5


@needs_onednn
@pytest.mark.parametrize("stride, padding, dilation, groups", [(1, 1, 1, 1), (2, 0, 1, 1), (1, 1, 2, 1), (1, 1, 1, 2)])
def test_convolutions(stride, padding, dilation, groups):
    x, w, b = of_arrays(rng.normal(size=(8, 8, 24, 24)), rng.normal(size=(32, 8 // groups, 3, 3)), rng.normal(size=32))

    def program(x, w, b, c):
        y = F.gelu(F.conv2d(x, w, b, stride, padding, dilation, groups) * c)
        return y, y.relu().sum(3)

    f = relaxed(program)
    c = tenon.ones(32, 1, 1) * 0.1
    for actual, expected in zip(f(x, w, b, c), program(x, w, b, c)):
        assert (actual - expected).abs().max().item() < 1e-4 and actual.is_contiguous()
    assert region_of(f)["engine"] == "onednn"


@needs_onednn
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_nan_stays_one(name):
    function = FUNCTIONS[name][0]
    x, w, b = of_arrays(rng.normal(size=(64, 256)), rng.normal(size=(256, 256)), rng.normal(size=256))
    x[5, 7] = float("nan")
    f = relaxed(lambda x, w, b: function(x @ w + b))
    y = f(x, w, b)
    assert region_of(f)["engine"] == "onednn"
    assert y[5].isnan().all() and not y[:5].isnan().any() and not y[6:].isnan().any()


def test_functions_that_would_lose_a_nan_are_not_its():
    x = tenon.randn(64, 256)
    x[0, 0] = float("nan")
    f = relaxed(lambda x, w, b: (x @ w + b).relu())
    assert f(x, tenon.randn(256, 256), tenon.randn(256))[0].isnan().all()


@needs_onednn
def test_other_threads_and_numbers_of_threads():
    x, w, b = of_arrays(rng.normal(size=(64, 256)), rng.normal(size=(256, 256)) / 16, rng.normal(size=256))
    expected = product(x, w, b)
    f = relaxed(product)
    before = tenon.get_num_threads()
    try:
        for threads in (1, 2, 1):
            tenon.set_num_threads(threads)
            assert (f(x, w, b) - expected).abs().max().item() < 2e-5
    finally:
        tenon.set_num_threads(before)
    errors = []

    def many():
        errors.extend((f(x, w, b) - expected).abs().max().item() for _ in range(20))

    workers = [threading.Thread(target=many) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(errors) == 80 and max(errors) < 2e-5


STRICT_AND_FORKS = """
import os
import tenon
import tenon.nn.functional as F

f = tenon.compile(lambda x, w, b: F.gelu(x @ w + b), threshold=0, relaxed=True)
x, w, b = tenon.randn(64, 256), tenon.randn(256, 256), tenon.randn(256)
f(x, w, b)
assert f.explain().of("segment")[0]["regions"][0]["engine"] == "onednn"
if not (child := os.fork()):
    os._exit((f(x, w, b) - F.gelu(x @ w + b)).abs().max().item() != 0)
assert os.waitpid(child, 0)[1] == 0
for strict in (True, False, True):  # one plan for both
    tenon.set_strict(strict)
    difference = (f(x, w, b) - F.gelu(x @ w + b)).abs().max().item()
    assert (difference == 0) == strict, (strict, difference)
assert len(f.explain().of("segment")) == 1
# A program that was compiled in strict mode calls the library out of it.
g = tenon.compile(lambda x, w, b: F.gelu(x @ w + b) + 1, threshold=0, relaxed=True)
expected = F.gelu(x @ w + b) + 1
assert g(x, w, b).equal(expected)
tenon.set_strict(False)
assert not g(x, w, b).equal(expected)
"""


@needs_onednn
def test_strict_mode_and_forked_children_do_without():
    paths = os.pathsep.join([os.path.dirname(os.path.dirname(tenon.__file__)), os.environ.get("PYTHONPATH", "")])
    subprocess.run([sys.executable, "-c", STRICT_AND_FORKS], env={**os.environ, "PYTHONPATH": paths}, check=True)


GRAPH_FIRST = """
import tenon
import tenon.nn.functional as F

x, w, b = tenon.randn(64, 256), tenon.randn(256, 256), tenon.randn(256)
g = tenon.pygraph(io_data_type=tenon.float32)
product = g.matmul(A=g.tensor_like(x), B=g.tensor_like(w))
g.gelu(input=g.bias(input=product, bias=g.tensor_like(b))).set_output(True)
g.validate()
g.build_operation_graph()
g.create_execution_plan("fused", {"relaxed": 1})
g.check_support()
g.build_plans()
f = tenon.compile(lambda x, w, b: F.gelu(x @ w + b), threshold=0, relaxed=True)
f(x, w, b)
assert f.explain().of("segment")[0]["regions"][0]["engine"] == "onednn"
"""


@needs_onednn
def test_a_relaxed_graph_finds_it_too():
    paths = os.pathsep.join([os.path.dirname(os.path.dirname(tenon.__file__)), os.environ.get("PYTHONPATH", "")])
    subprocess.run([sys.executable, "-c", GRAPH_FIRST], env={**os.environ, "PYTHONPATH": paths}, check=True)


def refusal_of(compiled):
    (why,) = [why for why in region_of(compiled)["refused"] if why.startswith("onednn: ")]
    return why.removeprefix("onednn: ")


def test_without_relaxed_it_declines():
    arguments = tenon.ones(2048, 64), tenon.ones(64, 512), tenon.ones(512)
    f = tenon.compile(product, threshold=0)
    f(*arguments)
    assert refusal_of(f) == "its bits are not eager's; compile(relaxed=True) allows that"


@needs_onednn
def test_what_it_does_not_compute():
    x, w = tenon.randn(2048, 64), tenon.randn(64, 512)

    def why(program, *arguments):
        f = relaxed(program)
        f(*arguments)
        return refusal_of(f)

    assert "float64" in why(lambda x, w: F.gelu(x @ w + 1), x.double(), w.double())
    assert "together with it" in why(lambda x, w: (x @ w).relu() + x.sum(), x, w)
    assert "over what is read" in why(lambda x, w: x[:, :64].copy_(F.gelu(x @ w[:, :64] * 2)), x, w)
    assert "in rows" in why(lambda x, w: F.gelu(x.flip(1) @ w + 1), x, w)


NOT_INSTALLED = """
import tenon
f = tenon.compile(lambda x: (x @ x + 1).sigmoid() * 2, threshold=0, relaxed=True)
f(tenon.ones(1024, 1024))
print(f.explain())
"""


def test_a_machine_without_it():
    text = in_bare_root("python", "-c", NOT_INSTALLED)
    assert "not by onednn: oneDNN is not installed: the loader finds no libdnnl.so.3; `pip install onednn-cpu-gomp`" in text
