"""The worked examples 7, 11 and 13 of the documentation, in Python; the C++ twin of 7 is beside this file."""

import gc
import time

import numpy as np
import pytest

import tenon
from tenon.library import Library, register_autograd


def test_7_declared_then_implemented_and_overridden():
    with Library("myops", "DEF") as m:
        m.define("myadd(Tensor self, Tensor other) -> Tensor")
        m.impl("myadd", lambda self, other: self + other)

        @tenon.library.define(m, "mysub(Tensor self, Tensor other) -> Tensor")
        def mysub(self, other):
            return self - other

        a, b = tenon.tensor([5.0]), tenon.tensor([2.0])
        ops = tenon.ops.myops
        assert ops.myadd(a, b).item() == 7.0 and ops.mysub(a, b).item() == 3.0
        # A catch-all kernel is differentiated through what it calls.
        x = tenon.tensor([5.0], requires_grad=True)
        ops.mysub(b, x).backward()
        assert x.grad.item() == -1.0

        # A kernel for a key wins over a catch-all one.
        with Library("myops", "IMPL", "CPU") as cpu:
            cpu.impl("myadd", lambda self, other: self + other + 100)
            assert ops.myadd(a, b).item() == 107.0
            # A second registration for the same key overrides; both places are reported.
            second = Library("myops", "IMPL", "CPU")
            second.impl("myadd", lambda self, other: self + other + 1000)
            assert ops.myadd(a, b).item() == 1007.0
            dump = tenon.dispatch.dump_registrations("myops::myadd")
            head = next(line for line in dump.splitlines() if line.startswith("CPU: "))
            assert head.count(__file__) == 2 and "overrides" in head
            # Unloading restores the first.
            second._destroy()
            assert ops.myadd(a, b).item() == 107.0
        assert ops.myadd(a, b).item() == 7.0
        assert tenon.dispatch.has_kernel_for_key("myops::myadd", "Meta")


@pytest.fixture
def norm():
    """A scaled and shifted RMS norm: five inputs, two outputs, a graph for each shape, stride, dtype, device and configuration,
    executed by its sorted addresses."""
    lib = Library("worked11", "DEF")
    lib.define("norm(Tensor x, Tensor weight, float eps, bool center, Tensor? bias=None) -> (Tensor, Tensor)")

    @tenon.cached_plan
    def kernel(g, x, weight, eps, center, bias):
        if center:
            x = g.sub(x, g.reduction(x, "AVG").set_dim([*x.get_dim()[:-1], 1]))
        return g.rmsnorm("TRAINING", x, scale=weight, bias=bias, epsilon=eps)

    lib.impl("norm", kernel, "CPU")
    lib.impl("norm", kernel, "Meta")

    def setup_context(ctx, inputs, output):
        x, weight, eps, center, bias = inputs
        ctx.save_for_backward(x, weight, output[1])
        ctx.center = center

    def backward(ctx, grad, grad_scale):
        x, weight, scale = ctx.saved_tensors
        if ctx.center:
            x = x - x.mean(-1, keepdim=True)
        normalized = x * scale
        g = grad * weight
        grad_x = scale * (g - normalized * (g * normalized).mean(-1, keepdim=True))
        grad_x = grad_x - grad_scale * scale * scale * normalized / x.shape[-1]
        if ctx.center:
            grad_x = grad_x - grad_x.mean(-1, keepdim=True)
        return grad_x, (grad * normalized).sum(0), None, None, None

    register_autograd("worked11::norm", backward, setup_context=setup_context, lib=lib)
    op = tenon.ops.worked11.norm
    yield op, kernel
    lib._destroy()


def reference(x, weight, eps, center, bias=None):
    x = x - x.mean(-1, keepdims=True) if center else x
    scale = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    y = x * scale * weight
    return (y if bias is None else y + bias), scale


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
def test_11_a_custom_operator_from_end_to_end(norm, center, with_bias):
    norm, _ = norm
    rng = np.random.default_rng(11)
    x, weight = rng.standard_normal((4, 6)), rng.standard_normal(6)
    bias = rng.standard_normal(6) if with_bias else None
    tx, tw = tenon.tensor(x, requires_grad=True), tenon.tensor(weight, requires_grad=True)
    tb = None if bias is None else tenon.tensor(bias)
    y, scale = norm(tx, tw, 1e-5, center, tb)
    want_y, want_scale = reference(x, weight, 1e-5, center, bias)
    np.testing.assert_allclose(y.detach().numpy(), want_y, rtol=1e-12)
    np.testing.assert_allclose(scale.detach().numpy(), want_scale, rtol=1e-12)
    assert y.grad_fn.name() == "NormBackward0"

    # The gradients by x and weight; eps, center and bias have none.
    gy, gs = rng.standard_normal((4, 6)), rng.standard_normal((4, 1))
    tenon.autograd.backward([y, scale], [tenon.tensor(gy), tenon.tensor(gs)])

    def loss(x, weight):
        y, scale = reference(x, weight, 1e-5, center, bias)
        return (y * gy).sum() + (scale * gs).sum()

    for value, grad, f in ((x, tx.grad, lambda v: loss(v, weight)), (weight, tw.grad, lambda v: loss(x, v))):
        slope = np.zeros_like(value)
        for i in np.ndindex(value.shape):
            h = np.zeros_like(value)
            h[i] = 1e-6
            slope[i] = (f(value + h) - f(value - h)) / 2e-6
        np.testing.assert_allclose(grad.numpy(), slope, rtol=1e-6, atol=1e-8)

    # Only one of the outputs used: the other's gradient is zero.
    y, scale = norm(tx, tw, 1e-5, center, tb)
    (only,) = tenon.autograd.grad(scale.sum(), tx)
    assert only.shape == (4, 6)


def test_11_graphs_are_cached_by_what_they_depend_on(norm):
    norm, kernel = norm
    x, weight, bias = tenon.randn(4, 6), tenon.randn(6), tenon.randn(6)
    for calls in ([(x, weight, 1e-5, False, None), (x + 1, weight, 1e-3, False, None)],  # other values: the same graph
                  [(x, weight, 1e-5, True, None)], [(x, weight, 1e-5, False, bias)], [(x[::2], weight, 1e-5, False, None)],
                  [(x.T.contiguous().T, weight, 1e-5, False, None)], [(x.half(), weight.half(), 1e-5, False, None)]):  # fmt: skip
        before = kernel.cache_info().misses
        for call in calls:
            y, scale = norm(*call)
        assert kernel.cache_info().misses == before + 1
        # What a call does: the addresses of arguments and results in the order of their UIDs, and a workspace of its own.
        x_, w_, eps, center, b_ = calls[-1]
        g = kernel.find(*calls[-1])
        workspace = tenon.empty(g.get_workspace_size(), dtype=tenon.uint8)
        number, own_y, own_scale = tenon.tensor(eps, dtype=tenon.float64), tenon.empty_like(y), tenon.empty_like(scale)
        there = [t for t in (x_, w_, number, b_, own_y, own_scale) if t is not None]
        assert g._get_variant_pack_uids_sorted() == ([1, 2, 3, 5, 6, 7] if b_ is not None else [1, 2, 3, 6, 7])
        g._execute_with_ptrs([t.data_ptr() for t in there], workspace)
        assert tenon.equal(own_y, y) and tenon.equal(own_scale, scale)


def test_11_the_fake_kernel_infers_shapes(norm):
    norm, _ = norm
    y, scale = norm(tenon.empty(8, 3, device="meta"), tenon.empty(3, device="meta"), 1e-5, False)
    assert y.is_meta and y.shape == (8, 3) and scale.shape == (8, 1)


def test_13_ten_thousand_small_calls_against_one(capsys):
    n = 10_000
    source = np.random.default_rng(13).random(n, dtype=np.float32)
    r = tenon.tensor(source)
    gc.collect()
    start = time.perf_counter()
    for i in range(n):
        r[i] = r[i] * 2 + 1
    loop = time.perf_counter() - start

    v = tenon.tensor(source)
    start = time.perf_counter()
    v = v * 2 + 1
    vectorised = time.perf_counter() - start

    want = source * np.float32(2) + np.float32(1)
    np.testing.assert_array_equal(r.numpy(), want)
    np.testing.assert_array_equal(v.numpy(), want)
    # Five operators a turn: select, mul, add, select, copy_.
    with capsys.disabled():
        print(f"\n10,000 x r[i] = r[i]*2+1: {loop * 1e3:.1f} ms, {loop / n * 1e9:.0f} ns a turn, "
              f"{loop / n / 5 * 1e9:.0f} ns an operator; one vectorised call: {vectorised * 1e6:.0f} us, "
              f"{loop / vectorised:.0f} times less")  # fmt: skip
