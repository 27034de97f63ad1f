"""Products with what is computed before and after them, of every layout and size: one region or not, the same bits."""

import pytest
from beside_eager import alike, same

import tenon
import tenon.nn.functional as F


def x_of(*shape):
    return (tenon.arange(tenon.ones(shape).numel(), dtype=tenon.float32).reshape(shape) % 11 - 5) / 7


def bias_gelu_row_sum(x, w, b):
    y = F.gelu(x @ w + b)
    return y, y.sum(1)


def cast_and_scale_before(x, w, b):
    y = (x.to(tenon.float16).to(tenon.float32) * 0.5) @ w
    return F.gelu(y + b), y.amax(1)


def linear_relu_mean(x, w, b):
    return F.linear(x, w.t(), b).relu().mean(-1)


def two_uses_of_a_product(x, w, b):
    y = x @ w
    return y + b, y * y, (y + b).sum(0)


def product_of_products(x, w, b):
    return ((x @ w) @ (w.t() * 2)).tanh() @ w + b


def residual(x, w, b):
    return x @ w + (x @ w).relu() - b


LAYOUTS = {
    "contiguous": lambda m, k, n: (x_of(m, k), x_of(k, n), x_of(n)),
    "transposed": lambda m, k, n: (x_of(k, m).t(), x_of(n, k).t(), x_of(n)),
    "flipped": lambda m, k, n: (x_of(m, k).flip(1), x_of(k, n).flip(0), x_of(n)),
    "expanded": lambda m, k, n: (x_of(1, k).expand(m, k), x_of(k, 1).expand(k, n), x_of(1).expand(n)),
    "offset": lambda m, k, n: (x_of(m + 1, k + 2)[1:, 2:], x_of(k, 2 * n)[:, ::2], x_of(n + 1)[1:]),
}


@pytest.mark.parametrize("f", [
    bias_gelu_row_sum, cast_and_scale_before, linear_relu_mean, two_uses_of_a_product, product_of_products, residual,
])  # fmt: skip
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("m, k, n", [(3, 4, 5), (64, 100, 48), (1, 7, 1), (0, 4, 5), (3, 0, 5), (3, 4, 0), (130, 33, 257)])
def test_products(f, layout, m, k, n):
    if "amax" in f.__code__.co_names and n == 0:
        pytest.skip("the largest of no elements")
    same(f, *LAYOUTS[layout](m, k, n))


def test_batched_products():
    def f(q, k, v):
        scores = (q @ k.transpose(-1, -2)) / 8.0
        return (scores.masked_fill(scores > 1, -float("inf")).softmax(-1) @ v).transpose(1, 2).flatten(2)

    same(f, x_of(2, 4, 9, 16), x_of(2, 4, 9, 16) + 0.1, x_of(2, 4, 9, 16) * 2)


@pytest.mark.parametrize("stride, padding, groups", [(1, 1, 1), (2, 0, 1), (1, 0, 2)])
def test_convolutions(stride, padding, groups):
    def f(x, w, b):
        y = F.conv2d(x, w, b, stride, padding, 1, groups).relu()
        return y, F.conv2d(x * 2 - 1, w, None, stride, padding, 1, groups).sum((2, 3)), y.mean((0, 2, 3))

    same(f, x_of(2, 4, 9, 9), x_of(6, 4 // groups, 3, 3), x_of(6))


def test_norms_written_out():
    def f(x, w, b):
        mean = x.mean(-1, keepdim=True)
        var = ((x - mean) * (x - mean)).mean(-1, keepdim=True)
        norm = (x - mean) / (var + 1e-5).sqrt() * w + b
        top = x.amax(-1, keepdim=True)
        e = (x - top).exp()
        return norm, e / e.sum(-1, keepdim=True), x * (x * x).mean(-1, keepdim=True).add(1e-6).rsqrt() * w

    for shape in ((4, 8), (3, 100), (2, 5, 33), (300, 257)):
        same(f, x_of(*shape), x_of(shape[-1]), x_of(shape[-1]))


def test_halves_around_a_product():
    def program(c):
        results = []
        for dtype in (tenon.float16, tenon.bfloat16, tenon.float64):
            x, w, b = (t.to(dtype) for t in LAYOUTS["contiguous"](9, 12, 10))
            results.append(c(bias_gelu_row_sum)(x, w, b))
        return results

    alike(program)


def test_integers():
    def f(x, w):
        return (x @ w + 1) * 2, (x @ w).sum(0)

    same(f, (x_of(4, 5) * 7).to(tenon.int64), (x_of(5, 3) * 7).to(tenon.int64))


def test_the_report_names_the_engine_and_why_others_declined():
    x, w, b = x_of(8, 16, 24, 24), x_of(32, 16, 3, 3), x_of(32, 1, 1)
    f = tenon.compile(lambda: (F.conv2d(x, w) + b).relu(), threshold=0)
    f()
    (segment,) = f.explain().of("segment")
    (region,) = segment["regions"]
    assert region["operators"] == ["aten::convolution", "aten::add.Tensor", "aten::relu"]
    assert region["engine"] == "composed"
    assert [why.split(":")[0] for why in region["refused"]] == ["onednn", "jit", "interpreter"]
    assert "run by composed" in str(f.explain())


def test_loops_name_their_engine_too():
    x = x_of(64, 256)
    kernels = ("jit", "interpreter")  # no machine code without fma
    for f, engines in ((lambda: (x * 2 + 1).relu().sum(1), ("rows",)), (lambda: (x * 2 + 1).relu(), kernels)):
        compiled = tenon.compile(f, threshold=0)
        compiled()
        (region,) = compiled.explain().of("segment")[0]["regions"]
        assert region["engine"] in engines, region
        assert any(why.startswith("composed: ") for why in region["refused"])


def test_a_small_product_says_what_it_would_cost():
    x, w, b = x_of(2, 8), x_of(8, 8), x_of(8)
    f = tenon.compile(lambda: x @ w + b, threshold=0)
    f()
    (segment,) = f.explain().of("segment")
    assert any(operator == "aten::mm" and "no faster" in reason for operator, _, reason in segment["opaque"]), segment
