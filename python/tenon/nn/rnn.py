"""RNN, LSTM and GRU, and single steps of them: RNNCell, LSTMCell, GRUCell.

Weights, their names and initialisation are PyTorch's. One operator, `_recurrence`, runs one direction of a layer.
tenon/nn/recurrent.h has the same in C++.
"""

from __future__ import annotations

import math
import operator
from numbers import Real as _Real

from .. import _C
from .._names.absent import add_module_getattr
from ..arguments import check_module as _check_module, checked as _checked, describe
from ..callers import warn as _warn
from . import init
from .module import Module, changed_options
from .parameter import Parameter
from .utils.rnn import PackedSequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor
    from ..types import Device, DType

#: Gates of each kind of cell, and its number for `_recurrence`.
_GATES = {"RNN_RELU": 1, "RNN_TANH": 1, "LSTM": 4, "GRU": 3}
_CELLS = {"RNN_RELU": 0, "RNN_TANH": 1, "LSTM": 2, "GRU": 3}
_NONLINEARITIES = {"tanh": "RNN_TANH", "relu": "RNN_RELU"}


def _size(layer: str, name: str, size: Any) -> int:
    """A positive int, of whatever library."""
    try:
        if isinstance(size, bool):
            raise TypeError
        number = operator.index(size)
    except TypeError:
        raise TypeError(f"{layer}: {name} must be an int, got {describe(size)}") from None
    if number <= 0:
        raise ValueError(f"{layer}: {name} must be greater than zero, got {number}")
    return number


def _mode(layer: str, nonlinearity: str) -> str:
    if nonlinearity not in _NONLINEARITIES:
        raise ValueError(f"{layer}: Unknown nonlinearity {nonlinearity!r}; expected 'tanh' or 'relu'")
    return _NONLINEARITIES[nonlinearity]


def _run_direction(mode: str, input: Tensor, h: Tensor, c: Tensor | None, weights: Any, batch_sizes: Any, reverse: bool) -> Any:
    """The states after each step, the last one and the last cell state, of weights w_ih, w_hh, b_ih, b_hh, w_hr."""
    w_ih, w_hh, b_ih, bias, projection = weights
    if b_ih is not None and mode != "GRU":  # whose r multiplies the product with the state and its bias
        b_ih, bias = None, b_ih + bias
    products = _C.linear(input, w_ih, b_ih)
    keep = _C.is_grad_enabled() and any(t is not None and t.requires_grad for t in (products, h, c, w_hh, bias, projection))
    return _C._recurrence(products, h, c, w_hh, bias, projection, batch_sizes, _CELLS[mode], reverse, keep)[:3]


def _run_layers(
    mode: str, input: Tensor, hx: Any, weights: list[Any], batch_sizes: Tensor | None, layers: int, directions: int, dropout: float
) -> tuple[Tensor, list[Tensor]]:
    """All layers over [steps, batch, *], or packed data: the output, and the last states. `hx` has a state for each layer and
    direction, or LSTM's two, and so has `weights`."""
    hs, cs = hx if mode == "LSTM" else (hx[0], None)
    last_h: list[Tensor] = []
    last_c: list[Tensor] = []
    for number in range(layers):
        outputs = []
        for reverse in (False, True)[:directions]:
            at = len(last_h)
            output, h, c = _run_direction(mode, input, hs[at], None if cs is None else cs[at], weights[at], batch_sizes, reverse)
            outputs.append(output)
            last_h.append(h)
            last_c.append(c)
        input = outputs[0] if len(outputs) == 1 else _C.cat(outputs, -1)
        if dropout and number + 1 < layers:
            input = _C.dropout(input, dropout, True)
    return input, [s[0].unsqueeze(0) if len(s) == 1 else _C.stack(s) for s in ((last_h, last_c) if mode == "LSTM" else (last_h,))]


class RNNBase(Module):
    """Base of RNN, LSTM and GRU: the weights of all layers, and what is done about shapes before and after the layers."""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        super().__init__()
        layer = type(self).__name__
        if mode not in _GATES:
            raise ValueError(f"{layer}: unrecognized mode {mode!r}; expected one of {', '.join(_GATES)}")
        input_size, hidden_size = _size(layer, "input_size", input_size), _size(layer, "hidden_size", hidden_size)
        num_layers = _size(layer, "num_layers", num_layers)
        for name, flag in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(flag, bool):
                raise TypeError(f"{layer}: {name} must be a bool, got {describe(flag)}")
        if not isinstance(dropout, (int, float, _Real)) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(f"{layer}: dropout must be a number between 0 and 1, got {dropout!r}")
        if dropout > 0 and num_layers == 1:
            _warn(f"{layer}: dropout is applied after all layers but the last, and num_layers is 1: dropout={dropout} does nothing")
        if not 0 <= proj_size < hidden_size:
            raise ValueError(f"{layer}: proj_size must be 0 or between 1 and hidden_size - 1 = {hidden_size - 1}, got {proj_size}")
        self.mode = mode
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        directions, state_size, gates = 2 if bidirectional else 1, proj_size or hidden_size, _GATES[mode] * hidden_size
        self._weight_names: list[list[str]] = []
        for number in range(num_layers):
            size = input_size if number == 0 else state_size * directions
            for suffix in ("", "_reverse")[:directions]:
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, size), "weight_hh": (gates, state_size)}
                if bias:
                    shapes.update(bias_ih=(gates,), bias_hh=(gates,))
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = [f"{name}_l{number}{suffix}" for name in shapes]
                for name, shape in zip(names, shapes.values()):
                    setattr(self, name, Parameter(_C.empty(shape, device=device, dtype=dtype)))
                self._weight_names.append(names)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights and biases uniformly within 1 / sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Does nothing: weights need not follow each other in memory."""

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._weight_names]

    @property
    def _flat_weights(self) -> list[Tensor]:
        return [getattr(self, name) for names in self._weight_names for name in names]

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + changed_options(
            self, proj_size=0, num_layers=1, bias=True, batch_first=False, dropout=0, bidirectional=False
        )

    # What forward does before and after the layers.

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raises unless `input` fits the weights."""
        layer, dtype = type(self).__name__, self.weight_ih_l0.dtype
        if input.dtype != dtype:
            raise ValueError(
                f"{layer}: `input` is {input.dtype}, the weights are {dtype}; convert one, with input.to({dtype}) or "
                f"model.to({input.dtype})"
            )
        dims = 3 if batch_sizes is None else 2
        if input.dim() != dims:
            raise RuntimeError(f"{layer}: expected `input` with {dims} dimensions, got {list(input.shape)}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(f"{layer}: expected `input` of input_size={self.input_size} features, got {list(input.shape)}")

        if batch_sizes is None and input.shape[1 if self.batch_first else 0] == 0:
            raise RuntimeError(f"{layer}: expected `input` of at least one step, got {list(input.shape)}")

    def _state_shape(self, batch: int, size: int) -> tuple[int, int, int]:
        return self.num_layers * (2 if self.bidirectional else 1), batch, size

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the state: [layers * directions, batch, size]."""
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.shape[0 if self.batch_first else 1]
        return self._state_shape(batch, self.proj_size or self.hidden_size)

    def check_hidden_size(self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}") -> None:
        """Raises unless `hx` has that shape."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(f"{type(self).__name__}: " + msg.format(tuple(expected_hidden_size), list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raises unless input and state fit the weights and each other."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The states of the sequences in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def _run_sequences(self, input: Any, hx: Any) -> tuple[Any, Any]:
        """The layers, for a tensor or a packed sequence; the state is a tensor, or LSTM's pair."""
        layer = type(self).__name__
        packed = input if isinstance(input, PackedSequence) else None
        batch_sizes = order = None
        unbatched = False
        if packed is not None:
            input, batch_sizes, order, _ = packed
        elif not isinstance(input, _C.Tensor):
            raise TypeError(f"{layer}: `input` must be a Tensor or a PackedSequence, got {describe(input)}")
        else:
            if input.dim() not in (2, 3):
                raise ValueError(f"{layer}: Expected input to be 2D or 3D, got {list(input.shape)}")
            unbatched = input.dim() == 2
            if unbatched:
                input = input.unsqueeze(0 if self.batch_first else 1)
            if hx is not None:
                self._check_state_rank(hx, 2 if unbatched else 3)
                if unbatched:
                    hx = tuple(h.unsqueeze(1) for h in hx) if self.mode == "LSTM" else hx.unsqueeze(1)
        if hx is None:
            self.check_input(input, batch_sizes)
            hx = self._zero_state(input, self.get_expected_hidden_size(input, batch_sizes))
        else:
            hx = self.permute_hidden(hx, order)
            self.check_forward_args(input, hx, batch_sizes)
        if batch_sizes is not None and batch_sizes.device != input.device:
            batch_sizes = batch_sizes.to(input.device)
        turned = self.batch_first and batch_sizes is None
        output, state = self._run_layers(input.transpose(0, 1) if turned else input, hx, batch_sizes)
        if turned:
            output = output.transpose(0, 1)
        result: Any = output
        if packed is not None:
            result = PackedSequence(output, packed.batch_sizes, order, packed.unsorted_indices)
            state = [self.permute_hidden(h, packed.unsorted_indices) for h in state]
        elif unbatched:
            result = output.squeeze(0 if self.batch_first else 1)
            state = [h.squeeze(1) for h in state]
        return result, state[0] if self.mode != "LSTM" else tuple(state)

    def _weights(self, at: int) -> tuple[Any, ...]:
        """w_ih, w_hh, b_ih, b_hh and w_hr of a layer and direction; None for what it lacks."""
        found = [getattr(self, name) for name in self._weight_names[at]]
        biases = found[2:4] if self.bias else (None, None)
        return (*found[:2], *biases, found[-1] if self.proj_size else None)

    def _run_layers(self, input: Tensor, hx: Any, batch_sizes: Tensor | None) -> tuple[Tensor, list[Tensor]]:
        weights = [self._weights(at) for at in range(len(self._weight_names))]
        states, dropout = hx if self.mode == "LSTM" else (hx,), self.dropout if self.training else 0
        return _run_layers(self.mode, input, states, weights, batch_sizes, self.num_layers, 2 if self.bidirectional else 1, dropout)

    def _zero_state(self, input: Tensor, shape: tuple[int, int, int]) -> Any:
        return _C.zeros(shape, dtype=input.dtype, device=input.device)

    def _check_state_rank(self, hx: Any, dims: int) -> None:
        if not isinstance(hx, _C.Tensor):
            raise TypeError(f"{type(self).__name__}: `hx` must be a Tensor, got {describe(hx)}")
        if hx.dim() != dims:
            kind = "unbatched 2-D" if dims == 2 else "batched 3-D"
            raise RuntimeError(f"{type(self).__name__}: For {kind} input, `hx` should also be {dims}-D, got {list(hx.shape)}")


class RNN(RNNBase):
    """Layers of h = tanh(W_ih x + b_ih + W_hh h + b_hh), or with max(0, .) in place of tanh.

    input [steps, batch, input_size], or [batch, steps, input_size] with batch_first, or [steps, input_size], or a
    PackedSequence; hx [layers * directions, batch, hidden_size], zeros unless given. Returns the states of the last layer after
    each step, [steps, batch, directions * hidden_size], and the last state of each layer and direction, as hx.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        mode = _mode("RNN", nonlinearity)
        super().__init__(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        return self._run_sequences(input, hx)


class GRU(RNNBase):
    """Layers of gated recurrent units: h = (1 - z) * n + z * h, with n = tanh(W_in x + b_in + r * (W_hn h + b_hn)).

    The gates r and z are sigmoids of products with x and h. Shapes are those of RNN.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype)

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        return self._run_sequences(input, hx)


class LSTM(RNNBase):
    """Layers of long short-term memory: c = f * c + i * g and h = o * tanh(c); with proj_size, h is W_hr times that.

    The gates i, f, o are sigmoids, and g is tanh, of products with x and h. Shapes are those of RNN; hx is a pair of the state
    [layers * directions, batch, proj_size or hidden_size] and the cell state [layers * directions, batch, hidden_size], and so
    is the second result.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device, dtype
        )

    def forward(self, input: Any, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Any, tuple[Tensor, Tensor]]:
        return self._run_sequences(input, hx)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the cell state: [layers * directions, batch, hidden_size]."""
        return self._state_shape(self.get_expected_hidden_size(input, batch_sizes)[1], self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raises unless input and states fit the weights and each other."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The states of the sequences in another order."""
        if permutation is None or isinstance(hx, _C.Tensor):
            return super().permute_hidden(hx, permutation)
        return tuple(h.index_select(1, permutation) for h in hx)

    def _zero_state(self, input: Tensor, shape: tuple[int, int, int]) -> Any:
        state = _C.zeros(shape, dtype=input.dtype, device=input.device)
        if not self.proj_size:
            return state, state  # nothing writes to it
        cells = self._state_shape(shape[1], self.hidden_size)
        return state, _C.zeros(cells, dtype=input.dtype, device=input.device)

    def _check_state_rank(self, hx: Any, dims: int) -> None:
        if not isinstance(hx, (tuple, list)) or len(hx) != 2:
            raise TypeError(f"LSTM: `hx` must be a state and a cell state, got {describe(hx)}")
        for h in hx:
            super()._check_state_rank(h, dims)


class RNNCellBase(Module):
    """Base of RNNCell, LSTMCell and GRUCell: the weights, and what is done about shapes before and after the step."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Device = None, dtype: DType = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        gates = num_chunks * hidden_size
        self.weight_ih = Parameter(_C.empty(gates, input_size, device=device, dtype=dtype))
        self.weight_hh = Parameter(_C.empty(gates, hidden_size, device=device, dtype=dtype))
        self.bias_ih = Parameter(_C.empty(gates, device=device, dtype=dtype)) if bias else None
        self.bias_hh = Parameter(_C.empty(gates, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights and biases uniformly within 1 / sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + changed_options(self, bias=True, nonlinearity="tanh")

    def _run_cell(self, mode: str, input: Tensor, hx: Any) -> Any:
        cell, num_states = type(self).__name__, 2 if mode == "LSTM" else 1
        if input.dim() not in (1, 2):
            raise ValueError(f"{cell}: Expected input to be 1D or 2D, got {list(input.shape)}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(f"{cell}: expected `input` of input_size={self.input_size} features, got {list(input.shape)}")
        unbatched = input.dim() == 1
        if unbatched:
            input = input.unsqueeze(0)
        if hx is None:
            states = [_C.zeros(input.shape[0], self.hidden_size, dtype=input.dtype, device=input.device)] * num_states
        else:
            states = [hx] if num_states == 1 else list(hx)
            for i, h in enumerate(states):
                expected = [self.hidden_size] if unbatched else [input.shape[0], self.hidden_size]
                if list(h.shape) != expected:
                    name = "hx" if num_states == 1 else f"hx[{i}]"
                    raise RuntimeError(f"{cell}: expected `{name}` {expected} for `input` {list(input.shape)}, got {list(h.shape)}")
            if unbatched:
                states = [h.unsqueeze(0) for h in states]
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh, None)
        _, *new = _run_direction(mode, input.unsqueeze(0), states[0], states[1] if num_states == 2 else None, weights, None, False)
        if unbatched:
            new = [h.squeeze(0) for h in new[:num_states]]
        return new[0] if num_states == 1 else (new[0], new[1])


class RNNCell(RNNCellBase):
    """One step of RNN: input [batch, input_size] or [input_size], and the state hx [batch, hidden_size], to the new state."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    @_checked
    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._run_cell(_mode("RNNCell", self.nonlinearity), input, hx)


class LSTMCell(RNNCellBase):
    """One step of LSTM: input [batch, input_size] or [input_size], and the states (h, c), to the new states."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Device = None, dtype: DType = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    @_checked
    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        return self._run_cell("LSTM", input, hx)


class GRUCell(RNNCellBase):
    """One step of GRU: input [batch, input_size] or [input_size], and the state hx [batch, hidden_size], to the new state."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Device = None, dtype: DType = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    @_checked
    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._run_cell("GRU", input, hx)


_check_module(globals())
add_module_getattr(__name__)
