"""The transformer of Vaswani et al. (2017) and its layers, with PyTorch's arguments, parameters and order of steps."""

from __future__ import annotations

import copy

from .. import _C
from ..arguments import check_module as _check_module
from . import functional as F
from . import init
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module, TensorModule
from .norm import LayerNorm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._C import Tensor
    from ..types import Device, DType


def _activation(owner: Module, given: Any) -> Callable[[Tensor], Tensor]:
    if callable(given):
        return given
    if given not in ("relu", "gelu"):
        raise ValueError(f"{type(owner).__name__}: activation must be 'relu', 'gelu' or a callable, got {given!r}")
    return getattr(F, given)


def _clones(module: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _square_subsequent_mask(size: int, device: Device = None, dtype: DType = None) -> Tensor:
    """-inf above the diagonal, 0 elsewhere: position i sees the positions 0 to i."""
    after = _C.arange(size, device=device) > _C.arange(size, device=device).unsqueeze(1)
    return _C.zeros(size, size, device=device, dtype=dtype).masked_fill(after, -float("inf"))


def _is_causal(mask: Tensor | None, hint: bool | None, length: int) -> bool:
    """Whether `mask` is the causal one of that length; `hint` decides if it is given."""
    if hint is not None or mask is None:
        return bool(hint)
    if tuple(mask.shape) != (length, length) or mask.device.type == "meta":
        return False
    causal = _square_subsequent_mask(length, mask.device, mask.dtype if mask.is_floating_point() else None)
    return mask.equal(causal if mask.is_floating_point() else causal != 0)


class _Layer(TensorModule):
    """What encoder and decoder layers share: all parts. Each attention, and the linear layers, has a norm and a dropout."""

    _attentions: tuple[str, ...] = ()

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        super().__init__()
        like: dict[str, Any] = {"device": device, "dtype": dtype}
        for name in self._attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **like))
        count = len(self._attentions) + 1
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **like)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **like)
        self.norm_first = norm_first
        for i in range(1, count + 1):
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **like))
        for i in range(1, count + 1):
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(self, activation)

    def _attend(
        self,
        attention: Module,
        dropout: Module,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool | None,
    ) -> Tensor:
        found = attention(
            x,
            memory,
            memory,
            attn_mask=mask,
            key_padding_mask=key_padding_mask,
            need_weights=False,
            is_causal=is_causal and mask is not None,
        )[0]
        return dropout(found)

    def _feed(self, dropout: Module, x: Tensor) -> Tensor:
        return dropout(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoderLayer(_Layer):
    """Self-attention, then two linear layers; each with dropout, a sum with what came in, and LayerNorm (before it if norm_first).

    src is [L, N, d_model], or [N, L, d_model] with batch_first, or without N. Masks are MultiheadAttention's; is_causal says
    that src_mask is the causal one, so that it need not be read.
    """

    _attentions = ("self_attn",)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = False,
    ) -> Tensor:
        def attend(x):
            return self._attend(self.self_attn, self.dropout1, x, x, src_mask, src_key_padding_mask, is_causal)

        x = src
        if self.norm_first:
            x = x + attend(self.norm1(x))
            return x + self._feed(self.dropout2, self.norm2(x))
        x = self.norm1(x + attend(x))
        return self.norm2(x + self._feed(self.dropout2, x))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to `memory`, then two linear layers; each as in TransformerEncoderLayer."""

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def attend(x):
            return self._attend(self.self_attn, self.dropout1, x, x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)

        def look(x):
            return self._attend(
                self.multihead_attn, self.dropout2, x, memory, memory_mask, memory_key_padding_mask, memory_is_causal
            )

        x = tgt
        if self.norm_first:
            x = x + attend(self.norm1(x))
            x = x + look(self.norm2(x))
            return x + self._feed(self.dropout3, self.norm3(x))
        x = self.norm1(x + attend(x))
        x = self.norm2(x + look(x))
        return self.norm3(x + self._feed(self.dropout3, x))


class TransformerEncoder(TensorModule):
    """`num_layers` copies of a layer one after the other, then `norm`.

    is_causal=None finds out whether `mask` is the causal one. There are no nested tensors: enable_nested_tensor and
    mask_check are accepted, and change nothing.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _clones(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        causal = _is_causal(mask, is_causal, _length(src, self.layers))
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=causal)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(TensorModule):
    """`num_layers` copies of a layer one after the other, then `norm`. tgt_is_causal=None finds out, as in the encoder."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _clones(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        causal = _is_causal(tgt_mask, tgt_is_causal, _length(tgt, self.layers))
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


def _length(x: Tensor, layers: Any) -> int:
    """The number of positions of x, as the first layer reads it."""
    attention = getattr(layers[0], "self_attn", None) if len(layers) else None
    batch_first = x.dim() == 3 and getattr(attention, "batch_first", False)
    return x.shape[1 if batch_first else 0]


class Transformer(TensorModule):
    """An encoder of `src` and a decoder of `tgt`, which attends to what the encoder found; each ends with a LayerNorm."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        super().__init__()
        like: dict[str, Any] = {"device": device, "dtype": dtype}
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def norm():
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **like)

        self.encoder: Any = custom_encoder
        if custom_encoder is None:
            self.encoder = TransformerEncoder(TransformerEncoderLayer(*layer, **like), num_encoder_layers, norm())
        self.decoder: Any = custom_decoder
        if custom_decoder is None:
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*layer, **like), num_decoder_layers, norm())
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Device = None, dtype: DType = None) -> Tensor:
        """[sz, sz] with -inf above the diagonal and 0 elsewhere, to be added to scores."""
        return _square_subsequent_mask(sz, device, dtype)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch = 0 if self.batch_first else 1
        if src.dim() != tgt.dim() or (src.dim() == 3 and src.shape[batch] != tgt.shape[batch]):
            raise ValueError(f"Transformer: `src` {list(src.shape)} and `tgt` {list(tgt.shape)} differ in batch")
        for name, x in (("src", src), ("tgt", tgt)):
            if x.shape[-1] != self.d_model:
                raise ValueError(f"Transformer: `{name}` must have {self.d_model} features, got {list(x.shape)}")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )


_check_module(globals())
