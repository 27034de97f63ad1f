"""Modes that a program switches while it is recorded."""

import pytest
from beside_eager import alike, same

import tenon


def x_of(*shape):
    return tenon.linspace(-1, 2, tenon.ones(shape).numel()).reshape(shape)


def test_no_grad_and_enable_grad():
    def f(x):
        a = x * 2
        with tenon.no_grad():
            b = a * 3
            with tenon.enable_grad():
                c = b * x
            x.add_(1)
        d = a + b + c
        return a, b, c, d, tenon.is_grad_enabled()

    same(f, x_of(4).requires_grad_())


def test_inference_mode_inside():
    def f(x):
        y = x * 2
        with tenon.inference_mode():
            z = y + 1
            z.mul_(2)
            v = z[1:]
        return y, z, v, z.is_inference(), x + z

    same(f, x_of(4))


def test_inference_mode_around():
    def program(c):
        f = c(lambda x: (x * 2 + 1).relu_())
        with tenon.inference_mode():
            inside = f(x_of(4))
        return inside, inside.is_inference(), f(x_of(4))

    alike(program)


def test_inference_tensors_refuse_history_as_eager():
    def f(x):
        with tenon.inference_mode():
            y = x.detach() * 2
        y.requires_grad_()
        return (y * x).sum().backward()

    same(f, x_of(4).requires_grad_())


def test_default_dtype():
    def f(x):
        a = tenon.ones(3) * x
        tenon.set_default_dtype(tenon.float64)
        b = tenon.ones(3) * x
        c = tenon.tensor([0.5]) + (x > 0)
        d = (x > 0) * 1.5
        tenon.set_default_dtype(tenon.float32)
        return a, b, c, d, tenon.arange(3) / 2

    same(f, x_of(3))


def test_strict():
    """What the product computes follows the flag of the call, not that of the flush."""

    def f(x):
        a = x @ x
        tenon.set_strict(True)
        b = x @ x
        tenon.set_strict(False)
        return a, b, (a - b).abs().max(), x @ x

    same(f, x_of(200, 200))


def test_thread_count():
    def f(x):
        a = (x.exp() * 2).sum()
        tenon.set_num_threads(2)
        b = (x.exp() * 2).sum()
        tenon.set_num_threads(1)
        return a, b, x.sin() + b

    same(f, x_of(300, 301))


def test_a_mode_left_on_by_an_exception_is_left_alike():
    def f(x):
        y = x * 2
        x.add_(y)
        tenon.set_strict(True)
        raise ValueError

    assert same(f, x_of(4))["modes"]["strict"]


@pytest.mark.parametrize("mode", [tenon.no_grad, tenon.enable_grad, tenon.inference_mode])
def test_decorators_around_and_inside(mode):
    def program(c):
        x = x_of(4).requires_grad_()
        return c(mode(lambda: x * 2 + 1))(), mode(c(lambda: x * 2 + 1))()

    alike(program)


def test_other_devices():
    def f(x):
        m = (x * 2).to("meta")
        n = m + tenon.empty(3, device="meta")
        return n.shape, n.device.type, x + 1, tenon.zeros(2, device="meta").expand(4, 2).stride()

    same(f, x_of(3))


def test_kernels_are_reported():
    """What ran is counted by the names of the operators that the program called."""
    tenon.set_kernel_reporting(True)
    try:
        tenon.compile(lambda x: (x * 2 + 1).relu().sum(), threshold=0)(x_of(400))
        named = {operator for operator, _, _ in tenon.kernel_counts()}
    finally:
        tenon.set_kernel_reporting(False)
    assert any("mul" in name for name in named) and any("relu" in name for name in named), named
