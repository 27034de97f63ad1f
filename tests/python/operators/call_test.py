"""How arguments reach operators: overloads, keywords, numbers, sizes one by one, and the messages for what does not fit."""

import multiprocessing
import os

import numpy as np
import pytest

import tenon

x = tenon.tensor([[1.0, -2.0], [3.0, 4.0]])


def test_functions_and_methods_take_keywords():
    assert tenon.add(x, x, alpha=2).tolist() == (x * 3).tolist()
    assert tenon.add(input=x, other=x).tolist() == tenon.add(self=x, other=x).tolist() == (x + x).tolist()
    assert x.sum(dim=0).tolist() == x.sum(axis=0).tolist() == x.sum(0).tolist() == x.sum((0,)).tolist() == [4.0, 2.0]
    assert x.sum(dim=1, keepdim=True).shape == x.sum(1, keepdims=True).shape == (2, 1)


def test_sizes_come_one_by_one_or_together():
    y = tenon.arange(6)
    assert y.view(2, 3).shape == y.view((2, 3)).shape == y.view([2, 3]).shape == y.view(tenon.Size([2, 3])).shape
    assert y.reshape(3, -1).permute(1, 0).shape == (2, 3)
    assert tenon.permute(y.view(2, 3), (1, 0)).shape == (3, 2)
    assert y.view(np.int64(2), 3).shape == (2, 3)


@pytest.mark.parametrize("other", [2, 2.0, True, np.float32(2), np.int64(2), tenon.tensor(2.0)])
def test_numbers_of_any_kind_are_numbers(other):
    assert (x * other).tolist() == (np.array(x.tolist(), np.float32) * np.float32(float(other))).tolist()


def test_a_python_number_does_not_widen_the_dtype():
    assert (tenon.ones(2, dtype=tenon.float16) * 2.5).dtype is tenon.float16
    assert (tenon.ones(2, dtype=tenon.int8) * 2).dtype is tenon.int8
    assert (tenon.ones(2, dtype=tenon.int8) * 2.5).dtype is tenon.float32
    assert (tenon.ones(2, dtype=tenon.bool) + 1).dtype is tenon.int64


def test_reflected_operators():
    assert (1 - x).tolist() == [[0.0, 3.0], [-2.0, -3.0]]
    assert (12 / tenon.tensor([3.0, 4.0])).tolist() == [4.0, 3.0]
    assert (2 ** tenon.tensor([3.0, 4.0])).tolist() == [8.0, 16.0]
    assert (1 + x).tolist() == (x + 1).tolist()
    assert (7 // tenon.tensor([2, -2])).tolist() == [3, -4]
    assert (7 % tenon.tensor([4, -4])).tolist() == [3, -1]


def test_comparisons_and_none():
    assert (x > 0).tolist() == [[True, False], [True, True]]
    assert (0 < x).tolist() == (x > 0).tolist()
    assert (x == None) is False  # noqa: E711
    assert (x != "text") is True


def test_a_method_puts_its_object_where_the_schema_has_self():
    assert x.where(x > 0, x * 10).tolist() == [[1.0, -20.0], [3.0, 4.0]]
    assert x.where(x > 0, 0).tolist() == [[1.0, 0.0], [3.0, 4.0]]
    assert x.where(condition=x > 0, other=x).tolist() == x.tolist()


def test_in_place_operators_keep_the_object():
    y = z = tenon.ones(2)
    y += 1
    y *= 3
    y -= tenon.tensor([1.0, 2.0])
    y /= 2
    assert y is z
    assert z.tolist() == [2.5, 2.0]
    assert y.add_(1) is y


def test_out_receives_the_result():
    out = tenon.empty(2, 2)
    assert tenon.add(x, x, out=out) is out
    assert out.tolist() == (x + x).tolist()
    assert tenon.add(x, 1, out=None).tolist() == (x + 1).tolist()


def test_named_results():
    result = x.max(1)
    values, indices = result
    assert result.values is values and result.indices is indices
    assert values.tolist() == [1.0, 4.0] and indices.tolist() == [0, 1]
    assert type(result) is type(tenon.max(x, 1)) and repr(type(result)) == "<class 'tenon.return_types.max'>"


def test_numbers_stand_for_tensors_where_pytorch_lets_them():
    assert tenon.where(x > 0, x, 0).tolist() == [[1.0, 0.0], [3.0, 4.0]]
    assert tenon.where(x > 0, 1.0, 0.0).tolist() == [[1.0, 0.0], [1.0, 1.0]]
    assert tenon.add(1, 2).item() == 3 and tenon.floor_divide(x, 2).tolist() == [[0.0, -1.0], [1.0, 2.0]]
    whole = tenon.tensor([5, 6])
    assert tenon.remainder(17, whole).tolist() == [2, 5] and tenon.bitwise_and(12, whole).tolist() == [4, 4]
    assert tenon.bitwise_left_shift(1, whole).tolist() == [32, 64] and tenon.pow(2, whole).tolist() == [32, 64]


REFUSED_NUMBERS = [
    *((name, (3,)) for name in ("maximum", "minimum", "logical_and", "logical_or", "logical_xor", "mm", "atan2", "fmax", "hypot")),
    *((name, (2, 3)) for name in ("maximum", "eq", "lt", "copysign", "fmod", "remainder", "rsub", "pow", "xlogy", "logical_or")),
    *((name, (2, x)) for name in ("maximum", "eq", "ne", "gt", "ge", "lt", "le", "copysign", "fmod", "rsub", "logical_and", "masked_fill")),
    *((name, (2, 3)) for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")),
]


@pytest.mark.parametrize("name, arguments", REFUSED_NUMBERS, ids=lambda v: v if isinstance(v, str) else "")
def test_numbers_stand_for_tensors_nowhere_else(name, arguments):
    """As PyTorch: where it has no overload with a number in that place."""
    operands = arguments if len(arguments) > 1 else (x, *arguments)
    with pytest.raises(TypeError, match=f"^{name}\\(\\)"):
        getattr(tenon, name)(*operands)


@pytest.mark.parametrize("name", ["maximum", "logical_and", "eq.Tensor"])
def test_operator_objects_take_numbers_where_functions_do(name):
    packet, _, overload = name.partition(".")
    operator = getattr(getattr(tenon.ops.aten, packet), overload or "default")
    with pytest.raises(TypeError):
        operator(x, 2)
    assert tenon.ops.aten.add.Tensor(x, 2).tolist() == (x + 2).tolist()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tenon.silu(3), ["silu()", "'input' must be Tensor, not int", "silu(input: Tensor) -> Tensor"]),
        (lambda: tenon.silu(x, x), ["silu()", "positional"]),
        (lambda: tenon.silu(), ["silu()", "misses"]),
        (lambda: tenon.silu(x, foo=1), ["silu()", "unexpected keyword argument 'foo'"]),
        (lambda: x.add(x, beta=1), ["add()", "unexpected keyword argument 'beta'"]),
        (lambda: tenon.add(x, "text"), ["add()", "Tensor", "str"]),
        (lambda: x.sum("a"), ["sum()", "str"]),
        (lambda: x.view("a"), ["view()", "str"]),
        (lambda: x.view(2.0, 2), ["view()"]),
        (lambda: x.sum(dim=True), ["sum()", "bool"]),
        (lambda: tenon.zeros(2, dtype="float"), ["zeros()", "dtype"]),
        (lambda: tenon.tensor([1], foo=2), ["tensor()", "'foo'"]),
        (lambda: tenon.cross_entropy_loss(x, x, reduction="mean"), ["cross_entropy_loss()", "'reduction'", "str"]),
    ],
)
def test_what_does_not_fit_is_a_type_error_that_says_why(call, words):
    with pytest.raises(TypeError) as error:
        call()
    for word in words:
        assert word in str(error.value)


def test_several_signatures_are_listed():
    with pytest.raises(TypeError) as error:
        tenon.add(x, "text")
    assert "add(input: Tensor, other: Tensor, *, alpha: Number = 1)" in str(error.value)


@pytest.mark.parametrize(
    ("call", "kinds"),
    [
        (lambda: x + tenon.ones(3), (ValueError, RuntimeError, tenon.ShapeError)),
        (lambda: tenon.mm(x, tenon.ones(3, 2)), (ValueError, RuntimeError)),
        (lambda: x.view(3), (ValueError, RuntimeError)),
        (lambda: x.sum(5), (IndexError,)),
        (lambda: x[5], (IndexError,)),
        (lambda: x.select(0, -3), (IndexError,)),
        (lambda: tenon.ones(2, device="nowhere"), (ValueError,)),
        (lambda: tenon.tensor([1, 2]).requires_grad_(), (RuntimeError,)),
        (lambda: tenon.ones(2).backward(), (RuntimeError,)),
        (lambda: bool(tenon.ones(2)), (RuntimeError,)),
        (lambda: tenon.ones(2).item(), (RuntimeError,)),
        (lambda: len(tenon.tensor(1)), (TypeError,)),
        (lambda: tenon.mm(x, x.double()), (TypeError, RuntimeError)),
        (lambda: tenon._C.dispatch.dump("nothing"), (NotImplementedError,)),
    ],
)
def test_errors_have_their_kinds(call, kinds):
    for kind in kinds[:1]:
        with pytest.raises(kind) as error:
            call()
    assert str(error.value)
    assert isinstance(error.value, kinds) or kinds == (TypeError, RuntimeError)


def test_failed_calls_leave_their_arguments():
    y = tenon.ones(2)
    with pytest.raises(ValueError):
        y.add_(tenon.ones(3))
    assert y.tolist() == [1.0, 1.0] and y._version == 0


def test_conversions_to_python_numbers():
    assert int(tenon.tensor(3.9)) == 3 and float(tenon.tensor(2)) == 2.0
    assert bool(tenon.tensor([1])) and not bool(tenon.tensor(0.0))
    assert [10, 20, 30][tenon.tensor(1)] == 20
    assert tenon.tensor(1.5).item() == 1.5 and tenon.tensor(True).item() is True
    assert complex(tenon.tensor(2.0)) == 2
    assert f"{tenon.tensor(3.14159):.2f}" == "3.14"
    with pytest.raises(TypeError):
        [1, 2][tenon.tensor(1.0)]
    with pytest.raises(ValueError):
        int(tenon.tensor(float("nan")))


def test_to_and_casts():
    assert x.to(tenon.float32) is x and x.float() is x
    assert x.to(tenon.float64).dtype is tenon.float64
    assert x.to("cpu", tenon.int32).dtype is tenon.int32
    assert x.to(dtype=tenon.float16).dtype is tenon.float16
    assert x.to(tenon.ones(1, dtype=tenon.int64)).dtype is tenon.int64
    assert x.to(tenon.float32, copy=True) is not x
    assert x.long().tolist() == [[1, -2], [3, 4]]
    with pytest.raises(TypeError):
        x.to(3)
    with pytest.raises(TypeError):
        x.to(tenon.float32, foo=1)


def test_a_forked_child_multiplies():
    """libgomp would wait there for threads of the parent."""
    a = tenon.ones(300, 300)
    assert (a @ a).sum().item() == 300**3
    child = multiprocessing.get_context("fork").Process(target=lambda: os._exit(int((a @ a).sum().item() != 300**3)))
    child.start()
    child.join(60)
    hung = child.is_alive()
    child.kill()
    assert not hung and child.exitcode == 0


def test_a_new_result_has_no_writes():
    """However its operator made it."""
    x = tenon.rand(3, 4)
    for result in (x.var(), x.std(1), x.norm(), x.logsumexp(1), *tenon.var_mean(x, 1), x.sum(), x.exp(), x.cumsum(0)):
        assert result._version == 0


def test_none_is_a_list_of_no_numbers_where_that_is_the_default():
    x = tenon.arange(24.0).reshape(1, 2, 3, 4)
    flat = np.arange(24.0)
    assert tenon.roll(x, 1, None).tolist() == x.roll(1, dims=None).tolist() == np.roll(flat, 1).reshape(x.shape).tolist()
    assert tenon.amax(x, None).item() == x.amax(dim=None).item() == 23 and x.amin(None).item() == 0
    assert tenon.max_pool2d(x, 2, None).tolist() == tenon.max_pool2d(x, 2).tolist()
    for call in (lambda: x.flip(None), lambda: x.permute(None), lambda: tenon.max_pool2d(x, None)):
        with pytest.raises(TypeError, match="must be .*not NoneType"):
            call()
