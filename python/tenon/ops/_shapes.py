"""What graphs of the shipped operators check, once for each kind of arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..graph import Tensor


def check_trailing(name: str, input: Tensor, normalized_shape: Sequence[int], **parameters: Tensor | None) -> None:
    """That the last sizes of `input` are `normalized_shape`, which parameters have, too."""
    shape, sizes = list(normalized_shape), input.get_dim()
    if not shape:
        raise ValueError(f"{name}: `normalized_shape` has to name a dimension at least")
    if sizes[-len(shape) :] != shape:
        raise ValueError(f"{name}: `normalized_shape` is {shape}, and `input` of shape {sizes} does not end with it")
    for parameter, tensor in parameters.items():
        if tensor is not None and tensor.get_dim() != shape:
            raise ValueError(f"{name}: `{parameter}` has shape {tensor.get_dim()}, expected `normalized_shape`, {shape}")
