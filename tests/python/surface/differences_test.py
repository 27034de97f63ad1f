"""Rows of docs/differences.md that no other test has: what Tenon does on purpose where PyTorch does another thing."""

import io
import subprocess
import sys

import numpy as np
import pytest

import tenon


def test_data_shares_the_version_counter():
    x = tenon.ones(2, requires_grad=True)
    y = x * x
    x.data.add_(1)
    assert x._version == 1
    with pytest.raises(RuntimeError, match=r"changed in place .*or write to a clone\(\) of it: writes through `.data` and detach\(\) count"):
        y.sum().backward()


def test_zero_to_the_power_of_zero_is_one():
    zero = tenon.zeros(2, dtype=tenon.complex64)
    for power in (zero**0, zero**0j, zero**zero, tenon.pow(0j, zero), zero ** tenon.zeros(2)):
        assert power.tolist() == [1, 1]


def test_integers_without_elements_have_no_median():
    for function in (tenon.median, tenon.nanmedian):
        with pytest.raises(ValueError, match=f"^{function.__name__}: `self`, .0. of int64, has no elements$"):
            function(tenon.empty(0, dtype=tenon.int64))
    assert tenon.linalg.vecdot(tenon.arange(3), tenon.arange(3)).item() == 5


def test_an_index_has_one_ellipsis():
    with pytest.raises(IndexError, match="only one Ellipsis"):
        tenon.ones(2, 3)[..., ...]


def test_a_size_has_no_bools():
    with pytest.raises(TypeError, match="element 1 is bool"):
        tenon.ones((2, True))


def test_addcdiv_divides_integers():
    one = tenon.tensor([1, 2])
    assert tenon.addcdiv(tenon.ones(2), one, one * 2, value=3).tolist() == [2.5, 2.5]
    with pytest.raises(TypeError, match="addcdiv: the operands are int64"):
        tenon.addcdiv(one, one, one)


def test_multinomial_draws_nothing_without_weight():
    with pytest.raises(ValueError, match="2 samples without replacement need as many categories with a weight above 0, got 1"):
        tenon.multinomial(tenon.tensor([1.0, 0.0]), 2)


@pytest.mark.parametrize("seed", [1.5, 3.0, "3"])
def test_a_seed_is_an_integer(seed):
    with pytest.raises(TypeError, match="argument 'seed' must be an int"):
        tenon.manual_seed(seed)


def test_a_buffer_that_is_filled_in_clones():
    """The way round for programs that fill a buffer through `.data` while backward needs its parts, as torchdiffeq's solvers do."""

    class Assign(tenon.autograd.Function):
        @staticmethod
        def forward(ctx, buffer, value, index):
            ctx.index = index
            buffer = buffer.clone()
            buffer[index] = value
            return buffer

        @staticmethod
        def backward(ctx, grad):
            return grad, grad[ctx.index], None

    k, w = tenon.zeros(3), tenon.tensor(2.0, requires_grad=True)
    for i in range(3):
        k = Assign.apply(k, w * (1 + k[:i].sum()), i)
    k.sum().backward()
    assert k.tolist() == [2.0, 6.0, 18.0] and w.grad.item() == 3 * (1 + 2) ** 2  # of (1 + w)**3 - 1


def test_data_of_an_inference_tensor_is_one():
    with tenon.inference_mode():
        x = tenon.ones(2)
    for alias in (x.data, x.detach()):
        with pytest.raises(RuntimeError, match="inference tensor"):
            alias.add_(1)


def test_a_written_view_loses_its_history_with_its_base():
    x = tenon.ones(3, requires_grad=True)
    y = x * 1
    v = y[:]
    v.mul_(3)
    y.detach_()
    assert not v.requires_grad


def test_tensors_that_share_memory_are_saved_apart():
    base = tenon.arange(4.0)
    file = io.BytesIO()
    tenon.save({"a": base, "b": base[1:]}, file)
    file.seek(0)
    loaded = tenon.load(file)
    loaded["a"].zero_()
    assert loaded["b"].tolist() == [1, 2, 3]


def test_out_of_another_shape_is_refused():
    with pytest.raises(RuntimeError):
        tenon.add(tenon.ones(3), 1, out=tenon.empty(2))
    assert tenon.add(tenon.ones(3), 1, out=tenon.empty(0)).tolist() == [2, 2, 2]


def test_a_source_that_overlaps_what_is_written_is_read_first():
    x = tenon.arange(5)
    x[1:].copy_(x[:-1])
    assert x.tolist() == [0, 0, 1, 2, 3]
    x = tenon.arange(4.0)
    x.index_add_(0, tenon.tensor([1, 2, 3]), x[:3])
    assert x.tolist() == [0, 1, 3, 5]


def test_sequences_and_arrays_are_assigned():
    x = tenon.zeros(2)
    x[:] = [1, 2]
    assert x.tolist() == [1, 2]
    x[:] = np.array([3.0, 4.0])
    assert x.tolist() == [3, 4]


def test_integers_do_not_take_fractions():
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        tenon.arange(3).masked_fill(tenon.tensor([True, False, True]), 1.5)


def test_slopes_where_there_is_none():
    x = tenon.zeros(1, requires_grad=True)
    (g,) = tenon.autograd.grad(tenon.hypot(x, tenon.zeros(1)).sum(), x)
    assert g.tolist() == [0]
    x = tenon.tensor([1.0, float("nan"), 0.0], requires_grad=True)
    (g,) = tenon.autograd.grad(x.amax(), x)
    assert g.tolist() == [0, 1, 0]


def test_wide_integers_beside_half_types_keep_their_value():
    x = tenon.tensor([70_000], dtype=tenon.int32) + tenon.tensor([-60_000.0], dtype=tenon.float16)
    assert x.dtype == tenon.float16 and x.tolist() == [10_000]


def test_a_sum_of_nothing_keeps_the_dtype():
    for dtype in (tenon.int32, tenon.bool):
        assert tenon.ones(1, 3, dtype=dtype).sum_to_size(3).dtype is dtype
        assert tenon.ones(2, 3, dtype=dtype).sum_to_size(3).dtype is tenon.int64


def test_all_and_any_of_no_dimensions_reduce_all():
    x = tenon.tensor([True, False])
    assert tenon.all(x, ()).shape == () and not tenon.all(x, ()).item()
    assert tenon.any(x, ()).shape == () and tenon.any(x, ()).item()


def test_a_factor_of_zero_does_not_hide_nan():
    one, nan = tenon.ones(1, 1), tenon.full((1, 1), float("nan"))
    assert np.isnan(tenon.addmm(one, nan, one, alpha=0).item())
    assert tenon.addmm(nan, one, one, beta=0).item() == 1


def test_arange_of_integers_counts_before_it_truncates():
    assert tenon.arange(0, 2, 0.5, dtype=tenon.int64).tolist() == [0, 0, 1, 1]


def test_a_condition_is_bool():
    with pytest.raises(TypeError, match="must be bool, got uint8"):
        tenon.where(tenon.tensor([1, 0], dtype=tenon.uint8), tenon.ones(2), tenon.zeros(2))


def test_the_state_of_random_numbers_is_seed_and_offset():
    tenon.manual_seed(5)
    assert bytes(tenon.get_rng_state().tolist()) == (5).to_bytes(8, "little") + bytes(8)
    tenon.set_rng_state((5, 4))
    assert tenon.get_rng_state().tolist()[8] == 4


def test_saved_tensors_come_back_contiguous():
    file = io.BytesIO()
    tenon.save(tenon.arange(6).reshape(2, 3).t(), file)
    file.seek(0)
    x = tenon.load(file)
    assert x.tolist() == [[0, 3], [1, 4], [2, 5]] and x.is_contiguous()


def test_gradients_of_leaves_are_contiguous():
    x = tenon.ones(2, 3).t().requires_grad_()
    (x * 2).sum().backward()
    assert x.stride() == (1, 3) and x.grad.is_contiguous()


def test_a_copy_that_is_written_in_part_is_contiguous():
    x = tenon.arange(12.0).reshape(3, 4)[:, ::2]
    got = tenon.select_scatter(x, tenon.zeros(2), 0, 1)
    assert got.tolist() == [[0, 2], [0, 0], [8, 10]] and got.is_contiguous()
    overlapping = tenon.arange(3.0).as_strided([2, 2], [1, 1])
    assert tenon.slice_scatter(overlapping, tenon.full([1, 2], 9.0), 0, 0, 1).tolist() == [[9, 9], [1, 2]]


def test_einsum_of_integers_keeps_the_dtype():
    x = tenon.ones(2, 3, dtype=tenon.int32)
    assert tenon.einsum("ij->", x).dtype is tenon.int32
    assert tenon.einsum("ij,ij->", x, x).dtype is tenon.int32


def test_what_none_computes_is_refused():
    with pytest.raises(TypeError, match="addr: .*same dtype"):
        tenon.addr(tenon.ones(2, 2), tenon.ones(2, dtype=tenon.int64), tenon.ones(2))
    with pytest.raises(NotImplementedError, match="native_dropout: .*floating"):
        tenon.native_dropout(tenon.ones(2, dtype=tenon.int64), 0.5, True)
    with pytest.raises(NotImplementedError, match="batch_norm: .*int64"):
        tenon.batch_norm(tenon.ones(0, 2, dtype=tenon.int64), None, None, None, None, True, 0.1, 1e-5, False)
    z = tenon.ones(2, dtype=tenon.complex64)
    for call in (lambda: tenon.rms_norm(z, [2]), lambda: tenon.soft_margin_loss(z, z)):
        with pytest.raises(NotImplementedError, match="complex"):
            call()


def test_nodes_have_the_names_of_the_parts():
    x = tenon.ones(1, 2, requires_grad=True)
    found = [tenon.stack([x, x]), tenon.nn.functional.mse_loss(x, x), tenon.nn.functional.nll_loss(x, tenon.tensor([0]))]
    assert [y.grad_fn.name() for y in found] == ["CatBackward0", "MeanBackward0", "NllLossForwardBackward0"]


def test_of_the_maths_of_complex_numbers_nan_to_num_is_absent():
    z = tenon.tensor([0.5 + 0.25j])
    for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh"):
        assert complex(getattr(tenon, name)(z)[0]) == pytest.approx(complex(getattr(np, name.replace("a", "arc", 1))(0.5 + 0.25j)), rel=1e-6)
    assert complex(tenon.logaddexp(z, z)[0]) == pytest.approx(0.5 + np.log(2) + 0.25j)
    with pytest.raises(NotImplementedError, match="complex"):
        tenon.nan_to_num(z)


def test_channel_shuffle_is_contiguous_and_roll_is_as_its_operand():
    x = tenon.ones(2, 4, 3, 3).contiguous(memory_format=tenon.channels_last)
    assert tenon.nn.functional.channel_shuffle(x, 2).is_contiguous()
    assert x.roll(1, 1).stride() == x.stride()


def test_a_forked_child_has_one_thread():
    program = """
import os, tenon
def threads():
    x = tenon.ones(1 << 20)
    (x.exp() + x).sum(), tenon.ones(300, 300) @ tenon.ones(300, 300)
    return len(os.listdir("/proc/self/task"))
tenon.set_num_threads(3)
before = threads()
child = os.fork()
if child == 0:
    tenon.set_num_threads(4)
    os._exit(threads())
print(before > 1, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (done.stdout.strip(), done.returncode) == ("True 1", 0), done.stderr
