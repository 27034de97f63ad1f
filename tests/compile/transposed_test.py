"""Loops with operands that lie across them, which are read by blocks: eager's bits."""

import pytest

import tenon

SHAPES = [(64, 64), (65, 700), (700, 65), (16, 1500), (1500, 16), (257, 513), (1030, 33)]


def chain(x, y):
    return (x.t() * y + 1).tanh() * y + x.t()


def several_outputs(x, y):
    z = x.t() - y
    return z * 2, (z > 0), z.abs()


def in_place(x, y):
    y.mul_(x.t()).add_(1)
    return y


@pytest.mark.parametrize("program", [chain, several_outputs, in_place], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [tenon.float32, tenon.float64, tenon.float16, tenon.int32, tenon.int8, tenon.complex64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bits_are_eagers(shape, dtype, program):
    if dtype == tenon.complex64 and program is several_outputs:
        pytest.skip("complex numbers have no order")
    m, n = shape
    x, y = ((tenon.randn(*size) * 20).to(dtype) for size in ((n, m), (m, n)))
    if program is in_place and not dtype.is_floating_point:
        x = x.clamp(-2, 2) if not dtype.is_complex else x
    copy = y.clone()
    wanted, result = program(x, copy), tenon.compile(program, threshold=0)(x, y)
    for a, b in zip((*(wanted if isinstance(wanted, tuple) else (wanted,)), copy), (*(result if isinstance(result, tuple) else (result,)), y), strict=True):
        assert a.dtype == b.dtype and a.stride() == b.stride()
        assert a.contiguous().view(-1).numpy().tobytes() == b.contiguous().view(-1).numpy().tobytes()


def test_views_of_three_dimensions_and_steps():
    x, y = tenon.randn(40, 90, 70), tenon.randn(70, 40, 90)
    f = lambda x, y: x.permute(2, 0, 1) * y[:, :, :] + 1  # noqa: E731
    assert tenon.equal(tenon.compile(f, threshold=0)(x, y), f(x, y))
    x, y = tenon.randn(300, 400), tenon.randn(200, 300)
    g = lambda x, y: (x[:, ::2].t() * y + x.flip([0])[:, ::2].t()).exp()  # noqa: E731
    assert tenon.equal(tenon.compile(g, threshold=0)(x, y), g(x, y))
