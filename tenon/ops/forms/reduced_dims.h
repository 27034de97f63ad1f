// Which dimensions a reduction removes, and the sizes that are left. Used by shape functions, reduction
// kernels and composite operators. Knows sizes alone.
#pragma once

#include <optional>

#include "tenon/core/dims.h"

namespace tenon::ops {

/// A mask whose entry d is 1 if dimension d is reduced; None and an empty list mean all dimensions. Throws an
/// Error that names `op`: Error{Index} for a dimension out of range, Error{Value} for one that occurs twice.
Dims reduction_mask(std::optional<IntArrayRef> dim, int64_t ndim, const char* op);

/// The sizes after the reduction: reduced dimensions are removed, or have size 1 with `keepdim`.
Dims reduced_sizes(IntArrayRef sizes, const Dims& mask, bool keepdim);

/// How many elements each result combines.
int64_t reduced_extent(IntArrayRef sizes, const Dims& mask);

}  // namespace tenon::ops
