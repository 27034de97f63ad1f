"""Operators whose result, or the shape of it, follows from values: what the meta device cannot say, and must refuse.

Everything else says on meta the sizes, strides and dtype that it has on the CPU, for every sample.
"""

from .samples import Spec

#: By operator: why, and for which samples (None: all).
REASONS = {
    "_fused_sdp_choice": ("the result is a value", None),
    "_local_scalar_dense": ("the result is a value", None),
    "allclose": ("the result is a value", None),
    "bincount": ("the largest value says how many numbers there are", None),
    "equal": ("the result is a value", None),
    "is_nonzero": ("the result is a value", None),
    "item": ("the result is a value", None),
    "index.Tensor": ("a mask selects as many elements as are true", lambda s: _has_mask(s.args[1])),
    "masked_select": ("a mask selects as many elements as are true", None),
    "masked_select.out": ("a mask selects as many elements as are true", None),
    "nonzero": ("there are as many positions as values that are not zero", None),
    "nonzero.out": ("there are as many positions as values that are not zero", None),
    "repeat_interleave.Tensor": ("the numbers of repetitions are values", None),
    "repeat_interleave.self_Tensor": ("the numbers of repetitions are values", None),
    "tensor_split.tensor_indices_or_sections": ("where to split are values", None),
    "where": ("there are as many positions as values that are not zero", None),
    "nonzero_numpy": ("there are as many positions as values that are not zero", None),
}


def _has_mask(indices):
    return any(isinstance(i, Spec) and i.dtype in ("bool", "uint8") for i in indices)


def why(op, s):
    """Why meta has no answer for a sample of an operator; "" where it has."""
    reason, of = REASONS.get(op.full_name, ("", None))
    return reason if reason and (of is None or of(s)) else ""
