// Pointwise operations with history: the derivative of a pointwise operator is a pointwise operator too, to
// any order. Used by pointwise_backward and by expressions known only at run time.
#pragma once

#include "tenon/iter/pointwise.h"

namespace tenon::autograd {

/// As tenon::pointwise, and recorded where grad mode is on and an operand requires grad.
Tensor pointwise_recorded(const PointwiseInfo& info, std::span<const Tensor* const> tensors,
                          std::span<const Scalar* const> scalars);

}  // namespace tenon::autograd
