"""Reverse-mode differentiation: backward, grad, and the modes that switch recording; checks of derivatives."""

from .._C import Node
from .._C import _backward as backward
from .._C import _grad as grad
from . import graph
from .grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from .gradcheck import gradcheck, gradgradcheck  # the functions hide their module, as in PyTorch

__all__ = [
    "Node",
    "backward",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
]
