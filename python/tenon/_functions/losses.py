"""Losses and distances under `tenon`, as PyTorch has them there: those of nn.functional, with a number for the reduction."""

from __future__ import annotations

from ..arguments import check_module as _check_module, describe as _describe
from ..nn import functional as _F

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor

_WORDS = ("none", "mean", "sum")

cosine_similarity = _F.cosine_similarity
pairwise_distance = _F.pairwise_distance
bilinear = _F.bilinear
conv_tbc = _F.conv_tbc


def _word(function: str, reduction: int) -> str:
    if not isinstance(reduction, int) or not 0 <= reduction < 3:
        raise ValueError(f"{function}: reduction must be 0 (none), 1 (mean) or 2 (sum), got {_describe(reduction)}")
    return _WORDS[reduction]


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1) -> Tensor:
    """nn.functional.cosine_embedding_loss; `reduction` is 0 (none), 1 (mean) or 2 (sum)."""
    return _F.cosine_embedding_loss(input1, input2, target, margin, reduction=_word("cosine_embedding_loss", reduction))


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1) -> Tensor:
    """nn.functional.hinge_embedding_loss; `reduction` is 0 (none), 1 (mean) or 2 (sum)."""
    return _F.hinge_embedding_loss(input, target, margin, reduction=_word("hinge_embedding_loss", reduction))


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1) -> Tensor:
    """nn.functional.margin_ranking_loss; `reduction` is 0 (none), 1 (mean) or 2 (sum)."""
    return _F.margin_ranking_loss(input1, input2, target, margin, reduction=_word("margin_ranking_loss", reduction))


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """nn.functional.poisson_nll_loss; `reduction` is 0 (none), 1 (mean) or 2 (sum)."""
    word = _word("poisson_nll_loss", reduction)
    return _F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=word)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 1,
) -> Tensor:
    """nn.functional.triplet_margin_loss; `reduction` is 0 (none), 1 (mean) or 2 (sum)."""
    word = _word("triplet_margin_loss", reduction)
    return _F.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=word)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> Tensor:
    """nn.functional.ctc_loss; `reduction` is 0 (none), 1 (mean) or 2 (sum)."""
    word = _word("ctc_loss", reduction)
    return _F.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, word, zero_infinity)


_check_module(globals())
