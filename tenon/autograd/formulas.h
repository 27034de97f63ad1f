// Formulas: functions that derivative formulas in YAML may name beside the operators.
// Used by generated derivatives only. Most gradients (sum_backward, select_backward, ...) are operators
// themselves, in the YAML next to what they are the gradient of, so that they can be differentiated again;
// what belongs here is made of such operators, or has no tensor arithmetic at all.
#pragma once

#include "tenon/core/tensor.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/matmul/functions.h"

namespace tenon::autograd::formulas {

/// No gradient: what an argument gets whose old elements were overwritten.
inline Tensor no_gradient() { return {}; }

/// The conjugate; what is real as it is.
inline Tensor conjugated(const Tensor& t) { return t.is_complex() ? tenon::conj(t) : t; }
inline Scalar conjugated(const Scalar& s) { return s.is_complex() ? Scalar(std::conj(s.to_complex())) : s; }

/// mat1.T @ grad, laid out as mat2 is: the gradient of a weight that was used transposed comes out
/// contiguous. Each element sums the same products in the same order either way.
inline Tensor transposed_product(const Tensor& grad, const Tensor& mat1, IntArrayRef mat2_strides) {
  const bool transposed = mat2_strides[0] == 1 && mat2_strides[1] != 1;
  return transposed ? mm(grad.t(), mat1).t() : mm(mat1.t(), grad);
}

}  // namespace tenon::autograd::formulas
