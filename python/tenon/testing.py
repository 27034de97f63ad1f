"""assert_close: that two results are equal but for rounding, with PyTorch's rules, tolerances and messages (torch.testing)."""

from __future__ import annotations

from . import _C
from .arguments import check_module as _check_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

__all__ = ["assert_close"]

#: (rtol, atol) by dtype; those of all others are 0.
_TOLERANCES = {
    _C.float16: (1e-3, 1e-5),
    _C.bfloat16: (1.6e-2, 1e-5),
    _C.float32: (1.3e-6, 1e-5),
    _C.float64: (1e-7, 1e-7),
    _C.complex64: (1.3e-6, 1e-5),
    _C.complex128: (1e-7, 1e-7),
}
_NUMBERS = {int: _C.int64, float: _C.float64, complex: _C.complex128}


class _Different(Exception):
    """What differs, and the keys and indices that lead to it."""

    def __init__(self, message: str, place: tuple[Any, ...]) -> None:
        at = "".join(str([key]) for key in place)
        self.message = message + (f"\n\nThe failure occurred for item {at}" if place else "")


class _Comparison:
    """The options of a call."""

    def __init__(self, rtol, atol, equal_nan, device, dtype, layout, stride):
        self.tolerances = None if rtol is None else (rtol, atol)
        self.equal_nan, self.check_device, self.check_dtype, self.check_layout, self.check_stride = equal_nan, device, dtype, layout, stride

    def compare(self, actual: Any, expected: Any, place: tuple[Any, ...] = ()) -> None:
        """Raises _Different, or TypeError for what cannot be compared."""
        if isinstance(actual, dict) and isinstance(expected, dict):
            self._mappings(actual, expected, place)
        elif isinstance(actual, (list, tuple)) and isinstance(expected, (list, tuple)):
            if len(actual) != len(expected):
                raise _Different(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", place)
            for i, (a, e) in enumerate(zip(actual, expected)):
                self.compare(a, e, (*place, i))
        elif actual is None or expected is None:
            if actual is not expected:
                raise _Different(f"None mismatch: {actual} is not {expected}", place)
        elif isinstance(actual, bool) and isinstance(expected, bool):
            if actual is not expected:
                raise _Different(f"Booleans mismatch: {actual} is not {expected}", place)
        elif type(actual) in _NUMBERS and type(expected) in _NUMBERS:
            self._numbers(actual, expected, place)
        elif _is_array(actual) and _is_array(expected) and (isinstance(actual, type(expected)) or isinstance(expected, type(actual))):
            self._tensors(_C.as_tensor(actual), _C.as_tensor(expected), place)
        else:
            at = "".join(str([key]) for key in place)
            raise TypeError(
                f"assert_close: cannot compare {type(actual).__name__} with {type(expected).__name__}{at and ' at item ' + at}; "
                "it compares tensors, arrays, numbers, bools and None, in sequences and dicts"
            )

    def _mappings(self, actual, expected, place):
        missing, more = expected.keys() - actual.keys(), actual.keys() - expected.keys()
        if missing or more:
            raise _Different(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(missing, key=repr)}\n"
                f"Additional keys in the actual mapping: {sorted(more, key=repr)}",
                place,
            )
        for key in sorted(actual, key=repr):
            self.compare(actual[key], expected[key], (*place, key))

    def _allowed(self, *dtypes):
        """(rtol, atol) for values of these dtypes: the larger of each."""
        if self.tolerances is not None:
            return self.tolerances
        rtols, atols = zip(*(_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes))
        return max(rtols), max(atols)

    def _numbers(self, actual, expected, place):
        if self.check_dtype and type(actual) is not type(expected):
            raise _Different(f"The (d)types do not match: {type(actual)} != {type(expected)}", place)
        rtol, atol = self._allowed(_NUMBERS[type(actual)], _NUMBERS[type(expected)])
        both_nan = self.equal_nan and actual != actual and expected != expected
        difference = abs(actual - expected)
        if actual == expected or both_nan or difference <= atol + rtol * abs(expected) < float("inf"):
            return
        raise _Different(_of_numbers(actual, expected, rtol, atol), place)

    def _tensors(self, actual, expected, place):
        def same(attribute, a, e, asked=True):
            if asked and a != e:
                raise _Different(f"The values for attribute '{attribute}' do not match: {a} != {e}.", place)

        same("shape", actual.shape, expected.shape)
        same("layout", actual.layout, expected.layout, self.check_layout)
        same("stride()", actual.stride(), expected.stride(), self.check_stride)
        same("device", actual.device, expected.device, self.check_device)
        same("dtype", actual.dtype, expected.dtype, self.check_dtype)
        rtol, atol = self._allowed(actual.dtype, expected.dtype)
        a, e = _comparable(actual, expected)
        near = a.isclose(e, rtol=rtol, atol=atol, equal_nan=self.equal_nan)
        if not near.all().item():
            raise _Different(_of_elements(a, e, near, rtol, atol), place)


def _is_array(value):
    return isinstance(value, _C.Tensor) or hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__")


def _comparable(actual, expected):
    """Both on the host and of one dtype, in which differences can be computed. float8, which has no arithmetic, is its bits."""
    dtype = _C.promote_types(actual.dtype, expected.dtype) if actual.dtype != expected.dtype else actual.dtype
    both = [t.detach().cpu() for t in (actual, expected)]
    if dtype.is_floating_point and dtype.itemsize == 1:
        both, dtype = [t.view(_C.uint8) for t in both], _C.int64
    elif not dtype.is_floating_point and not dtype.is_complex and dtype is not _C.uint64:
        dtype = _C.int64
    return [t.to(dtype) for t in both]


def _of_numbers(actual, expected, rtol, atol):
    """By how much two numbers differ."""
    difference = abs(actual - expected)
    message = f"Scalars are not {'close' if rtol or atol else 'equal'}!\n\nExpected {expected} but got {actual}."
    relative = difference / abs(expected) if expected != 0 else float("inf")
    for kind, found, limit in (("Absolute", difference, atol), ("Relative", relative, rtol)):
        message += f"\n{kind} difference: {found}" + (f" (up to {limit} allowed)" if rtol or atol else "")
    return message


def _of_elements(actual, expected, near, rtol, atol):
    """How many elements differ, and by how much."""
    if actual.dim() == 0:
        return _of_numbers(actual.item(), expected.item(), rtol, atol)
    count, wrong = near.numel(), near.logical_not().sum().item()
    exactly = rtol == 0 and atol == 0
    difference = _C.where(actual > expected, actual - expected, expected - actual) if actual.dtype is _C.uint64 else (actual - expected).abs()
    lines = [f"Tensor-likes are not {'equal' if exactly else 'close'}!", ""]
    lines.append(f"Mismatched elements: {wrong} / {count} ({wrong / count:.1%})")
    for kind, values, limit in (("absolute", difference, atol), ("relative", difference / expected.abs(), rtol)):
        values = _C.where(near, _C.zeros_like(values), values).flatten()
        at = values.argmax().item()
        line = f"Greatest {kind} difference: {values[at].item()} at index {_unravelled(at, actual.shape)}"
        lines.append(line + ("" if exactly else f" (up to {limit} allowed)"))
    return "\n".join(lines)


def _unravelled(number: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index: list[int] = []
    for size in reversed(shape):
        index.insert(0, number % size)
        number //= size
    return tuple(index)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raises AssertionError unless |actual - expected| <= atol + rtol * |expected| for all elements, and shape, dtype, device
    and layout are the same; the message says how many elements differ and by how much.

    Compares tensors, arrays of one type, numbers, bools and None, in sequences and dicts. `rtol` and `atol` come together;
    without them they are 1.3e-6 and 1e-5 for float32, 1e-7 and 1e-7 for float64, 1e-3 and 1e-5 for float16, 1.6e-2 and 1e-5
    for bfloat16, and 0 for integers and bool. `msg` replaces the message, or is called with it and returns another.
    """
    if (rtol is None) != (atol is None):
        raise ValueError(f"assert_close: rtol and atol are given both or not at all, got rtol={rtol} and atol={atol}")
    if not allow_subclasses and type(actual) is not type(expected):
        raise TypeError(f"assert_close: the types differ, {type(actual).__name__} and {type(expected).__name__}")
    try:
        _Comparison(rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride).compare(actual, expected)
    except _Different as different:
        _fail(different.message, msg)


def _fail(message: str, msg: Any) -> NoReturn:
    raise AssertionError(message if msg is None else msg(message) if callable(msg) else msg) from None


_check_module(globals())
