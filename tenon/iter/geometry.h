// The arithmetic of sizes and strides: sizes with a -1, strides of a reshaped view, ranges of slices. Used by
// views, indexing and composite operators. Independent of elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "tenon/core/dims.h"

namespace tenon {

/// The index of a dimension in lists of sizes and strides; `dim` is counted from the front.
constexpr size_t at(int64_t dim) noexcept { return static_cast<size_t>(dim); }

/// `sizes` with its one -1, if any, replaced so that the product is `numel`. Throws Error{Shape} naming `op`.
Dims infer_size(IntArrayRef sizes, int64_t numel, const char* op);

/// The strides of a view with `sizes` of a tensor with `old_sizes` and `old_strides`, which may be negative
/// or zero; nothing if no strides make such a view. Both sizes have the same number of elements.
std::optional<Dims> view_strides(IntArrayRef old_sizes, IntArrayRef old_strides, IntArrayRef sizes);

/// The first element and the length of a slice start:stop:step of a dimension of `size`, by Python's rules.
struct SliceRange {
  int64_t start = 0;
  int64_t length = 0;
};
/// Throws Error{Value} for a step of zero.
SliceRange slice_range(int64_t size, std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step,
                       const char* op);

/// The dimensions, counted from the front. Throws Error{Index} if one is out of range, and Error{Value} if
/// one occurs twice.
Dims wrap_dims(IntArrayRef dims, int64_t ndim, const char* op);

/// Whether the tensor is contiguous in some order of its dimensions: no elements share memory and there are
/// no gaps.
bool is_non_overlapping_and_dense(IntArrayRef sizes, IntArrayRef strides);

/// The strides of a result with MemoryFormat::Preserve: dense, with the dimensions in the same order in
/// memory as the given strides. A dense tensor's own strides are returned as they are; if elements share
/// memory, the result is contiguous.
Dims preserved_strides(IntArrayRef sizes, IntArrayRef strides);

/// Whether a tensor of sizes `from` can be repeated to the sizes `to`.
bool broadcasts(IntArrayRef from, IntArrayRef to);

/// The number of elements on a diagonal of a matrix; `offset` counts columns to the right of the main
/// diagonal.
int64_t diagonal_length(int64_t rows, int64_t columns, int64_t offset);

/// The sizes of unfold's view: windows of `size` elements, `step` apart, along a dimension; the elements of a
/// window are the last dimension. Throws Error{Value} for a window that does not fit and for a step below 1,
/// and Error{Shape} if windows or their elements are more than int64 can count.
Dims unfolded_sizes(IntArrayRef sizes, int64_t dimension, int64_t size, int64_t step);

/// The elements of a storage that a tensor and an as_strided view of it reach together: `count` elements from
/// `origin` on. Throws Error{NotImplemented} if elements of the tensor share memory, and Error{Shape} beyond
/// int64.
struct StoragePlaces {
  int64_t origin = 0, count = 0;

  StoragePlaces(IntArrayRef input_sizes, IntArrayRef input_strides, int64_t input_offset, IntArrayRef sizes,
                IntArrayRef strides, int64_t offset);
};

}  // namespace tenon
