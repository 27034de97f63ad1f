"""Activations as modules."""

from __future__ import annotations

from .. import _C
from ..arguments import check_module as _check_module, checked as _checked
from . import functional as F
from .module import TensorModule
from .parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor
    from ..types import Device, DType


class _Activation(TensorModule):
    """An activation that takes nothing but `inplace`, by its name in nn.functional."""

    _name: Any = None

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._name)(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_Activation):
    """max(x, 0)"""

    # Built-in functions are not bound to the instance.
    _function: Any = _C.relu
    _inplace_function: Any = staticmethod(_C.Tensor.relu_)

    def forward(self, input: Tensor) -> Tensor:
        return self._inplace_function(input) if self.inplace else self._function(input)


class SiLU(ReLU):
    """x * sigmoid(x)"""

    _function = _C.silu
    _inplace_function = staticmethod(_C.Tensor.silu_)


class ReLU6(_Activation):
    """min(max(x, 0), 6)"""

    _name = "relu6"


class SELU(_Activation):
    """ELU, scaled so that mean 0 and variance 1 stay. Klambauer et al. (2017), arXiv:1706.02515."""

    _name = "selu"


class Hardsigmoid(_Activation):
    """min(max(x + 3, 0), 6) / 6"""

    _name = "hardsigmoid"

    def extra_repr(self) -> str:
        return ""  # as PyTorch prints it


class Hardswish(_Activation):
    """x * Hardsigmoid(x). Howard et al. (2019), arXiv:1905.02244."""

    _name = "hardswish"

    def extra_repr(self) -> str:
        return ""  # as PyTorch prints it


class Mish(_Activation):
    """x * tanh(softplus(x)). Misra (2019), arXiv:1908.08681."""

    _name = "mish"


class Sigmoid(TensorModule):
    """1 / (1 + exp(-x))"""

    def forward(self, input: Tensor) -> Tensor:
        return _C.sigmoid(input)


class Tanh(TensorModule):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        return _C.tanh(input)


class Softsign(TensorModule):
    """x / (1 + |x|)"""

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(TensorModule):
    """x - tanh(x)"""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class LogSigmoid(TensorModule):
    """log(sigmoid(x)), without overflow."""

    def forward(self, input: Tensor) -> Tensor:
        return _C.log_sigmoid(input)


class GELU(TensorModule):
    """x times the normal distribution's function of x; approximate="tanh" for the formula of the paper.

    Hendrycks and Gimpel (2016), arXiv:1606.08415.
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class _Scaled(TensorModule):
    """ELU and CELU, which have an alpha."""

    _name: Any = None

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._name)(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class ELU(_Scaled):
    """x where x > 0, alpha * (exp(x) - 1) elsewhere. Clevert et al. (2015), arXiv:1511.07289."""

    _name = "elu"


class CELU(_Scaled):
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0). Barron (2017), arXiv:1704.07483."""

    _name = "celu"


class LeakyReLU(TensorModule):
    """x where x > 0, negative_slope * x elsewhere. Any shape."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Tensor) -> Tensor:
        if self.inplace:
            return input.leaky_relu_(self.negative_slope)
        return _C.leaky_relu(input, self.negative_slope)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class RReLU(TensorModule):
    """LeakyReLU with slopes drawn uniformly from [lower, upper] while training, and their middle otherwise.

    Xu et al. (2015), arXiv:1505.00853.
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class PReLU(TensorModule):
    """LeakyReLU whose slopes are learned: one, or one for each channel of [N, C, ...]. He et al. (2015)."""

    _shown = ("num_parameters",)

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Device = None, dtype: DType = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(_C.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets all slopes to `init`."""
        self.weight.detach().fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        return _C.prelu(input, self.weight)


class Hardtanh(TensorModule):
    """x between min_val and max_val, those beyond them."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        if not max_val > min_val:
            raise ValueError(f"Hardtanh: max_val must be above min_val, got {max_val} and {min_val}")
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class Threshold(TensorModule):
    """x where x > threshold, `value` elsewhere."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class Hardshrink(TensorModule):
    """x where |x| > lambd, 0 elsewhere."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return _C.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Hardshrink):
    """x moved towards 0 by lambd, and 0 where it would pass it."""

    def forward(self, input: Tensor) -> Tensor:
        return _C.softshrink(input, self.lambd)


class Softplus(TensorModule):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above threshold."""

    _shown = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return _C.softplus(input, self.beta, self.threshold)


class Softmax(TensorModule):
    """exp(x) divided by its sum along `dim`; without `dim` a warning, and PyTorch's choice of it."""

    _shown = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class LogSoftmax(Softmax):
    """The logarithm of Softmax, computed without overflow."""

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmin(Softmax):
    """Softmax of -x."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class Softmax2d(TensorModule):
    """Softmax over the channels of [N, C, H, W] or [C, H, W]."""

    @_checked
    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected 3 or 4 dimensions, got shape {list(input.shape)}")
        return _C.softmax(input, -3)


class GLU(Softmax):
    """The first half of `dim` times the sigmoid of the second. Dauphin et al. (2016), arXiv:1612.08083."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim)

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)  # type: ignore[arg-type]  # an int here


__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


_check_module(globals())
