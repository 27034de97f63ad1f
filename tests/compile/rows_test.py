"""Reductions and norms written out: one region over rows, with the bits of the calls one by one."""

import pytest
from beside_eager import same

import tenon


def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def norm(x):
    d = x - x.mean(-1, keepdim=True)
    return d * ((d * d).mean(-1, keepdim=True) + 1e-5).rsqrt()


def values_of_rows_beside_elements(x):
    m = x.mean(-1, keepdim=True)
    return m * 2, x - m, (x - m).argmax(-1)


def value_of_rows_in_place_of_one_that_is_read(x):
    # The sums would fit where the running sums were, which each of them reads.
    q = x[:, :1].cumsum(0)
    return (x - q).sum(-1, keepdim=True)


def writes_elements_in_place(x):
    x.sub_(x.amax(-1, keepdim=True))
    return x.sum(-1)


def reduces_and_writes_what_it_reads(x):
    s = (x * 3 + 1).sum(-1)
    x.mul_(2)
    return s, x.amin(-1)


def reduces_as_it_lies_and_writes(x):
    s = x.sum(-1)
    x.mul_(2).add_(1)
    return s, (x * x).amax(-1)


@pytest.mark.parametrize("shape", [(2048, 3), (16, 512), (7, 130), (3, 5, 64), (4, 0), (1, 1)])
@pytest.mark.parametrize("dtype", [tenon.float32, tenon.float16, tenon.float64])
@pytest.mark.parametrize(
    "f",
    [
        softmax,
        norm,
        values_of_rows_beside_elements,
        value_of_rows_in_place_of_one_that_is_read,
        writes_elements_in_place,
        reduces_and_writes_what_it_reads,
        reduces_as_it_lies_and_writes,
    ],
)
def test_rows(f, shape, dtype):
    x = (tenon.arange(tenon.ones(shape).numel(), dtype=tenon.float32).reshape(shape) % 23 - 11).to(dtype) / 5
    same(f, x)


def batch_norm_step(x, w, shortcut):
    """A batch norm with what is around it in a convolutional network, and its gradients."""
    x, w = x.requires_grad_(), w.requires_grad_()
    y = tenon.nn.functional.batch_norm(x, None, None, w, w, training=True)
    z = tenon.relu(y + shortcut)
    (z * z).mean().backward()
    return z, x.grad, w.grad


@pytest.mark.parametrize("shape", [(3, 5, 4, 7), (4, 2, 64, 80), (700, 3, 2), (2, 3, 20, 1), (3, 2, 0)])
@pytest.mark.parametrize("dtype", [tenon.float32, tenon.bfloat16, tenon.float64])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "backwards"])
def test_rows_in_pieces(shape, dtype, layout):
    tenon.manual_seed(1)
    x = tenon.randn(shape).to(dtype)
    if layout == "backwards":
        x = x.flip(-1) if x.dim() < 4 else x.transpose(2, 3).contiguous().transpose(2, 3)
    elif layout == "channels_last" and len(shape) == 4:
        x = x.contiguous(memory_format=tenon.channels_last)
    same(batch_norm_step, x, tenon.rand(shape[1]).to(dtype), tenon.randn(shape).to(dtype))


@pytest.mark.parametrize("shape", [(16, 8, 32, 32), (2, 3, 200, 200)])
def test_batch_norms_join_what_is_around_them(shape):
    compiled = tenon.compile(batch_norm_step)
    for _ in range(3):
        compiled(tenon.randn(shape), tenon.rand(shape[1]), tenon.randn(shape))
    joined = [line for line in str(compiled.explain()).splitlines() if "region_" in line]
    assert any("_batch_norm_training" in line and "aten::relu," in line for line in joined)
    assert any("_batch_norm_backward" in line and "aten::relu_backward" in line for line in joined)


def test_long_rows_join():
    compiled = tenon.compile(softmax)
    for _ in range(3):
        compiled(tenon.randn(2, 50257))
    assert "1 step" in str(compiled.explain())


def sums_of_what_is_kept(x, y, w):
    """Of what is stored and of what a later pass needs again, with a factor that all rows share."""
    g = x * w * tenon.full((), 1.5, dtype=x.dtype)
    m, s = g.mean(-1, keepdim=True), (g * y).sum(-1, keepdim=True)
    return g, (g - m * y) * s


def sums_alone(x, y, w):
    return (x * w).sum(-1), tenon.sin(x * 1000).sum(-1), (x * y).mean(-1)


def sums_beside_a_maximum(x, y, w):
    return (x * y).sum(-1), (x * w).amax(-1)


# So often that rows are machine code in the end, with the bits of the calls.
@pytest.mark.parametrize("f", [sums_of_what_is_kept, sums_alone, sums_beside_a_maximum])
@pytest.mark.parametrize("shape", [(64, 17), (300, 256), (33, 1025), (5, 5000), (1, 40000)])
@pytest.mark.parametrize("dtype", [tenon.float32, tenon.bfloat16])
@pytest.mark.parametrize("contiguous", [True, False])
def test_sums_of_rows_as_machine_code(f, shape, dtype, contiguous):
    tenon.manual_seed(2)
    x, y, w = tenon.randn(shape).to(dtype), tenon.randn(shape).to(dtype), tenon.rand(shape[1]).to(dtype)
    if not contiguous:
        x, y = x.t().contiguous().t(), y[:1].expand(shape)
    compiled, expected = tenon.compile(f), f(x, y, w)
    for _ in range(300_000 // x.numel() + 4):
        for got, want in zip(compiled(x, y, w), expected, strict=True):
            assert got.dtype == want.dtype and bool((got == want).all())
