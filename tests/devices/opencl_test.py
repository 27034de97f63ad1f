"""OpenCL as a device: what runs there has the CPU's bits, and what does not is declined. On PoCL here, on whatever
driver there is elsewhere."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import tenon
from tests.devices.conftest import OPENCL, OPENCL_ENVIRONMENT
from tests.devices.opencl_programs import run, same

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLOATS = (tenon.float32, tenon.float64)
STORED = (tenon.bool, tenon.uint8, tenon.int8, tenon.int16, tenon.int32, tenon.int64, tenon.float16, tenon.bfloat16,
          tenon.float32, tenon.float64, tenon.complex64, tenon.complex128)  # fmt: skip


def expressions_that_fell_back():
    return [name for name in tenon.fallbacks("opencl") if name.startswith("expression")]


def views(x):
    """A tensor of shape [6, 4] in every arrangement."""
    flat = x.flatten()
    return {
        "contiguous": x, "transposed": x.view(4, 6).t(), "negative": x.flip(0).flip(1).flip(0), "sliced": x[1::2, ::3],
        "offset": flat[5:17].view(3, 4), "expanded": x[:, :1].expand(6, 4), "0-dim": flat[3], "empty": x[:0],
        "overlapping": flat.as_strided([5, 4], [2, 1], 3),
    }  # fmt: skip


def test_what_it_says_of_itself(opencl):
    (description,) = [d for name, _, d in tenon.devices.loaded() if name == "opencl"]
    assert description.startswith("OpenCL: ")
    free, total = opencl.mem_get_info()
    x = tenon.ones(1000, device="opencl")
    assert opencl.mem_get_info()[0] <= free <= total and opencl.memory_allocated() >= 4000
    assert x.data_ptr() >> 62 == 1


def test_there_and_back(opencl):
    for dtype in STORED:
        x = tenon.arange(24).view(6, 4).to(dtype)
        for name, v in views(x.to("opencl")).items():
            same(v, views(x)[name])
            same(v.to(tenon.float64 if not dtype.is_complex else tenon.complex128), views(x)[name].to(
                tenon.float64 if not dtype.is_complex else tenon.complex128))  # fmt: skip


def test_copies_of_every_arrangement(opencl):
    """S28: host to device, device to host, on the device, with a change of dtype."""
    x = tenon.randn(6, 4)
    there = x.to("opencl")
    for name, v in views(there).items():
        want = views(x)[name]
        assert v.cpu().equal(want), name
        for dtype in (tenon.float32, tenon.float64, tenon.int16, tenon.bfloat16):
            for flipped in (False, True):
                source, host = (v.flip(0), want.flip(0)) if flipped and v.dim() else (v, want)
                dst = tenon.zeros(v.shape[::-1], dtype=dtype, device="opencl")
                dst.t().copy_(source) if v.dim() == 2 else dst.copy_(source)
                other = tenon.zeros(v.shape[::-1], dtype=dtype)
                other.t().copy_(host) if v.dim() == 2 else other.copy_(host)
                same(dst, other)
    y, host = there.clone(), x.clone()
    for t in (y, host):
        flat = t.view(-1)
        flat[1:].copy_(flat[:-1].clone())
        flat.as_strided([10], [1], 2).copy_(flat.as_strided([10], [1], 12))
        t[::2].copy_(tenon.arange(4.0).expand(3, 4))
        t.t()[1:3].fill_(7)
    same(y, host)


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_stored_dtypes_are_computed(opencl, dtype):
    x = tenon.tensor([[-3, 2, 0, 1], [7, -1, 5, 100]]).to(dtype)
    functions = [lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a == b, lambda a, b: tenon.where(a == b, a, b)]
    if not dtype.is_complex:
        functions += [lambda a, b: tenon.maximum(a, b), lambda a, b: a > b]
    if dtype.is_floating_point:
        functions += [lambda a, b: (a / b).exp(), lambda a, b: a.sin() * b.abs().sqrt()]
    opencl.warm_up(lambda: [f(x.to("opencl"), x.to("opencl").flip(1)) for f in functions])
    tenon.reset_fallbacks()
    for f in functions:
        same(f(x.to("opencl"), x.to("opencl").flip(1)), f(x, x.flip(1)))
    assert not expressions_that_fell_back()


def test_gradients_are_the_cpus(opencl):
    tenon.reset_fallbacks()
    for dtype in FLOATS:
        x = tenon.randn(5, 3, dtype=dtype)
        grads = []
        for device in ("opencl", "cpu"):
            a = x.clone().to(device).requires_grad_()
            b = x.t().contiguous().t().to(device).requires_grad_()
            y = a.tanh() * b.sigmoid() + tenon.nn.functional.silu(a) / (b * b + 1) - (a * 3).exp().log1p()
            y.backward(x.to(device).flip(0))
            grads.append((a.grad, b.grad))
        for there, here in zip(*grads):
            same(there, here)
    assert not expressions_that_fell_back()


def test_random_operators_give_the_cpus_numbers(opencl):
    """S33, and the generator's state goes there and back."""
    calls = [
        lambda device: tenon.rand(3, 5, device=device), lambda device: tenon.randn(7, device=device),
        lambda device: tenon.randint(0, 100, (11,), device=device), lambda device: tenon.randperm(13, device=device),
        lambda device: tenon.empty(4, 6, device=device).t().uniform_(-1, 2), lambda device: tenon.full((9,), 0.3, device=device).bernoulli(),
        lambda device: tenon.nn.functional.dropout(tenon.ones(3, 4, device=device).t(), 0.4),
        lambda device: tenon.multinomial(tenon.arange(1.0, 9.0, device=device), 3),
        lambda device: tenon.rand_like(tenon.ones(2, 3, device=device)), lambda device: tenon.empty(5, dtype=tenon.float64, device=device).normal_(),
        lambda device: tenon.empty(6, device=device)[::2].exponential_(2.0),
    ]  # fmt: skip
    for i, call in enumerate(calls):
        tenon.manual_seed(i)
        here = call("cpu")
        after = tenon.rand(1)
        opencl.manual_seed(i)
        state = opencl.get_rng_state()
        same(call("opencl"), here)
        assert tenon.rand(1).equal(after), "another position in the stream"
        opencl.set_rng_state(state)
        same(call("opencl"), here)


def test_devices_do_not_mix(opencl, openreg):
    """S27."""
    x = tenon.ones(3, device="opencl")
    for f in (lambda: x + tenon.ones(3), lambda: x + tenon.ones(3, device="openreg"), lambda: tenon.cat([x, tenon.ones(2)]),
              lambda: tenon.add(x, x, out=tenon.empty(3)), lambda: x @ tenon.ones(3, device="openreg")):  # fmt: skip
        with pytest.raises(RuntimeError, match="opencl.*(cpu|openreg)|(cpu|openreg).*opencl"):
            f()
    assert (x + tenon.tensor(2.0)).tolist() == [3, 3, 3]  # a number of the host
    assert x[tenon.tensor([2, 0])].tolist() == [1, 1]
    assert x.to("openreg").to("opencl").equal(x)


def test_streams_and_events(opencl):
    a, b = opencl.Stream(), opencl.Stream()
    with opencl.stream(a):
        x = tenon.full((100_000,), 1.0, device="opencl")
        for _ in range(20):
            x = x + 1
        done = a.record_event()
    b.wait_event(done)
    with opencl.stream(b):
        y = x * 2
        x.record_stream(b)
    b.synchronize()
    assert done.query() and y.cpu().equal(tenon.full((100_000,), 42.0))
    fresh = opencl.Event()
    fresh.synchronize()
    assert fresh.query()
    with pytest.raises(ValueError, match="no stream 4000"):
        tenon.devices.Stream("opencl:0", 4000).synchronize()


def test_a_call_on_host_copies_waits_once(opencl):
    """And pointwise calls, fills and what goes to the device not at all (S9)."""
    x = tenon.randn(4, 5).to("opencl")
    y = tenon.arange(5.0).to("opencl")

    def waits(call):
        call()  # compiles
        before = tenon.ops.opencl.num_waits(x)
        call()
        return tenon.ops.opencl.num_waits(x) - before

    for call in (lambda: x.cumsum(0), lambda: x.t().sort(), lambda: x @ y, lambda: x.clone().cumsum_(1), lambda: y[1].item()):
        assert waits(call) == 1
    for call in (lambda: x * y + 1, lambda: tenon.full((3, 3), 2.0, device="opencl"), lambda: tenon.ones(3).to("opencl"),
                 lambda: x.t().to(tenon.int16), lambda: tenon.cat([x, x]), lambda: [x + i for i in range(100)]):  # fmt: skip
        assert waits(call) == 0


def test_large_tensors(opencl):
    """Beyond 2^16 work-items PoCL has another kernel."""
    x = tenon.randn(211, 1009)
    there = x.to("opencl")
    for f in (lambda t: t * 2 + t.abs(), lambda t: t.t()[3:].sigmoid(), lambda t: t[:, :1] + t, lambda t: t.to(tenon.bfloat16).flip(1)):
        for _ in range(2):
            same(f(there), f(x))


def test_copies_of_pinned_memory_do_not_wait():
    """S5, X9: a source may go before its copy has run."""
    out = run("""
device = tenon.load_device(path)
x = tenon.zeros(300_000, device="opencl")
(x * 2 + 1).cpu()  # compiles
waits = lambda: tenon.ops.opencl.num_waits(x)
back = tenon.zeros(300_000, pin_memory=True)
source = tenon.arange(300_000., pin_memory=True)
assert source.is_pinned() and source.data_ptr() % 512 == 0
before = waits()
x.copy_(source, non_blocking=True)
del source
back.copy_(x * 2 + 1, non_blocking=True)
assert waits() == before
device.synchronize()
print(back[-1].item(), back.equal(tenon.arange(300_000.) * 2 + 1))
device.empty_cache()
del back, x
tenon.unload_device("opencl")
""")
    assert out == "599999.0 True\n"


def test_kernels_are_compiled_once(opencl):
    x = tenon.arange(6.0, device="opencl")
    count = tenon.ops.opencl.num_programs
    x.hypot(x)
    before, launches = count(x), tenon.ops.opencl.num_launches(x)
    for n in (1, 3, 6):
        x[:n].hypot(x[:n])
    assert count(x) == before and tenon.ops.opencl.num_launches(x) == launches + 3


def test_a_warm_up_compiles_kernels_together(opencl):
    x = tenon.arange(6.0, device="opencl")
    programs = lambda: tenon.ops.opencl.num_programs(x)  # noqa: E731
    during = []

    def step(t, *, scale):
        return t.asinh(), t.acosh(), t.view(2, 3).t().atanh(), (t * t * scale).to(tenon.int16).cpu()

    before = programs()
    assert opencl.warm_up(lambda *args, **kwargs: during.extend(step(*args, **kwargs)), x, scale=3.0) >= 3
    together = programs()
    assert together <= before + 2
    for there, meanwhile, here in zip(step(x, scale=3.0), during, step(x.cpu(), scale=3.0)):
        assert there.cpu().equal(meanwhile.cpu()) or here.isnan().any()
        assert np.array_equal(there.cpu().numpy(), here.numpy(), equal_nan=True)
    assert programs() == together
    assert opencl.warm_up(step, x, scale=3.0) == 0, "all of it is there"


def test_a_warm_up_of_families(opencl):
    """Each family is a program of its own; what it has is not compiled again."""
    x = tenon.ones(5, device="opencl")
    programs = lambda: tenon.ops.opencl.num_programs(x)  # noqa: E731
    before = programs()
    compiled = opencl.warm_up(families=["complex", "optimizer"])
    assert programs() <= before + 4, "with and without float64"
    assert compiled == 0 or programs() > before
    assert opencl.warm_up(families=["complex", "optimizer"]) == 0
    w = tenon.nn.Parameter(x.clone())
    w.grad = x * 0.5
    optimizer = tenon.optim.SGD([w], lr=0.1, momentum=0.9)
    optimizer.step()  # takes the gradient as its momentum
    before, launches = programs(), tenon.ops.opencl.num_launches(x)
    optimizer.step()
    tenon.optim.Adam([w], lr=0.1, amsgrad=True).step()
    tenon.optim.Adam([w], lr=0.1).step()
    assert programs() == before and tenon.ops.opencl.num_launches(x) > launches
    opencl.warm_up(families=["complex"], dtypes=[tenon.complex64], strided=True)
    z = (x * 1j).contiguous()
    before = programs()
    assert opencl.warm_up(lambda: (z.angle(), z[::2].angle())) == 0 and programs() == before


def test_what_a_warm_up_refuses(opencl, openreg):
    x = tenon.ones(3, device="opencl")
    with pytest.raises(ValueError, match="no family 'love' of pointwise operators; there are activation, arithmetic"):
        opencl.warm_up(families=["love"])
    with pytest.raises(TypeError, match="arguments of a step, but no step: batch"):
        opencl.warm_up(batch=x)

    def fails():
        x.rsqrt()
        raise KeyError("the program's own")

    with pytest.raises(KeyError, match="the program's own"):
        opencl.warm_up(fails)
    launches = tenon.ops.opencl.num_launches(x)
    x.rsqrt()
    assert tenon.ops.opencl.num_launches(x) == launches + 1, "it is over"
    assert openreg.warm_up(fails) == 0 == openreg.warm_up(), "openreg compiles nothing, and calls nothing"


def test_a_device_without_float64_declines_it():
    """S24."""
    out = run("""
tenon.load_device(path, options={"without": "float64"})
assert "without float64" in tenon.devices.loaded()[0][2]
x = tenon.arange(4., device="opencl")
y = x.to(tenon.float64).cpu()
assert not (x + 1).to(tenon.float32).isnan().any() and "expression add" not in tenon.fallbacks()
z = (x.to(tenon.float64) * 2)
print(z.tolist(), [name for name in tenon.fallbacks() if name == "expression mul"])
""")
    assert out == "[0.0, 2.0, 4.0, 6.0] ['expression mul']\n"


def test_division_without_rounding_of_its_own_is_exact():
    """By way of float64; without that, it is declined."""
    out = run("""
tenon.load_device(path, options={"without": "division"})
tenon.load_device(path, name="poorer", options={"without": "float64,division"})
tenon.manual_seed(3)
bits = tenon.randint(-2**31, 2**31, (2, 20000), dtype=tenon.int64).to(tenon.int32).view(tenon.float32)
for device in ("opencl", "poorer"):
    a, b = bits.to(device)
    for f, got in ((lambda a, b: a / b, a / b), (lambda a, b: a.abs().sqrt(), a.abs().sqrt())):
        want = f(*bits)
        assert (got.cpu().view(tenon.int32).eq(want.view(tenon.int32)) | want.isnan()).all()
        assert got.cpu().isnan().equal(want.isnan())
    print([name for name in tenon.fallbacks(device) if name.startswith("expression")])
""")
    assert out == "[]\n['expression div', 'expression sqrt']\n"


def test_options_are_checked():
    for options, text in (({"with": "x"}, "there is no option 'with'"), ({"type": "fast"}, "expected all, cpu, gpu"),
                          ({"platform": "Nobody's"}, "Nobody's"), ({"without": "love"}, "expected float64")):  # fmt: skip
        with pytest.raises((ValueError, RuntimeError), match=text):
            tenon.load_device(OPENCL, name="refused", options=options)


def test_the_host_cannot_touch_its_memory():
    """S1: such addresses are in nobody's memory."""
    done = subprocess.run(
        [sys.executable, "-c", f"""
import ctypes, tenon
tenon.load_device({str(OPENCL)!r})
ctypes.string_at(tenon.ones(4, device="opencl").data_ptr(), 4)"""],
        capture_output=True, text=True, env={**os.environ, **OPENCL_ENVIRONMENT})  # fmt: skip
    assert done.returncode == -11, (done.returncode, done.stderr)


def test_memory_runs_out_and_the_next_call_works(opencl):
    x = tenon.ones(3, device="opencl")
    with pytest.raises(MemoryError, match="not to be had"):
        tenon.empty(1 << 50, device="opencl")
    assert (x + 1).tolist() == [2, 2, 2]


def test_expandable_segments_are_not_supported(opencl):
    """As PyTorch: a warning, and segments are taken whole."""
    assert opencl.get_device_properties().map_granularity == 0
    with pytest.warns(UserWarning, match="expandable_segments is not supported on opencl, which cannot map memory") as caught:
        opencl.set_allocator_settings("expandable_segments:True")
    assert caught[0].filename == __file__
    x = tenon.ones(30 << 20, dtype=tenon.uint8, device="opencl")
    assert x.device.type == "opencl" and not any(s["is_expandable"] for s in opencl.memory_snapshot())
    opencl.set_allocator_settings("expandable_segments:False")
    out = run("""
import warnings
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    tenon.load_device(path)
print([str(w.message) for w in said], tenon.ones(3, device="opencl").tolist())
""", TENON_EXPANDABLE_SEGMENTS="1")  # fmt: skip
    assert out == "['expandable_segments is not supported on opencl, which cannot map memory'] [1.0, 1.0, 1.0]\n"


def test_two_instances_and_two_devices():
    """Of each their own state; two devices share a context, so that one waits for the other's events."""
    if "Portable Computing Language" not in run("tenon.load_device(path, options={'platform': 'Portable'})\nprint('Portable Computing Language')"):
        pytest.skip("PoCL alone can be told to have two devices")
    out = run("""
first = tenon.load_device(path)
second = tenon.load_device(path, name="second")
x = tenon.arange(4., device="opencl:1")
y = x.to("opencl:0") * 2
z = y.to("second:1") + 1
print(first.device_count(), second.device_count(), z.tolist(), x.device, y.device, z.device)
a, b = first.Stream(0), first.Stream(1)
with first.stream(a):
    u = tenon.full((100000,), 3., device="opencl:0") + 1
b.wait_stream(a)
with first.stream(b):
    v = u.to("opencl:1") * 2
b.synchronize()
print(v[0].item(), v.sum().item())
""", POCL_DEVICES="pthread pthread")  # fmt: skip
    assert out == "2 2 [1.0, 3.0, 5.0, 7.0] opencl:1 opencl:0 second:1\n8.0 800000.0\n"


def test_threads_launch_and_compile_at_once(opencl):
    """Each on a stream of its own: kernels are shared, compiling is one at a time."""
    from concurrent.futures import ThreadPoolExecutor

    functions = [lambda t: t.erf() * 2, lambda t: (t - 1).expm1(), lambda t: t.view(-1, 5).t().cos() + 1]

    def work(i):
        x = tenon.arange(100.0) / (i + 7)
        with opencl.stream(opencl.Stream()):
            there = x.to("opencl")
            for f in functions * 20:
                got = f(there).cpu()
        return got.equal(functions[-1](x))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(16)))


def test_it_is_unloaded_and_loaded_again():
    """S16: not while a tensor lives."""
    out = run("""
for i in range(3):
    tenon.load_device(path)
    x = tenon.arange(4., device="opencl").exp()
    try:
        tenon.unload_device("opencl")
    except RuntimeError as error:
        assert "opencl" in str(error)
    else:
        raise AssertionError
    print(x[0].item())
    del x
    tenon.unload_device("opencl")
""")
    assert out == "1.0\n" * 3


def test_moving_and_printing(opencl):
    """S30."""
    import copy

    x = tenon.arange(6.0, device="opencl").view(2, 3)
    assert "device='opencl:0'" in repr(x) and x.tolist() == [[0, 1, 2], [3, 4, 5]] and bool((x == x).all())
    with pytest.raises(RuntimeError, match="the tensor is on opencl:0; move it"):
        x.numpy()
    y = copy.deepcopy(x)
    y.add_(1)
    assert y.sum().item() == 21 and x.sum().item() == 15 and x.to("opencl") is x


def test_exit_with_work_pending():
    run("""
tenon.load_device(path)
kept = [tenon.ones(200000, device="opencl") * i for i in range(20)]
event = tenon.opencl.current_stream().record_event()
""")


def test_digits_train_with_the_cpus_losses():
    out = run("""
sys.path.insert(0, sys.argv[1])
import digits, struct
tenon.set_strict(True)
tenon.load_device(path)
pixels, labels = digits.load_digits(digits.DATA)
digits.EPOCHS = 2
host = digits.train(pixels, labels, 0, progress=False)
there = digits.train(pixels.to("opencl"), labels.to("opencl"), 0, progress=False)
assert struct.pack(f"{len(host[0])}f", *host[0]) == struct.pack(f"{len(there[0])}f", *there[0])
assert host[1] == there[1]
calls = {name: count["calls"] for name, count in tenon.fallbacks("opencl").items()}
expressions = sum(calls[name] for name in calls if name.startswith("expression"))
native = tenon.ops.opencl.num_launches(pixels.to("opencl"))
print(f"{native} of {native + expressions} pointwise calls ran natively; "
      f"{sum(calls.values()) - expressions} other calls on host copies")
assert native > 1000 and expressions == 0
""", ROOT / "examples/digits")  # fmt: skip
    print(out)


def test_every_expression_in_the_dtypes_that_the_kits_page_leaves_out(opencl):
    """docs/conformance.md has the kit's quick table, with every stride in float32. Here: pointwise operators in the other dtypes,
    derivatives in float64 and complex128; kernels are compiled together. With TENON_CONFORMANCE_DEEP=1 int32 in every stride,
    and second derivatives."""
    from tenon.conformance import table
    from tenon.conformance.cells import Bench, Plan, forms_of
    from tenon.conformance.claims import Claims
    from tenon.conformance.families import row_of

    # Else a ninth of the operators: compiling them takes minutes, and half of that are strided kernels.
    deep = bool(os.environ.get("TENON_CONFORMANCE_DEEP"))
    rest, thorough = (("uint8", "int16"), ("int32",)) if deep else ((), ())
    plan = Plan(dtypes=("int8", "int32", "float16", "float64", "complex128", *rest), thorough=thorough, few=("plain",), large=(), samples=1,
                outs=("empty",), gradients=("float64", "complex128"), order=(), second=deep)  # fmt: skip
    bench = Bench("opencl", plan, Claims("opencl"))
    operators = [(op, row) for entry in table.entries().values() for row in [row_of(entry)] for op in forms_of(entry, row)
                 if bench.claims.is_pointwise(op)]
    assert len(operators) > 300
    operators = operators[:: 1 if deep else 9]

    def cells():
        return [cell for op, row in operators for cell in bench.try_operator(op, row)]

    compiled = opencl.warm_up(cells)
    found = cells()
    native = sum(c.native for c in found)
    print(f"{len(operators)} operators, {len(found)} rows, {native} calls, {sum(c.gradients for c in found)} incoming gradients, "
          f"{compiled} kernels")  # fmt: skip
    assert not [(c.operator, c.dtype, c.differences) for c in found if c.differences or not c.same_bits]
    assert not [(c.operator, c.dtype) for c in found if c.claimed and c.fallback]
    assert native > (10 if deep else 3) * len(operators)
