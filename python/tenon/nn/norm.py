"""Modules that normalise: by rows of elements, groups of channels, or the statistics of a batch."""

from __future__ import annotations

import numbers

from .. import _C
from ..arguments import check_module as _check_module, checked as _checked
from . import functional as F
from . import init
from .module import TensorModule
from .parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor
    from ..types import Device, DType, Ints


def _sizes(normalized_shape: Ints) -> tuple[int, ...]:
    if isinstance(normalized_shape, numbers.Integral):
        return (normalized_shape,)  # type: ignore[return-value]
    return tuple(normalized_shape)  # type: ignore[arg-type]


class _AffineNorm(TensorModule):
    """What norms have in common whose map has a weight and a bias; both may be absent."""

    def _set_affine(self, sizes: Ints, weight: bool, bias: bool, device: Device, dtype: DType) -> None:
        self.weight = Parameter(_C.empty(sizes, device=device, dtype=dtype)) if weight else None
        self.bias = Parameter(_C.empty(sizes, device=device, dtype=dtype)) if weight and bias else None

    def reset_parameters(self) -> None:
        """Sets the weight to 1 and the bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_AffineNorm):
    """(x - mean) / sqrt(variance + eps) * weight + bias over the trailing dimensions. Ba et al. (2016), arXiv:1607.06450."""

    def __init__(
        self,
        normalized_shape: Ints,
        eps: float = 1e-05,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        super().__init__()
        self.normalized_shape, self.eps = _sizes(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        self._set_affine(self.normalized_shape, elementwise_affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(TensorModule):
    """x / sqrt(mean(x ** 2) + eps) * weight over the trailing dimensions. Zhang and Sennrich (2019), arXiv:1910.07467."""

    def __init__(
        self,
        normalized_shape: Ints,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        super().__init__()
        self.normalized_shape, self.eps = _sizes(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        self.weight = Parameter(_C.empty(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the weight to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_AffineNorm):
    """Normalises groups of the channels of each sample. Wu and He (2018), arXiv:1803.08494."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-05,
        affine: bool = True,
        device: Device = None,
        dtype: DType = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups < 1:
            raise ValueError(f"GroupNorm: num_groups must be at least 1, got {num_groups}")
        if num_channels % num_groups != 0:
            raise ValueError(f"GroupNorm: num_channels {num_channels} must be divisible by num_groups {num_groups}")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._set_affine(num_channels, affine, bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class _ChannelNorm(_AffineNorm):
    """What norms by channel have in common: an affine map and running statistics, both of one value a channel."""

    _ranks: tuple[int, ...] = ()
    _version = 2

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-05,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: DType = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._set_affine(num_features, affine, bias, device, dtype)
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        tracked = track_running_stats
        self.register_buffer("running_mean", _C.zeros(num_features, **made) if tracked else None)
        self.register_buffer("running_var", _C.ones(num_features, **made) if tracked else None)
        self.register_buffer("num_batches_tracked", _C.tensor(0, dtype=_C.int64, device=device) if tracked else None)
        self.reset_parameters()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], *rest: Any) -> None:
        # States of PyTorch before 0.4.1, which are of version 1, lack the count; others need not say their version.
        count = self.num_batches_tracked
        if self.track_running_stats and count is not None and (local_metadata.get("version") or 1) < 2:
            state_dict.setdefault(f"{prefix}num_batches_tracked", _C.tensor(0) if count.is_meta else count)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def reset_running_stats(self) -> None:
        """Sets the running mean to 0, the running variance to 1 and the count of batches to 0."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Resets the statistics, sets the weight to 1 and the bias to 0."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_rank(self, input: Tensor) -> None:
        if input.dim() not in self._ranks:
            wanted = " or ".join(f"{r}D" for r in self._ranks)
            raise ValueError(f"{type(self).__name__}: expected {wanted} input, got {input.dim()}D")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_ChannelNorm):
    @_checked
    def forward(self, input: Tensor) -> Tensor:
        self._check_rank(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the plain average of all batches
                factor = 1.0 / float(self.num_batches_tracked)
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        moves = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if moves else None,
            self.running_var if moves else None,
            self.weight,
            self.bias,
            by_batch,
            factor,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Normalises each channel of input [N, C] or [N, C, L] over the batch. Ioffe and Szegedy (2015), arXiv:1502.03167."""

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """As BatchNorm1d, for input [N, C, H, W]."""

    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """As BatchNorm1d, for input [N, C, D, H, W]."""

    _ranks = (5,)


class _InstanceNorm(_ChannelNorm):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-05,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Device = None,
        dtype: DType = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    @_checked
    def forward(self, input: Tensor) -> Tensor:
        self._check_rank(input)
        alone = input.dim() == self._ranks[0]
        batch = input.unsqueeze(0) if alone else input
        result = F.instance_norm(
            batch,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return result.squeeze(0) if alone else result


class InstanceNorm1d(_InstanceNorm):
    """Normalises each channel of each sample of input [N, C, L] or [C, L]. Ulyanov et al. (2016), arXiv:1607.08022."""

    _ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """As InstanceNorm1d, for input [N, C, H, W] or [C, H, W]."""

    _ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """As InstanceNorm1d, for input [N, C, D, H, W] or [C, D, H, W]."""

    _ranks = (4, 5)


_check_module(globals())
