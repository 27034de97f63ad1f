"""Operators whose result, or the shape of it, follows from values: what the meta device cannot say, and must refuse.

Their tags say which they are. Everything else says on meta the sizes, strides and dtype that it has on the CPU, for every sample.
"""

import functools

from ..namespaces import find_operator
from ..tags import Tag
from .samples import Spec

REASONS = {
    Tag.data_dependent_output: "the result is a value",
    Tag.dynamic_output_shape: "values say how many elements there are",
}
#: Operators that call one with such a tag, and have none, as in PyTorch.
CALLERS = {
    "_fused_sdp_choice": Tag.data_dependent_output,
    "is_nonzero": Tag.data_dependent_output,
    "nonzero_numpy": Tag.dynamic_output_shape,
    "repeat_interleave.self_Tensor": Tag.dynamic_output_shape,
    "tensor_split.tensor_indices_or_sections": Tag.dynamic_output_shape,
    "where": Tag.dynamic_output_shape,
}
#: Of operators with a tag, the samples that it holds for; all unless listed.
SAMPLES = {
    "index.Tensor": lambda s: any(isinstance(i, Spec) and i.dtype in ("bool", "uint8") for i in s.args[1]),
    "one_hot": lambda s: len(s.args) == 1,
}


@functools.cache
def _reason(full_name):
    tags = find_operator(f"aten::{full_name}" if "." in full_name else f"aten::{full_name}.default").tags
    return next((REASONS[t] for t in [*tags, CALLERS.get(full_name)] if t in REASONS), "")


def why(op, s):
    """Why meta has no answer for a sample of an operator; "" where it has."""
    reason = _reason(op.full_name)
    return reason if reason and SAMPLES.get(op.full_name, lambda s: True)(s) else ""
