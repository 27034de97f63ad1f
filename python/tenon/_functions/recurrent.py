"""Recurrent layers and cells as functions of their weights: rnn_tanh, rnn_relu, lstm, gru, and one step of each.

nn.RNN, nn.LSTM and nn.GRU have the same layers with weights of their own.
"""

from __future__ import annotations

from .. import _C
from ..arguments import check_module as _check_module, describe as _describe
from ..nn.rnn import _run_direction, _run_layers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._C import Tensor

_SEQUENCE = ("input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first")
_PACKED = ("data", "batch_sizes", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")
_KINDS = {"rnn_tanh": "RNN_TANH", "rnn_relu": "RNN_RELU", "lstm": "LSTM", "gru": "GRU"}


def _arguments(function: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name, of one of the two lists."""
    packed = "batch_sizes" in kwargs or "data" in kwargs or (len(args) > 3 and isinstance(args[3], (list, tuple)))
    names = _PACKED if packed else _SEQUENCE
    given = {**dict(zip(names, args)), **kwargs}
    if len(args) > len(names) or len(given) < len(args) + len(kwargs) or set(given) != set(names):
        raise TypeError(f"{function}: expected ({', '.join(_SEQUENCE)}) or ({', '.join(_PACKED)}), got {len(args)} and {sorted(kwargs)}")
    return given


def _layered(function: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    call, mode = _arguments(function, args, kwargs), _KINDS[function]
    batch_sizes = call.get("batch_sizes")
    input = call["input" if batch_sizes is None else "data"]
    states = list(call["hx"]) if mode == "LSTM" and isinstance(call["hx"], (list, tuple)) else [call["hx"]]
    if len(states) != (2 if mode == "LSTM" else 1):
        raise RuntimeError(f"{function}: hx must be two Tensors, the state and the cell state, got {_describe(call['hx'])}")
    for name, tensor in (("input", input), *(("hx", state) for state in states)):
        if not isinstance(tensor, _C.Tensor):
            raise TypeError(f"{function}: {name} must be a Tensor, got {_describe(tensor)}")
    layers, directions = call["num_layers"], 2 if call["bidirectional"] else 1
    if not isinstance(layers, int) or layers < 1:
        raise ValueError(f"{function}: num_layers must be at least 1, got {_describe(layers)}")
    if not isinstance(call["dropout"], (int, float)) or not 0 <= call["dropout"] <= 1:
        raise ValueError(f"{function}: dropout must be between 0 and 1, got {_describe(call['dropout'])}")
    projected = mode == "LSTM" and states[0].shape[-1:] != states[1].shape[-1:]
    weights = _weights(function, call["params"], bool(call["has_biases"]), projected, layers * directions)
    expected = layers * directions
    if any(state.dim() != 3 or state.shape[0] != expected for state in states):
        raise RuntimeError(f"{function}: hx must be [{expected}, batch, size], got {[list(state.shape) for state in states]}")
    if input.dim() != (3 if batch_sizes is None else 2):
        raise RuntimeError(f"{function}: input must have {3 if batch_sizes is None else 2} dimensions, got {list(input.shape)}")
    turned = bool(call.get("batch_first"))
    dropout = call["dropout"] if call["train"] else 0
    output, last = _run_layers(
        mode, input.transpose(0, 1) if turned else input, states, weights, batch_sizes, layers, directions, dropout
    )
    return (output.transpose(0, 1) if turned else output, *last)


def _weights(function: str, params: Any, biases: bool, projected: bool, count: int) -> list[tuple[Any, ...]]:
    """w_ih, w_hh, b_ih, b_hh and w_hr of each layer and direction; None for what it lacks."""
    size = (4 if biases else 2) + projected
    if not isinstance(params, (list, tuple)) or not all(isinstance(w, _C.Tensor) for w in params):
        raise TypeError(f"{function}: params must be a list of Tensors, got {_describe(params)}")
    if len(params) != size * count:
        raise RuntimeError(f"{function}: params must have {size} Tensors for each of {count} layers and directions, got {len(params)}")
    found = []
    for at in range(0, len(params), size):
        own = params[at : at + size]
        found.append((*own[:2], *(own[2:4] if biases else (None, None)), own[-1] if projected else None))
    return found


def rnn_tanh(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first), or of packed sequences
    (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional): nn.RNN with the weights `params`."""
    return _layered("rnn_tanh", args, kwargs)  # type: ignore[return-value]


def rnn_relu(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """rnn_tanh with max(0, .) in place of tanh."""
    return _layered("rnn_relu", args, kwargs)  # type: ignore[return-value]


def lstm(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """nn.LSTM with the weights `params`: arguments are those of rnn_tanh, where hx is a list of the state and the cell state."""
    return _layered("lstm", args, kwargs)  # type: ignore[return-value]


def gru(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """nn.GRU with the weights `params`: arguments are those of rnn_tanh."""
    return _layered("gru", args, kwargs)  # type: ignore[return-value]


def _step(function: str, mode: str, input: Tensor, hx: Tensor, c: Tensor | None, weights: Sequence[Any]) -> tuple[Tensor, Tensor]:
    for name, tensor in (("input", input), ("hx", hx), ("hx", hx if c is None else c)):
        if not isinstance(tensor, _C.Tensor) or tensor.dim() not in (1, 2):
            shape = list(tensor.shape) if isinstance(tensor, _C.Tensor) else _describe(tensor)
            raise RuntimeError(f"{function}: {name} must be a Tensor [batch, size], got {shape}")
    single = input.dim() == 1
    if single:
        input, hx, c = input.unsqueeze(0), hx.unsqueeze(0), None if c is None else c.unsqueeze(0)
    _, h, cell = _run_direction(mode, input.unsqueeze(0), hx, c, (*weights, None), None, False)
    return (h.squeeze(0), cell.squeeze(0)) if single else (h, cell)


def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """tanh(w_ih x + b_ih + w_hh h + b_hh)"""
    return _step("rnn_tanh_cell", "RNN_TANH", input, hx, None, (w_ih, w_hh, b_ih, b_hh))[0]


def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """max(0, w_ih x + b_ih + w_hh h + b_hh)"""
    return _step("rnn_relu_cell", "RNN_RELU", input, hx, None, (w_ih, w_hh, b_ih, b_hh))[0]


def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of nn.GRU."""
    return _step("gru_cell", "GRU", input, hx, None, (w_ih, w_hh, b_ih, b_hh))[0]


def lstm_cell(
    input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """One step of nn.LSTM: the new state and cell state; hx has the former ones."""
    if not isinstance(hx, (list, tuple)) or len(hx) != 2:
        raise RuntimeError(f"lstm_cell: hx must be two Tensors, the state and the cell state, got {_describe(hx)}")
    return _step("lstm_cell", "LSTM", input, hx[0], hx[1], (w_ih, w_hh, b_ih, b_hh))


_check_module(globals())
