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

// The operator over what the call had, and where that is among the call's arguments.
struct RecordedCall {
  const PointwiseInfo& info;
  uint64_t tensors, numbers;  // bits are argument positions
};

RecordedCall recorded_call(const OpNode& node, const PointwiseInfo& info) {
  uint64_t tensors = node.shape().tensors, numbers = node.shape().numbers;
  if (info.without.empty()) [[likely]]
    return {info, tensors, numbers};
  uint32_t absent_tensors = 0, absent_scalars = 0;
  for (size_t i = 0; i < info.tensor_names.size(); ++i) {
    const size_t at = position(node.shape().tensors, i);
    if (!((info.optional_tensors >> i) & 1u) || node.meta(at).defined()) continue;
    absent_tensors |= 1u << i;
    tensors &= ~(uint64_t{1} << at);
  }
  for (size_t i = 0; i < info.scalar_names.size(); ++i) {
    const size_t at = position(node.shape().numbers, i);
    if (node.has_scalar(at)) continue;
    absent_scalars |= 1u << i;
    numbers &= ~(uint64_t{1} << at);
  }
  return {info_without(info, absent_tensors, absent_scalars), tensors, numbers};
}

Tensor gradient(const OpNode& node, const RecordedCall& call, size_t operand, const PointwiseDerivative& d,
                const Tensor& grad) {
  Scalar scalars[PointwiseInfo::kMaxScalars];
  const Scalar* scalar_pointers[PointwiseInfo::kMaxScalars];
  for (size_t j = 0; j < d.scalars.size(); ++j) {
    scalars[j] = node.scalar(position(call.numbers, static_cast<size_t>(d.scalars[j])));
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
                     : node.tensor(position(call.tensors, static_cast<size_t>(from)));
    tensor_pointers[j] = &tensors[j];
  }
  return call_derivative(*d.info, {call.info, node.info().entry->overload, operand},
                         {tensor_pointers, d.tensors.size()}, {scalar_pointers, d.scalars.size()});
}

}  // namespace

void pointwise_backward(const OpNode& node, std::span<const Tensor> grads, Gradients& out) {
  const RecordedCall call = recorded_call(node, *static_cast<const PointwiseInfo*>(node.info().data));
  for (size_t i = 0; i < call.info.tensor_names.size(); ++i) {
    const size_t argument = position(call.tensors, i);
    if (!out.wanted(argument)) continue;
    if (const PointwiseDerivative* d = derivative(call.info, i))
      out.set(argument, gradient(node, call, i, *d, grads[0]));
  }
}

}  // namespace tenon::autograd
