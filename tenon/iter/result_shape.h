// The shape of a result: broadcasting two shapes, and resizing an `out` tensor to it. Used by tenon/iter and
// tenon/ops. Knows no dtypes and no loops.
#pragma once

#include "tenon/core/tensor.h"

namespace tenon {

/// Widens `shape` so that it broadcasts with `other`. Throws Error{Shape}: "add: shapes [3, 4] and [2, 4] do
/// not broadcast at dimension 0 (3 vs 2)", the dimension counted in the longer of the two.
void broadcast_to(Dims& shape, IntArrayRef other, const char* op);
/// The shape to which two shapes broadcast. Throws Error{Shape}.
Dims broadcast_shapes(IntArrayRef a, IntArrayRef b, const char* op);

/// Gives an `out` tensor other sizes and strides, and grows its storage if that is too small.
void resize_output(const Tensor& out, IntArrayRef sizes, IntArrayRef strides);

}  // namespace tenon
