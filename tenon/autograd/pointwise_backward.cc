// Gradients of pointwise operators, which are pointwise operators themselves.
#include "tenon/autograd/derivative.h"
#include "tenon/autograd/pointwise_operator.h"

namespace tenon::autograd {
namespace {

const PointwiseDerivative* derivative(const PointwiseInfo& info, size_t operand) {
  if (operand < info.derivatives.size()) return info.derivatives[operand];
  return derivative_of(info, static_cast<int>(operand));
}

// d(a + b)/da and its kin: the gradient itself, not a copy of it.
bool passes_grad_on(const PointwiseDerivative& d, DType dtype, const Scalar* number) {
  if (d.factor == expr::Factor::Other) return false;
  const PointwiseInfo& info = *d.info;
  const bool conjugates =
      ((info.conjugates & 1u) != 0) != ((info.conjugates & PointwiseInfo::kConjugatedResult) != 0);
  if (conjugates && is_complex(dtype)) return false;
  return d.factor == expr::Factor::One || (!number->is_complex() && number->to_double() == 1);
}

// The argument position of operand or number `n`.
size_t position(uint64_t arguments, size_t n) {
  for (; n > 0; --n) arguments &= arguments - 1;
  return std::countr_zero(arguments);
}

Tensor gradient(const OpNode& node, const PointwiseInfo& info, size_t operand, const PointwiseDerivative& d,
                const Tensor& grad) {
  const CallShape& shape = node.shape();
  Scalar scalars[PointwiseInfo::kMaxScalars];
  const Scalar* scalar_pointers[PointwiseInfo::kMaxScalars];
  for (size_t j = 0; j < d.scalars.size(); ++j) {
    scalars[j] = node.scalar(position(shape.numbers, static_cast<size_t>(d.scalars[j])));
    scalar_pointers[j] = &scalars[j];
  }
  if (passes_grad_on(d, grad.dtype(), scalars)) return grad;
  Tensor tensors[PointwiseInfo::kMaxTensors];
  const Tensor* tensor_pointers[PointwiseInfo::kMaxTensors];
  for (size_t j = 0; j < d.tensors.size(); ++j) {
    const int8_t from = d.tensors[j];
    if (from == PointwiseDerivative::kGrad) {
      tensor_pointers[j] = &grad;
      continue;
    }
    tensors[j] = from == PointwiseDerivative::kResult
                     ? node.result(0)
                     : node.tensor(position(shape.tensors, static_cast<size_t>(from)));
    tensor_pointers[j] = &tensors[j];
  }
  return call_derivative(*d.info, {info, node.info().entry->overload, operand},
                         {tensor_pointers, d.tensors.size()}, {scalar_pointers, d.scalars.size()});
}

}  // namespace

void pointwise_backward(const OpNode& node, std::span<const Tensor> grads, Gradients& out) {
  const PointwiseInfo& info = *static_cast<const PointwiseInfo*>(node.info().data);
  for (size_t i = 0; i < info.tensor_names.size(); ++i) {
    const size_t argument = position(node.shape().tensors, i);
    if (!out.wanted(argument)) continue;
    if (const PointwiseDerivative* d = derivative(info, i))
      out.set(argument, gradient(node, info, i, *d, grads[0]));
  }
}

}  // namespace tenon::autograd
