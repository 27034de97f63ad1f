"""Activations as modules."""

from .. import _C
from . import functional as F
from .module import Module


class _Activation(Module):
    """An activation that takes nothing but `inplace`."""

    _function = None

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input):
        return self._function(input, inplace=self.inplace)

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""


class ReLU(_Activation):
    """max(x, 0)"""

    # Built-in functions are not bound to the instance.
    _function, _inplace_function = _C.relu, staticmethod(_C.Tensor.relu_)

    def forward(self, input):
        return self._inplace_function(input) if self.inplace else self._function(input)


class SiLU(ReLU):
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


class Softsign(Module):
    """x / (1 + |x|)"""

    def forward(self, input):
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x)"""

    def forward(self, input):
        return F.tanhshrink(input)


class LogSigmoid(Module):
    """log(sigmoid(x)), without overflow."""

    def forward(self, input):
        return _C.log_sigmoid(input)


class LeakyReLU(Module):
    """x where x > 0, negative_slope * x elsewhere. Any shape."""

    def __init__(self, negative_slope=0.01, inplace=False):
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input):
        if self.inplace:
            return input.leaky_relu_(self.negative_slope)
        return _C.leaky_relu(input, self.negative_slope)

    def extra_repr(self):
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class RReLU(Module):
    """LeakyReLU with slopes drawn uniformly from [lower, upper] while training, and their middle otherwise.

    Xu et al. (2015), arXiv:1505.00853.
    """

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace=False):
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input):
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self):
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above threshold."""

    def __init__(self, beta=1.0, threshold=20.0):
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input):
        return _C.softplus(input, self.beta, self.threshold)

    def extra_repr(self):
        return f"beta={self.beta}, threshold={self.threshold}"


class Softmax(Module):
    """exp(x) divided by its sum along `dim`."""

    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return _C.softmax(input, self.dim)

    def extra_repr(self):
        return f"dim={self.dim}"


class LogSoftmax(Softmax):
    """The logarithm of Softmax, computed without overflow."""

    def forward(self, input):
        return _C.log_softmax(input, self.dim)


class Softmin(Softmax):
    """Softmax of -x."""

    def forward(self, input):
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    """Softmax over the channels of [N, C, H, W] or [C, H, W]."""

    def forward(self, input):
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected 3 or 4 dimensions, got shape {list(input.shape)}")
        return _C.softmax(input, -3)
