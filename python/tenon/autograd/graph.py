"""The graph that the forward pass records."""

from .._C import Node

__all__ = ["Node"]
