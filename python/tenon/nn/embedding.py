"""Embedding and EmbeddingBag: rows of a table, by number."""

from __future__ import annotations

from .. import _C
from ..arguments import check_module as _check_module
from ..autograd.grad_mode import no_grad
from . import functional as F
from . import init
from .module import TensorModule
from .parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Self

    from .._C import Tensor
    from ..types import Device, DType


class _Table(TensorModule):
    """A table of `num_embeddings` rows, drawn from a normal distribution; row `padding_idx` is zero."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        weight: Tensor | None,
        freeze: bool,
        device: Device,
        dtype: DType,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if num_embeddings < 0 or embedding_dim < 0:
            raise ValueError(
                f"{type(self).__name__}: num_embeddings and embedding_dim must not be negative, got {num_embeddings} and "
                f"{embedding_dim}"
            )
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(f"{type(self).__name__}: padding_idx {padding_idx} is out of range for num_embeddings {num_embeddings}")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        if weight is None:
            self.weight = Parameter(_C.empty(num_embeddings, embedding_dim, device=device, dtype=dtype))
            self.weight.requires_grad_(not freeze)
            self.reset_parameters()
        else:
            if list(weight.shape) != [num_embeddings, embedding_dim]:
                raise ValueError(
                    f"the weight has shape {list(weight.shape)}, expected num_embeddings and embedding_dim, "
                    f"[{num_embeddings}, {embedding_dim}]"
                )
            self.weight = Parameter(weight, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Draws new rows."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def _described(self, *words: str) -> str:
        """The arguments that differ from their defaults, and `words` whatever they are."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        defaults = {"padding_idx": None, "max_norm": None, "norm_type": 2, "scale_grad_by_freq": False, "sparse": False}
        for name in words:
            value = getattr(self, name)
            if name not in defaults or value != defaults[name]:
                text += f", {name}={value!r}"
        return text


class Embedding(_Table):
    """The rows of `weight` [num_embeddings, embedding_dim] that the input names: [...] -> [..., embedding_dim].

    Row padding_idx starts as zeros and gets no gradient. Rows that are read and have a norm above max_norm are scaled to it.
    With scale_grad_by_freq, the gradient of a row is divided by how often it was read.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, _freeze, device, dtype)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        return self._described("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """An Embedding whose weight is `embeddings` [num_embeddings, embedding_dim]; not trained while `freeze`."""
        rows, columns = _matrix_sizes(embeddings)
        return cls(
            rows,
            columns,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=embeddings,
            _freeze=freeze,
        )


class EmbeddingBag(_Table):
    """The sum, mean or max of the rows that each bag names: a row of input [B, N], or the range between two `offsets`."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Device = None,
        dtype: DType = None,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, False, device, dtype)
        self.max_norm, self.norm_type, self.mode = max_norm, norm_type, mode
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self.include_last_offset = include_last_offset

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        return self._described("max_norm", "norm_type", "scale_grad_by_freq", "mode", "padding_idx")

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:
        """An EmbeddingBag whose weight is `embeddings` [num_embeddings, embedding_dim]; not trained while `freeze`."""
        rows, columns = _matrix_sizes(embeddings)
        bag = cls(
            rows,
            columns,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            _weight=embeddings,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        bag.weight.requires_grad_(not freeze)
        return bag


def _matrix_sizes(embeddings: Tensor) -> tuple[int, int]:
    if embeddings.dim() != 2:
        raise ValueError(f"embeddings must be a matrix [num_embeddings, embedding_dim], got {list(embeddings.shape)}")
    rows, size = embeddings.shape
    return rows, size


_check_module(globals())
