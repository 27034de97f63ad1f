// Formulas: functions that the derivative formulas in YAML may call besides the operators. Used by generated
// derivatives only. Most gradients (sum_backward, select_backward, ...) are operators, defined in the YAML
// files next to their forward operators, so that they can be differentiated again. Functions here are made of
// such operators, or do no tensor arithmetic at all.
#pragma once

#include <span>
#include <vector>

#include "tenon/autograd/derivative.h"
#include "tenon/core/tensor.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/matmul/functions.h"

namespace tenon::autograd::formulas {

/// No gradient: for an argument whose old elements were overwritten.
inline Tensor no_gradient() { return {}; }

/// The conjugate of a complex tensor; a real tensor itself.
inline Tensor conjugated(const Tensor& t) { return t.is_complex() ? tenon::conj(t) : t; }
inline Scalar conjugated(const Scalar& s) { return s.is_complex() ? Scalar(std::conj(s.to_complex())) : s; }

/// mat1.T @ grad with the strides of mat2, so that the gradient of a weight that was used transposed is
/// contiguous. Each element sums the same products in the same order in either layout.
inline Tensor transposed_product(const Tensor& grad, const Tensor& mat1, IntArrayRef mat2_strides) {
  const bool transposed = mat2_strides[0] == 1 && mat2_strides[1] != 1;
  return transposed ? mm(grad.t(), mat1).t() : mm(mat1.t(), grad);
}

/// The gradient of a conversion by what was converted. A real tensor takes the real part of a complex
/// gradient: the loss does not move with the other.
Tensor conversion_gradient(const Tensor& grad, const TensorOptions& options);

/// By input, hx, cx, weight, bias and projection of _recurrence.
using RecurrenceGradients = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
RecurrenceGradients recurrence_gradients(const Tensor& grad_output, const Tensor& grad_hy,
                                         const Tensor& grad_cy, const Tensor& input, const Tensor& hx,
                                         const Tensor& cx, const Tensor& weight, const Tensor& bias,
                                         const Tensor& projection, const Tensor& batch_sizes,
                                         const Tensor& output, const Tensor& kept, int64_t cell,
                                         bool reverse);

/// The part of each tensor in the gradient of their cat along `dim`.
std::vector<Tensor> cat_gradients(const Tensor& grad, std::span<const ArgumentMeta> tensors, int64_t dim);

}  // namespace tenon::autograd::formulas
