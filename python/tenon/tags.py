"""Tag: what an operator's declaration says of it besides its schema; PyTorch's torch.Tag."""

from __future__ import annotations

import enum

from .arguments import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TypeAlias

    Tagged: TypeAlias = "Iterable[Tag | str] | Tag | str | None"


class Tag(enum.Enum):
    """A tag of an operator: `tenon.library.define("my::op", "(Tensor x) -> Tensor", tags=[tenon.Tag.pointwise])`.

    The numbers are Tenon's own, and keep their meaning. `tenon.library.opcheck` tests pointwise, nondeterministic_seeded and
    reduction on the arguments that it is given; the other tags are shown by `op.tags`.
    """

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace = 6
    inplace_view = 7
    maybe_aliasing_or_mutating = 8
    needs_contiguous_strides = 9
    needs_exact_strides = 10
    needs_fixed_stride_order = 11
    nondeterministic_bitwise = 12
    nondeterministic_seeded = 13
    out = 14
    out_variant = 15
    pointwise = 16
    pt2_compliant_tag = 17
    reduction = 18
    view_copy = 19


def names_of(function: str, tags: Tagged) -> tuple[str, ...]:
    """The names in an argument `tags`: one tag, or several; each a Tag or its name."""
    several: Iterable[Any] = () if tags is None else (tags,) if isinstance(tags, (Tag, str)) else tags
    try:
        each = tuple(several)
    except TypeError:
        raise TypeError(f"{function}: tags must be members of tenon.Tag or their names, got {describe(tags)}") from None
    for tag in each:
        if not isinstance(tag, (Tag, str)):
            raise TypeError(f"{function}: tags must be members of tenon.Tag or their names, got {describe(tag)} among them")
    return tuple(tag.name if isinstance(tag, Tag) else tag for tag in each)


def members(names: list[str]) -> list[Tag]:
    """What `op.tags` shows."""
    return [Tag[name] for name in names]
