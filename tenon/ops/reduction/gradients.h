// What the gradients of reductions share: the shape of a result, and how it meets its input again. Used by
// the composites of reductions and norms.
#pragma once

#include "tenon/core/tensor.h"

namespace tenon::ops {

/// Throws Error{Shape} unless a tensor that comes with a gradient, or the gradient itself, has the shape of
/// the result; `mask` says which of `sizes` are reduced.
void check_reduced(const Tensor& t, IntArrayRef sizes, const Dims& mask, bool keepdim, const char* op,
                   const char* what = "the gradient");

/// `reduced`, with reduced dimensions of size 1 put back where they were dropped.
Tensor with_kept_dims(const Tensor& reduced, const Dims& mask, bool keepdim);

}  // namespace tenon::ops
