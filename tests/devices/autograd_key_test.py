"""Kernels for a device's Autograd key alone, which PyTorch runs for every tensor of the device, and whatever is below it."""

import pytest

import tenon
from tenon.library import Library


@pytest.fixture
def lib():
    with Library("alone", "DEF") as ops:
        yield ops


def noted(calls, text, result):
    def kernel(*args):
        calls.append(text)
        return result(*args)

    return kernel


def test_it_runs_without_requires_grad(lib, openreg):
    calls = []
    lib.define("f(Tensor x, float by) -> Tensor")
    lib.impl("f", noted(calls, "autograd", lambda x, by: x * by), "AutogradOpenReg")
    f, x = tenon.ops.alone.f, tenon.ones(2, device="openreg")
    assert f(x, 2.0).tolist() == [2, 2] and f(x.requires_grad_(), 3.0).tolist() == [3, 3]
    with tenon.no_grad():
        assert f(x, 4.0).tolist() == [4, 4]
    y = f(x, 5.0)
    y.sum().backward()
    assert x.grad.tolist() == [5, 5] and calls == ["autograd"] * 4
    cell = {c.key: c for c in tenon.dispatch.computed_table("alone::f")}["OpenReg"]
    assert cell.source == "kernel" and cell.file == __file__
    assert tenon.dispatch.has_kernel_for_key("alone::f", "OpenReg")
    tenon.dispatch.check_invariants("alone::f")
    with pytest.raises(NotImplementedError, match="'alone::f' is not implemented for device cpu"):
        f(tenon.ones(2), 1.0)


def test_below_autograd_there_is_nothing(lib, openreg):
    """As PyTorch: where the key is excluded, and where the kernel goes on below it."""
    lib.define("f(Tensor x) -> Tensor")
    lib.define("g(Tensor x, int[] sizes) -> Tensor")
    lib.impl("f", lambda x: x + 1, "AutogradOpenReg")
    lib.impl("g", lambda keys, x, sizes: tenon.ops.alone.g.default.redispatch(keys - tenon.dispatch.DispatchKeySet("AutogradOpenReg"), x, sizes),
             "AutogradOpenReg", with_keyset=True)  # fmt: skip
    f, g, x = tenon.ops.alone.f, tenon.ops.alone.g, tenon.ones(2, device="openreg")
    with tenon.dispatch.exclude("AutogradOpenReg"), pytest.raises(NotImplementedError, match="'alone::f' is not implemented for device openreg"):
        f(x)
    for y in (x, x.clone().requires_grad_()):
        with pytest.raises(NotImplementedError, match="'alone::g' is not implemented for device openreg; kernels exist for: AutogradOpenReg"):
            g(y, [1])


def test_a_kernel_may_call_its_own_operator(lib, openreg):
    lib.define("count(Tensor x, int n) -> Tensor")
    lib.impl("count", lambda x, n: x.clone() if n == 0 else tenon.ops.alone.count(x, n - 1) + n, "AutogradOpenReg")
    assert tenon.ops.alone.count(tenon.zeros(2, device="openreg"), 4).tolist() == [10, 10]


def test_a_kernel_below_it_runs_without_requires_grad(lib, openreg):
    """docs/differences.md: the Autograd key is on tensors that take part."""
    calls = []
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", noted(calls, "autograd", lambda x: x * 2), "AutogradOpenReg")
    with Library("alone", "IMPL", "OpenReg") as below:
        below.impl("f", noted(calls, "below", lambda x: x * 2))
        tenon.ops.alone.f(tenon.ones(2, device="openreg"))
    tenon.ops.alone.f(tenon.ones(2, device="openreg"))
    assert calls == ["below", "autograd"]


def test_it_goes_before_host_copies_and_on_to_them(openreg):
    """Of an operator that the device runs on host copies otherwise."""
    calls = []
    below = tenon.dispatch.DispatchKeySet("AutogradOpenReg")

    def cumsum(keys, x, dim, *, dtype=None):
        calls.append("autograd")
        return tenon.ops.aten.cumsum.default.redispatch(keys - below, x, dim, dtype=dtype)

    with Library("aten", "IMPL") as lib:
        lib.impl("cumsum", cumsum, "AutogradOpenReg", with_keyset=True)
        tenon.reset_fallbacks()
        assert tenon.ones(3, device="openreg").cumsum(0).tolist() == [1, 2, 3]
        assert calls == ["autograd"] and tenon.fallbacks("openreg")["aten::cumsum"]["calls"] == 1


def test_a_kernel_for_every_autograd_key_alone(lib, openreg):
    """It is all that the operator has."""
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x * 2, "Autograd")
    for device in ("cpu", "openreg"):
        assert tenon.ops.alone.f(tenon.ones(2, device=device)).tolist() == [2, 2]
    with Library("alone", "IMPL", "CPU") as cpu:
        cpu.impl("f", lambda x: x * 3)
        assert tenon.ops.alone.f(tenon.ones(2)).tolist() == [3, 3]
        assert tenon.ops.alone.f(tenon.ones(2, device="openreg")).tolist() == [3, 3], "the host's, as the operator has one"


def test_a_recorded_program_runs_it(lib, openreg):
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x * 2, "Autograd")

    @tenon.compile
    def program(x):
        return tenon.ops.alone.f(x + 1) + 1

    assert program(tenon.ones(2)).tolist() == [5, 5] and program(tenon.ones(2)).tolist() == [5, 5]


def test_a_formula_is_no_kernel(lib, openreg):
    """register_autograd computes nothing."""
    lib.define("f(Tensor x) -> Tensor")
    lib.define("g(Tensor x) -> Tensor")
    for op in "fg":
        tenon.library.register_autograd(f"alone::{op}", lambda ctx, grad: grad * 2, lib=lib)
    lib.impl("f", lambda x: x * 3, "CPU")
    tenon.reset_fallbacks()
    assert tenon.ops.alone.f(tenon.ones(2, device="openreg")).tolist() == [3, 3]
    assert tenon.fallbacks("openreg")["alone::f"]["calls"] == 1
    for x in (tenon.ones(2), tenon.ones(2, device="openreg")):
        with pytest.raises(NotImplementedError, match="'alone::g' is not implemented for device"):
            tenon.ops.alone.g(x)
