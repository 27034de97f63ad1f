// Overlap: whether two elements of one view, or of two views, share memory; decided exactly.
// Used by the iterator to refuse writes whose result would depend on their order. Knows no operators.
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

/// Whether two positions of a view are one element: expanded dimensions, windows that overlap.
bool overlaps_itself(IntArrayRef sizes, IntArrayRef strides);

/// How two tensors share memory. Interleaved views (every other element, left and right half of a matrix) do
/// not.
Overlap overlap(const Tensor& a, const Tensor& b);

}  // namespace tenon
