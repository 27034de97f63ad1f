"""Reverse-mode differentiation: backward and grad, custom functions, grad modes, gradient checks."""

from __future__ import annotations

from .._C import Node
from .._C import _backward as backward
from .._C import _grad as grad
from .._names.absent import add_module_getattr
from ..arguments import checked as _checked
from . import function, graph
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function
from .grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from .gradcheck import gradcheck, gradgradcheck  # the functions hide their module, as in PyTorch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._C import Tensor



@_checked
def Variable(data: Tensor, requires_grad: bool = False) -> Tensor:
    """A tensor over the same memory: PyTorch's former way to ask for gradients."""
    return data.detach().requires_grad_(requires_grad)


__all__ = [
    "Function",
    "Node",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]

add_module_getattr(__name__)
