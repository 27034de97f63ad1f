// Overlap: decides exactly whether two elements of one view, or of two views, share memory. Used by the
// iterator and by plans (tenon/graph) to refuse writes whose result would depend on their order. Knows no
// operators.
#pragma once

#include <cstdint>

#include "tenon/core/dims.h"

namespace tenon {

class Tensor;

enum class Overlap : uint8_t {
  None,     ///< No shared element.
  Same,     ///< The same elements in the same order.
  Partial,  ///< Some shared elements at other positions.
};

/// Whether two positions of a view are the same element, as in expanded dimensions and overlapping windows.
bool overlaps_itself(IntArrayRef sizes, IntArrayRef strides);

/// How two tensors share memory. Interleaved views, such as the even and the odd elements, or the left and
/// right halves of a matrix, share none.
Overlap overlap(const Tensor& a, const Tensor& b);

/// Elements in memory.
struct Placement {
  int64_t address;  ///< In bytes, of element [0, ..., 0].
  int64_t item_size;
  IntArrayRef sizes, strides;  ///< Strides in elements.
};
/// Whether the two share a byte; yes also for views so intricate that the search gives up.
bool share_bytes(const Placement& a, const Placement& b);

}  // namespace tenon
