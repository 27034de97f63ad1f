// What general indexing selects, told from shapes alone: where the dimensions of its index tensors go.
// Used by shape functions and by the bodies that turn index tensors into positions. Knows no elements.
#pragma once

#include "tenon/core/tensor_header.h"

namespace tenon::ops {

/// Whether an index tensor is a mask, which stands for the positions where it is true.
bool is_mask(HeaderRef index);

/// Throws Error{Index} unless `indices` are int32 or int64 tensors, or masks of the shape of the dimensions
/// that they stand for, no more of them than `sizes` has dimensions. Whether one is a mask: then only its
/// values tell what is selected.
bool check_indices(IntArrayRef sizes, HeaderList indices, const char* op);

struct IndexGeometry {
  Dims sizes;         ///< What is selected.
  Dims positions;     ///< The shape of the index tensors together.
  size_t before = 0;  ///< How many whole dimensions stand in front of them.
};

/// Index tensors without masks, one for each dimension from the first on; an undefined one keeps its
/// dimension whole, as those that are missing do. Throws Error{Shape} unless they broadcast together.
IndexGeometry index_geometry(IntArrayRef sizes, HeaderList indices, const char* op);

/// Throws Error{Shape} unless `values` broadcast to the sizes that are selected.
void check_selected_values(IntArrayRef values, IntArrayRef selected, const char* op);
/// Throws Error{Shape} unless a gradient has the sizes that are selected.
void check_selected_gradient(IntArrayRef grad, IntArrayRef selected, const char* op);

}  // namespace tenon::ops
