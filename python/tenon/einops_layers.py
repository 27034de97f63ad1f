"""The layers of einops for Tenon's modules. borders.py has einops find them: as einops.layers.tenon, and as einops.layers.torch where
there is no PyTorch."""

from __future__ import annotations

from typing import Any

from einops.layers import RearrangeMixin, ReduceMixin
from einops.layers._einmix import _EinmixMixin

from . import _C
from .functional import einsum
from .nn import Module, Parameter

__all__ = ["EinMix", "Rearrange", "Reduce"]


class Rearrange(RearrangeMixin, Module):  # type: ignore[misc]
    """einops.rearrange with a pattern and lengths of axes that are given once."""

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        result: _C.Tensor = self._apply_recipe(input)
        return result


class Reduce(ReduceMixin, Module):  # type: ignore[misc]
    """einops.reduce with a pattern, an operation and lengths of axes that are given once."""

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        result: _C.Tensor = self._apply_recipe(input)
        return result


class EinMix(_EinmixMixin, Module):  # type: ignore[misc]
    """einsum of the input and a weight of the layer, between two rearrangements."""

    def _create_parameters(self, weight_shape: Any, weight_bound: float, bias_shape: Any, bias_bound: float) -> None:
        def uniform(shape: Any, bound: float) -> Parameter:
            return Parameter(_C.empty(list(shape)).uniform_(-bound, bound))

        self.weight = uniform(weight_shape, weight_bound)
        self.bias = uniform(bias_shape, bias_bound) if bias_shape else None

    def _create_rearrange_layers(
        self, pre_reshape_pattern: str | None, pre_reshape_lengths: Any, post_reshape_pattern: str | None, post_reshape_lengths: Any
    ) -> None:
        def layer(pattern: str | None, lengths: Any) -> Rearrange | None:
            return Rearrange(pattern, **lengths) if pattern is not None else None

        self.pre_rearrange = layer(pre_reshape_pattern, pre_reshape_lengths)
        self.post_rearrange = layer(post_reshape_pattern, post_reshape_lengths)

    def forward(self, input: _C.Tensor) -> _C.Tensor:
        if self.pre_rearrange is not None:
            input = self.pre_rearrange(input)
        result = einsum(self.einsum_pattern, input, self.weight)
        if self.bias is not None:
            result = result + self.bias
        if self.post_rearrange is not None:
            result = self.post_rearrange(result)
        return result
