// Pointwise expressions as operators. The derivative of a pointwise operator, and an expression made at run
// time, get a name, a schema and kernels at their first use, and are then called through the dispatcher like
// any other operator. All of them share one code path over spans of tensors and numbers. Used by derivatives.
#pragma once

#include "tenon/iter/pointwise.h"

namespace tenon::autograd {

/// What a derivative is named after: the derivative of `forward`, whose operator has the overload `overload`,
/// with respect to its operand `operand`.
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
/// Throws Error{NotImplemented} if the call is recorded with complex tensors and the expression has a part
/// whose derivative is not the formal one (abs, real, imag, conj, angle, sgn).
Tensor call_expression(const PointwiseInfo& expression, std::span<const Tensor* const> tensors,
                       std::span<const Scalar* const> scalars);

}  // namespace tenon::autograd
