// Geometry of views: sizes with a -1, strides of a reshaped view, normalised slices.
// Used by views, indexing and composite operators. Knows sizes and strides; nothing of tensors' elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "tenon/core/dims.h"

namespace tenon::ops {

/// The index of a dimension in lists of sizes and strides; `dim` is counted from the front.
constexpr size_t at(int64_t dim) noexcept { return static_cast<size_t>(dim); }

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

/// Strides of a dense tensor that has the dimensions of `self` in the same order in memory: what
/// MemoryFormat::Preserve asks for. Those of `self` itself where it is dense; contiguous ones where elements
/// share places.
Dims preserved_strides(IntArrayRef sizes, IntArrayRef strides);

/// Whether a tensor of sizes `from` can be repeated to the sizes `to`.
bool broadcasts(IntArrayRef from, IntArrayRef to);

/// Elements on a diagonal of a matrix; `offset` counts columns to the right of the main one.
int64_t diagonal_length(int64_t rows, int64_t columns, int64_t offset);

/// The sizes of the windows of `size` elements, `step` apart, along a dimension; they are the last one.
/// Throws Error{Value} for a window that does not fit, or a step below 1; Error{Shape} where windows or
/// their elements are more than int64 can count.
Dims unfolded_sizes(IntArrayRef sizes, int64_t dimension, int64_t size, int64_t step);

/// What a tensor of one geometry and a view of another reach of a storage: `count` places from `origin` on.
/// Throws Error{NotImplemented} where elements of the tensor share places, Error{Shape} beyond int64.
struct StoragePlaces {
  int64_t origin = 0, count = 0;

  StoragePlaces(IntArrayRef input_sizes, IntArrayRef input_strides, int64_t input_offset, IntArrayRef sizes,
                IntArrayRef strides, int64_t offset);
};

}  // namespace tenon::ops
