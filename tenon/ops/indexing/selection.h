// The shape of what general indexing selects, and where the dimensions of its index tensors go in it. Used by
// shape functions and by the bodies that turn index tensors into positions. Knows no elements.
#pragma once

#include "tenon/core/tensor_header.h"

namespace tenon::ops {

/// Whether an index tensor is a mask, which selects the positions where it is true.
bool is_mask(HeaderRef index);

/// Checks the index tensors of a tensor of `sizes`, and returns whether one of them is a mask, so that the
/// shape of the selection depends on values. Throws Error{Index} unless each is an int32 or int64 tensor, or
/// a mask with the shape of the dimensions that it indexes, and there are no more of them than dimensions.
bool check_indices(IntArrayRef sizes, HeaderList indices, const char* op);

struct IndexGeometry {
  Dims sizes;         ///< What is selected.
  Dims positions;     ///< The shape of the index tensors together.
  size_t before = 0;  ///< How many whole dimensions come before them.
};

/// The geometry of index tensors without masks, one for each dimension from the first on. Dimensions whose
/// index tensor is undefined or missing are kept whole. Throws Error{Shape} unless the index tensors
/// broadcast together.
IndexGeometry index_geometry(IntArrayRef sizes, HeaderList indices, const char* op);

/// Throws Error{Shape} unless `values` broadcasts to the sizes of the selection.
void check_selected_values(IntArrayRef values, IntArrayRef selected, const char* op);
/// Throws Error{Shape} unless a gradient has the sizes of the selection.
void check_selected_gradient(IntArrayRef grad, IntArrayRef selected, const char* op);

}  // namespace tenon::ops
