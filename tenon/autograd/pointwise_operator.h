// Pointwise expressions as operators: the derivative of a pointwise operator, and an expression that is made
// at run time, get a name, a schema and kernels at their first use, and are called through the dispatcher
// like any other. One path over spans of tensors and numbers serves them all. Used by derivatives.
#pragma once

#include "tenon/iter/pointwise.h"

namespace tenon::autograd {

/// Where a derivative comes from, which its name tells: by operand `operand` of `forward`, whose operator has
/// the overload `overload`.
struct DerivativeName {
  const PointwiseInfo& forward;
  std::string_view overload;
  size_t operand;
};

/// Calls the operator of a derivative, "aten::silu_backward.self" of aten::silu or
/// "aten::mul_backward.Tensor_other" of aten::mul.Tensor. Its derivatives are operators in turn, to any
/// order.
Tensor call_derivative(const PointwiseInfo& derivative, const DerivativeName& name,
                       std::span<const Tensor* const> tensors, std::span<const Scalar* const> scalars);

/// Calls the operator of an expression from make_pointwise: "aten::pointwise.expr1", the next one expr2, ...
/// Throws Error{NotImplemented} where it is recorded on complex tensors and has a part whose derivative is
/// not the formal one (abs, real, imag, conj, angle, sgn).
Tensor call_expression(const PointwiseInfo& expression, std::span<const Tensor* const> tensors,
                       std::span<const Scalar* const> scalars);

}  // namespace tenon::autograd
