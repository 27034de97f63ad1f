// Small steps of shapes that the iterator and operators share: broadcasting two shapes, giving an `out` its
// size. Used by tenon/iter and tenon/ops. Knows no dtypes and no loops.
#pragma once

#include "tenon/core/tensor.h"

namespace tenon {

/// Widens `shape` so that it broadcasts with `other`. Throws Error{Shape}: "add: shapes [3, 4] and [2, 4] do
/// not broadcast at dimension 0 (3 vs 2)", the dimension counted in the longer of the two.
void broadcast_to(Dims& shape, IntArrayRef other, const char* op);
/// The shape of both.
Dims broadcast_shapes(IntArrayRef a, IntArrayRef b, const char* op);

/// Gives an `out` tensor of a result other sizes and strides, growing its storage if it is too small.
void resize_output(const Tensor& out, IntArrayRef sizes, IntArrayRef strides);

}  // namespace tenon
