"""save: a module, or a function of tensors, as an ONNX file."""

from __future__ import annotations

import inspect

from .. import _C, nn
from .._program.inference import Inference, _flatten
from ..arguments import describe, path_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .._C import Tensor
    from ..types import Path

#: Of traces for dynamic axes: what a size is multiplied by in the trace where it alone differs, and where all do.
_ALONE, _TOGETHER = 2, 3


def _names(what: str, names: Sequence[str] | None) -> list[str]:
    if names is None:
        return []
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"onnx.save: `{what}` is a list of strings, not {describe(names)}")
    return list(names)


def _input_names(module: Callable[..., Any], example: tuple[Any, ...], kwargs: dict[str, Any], count: int) -> list[str]:
    """The names of the function's parameters, where each gets one tensor."""
    try:
        function = module.forward if isinstance(module, nn.Module) else module
        bound = inspect.signature(function).bind(*example, **kwargs)
    except (TypeError, ValueError):
        return [f"input_{i}" for i in range(count)]
    names: list[str] = []
    for name, value in bound.arguments.items():
        tensors: list[Tensor] = []
        _flatten(value, tensors)
        names += [name] if isinstance(value, _C.Tensor) else [f"{name}_{i}" for i in range(len(tensors))]
    return names if len(names) == count else [f"input_{i}" for i in range(count)]


def _axes(dynamic_axes: Any, input_names: list[str], output_names: list[str], inputs: list[Tensor]) -> list[tuple[int, int, str]]:
    """(input, axis, name) of each dynamic axis."""
    out: list[tuple[int, int, str]] = []
    for name, axes in (dynamic_axes or {}).items():
        if name not in input_names:
            if name in output_names:
                continue  # sizes of results follow
            raise ValueError(f"onnx.save: `dynamic_axes` names '{name}', which is no input; inputs are {', '.join(input_names)}")
        place = input_names.index(name)
        rank = inputs[place].dim()
        for axis in axes:
            if not isinstance(axis, int) or not -rank <= axis < rank:
                raise ValueError(f"onnx.save: `dynamic_axes` names axis {axis!r} of '{name}', which has {rank} dimensions")
            symbol = axes[axis] if isinstance(axes, dict) else f"{name}_{axis % rank}"
            out.append((place, axis % rank, symbol))
    return out


def _sizes(axes: list[tuple[int, int, str]], inputs: list[Tensor]) -> dict[str, int]:
    """The size that each dynamic axis has in the first trace: the example's, but at least 2, so that it is not taken for a fixed 1."""
    out: dict[str, int] = {}
    for place, axis, symbol in axes:
        size = inputs[place].shape[axis]
        if out.setdefault(symbol, size) != size:
            raise ValueError(f"onnx.save: dynamic axis '{symbol}' has size {out[symbol]} in one input and {size} in another")
    return {symbol: max(size, 2) for symbol, size in out.items()}


def _resized(inputs: list[Tensor], axes: list[tuple[int, int, str]], sizes: dict[str, int]) -> list[Tensor]:
    shapes = [list(t.shape) for t in inputs]
    for place, axis, symbol in axes:
        shapes[place][axis] = sizes[symbol]
    return [t if list(t.shape) == shape else _C.empty(shape, dtype=t.dtype) for t, shape in zip(inputs, shapes)]


def save(
    module: Callable[..., Any],
    path: Path,
    *example: Any,
    opset: int = 18,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_axes: dict[str, Any] | None = None,
    **kwargs: Any,
) -> None:
    """Writes what a module computes of inputs such as the example's as an ONNX file, for other runtimes. Replaces the file completely
    or not at all.

        tenon.onnx.save(model.eval(), "classifier.onnx", image, input_names=["image"], dynamic_axes={"image": {0: "batch"}})

    The module is called as by `inference(..., exact=True)`. Its calls become nodes of the standard's operators, version `opset` (18
    to 24), and weights keep the names that they have in `state_dict()`. Inputs are named after the function's parameters, and outputs
    output_0 and so on, unless names are given.

    Sizes are those of the example, but for `dynamic_axes`: by input, the axes whose size a run chooses, with a name for each
    (`{0: "batch"}`), or without (`[0]`). The module is then called several times with other sizes of them, and the numbers that differ
    are written as computed from the sizes.

    Raises NotImplementedError that lists all calls which ONNX has no operators for, and where `inference` raises it; ValueError for a
    module in training, for names that do not fit, and for more than 2 GB of weights.
    """
    if not callable(module):
        raise TypeError(f"onnx.save: `module` is called with tensors; {describe(module)} is no module and no function")
    if not isinstance(opset, int) or isinstance(opset, bool) or not 0 <= opset < 1000:
        raise TypeError(f"onnx.save: `opset` is a version of the standard's operators, not {describe(opset)}")
    inputs: list[Tensor] = []
    form = _flatten((example, kwargs), inputs)
    names, results = _names("input_names", input_names), _names("output_names", output_names)
    names = names or _input_names(module, example, kwargs, len(inputs))
    axes = _axes(dynamic_axes, names, results, inputs)
    first = _sizes(axes, inputs)
    cases = [first, *({**first, symbol: first[symbol] * _ALONE} for symbol in first)]
    if first:
        cases.append({symbol: size * _TOGETHER for symbol, size in first.items()})
    tracer = Inference(module, True)
    traces = [tracer._make(form, _resized(inputs, axes, sizes))[0] for sizes in cases]
    for symbol in first:  # what holds for multiples alone
        try:
            traces.append(tracer._make(form, _resized(inputs, axes, {**first, symbol: first[symbol] + 1}))[0])
        except Exception:  # whatever the module raises, such as a failed assert: it takes multiples alone
            pass
    weights = list(module.state_dict().items()) if isinstance(module, nn.Module) else []
    named = [(name, t) for name, t in weights if isinstance(t, _C.Tensor)]
    _C._onnx.save(traces, path_of("onnx.save", path), opset, names, results, axes, named)
