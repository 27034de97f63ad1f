// Which dimensions a reduction takes away, and what is left.
// Used by shape functions, reduction kernels and composite operators. Knows sizes alone.
#pragma once

#include <optional>

#include "tenon/core/dims.h"

namespace tenon::ops {

/// mask[d] is 1 where dimension d is reduced; None and an empty list mean all. Throws Error{Index} for a
/// dimension out of range and Error{Value} for one that comes twice, naming `op`.
Dims reduction_mask(std::optional<IntArrayRef> dim, int64_t ndim, const char* op);

/// The sizes after reduction: reduced dimensions are dropped, or 1 when `keepdim`.
Dims reduced_sizes(IntArrayRef sizes, const Dims& mask, bool keepdim);

/// How many elements each result combines.
int64_t reduced_extent(IntArrayRef sizes, const Dims& mask);

}  // namespace tenon::ops
