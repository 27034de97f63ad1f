// Overlap: decides exactly whether two elements of one view, or of two views, share memory. Used by the
// iterator to refuse writes whose result would depend on their order. Knows no operators.
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

}  // namespace tenon
