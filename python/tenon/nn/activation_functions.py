"""Activations for nn.functional: operators whose arguments PyTorch's Python writes in another way."""

from .. import _C


def elu(input, alpha=1.0, inplace=False):
    """x where x > 0, alpha * (exp(x) - 1) elsewhere. Clevert et al. (2015), arXiv:1511.07289."""
    return _C.elu_(input, alpha) if inplace else _C.elu(input, alpha)


def elu_(input, alpha=1.0):
    """elu in place."""
    return _C.elu_(input, alpha)


def celu(input, alpha=1.0, inplace=False):
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0). Barron (2017), arXiv:1704.07483."""
    return _C.celu_(input, alpha) if inplace else _C.celu(input, alpha)


def celu_(input, alpha=1.0):
    """celu in place."""
    return _C.celu_(input, alpha)


def selu(input, inplace=False):
    """elu, scaled so that mean 0 and variance 1 stay. Klambauer et al. (2017), arXiv:1706.02515."""
    return _C.selu_(input) if inplace else _C.selu(input)


def selu_(input):
    """selu in place."""
    return _C.selu_(input)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """x between min_val and max_val, those beyond them."""
    if min_val > max_val:
        raise ValueError(f"hardtanh: min_val {min_val} must not be above max_val {max_val}")
    return _C.hardtanh_(input, min_val, max_val) if inplace else _C.hardtanh(input, min_val, max_val)


def hardtanh_(input, min_val=-1.0, max_val=1.0):
    """hardtanh in place."""
    return hardtanh(input, min_val, max_val, True)


def relu6(input, inplace=False):
    """min(max(x, 0), 6)"""
    return _C.relu6_(input) if inplace else _C.relu6(input)


def hardsigmoid(input, inplace=False):
    """min(max(x + 3, 0), 6) / 6"""
    return _C.hardsigmoid_(input) if inplace else _C.hardsigmoid(input)


def hardswish(input, inplace=False):
    """x * hardsigmoid(x). Howard et al. (2019), arXiv:1905.02244."""
    return _C.hardswish_(input) if inplace else _C.hardswish(input)


def mish(input, inplace=False):
    """x * tanh(softplus(x)). Misra (2019), arXiv:1908.08681."""
    return _C.mish_(input) if inplace else _C.mish(input)


def threshold(input, threshold, value, inplace=False):
    """x where x > threshold, `value` elsewhere."""
    return _C.threshold_(input, threshold, value) if inplace else _C.threshold(input, threshold, value)


def threshold_(input, threshold, value):
    """threshold in place."""
    return _C.threshold_(input, threshold, value)


def gelu(input, *, approximate="none"):
    """x times the normal distribution's function of x; approximate="tanh" for the formula of the paper.

    Hendrycks and Gimpel (2016), arXiv:1606.08415.
    """
    return _C.gelu(input, approximate=approximate)


def prelu(input, weight):
    """leaky_relu with slopes of a tensor: one, or one for each channel of [N, C, ...]. He et al. (2015)."""
    return _C.prelu(input, weight)


def hardshrink(input, lambd=0.5):
    """x where |x| > lambd, 0 elsewhere."""
    return _C.hardshrink(input, lambd)


def softshrink(input, lambd=0.5):
    """x moved towards 0 by lambd, and 0 where it would pass it."""
    return _C.softshrink(input, lambd)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """x above 0, x * negative_slope below."""
    return input.leaky_relu_(negative_slope) if inplace else _C.leaky_relu(input, negative_slope)


def leaky_relu_(input, negative_slope=0.01):
    """leaky_relu in place."""
    return input.leaky_relu_(negative_slope)


def softsign(input):
    """x / (1 + |x|)"""
    return input / (input.abs() + 1)


def tanhshrink(input):
    """x - tanh(x)"""
    return input - input.tanh()


def _implicit_dim(name, ndim):
    # PyTorch's choice, from when these functions had no `dim`.
    import warnings

    warnings.warn(f"{name}: give `dim`; the choice of a dimension without it is deprecated", stacklevel=3)
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(x) divided by its sum along `dim`."""
    return _C.softmax(input, _implicit_dim("softmax", input.dim()) if dim is None else dim, dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """The logarithm of softmax, computed without overflow."""
    return _C.log_softmax(input, _implicit_dim("log_softmax", input.dim()) if dim is None else dim, dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax(-x)"""
    return _C.softmax(-input, _implicit_dim("softmin", input.dim()) if dim is None else dim, dtype)


def glu(input, dim=-1):
    """The first half of `dim` times the sigmoid of the second. Dauphin et al. (2016), arXiv:1612.08083."""
    return _C.glu(input, dim)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """leaky_relu with slopes drawn uniformly from [lower, upper] while training, and their middle otherwise."""
    if lower > upper:
        raise ValueError(f"rrelu: lower {lower} must not be above upper {upper}")
    slope = _C.empty_like(input).uniform_(lower, upper) if training else (lower + upper) / 2
    out = _C.where(input > 0, input, input * slope)
    return input.copy_(out) if inplace else out


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    """rrelu in place."""
    return rrelu(input, lower, upper, training, True)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """softmax((logits + noise) / tau) with Gumbel's noise; with `hard`, one-hot results that have its gradient.

    Jang et al. (2016), arXiv:1611.01144.
    """
    noise = -_C.empty_like(logits.detach(), memory_format=_C.contiguous_format).exponential_().log()
    soft = _C.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    chosen = (soft == soft.amax(dim, keepdim=True)).to(soft.dtype)
    return chosen - soft.detach() + soft

# Those of operators, which are there if the build has the operator: a name without one says that it is not in Tenon yet.
_OF_OPERATORS = (
    "celu",
    "elu",
    "celu_",
    "elu_",
    "selu_",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "mish",
    "prelu",
    "relu6",
    "selu",
    "softshrink",
    "threshold",
    "threshold_",
)

__all__ = [
    "gumbel_softmax",
    "leaky_relu",
    "leaky_relu_",
    "log_softmax",
    "rrelu",
    "rrelu_",
    "softmax",
    "softmin",
    "softsign",
    "tanhshrink",
]
__all__ += [name for name in _OF_OPERATORS if hasattr(_C, name.removesuffix("_"))]
