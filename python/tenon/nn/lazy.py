"""Layers that find the size of their input at the first call, and the parameters without a shape that they have until then."""

from __future__ import annotations

from .. import _C
from ..arguments import check_module as _check_module
from ..autograd.grad_mode import no_grad
from . import conv, linear, norm
from .module import Module
from .parameter import Buffer, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from typing_extensions import Self

    from .._C import Tensor
    from ..types import Device, DType, Ints


class UninitializedTensorMixin:
    """What parameters and buffers without a shape have in common."""

    cls_to_become: type = _C.Tensor
    data: Any

    @property
    def shape(self) -> Any:
        """Raises RuntimeError: there is no shape yet."""
        raise RuntimeError(
            "shape: the parameter or buffer is not initialized and has none; call the module with an input first, or materialize() it"
        )

    def materialize(self, shape: Ints, device: Device = None, dtype: DType = None) -> None:
        """Gives it memory of this shape, on its own device and of its own dtype unless others are given, and its ordinary class."""
        wanted = self.data.device if device is None else device
        self.data = _C.empty(shape, device=wanted, dtype=self.data.dtype if dtype is None else dtype)
        self.__class__ = self.cls_to_become  # type: ignore[assignment]

    def share_memory_(self) -> None:
        """Raises RuntimeError: there is no memory yet."""
        raise RuntimeError("share_memory_: the parameter or buffer is not initialized; call the module with an input first")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)  # type: ignore[attr-defined,call-arg]
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad, str(self.data.device), self.data.dtype)  # type: ignore[attr-defined]


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter without a shape, which materialize() gives it; the object stays the same, so that optimizers may have it."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Device = None, dtype: DType = None) -> Self:
        return Parameter.__new__(cls, _C.empty(0, device=device, dtype=dtype), requires_grad)


class UninitializedBuffer(UninitializedTensorMixin, Buffer):  # type: ignore[misc]
    """A buffer without a shape, which materialize() gives it."""

    cls_to_become = Buffer

    def __new__(cls, requires_grad: bool = False, device: Device = None, dtype: DType = None, persistent: bool = True) -> Self:
        buffer = Buffer.__new__(cls, _C.empty(0, device=device, dtype=dtype), persistent)
        if requires_grad:
            buffer.requires_grad_()
        return buffer


class LazyModuleMixin(Module):
    """A module whose parameters get their shapes by initialize_parameters(input) at the first call; after it, the module has the class
    `cls_to_become`. Loading a state gives shapes, too."""

    cls_to_become: type[Module] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no shape yet."""
        return any(map(is_lazy, [*self._parameters.values(), *self._buffers.values()]))

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Gives shapes to parameters by the arguments of forward; classes override it."""
        raise NotImplementedError(f"initialize_parameters: {type(self).__name__} must have it, to give its parameters shapes")

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        with no_grad():
            self.initialize_parameters(*args, **(kwargs or {}))
        if self.has_uninitialized_params():
            raise RuntimeError(f"{type(self).__name__}: parameters are not initialized after initialize_parameters(); it must give shapes to all")
        self._initialize_hook.remove()
        del self._initialize_hook
        if self.cls_to_become is not None:
            self.__class__ = self.cls_to_become  # type: ignore[assignment]

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        for name, value in [*self._parameters.items(), *self._buffers.items()]:
            given = state_dict.get(prefix + name)
            if is_lazy(value) and given is not None and not is_lazy(given):
                value.materialize(given.shape)  # type: ignore[attr-defined]
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def reset_parameters(self) -> None:
        """Draws new weights, where there are any."""
        own = [value for value in self._parameters.values() if value is not None]
        if own and not self.has_uninitialized_params() and all(value.numel() for value in own):
            super().reset_parameters()  # type: ignore[misc]


class LazyLinear(LazyModuleMixin, linear.Linear):
    """Linear, whose in_features is the last size of the first input."""

    cls_to_become = linear.Linear

    def __init__(self, out_features: int, bias: bool = True, device: Device = None, dtype: DType = None) -> None:
        super().__init__(0, 0, False)
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.bias = UninitializedParameter(device=device, dtype=dtype) if bias else None

    def initialize_parameters(self, input: Tensor) -> None:  # type: ignore[override]
        """Gives shapes by the last size of `input`."""
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            self.weight.materialize((self.out_features, self.in_features))  # type: ignore[attr-defined]
            if self.bias is not None:
                self.bias.materialize((self.out_features,))  # type: ignore[attr-defined]
            self.reset_parameters()
        self.in_features = self.weight.shape[1]


class _LazyConvolution(LazyModuleMixin):
    """What lazy convolutions have: in_channels is the number of channels of the first input."""

    _spatial = 0
    _transposed = False
    out_channels: int
    groups: int
    kernel_size: tuple[int, ...]
    weight: Any
    bias: Any

    def _lazily(self, out_channels: int, bias: bool, device: Device, dtype: DType) -> None:
        name = type(self).__name__
        if out_channels < 0 or out_channels % self.groups:
            raise ValueError(f"{name}: out_channels {out_channels} must not be negative, and be divisible by groups {self.groups}")
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.bias = UninitializedParameter(device=device, dtype=dtype) if bias else None

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:  # type: ignore[override]
        """Gives shapes by the channels of `input`."""
        if not self.has_uninitialized_params():
            self.in_channels = self.weight.shape[0] if self._transposed else self.weight.shape[1] * self.groups
            return
        name, rank = type(self).__name__, self._spatial + 1
        if input.dim() not in (rank, rank + 1):
            raise RuntimeError(f"{name}: expected input of {rank} or {rank + 1} dimensions, got {list(input.shape)}")
        self.in_channels = input.shape[-rank]
        if self.in_channels % self.groups:
            raise ValueError(f"{name}: in_channels {self.in_channels} must be divisible by groups {self.groups}")
        out, into = self.out_channels, self.in_channels
        channels = (into, out // self.groups) if self._transposed else (out, into // self.groups)
        self.weight.materialize((*channels, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((out,))
        self.reset_parameters()


class _LazyConv(_LazyConvolution):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints | str = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)  # type: ignore[call-arg]
        self._lazily(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvolution):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int = 1,
        padding_mode: str = "zeros",
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        super().__init__(  # type: ignore[call-arg]
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode
        )
        self._lazily(out_channels, bias, device, dtype)


class _LazyNorm(LazyModuleMixin):
    """What lazy norms have: num_features is the number of channels of the first input."""

    weight: Any
    bias: Any
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: DType = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False)  # type: ignore[call-arg]
        self.affine, self.track_running_stats = affine, track_running_stats
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        if affine:
            self.weight = UninitializedParameter(**made)
            self.bias = UninitializedParameter(**made) if bias else None
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**made)
            self.running_var = UninitializedBuffer(**made)
            self.register_buffer("num_batches_tracked", _C.tensor(0, dtype=_C.int64, device=device))

    def initialize_parameters(self, input: Tensor) -> None:  # type: ignore[override]
        """Gives shapes by the channels of `input`."""
        known = [self.weight, self.bias, self.running_mean, self.running_var]
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            for value in known:
                if is_lazy(value):
                    value.materialize((self.num_features,))
            norm._ChannelNorm.reset_parameters(self)  # type: ignore[arg-type]
        self.num_features = next((value.shape[0] for value in known if value is not None), input.shape[1])

    def reset_parameters(self) -> None:
        """Resets the statistics and the affine map, where there are any."""
        if not self.has_uninitialized_params():
            norm._ChannelNorm.reset_parameters(self)  # type: ignore[arg-type]


def _lazy(base: Any, of: type, doc: str) -> Any:
    members = {"cls_to_become": of, "__doc__": doc, "__module__": __name__}
    if hasattr(of, "_spatial"):
        members.update(_spatial=of._spatial, _transposed=of._transposed)  # type: ignore[attr-defined]
    return type(f"Lazy{of.__name__}", (base, of), members)


_CHANNELS = "{}, whose in_channels is the number of channels of the first input."
LazyConv1d = _lazy(_LazyConv, conv.Conv1d, _CHANNELS.format("Conv1d"))
LazyConv2d = _lazy(_LazyConv, conv.Conv2d, _CHANNELS.format("Conv2d"))
LazyConv3d = _lazy(_LazyConv, conv.Conv3d, _CHANNELS.format("Conv3d"))
LazyConvTranspose1d = _lazy(_LazyConvTranspose, conv.ConvTranspose1d, _CHANNELS.format("ConvTranspose1d"))
LazyConvTranspose2d = _lazy(_LazyConvTranspose, conv.ConvTranspose2d, _CHANNELS.format("ConvTranspose2d"))
LazyConvTranspose3d = _lazy(_LazyConvTranspose, conv.ConvTranspose3d, _CHANNELS.format("ConvTranspose3d"))
_FEATURES = "{}, whose num_features is the number of channels of the first input."
LazyBatchNorm1d = _lazy(_LazyNorm, norm.BatchNorm1d, _FEATURES.format("BatchNorm1d"))
LazyBatchNorm2d = _lazy(_LazyNorm, norm.BatchNorm2d, _FEATURES.format("BatchNorm2d"))
LazyBatchNorm3d = _lazy(_LazyNorm, norm.BatchNorm3d, _FEATURES.format("BatchNorm3d"))
LazyInstanceNorm1d = _lazy(_LazyNorm, norm.InstanceNorm1d, _FEATURES.format("InstanceNorm1d"))
LazyInstanceNorm2d = _lazy(_LazyNorm, norm.InstanceNorm2d, _FEATURES.format("InstanceNorm2d"))
LazyInstanceNorm3d = _lazy(_LazyNorm, norm.InstanceNorm3d, _FEATURES.format("InstanceNorm3d"))

_check_module(globals())
