"""What a device runs on host copies (S25): every kind of argument as on the CPU, in values, strides, dtypes and identity; and
what a device says may not (S26)."""

import os
import pathlib
import subprocess
import sys

import pytest

import tenon

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def numbers(*shape, dtype=tenon.float32):
    """Numbers in no order, without repetition."""
    n = tenon.zeros(shape).numel()
    return ((tenon.arange(n) * 7919) % 1009).to(dtype).reshape(shape) / 8 - 60


# Each case gets `on`, which puts a tensor of the host on a device, and returns what is compared.


def in_place(on):
    x = on(numbers(4, 5))
    assert x.cumsum_(0) is x
    view = x.t()[::2]
    assert view.cumprod_(1) is view
    return x, view


def out_resized(on):
    x, out = on(numbers(4, 5)), on(tenon.empty(0))
    assert tenon.mm(x, x.t(), out=out) is out
    return (out,)


def out_strided(on):
    x, base = on(numbers(4, 6)), on(tenon.zeros(9, 4))
    out = base[::2].t()
    assert tenon.cumsum(x[:, 1:], 1, out=out) is out
    return out, base


def out_twice(on):
    x, values, places = on(numbers(3, 4)), on(tenon.empty(4, 3)).t(), on(tenon.empty(0, dtype=tenon.int64))
    got = tenon.sort(x, out=(values, places))
    assert got[0] is values and got[1] is places
    return values, places


def lists_with_absent_entries(on):
    x, rows = on(numbers(4, 5)), on(tenon.tensor([3, 0, 3]))
    x[:, rows.clone()] = on(numbers(4, 3))
    return x[rows], tenon.ops.aten.index.Tensor(x, [None, rows]), x


def absent_tensors(on):
    x, weight = on(numbers(3, 4)), on(numbers(4))
    return tenon.nn.functional.layer_norm(x, [4], weight, None), tenon.nn.functional.layer_norm(x, [4])


def several_results(on):
    x = on(numbers(3, 6)).t()
    return (*x.topk(2, 0), *x.sort(1), *tenon.nn.functional.max_pool2d(x.reshape(1, 1, 6, 3), 2, return_indices=True))


def numbers_as_tensors(on):
    x = on(numbers(3, 4, dtype=tenon.float64))
    return (tenon.mm(x, x.t()) * tenon.tensor(2.0), x.index_fill(0, on(tenon.tensor([1])), 7),
            x.index_fill(0, on(tenon.tensor([2])), on(tenon.tensor(3.0, dtype=tenon.float64))))  # fmt: skip


def one_tensor_twice(on):
    x = on(numbers(3, 3))
    y = on(numbers(3, 3))
    assert y.addmm_(y.clone(), x) is y
    return tenon.mm(x, x), tenon.addmm(x, x, x), y


def views_of_one_storage(on):
    base = on(numbers(24))
    windows = base.as_strided([5, 4], [2, 1], 1)
    product = tenon.mm(windows, base[4:16].reshape(4, 3))
    base[2:10].cumsum_(0)
    base.as_strided([3, 3], [1, 4], 0).scatter_(0, on(tenon.tensor([[0, 1, 2]])), windows[:1, :3])
    return product, base, windows


def random_numbers(on):
    tenon.manual_seed(11)
    x = on(numbers(4, 5).abs())
    order = on(tenon.zeros(7, dtype=tenon.int64))
    tenon.randperm(7, out=order)
    drawn = tenon.multinomial(x, 3)
    assert tenon.default_generator.get_state().tolist() == [11, *[0] * 7, 14, *[0] * 7], "the stream is where the CPU leaves it"
    return drawn, order


def of_no_elements(on):
    x = on(tenon.empty(0, 3))
    return (*x.sort(1), x.cumsum(0), tenon.mm(x.t(), x))


CASES = (in_place, out_resized, out_strided, out_twice, lists_with_absent_entries, absent_tensors, several_results,
         numbers_as_tensors, one_tensor_twice, views_of_one_storage, random_numbers, of_no_elements)  # fmt: skip


def strides(t):
    return [s for n, s in zip(t.shape, t.stride()) if n > 1] if t.numel() else []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_s25_as_on_the_cpu(case, device):
    tenon.reset_fallbacks()
    here, there = case(lambda t: t), case(lambda t: like(t, device))
    assert tenon.fallbacks(device), "nothing ran on host copies"
    assert len(here) == len(there)
    for a, b in zip(there, here):
        assert a.device.type == device
        assert (a.dtype, a.shape, strides(a)) == (b.dtype, b.shape, strides(b))
        assert a.cpu().equal(b), (a.cpu(), b)


def like(t, device):
    """The tensor on the device, of the same strides."""
    held = t.untyped_storage().nbytes() // t.element_size()
    flat = t.as_strided([held], [1], 0).to(device)
    return flat.as_strided(list(t.shape), list(t.stride()), t.storage_offset())


@pytest.mark.parametrize("make", [
    lambda d: tenon.eye(3, 4, device=d), lambda d: tenon.linspace(0, 1, 7, device=d), lambda d: tenon.tril_indices(3, 3, device=d),
    lambda d: tenon.arange(2, 9, 3, device=d), lambda d: tenon.full((2, 3), True, device=d), lambda d: tenon.randperm(9, device=d),
])  # fmt: skip
def test_s25_factories(make, device):
    tenon.manual_seed(3)
    here = make("cpu")
    tenon.manual_seed(3)
    there = make(device)
    assert there.device.type == device and there.dtype == here.dtype and there.cpu().equal(here)


def test_s25_views_share_memory_and_never_fall_back(device):
    x = numbers(4, 6).to(device)
    tenon.reset_fallbacks()
    for view in (x.t(), x[1:, ::2], x.view(2, 12), x.as_strided([3, 2], [1, 7], 1), x.unfold(1, 3, 2), x.diagonal(), x.flip(0),
                 x.expand(2, 4, 6), x.split(2)[1], x.unsqueeze(0), x.narrow(1, 2, 3), x.detach(), x.movedim(0, 1)):  # fmt: skip
        assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert not tenon.fallbacks(device)


def test_s25_errors_are_the_cpus(device):
    x = numbers(4, 6)
    for call in (lambda t: tenon.mm(t, t), lambda t: t.cumsum(5), lambda t: tenon.mm(t, t.t(), out=t.long()),
                 lambda t: t.expand(2, 4, 6).cumsum_(0), lambda t: t.topk(9, 0)):  # fmt: skip
        with pytest.raises(Exception) as here:
            call(x)
        with pytest.raises(type(here.value)) as there:
            call(x.to(device))
        # Behind the name, which of an in-place form may be that of the functional one.
        assert str(there.value).partition(":")[2] == str(here.value).partition(":")[2] != ""


# ---- S26: policies ----


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    """A device that lets everything but sort run on host copies, or sub.Tensor alone."""
    library = tmp_path_factory.mktemp("policy") / "policy.so"
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", f"-I{ROOT}", HERE / "policy/policy.c",
                    "-o", library], check=True)  # fmt: skip
    return library


def run(program, *arguments, **environment):
    done = subprocess.run([sys.executable, "-c", "import sys, tenon\n" + program, *map(str, arguments)], capture_output=True,
                          text=True, env={**os.environ, **environment})  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stderr


def test_s26_a_blocked_operator_is_an_error_that_says_who_has_it(policy):
    run("""
tenon.load_device(sys.argv[1], options={"fallback": "blocked"})
x = tenon.tensor([2.0, 1.0], device="blocked")
assert (x - 1).cumsum(0).tolist() == [1, 1]
try:
    x.sort()
except NotImplementedError as error:
    assert "Operator 'aten::sort' is not implemented for device blocked" in str(error), error
    assert "kernels exist for: CPU" in str(error) and "tenon table aten::sort" in str(error), error
else:
    raise AssertionError
""", policy)


def test_s26_a_selective_fallback(policy):
    run("""
tenon.load_device(sys.argv[1], options={"fallback": "selective"})
x = tenon.tensor([2.0, 1.0], device="selective")
assert (x - x.flip(0)).tolist() == [1, -1]
assert x.t().view(1, 2).shape == (1, 2)
for call in (lambda: x + x, lambda: x.sort(), lambda: x.sum()):
    try:
        call()
    except NotImplementedError as error:
        assert "is not implemented for device selective" in str(error), error
    else:
        raise AssertionError
""", policy)


def test_s26_fallbacks_are_logged_and_counted(policy):
    program = """
tenon.load_device(sys.argv[1], options={"fallback": "blocked"})
x = tenon.tensor([2.0, 1.0], device="blocked")
tenon.reset_fallbacks()
x.cumsum(0), x.cumsum(0)
print(tenon.fallbacks("blocked"))
"""
    printed, logged = run(program, policy, TENON_LOG_FALLBACK="1")
    assert "'aten::cumsum': {'calls': 2, 'bytes': 32}" in printed
    lines = [line for line in logged.splitlines() if "cumsum" in line]
    assert lines == ["[fallback] aten::cumsum on blocked:0: 16 bytes copied"] * 2
    assert run(program, policy, TENON_LOG_FALLBACK="0")[1] == ""
