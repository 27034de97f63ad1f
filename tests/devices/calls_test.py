"""Operators that kernels of a plug-in call, with the helpers of tenon/abi/operator.h, and the types that kernels may have."""

import pathlib
import re
import subprocess

import pytest

import tenon

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/backends.md").read_text()


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calls")
    example = next(block for block in re.findall(r"```cpp\n(.*?)```", PAGE, re.DOTALL) if "call_operator" in block)
    (folder / "example.h").write_text(example)
    subprocess.run(["c++", "-std=c++20", "-O1", "-Wall", "-Werror",
                    "-fno-gnu-unique", "-fPIC", "-shared", f"-I{ROOT}", f"-I{folder}", ROOT / "tests/devices/calls/calls.cc",
                    "-o", folder / "calls.so"], check=True)  # fmt: skip
    tenon.load_device(folder / "calls.so", name="calls")
    yield tenon.ops.calls
    tenon.unload_device("calls")  # refused while a tensor lives that a call has kept


@pytest.fixture(params=["cpu", "calls"])
def x(calls, request):
    return tenon.tensor([[1.0, -2.0], [4.0, 3.0]], device=request.param)


def test_the_example_of_the_documentation(calls, x):
    assert tenon.ops.myops.centred(x).tolist() == [[1.5, -1.5], [0.5, -0.5]]
    y = x.clone().requires_grad_()
    (tenon.ops.myops.centred(y) * x).sum().backward()
    assert y.grad.tolist() == [[1.5, -1.5], [0.5, -0.5]], "the gradient of what it calls"


def test_arguments_of_every_type(calls, x):
    assert calls.scalars(x).equal(x * 0.5 + 3)
    strange = tenon.tensor([float("nan"), float("inf"), 2.0], device=x.device)
    assert calls.numbers(strange).tolist() == [0.25, 9, 2]
    assert calls.texts(x).equal(tenon.nn.functional.gelu(x, approximate="tanh") + 1)
    total = calls.lists(x)
    assert total.dtype == tenon.float64 and total.tolist() == [5, 1, 5, 1]
    image = x[None, None]
    assert calls.scaled_up(image, [1.0, 3.0]).shape == (1, 1, 4, 6)
    made = calls.channels_last(x)
    assert made.device == x.device and made.dtype == tenon.int16 and made.stride() == (24, 1, 8, 2)


def test_generators_are_passed_on(calls, x):
    expected = tenon.empty(3, device=x.device).normal_(1, 2, generator=tenon.Generator().manual_seed(5))
    assert calls.drawn(tenon.empty(3, device=x.device), generator=tenon.Generator().manual_seed(5)).equal(expected)
    tenon.manual_seed(5)
    assert calls.drawn(tenon.empty(3, device=x.device)).equal(expected), "none: the default one"


def test_tensors_that_are_not_there(calls, x):
    plain = calls.undefined(x, None)
    assert plain.equal(tenon.nn.functional.layer_norm(x, [2], eps=0))
    assert calls.undefined(x, tenon.full((2,), 2.0, device=x.device)).equal(plain * 2)


def test_results_of_every_type(calls, x):
    values, indices = calls.sorted(x)
    assert values.tolist() == [[1, -2], [4, 3]] and indices.tolist() == [[0, 1], [0, 1]]
    row = calls.last_row(x)
    assert row.tolist() == [4, 3] and row.data_ptr() == x[1].data_ptr()
    assert calls.same(x, x.clone()) is True and calls.same(x, x + 1) is False
    assert calls.item(x[0, 1]) == -2.0 and calls.item(x.long()[1, 0]) == 4.0
    assert calls.times(4) == 12 and calls.nothing(x) is None


WRONG = [
    (NotImplementedError, "Operator 'aten::no_such' does not exist"),
    (TypeError, "aten::abs takes 1 arguments and returns 1 results, not 2 and 1"),
    (TypeError, "aten::mul.Scalar: argument `other` is int, expected Scalar$"),
    (TypeError, "aten::abs takes 1 arguments and returns 1 results, not 1 and 2"),
    (TypeError, "result 0 of aten::abs is not of that kind, which its C\\+\\+ type asks for"),
    (RuntimeError, "mm: "),
    (ValueError, "abs: `self` is undefined"),
    (TypeError, "aten::cat: argument `dim` is None, expected int$"),
    (RuntimeError, "aten::to.device: argument `device`: there is no backend 77$"),
    (RuntimeError, "aten::to.device: argument `device`: there is no device of index -7$"),
    (TypeError, "aten::to.device: argument `dtype`: there is no dtype 200$"),
    (TypeError, "aten::mul.Scalar: argument `other`: there is no kind of numbers 99$"),
    (TypeError, "aten::clone: argument `memory_format`: there is no memory format 77$"),
    (TypeError, "aten::empty.memory_format: argument `layout`: there is no layout 99$"),
    (ValueError, "9223372036854775808 is beyond int64$"),
    (ValueError, "9223372036854775808 is beyond int64$"),
    (TypeError, "aten::abs takes 1 arguments and returns 1 results, not 1 and 0"),
    (TypeError, "aten::cat: argument `tensors` is Tensor, expected Tensor\\[\\]$"),
]


@pytest.mark.parametrize("how", range(len(WRONG)))
def test_what_a_call_cannot_do_is_an_error_of_the_kernels_caller(calls, how):
    kind, text = WRONG[how]
    with pytest.raises(kind, match=text):
        calls.wrong(tenon.ones(2, 3), how)


def test_layouts_and_memory_formats_reach_kernels(calls):
    assert [calls.layout(v) for v in (tenon.strided, tenon.sparse_coo, tenon.sparse_csr)] == [0, 1, 2]
    assert (calls.layout_or(), calls.layout_or(None), calls.layout_or(tenon.strided)) == (-1, -1, 0)
    formats = (tenon.contiguous_format, tenon.preserve_format, tenon.channels_last, tenon.channels_last_3d)
    assert [calls.format(v) for v in formats] == [0, 1, 2, 3]
    assert (calls.format_or(), calls.format_or(None), calls.format_or(tenon.channels_last)) == (-1, -1, 2)


def test_generators_reach_kernels(calls):
    g = tenon.Generator().manual_seed(3)
    assert [calls.take(2, g), calls.take_or(5, g), calls.take(1, g)] == [0, 2, 7]
    assert calls.has_generator(g) and not calls.has_generator() and not calls.has_generator(None)
    tenon.manual_seed(3)
    assert [calls.take_or(4), calls.take_or(1)] == [0, 4]


def test_tensors_that_may_be_missing_reach_kernels(calls):
    assert calls.has_tensor(tenon.ones(1)) and not calls.has_tensor() and not calls.has_tensor(None)
