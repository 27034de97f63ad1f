"""Layers without parameters."""

from .. import _C
from .module import Module


class _Activation(Module):
    _function = _inplace_function = None

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input):
        return self._inplace_function(input) if self.inplace else self._function(input)

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""


class ReLU(_Activation):
    """max(x, 0)"""

    # Built-in functions are not bound to the instance.
    _function, _inplace_function = _C.relu, staticmethod(_C.Tensor.relu_)


class SiLU(_Activation):
    """x * sigmoid(x)"""

    _function, _inplace_function = _C.silu, staticmethod(_C.Tensor.silu_)


class Sigmoid(Module):
    """1 / (1 + exp(-x))"""

    def forward(self, input):
        return _C.sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input):
        return _C.tanh(input)


class Softmax(Module):
    """exp(x) divided by its sum along `dim`."""

    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return _C.softmax(input, self.dim)

    def extra_repr(self):
        return f"dim={self.dim}"
