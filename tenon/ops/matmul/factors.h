// The factors alpha and beta of products with something added, as numbers of the operands' dtype. Used by the
// shape functions and bodies of this folder.
#pragma once

#include "tenon/core/scalar.h"

namespace tenon::ops {

/// `factor` for tensors of `dtype`: truncated toward zero for integers, as PyTorch does. Throws Error{Type}
/// for a complex factor of real tensors, and Error{Value} for one that an integer dtype cannot hold.
Scalar factor_of(const Scalar& factor, DType dtype, const char* op, const char* argument);

/// Throws Error{Type} for a factor of integers that is no integer.
void check_integral_factor(const Scalar& factor, DType dtype, const char* op, const char* argument);

}  // namespace tenon::ops
