"""Attention of several heads as a module."""

from __future__ import annotations

from .. import _C
from .._names.absent import add_module_getattr
from ..arguments import check_module as _check_module, checked as _checked
from . import init
from .linear import Linear
from .module import Module
from .multi_head import attend_with_heads
from .parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._C import Tensor
    from ..types import Device, DType


class NonDynamicallyQuantizableLinear(Linear):
    """Linear, under the name that PyTorch prints for the last layer of MultiheadAttention."""


class MultiheadAttention(Module):
    """Attends from query [L, N, E] to key [S, N, kdim] and value [S, N, vdim] with `num_heads` heads, as PyTorch's.

    Returns the output [L, N, E] and the weights: [N, L, S], their mean over the heads; [N, heads, L, S] unless
    average_attn_weights; None unless need_weights, which lets them never be stored. With batch_first, [N, L, E] and so on.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads != 0:
            raise ValueError(
                f"MultiheadAttention: embed_dim and num_heads must be positive, and embed_dim divisible by num_heads, got "
                f"embed_dim={embed_dim} and num_heads={num_heads}"
            )
        if not 0 <= dropout <= 1:
            raise ValueError(f"MultiheadAttention: dropout must be between 0 and 1, got {dropout}")

        def made(*size):
            return Parameter(_C.empty(*size, device=device, dtype=dtype))

        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        same = self._qkv_same_embed_dim
        self.q_proj_weight = None if same else made(embed_dim, embed_dim)
        self.k_proj_weight = None if same else made(embed_dim, self.kdim)
        self.v_proj_weight = None if same else made(embed_dim, self.vdim)
        self.in_proj_weight = made(3 * embed_dim, embed_dim) if same else None
        self.in_proj_bias = made(3 * embed_dim) if bias else None
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.bias_k = made(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = made(1, 1, embed_dim) if add_bias_kv else None
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)  # type: ignore[arg-type]  # it has one too
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    @_checked
    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        if query.dim() not in (2, 3):
            raise ValueError(f"MultiheadAttention: `query` must have 2 or 3 dimensions, got {list(query.shape)}")
        for name, x, width in (("query", query, self.embed_dim), ("key", key, self.kdim), ("value", value, self.vdim)):
            if x.dim() > 0 and x.shape[-1] != width:
                raise ValueError(f"MultiheadAttention: `{name}` must have {width} features, got {list(x.shape)}")
        separate = None if self._qkv_same_embed_dim else (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        return attend_with_heads(
            query,
            key,
            value,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout if self.training else 0.0,
            self.out_proj.weight,
            self.out_proj.bias,
            key_padding_mask,
            need_weights,
            attn_mask,
            separate,
            None,
            None,
            average_attn_weights,
            is_causal,
            None if query.dim() == 2 else 0 if self.batch_first else 1,
        )


_check_module(globals())
add_module_getattr(__name__)
