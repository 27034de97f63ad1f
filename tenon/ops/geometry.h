// Geometry of views: sizes with a -1, strides of a reshaped view, normalised slices.
// Used by views, indexing and composite operators. Knows sizes and strides; nothing of tensors' elements.
#pragma once

#include <cstdint>
#include <optional>

#include "tenon/core/dims.h"

namespace tenon::ops {

/// `sizes` with its one -1, if any, replaced so that the product is `numel`. Throws Error{Shape} naming `op`.
Dims infer_size(IntArrayRef sizes, int64_t numel, const char* op);

/// Strides that show the elements of (old_sizes, old_strides) in `sizes`, which have as many elements;
/// nothing where no strides can. Negative and zero strides included.
std::optional<Dims> view_strides(IntArrayRef old_sizes, IntArrayRef old_strides, IntArrayRef sizes);

/// A slice start:stop:step of a dimension of `size`, by Python's rules: the first element and how many there
/// are.
struct SliceRange {
  int64_t start = 0;
  int64_t length = 0;
};
/// Throws Error{Value} for a step of zero.
SliceRange slice_range(int64_t size, std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step,
                       const char* op);

/// Each of `dims` counted from the front; throws Error{Index} when out of range, Error{Value} when one comes
/// twice.
Dims wrap_dims(IntArrayRef dims, int64_t ndim, const char* op);

/// Whether each element has one place and there are no gaps: some order of the dimensions is contiguous.
bool is_non_overlapping_and_dense(IntArrayRef sizes, IntArrayRef strides);

}  // namespace tenon::ops
