#include "tenon/autograd/pointwise_record.h"

#include <fmt/core.h>

#include <cstring>

#include "tenon/autograd/autograd_meta.h"
#include "tenon/autograd/derivative.h"
#include "tenon/core/thread_state.h"

namespace tenon::autograd {
namespace {

constexpr size_t kMaxOperands = PointwiseInfo::kMaxTensors + 2;  // grad and result beside the operands

const PointwiseDerivative* derivative(const PointwiseInfo& info, size_t operand) {
  if (operand < info.derivatives.size()) return info.derivatives[operand];
  return derivative_of(info, static_cast<int>(operand));
}

// d(a + b)/da and its kin: the gradient itself, not a copy of it.
bool passes_grad_on(const PointwiseDerivative& d, DType dtype, std::span<const Scalar* const> scalars) {
  const PointwiseInfo& info = *d.info;
  if (d.tensors.size() != 1 || d.tensors[0] != PointwiseDerivative::kGrad) return false;
  const bool conjugates =
      ((info.conjugates & 1u) != 0) != ((info.conjugates & PointwiseInfo::kConjugatedResult) != 0);
  if (conjugates && is_complex(dtype)) return false;
  if (d.scalars.empty()) return std::strcmp(info.text, info.tensor_names[0]) == 0;
  if (d.scalars.size() != 1 || scalars[0]->is_complex() || scalars[0]->to_double() != 1) return false;
  // grad * number, with the number 1.
  const std::string_view text(info.text), grad(info.tensor_names[0]), number(info.scalar_names[0]);
  constexpr std::string_view kTimes = " * ";
  if (text.size() != grad.size() + number.size() + kTimes.size()) return false;
  return (text.starts_with(grad) && text.ends_with(number) && text.substr(grad.size(), 3) == kTimes) ||
         (text.starts_with(number) && text.ends_with(grad) && text.substr(number.size(), 3) == kTimes);
}

/// Gradient of one operand. `operand(j)` and `scalar(j)` give what the forward call had, `result()` what came
/// out.
template <class Operand, class Number, class Result>
Tensor gradient(const PointwiseDerivative& d, const Tensor& grad, Operand operand, Number scalar,
                Result result) {
  Tensor tensors[kMaxOperands];
  const Tensor* tensor_pointers[kMaxOperands];
  Scalar scalars[PointwiseInfo::kMaxScalars];
  const Scalar* scalar_pointers[PointwiseInfo::kMaxScalars];
  for (size_t j = 0; j < d.scalars.size(); ++j) {
    scalars[j] = scalar(d.scalars[j]);
    scalar_pointers[j] = &scalars[j];
  }
  if (passes_grad_on(d, grad.dtype(), {scalar_pointers, d.scalars.size()})) return grad;
  for (size_t j = 0; j < d.tensors.size(); ++j) {
    const int8_t from = d.tensors[j];
    if (from == PointwiseDerivative::kGrad) {
      tensor_pointers[j] = &grad;
      continue;
    }
    tensors[j] = from == PointwiseDerivative::kResult ? result() : operand(from);
    tensor_pointers[j] = &tensors[j];
  }
  return pointwise_recorded(*d.info, {tensor_pointers, d.tensors.size()},
                            {scalar_pointers, d.scalars.size()});
}

/// A pointwise operation that is not an operator: a derivative, or an expression made at run time.
class PointwiseNode final : public Node {
 public:
  PointwiseNode(const PointwiseInfo& info, std::span<const Tensor* const> tensors,
                std::span<const Scalar* const> scalars)
      : info_(info), name_(fmt::format("{}Backward0", info.name)) {
    for (const Tensor* t : tensors) {
      TENON_CHECK(info.holomorphic || !t->is_complex(), NotImplemented,
                  fmt::format("{}: no derivative on complex tensors of an expression with abs, real, imag, "
                              "conj, angle or sgn; call these as operators",
                              info.name));
    }
    bool uses_operand[PointwiseInfo::kMaxTensors] = {};
    reserve_edges(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
      Edge edge = gradient_edge(*tensors[i]);
      const PointwiseDerivative* d = edge ? derivative(info, i) : nullptr;
      add_edge(std::move(edge));
      if (!d) continue;
      for (const int8_t from : d->tensors) {
        if (from >= 0) uses_operand[from] = true;
        uses_result_ |= from == PointwiseDerivative::kResult;
      }
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (uses_operand[i]) tensors_[i].save_input(*tensors[i]);
    }
    for (size_t i = 0; i < scalars.size(); ++i) scalars_[i] = *scalars[i];
  }

  std::string_view name() const noexcept final { return name_; }
  bool uses_result() const noexcept { return uses_result_; }
  void save_result(const Tensor& result) { result_.save_output(result, 0, result._version()); }

  void apply(NodeCall& call) final {
    const Tensor& grad = call.grads[0];
    if (!grad.defined()) return;
    for (size_t i = 0; i < next_edges().size(); ++i) {
      if (!call.wanted(i)) continue;
      const PointwiseDerivative* d = derivative(info_, i);
      if (!d) continue;
      call.out[i] = gradient(
          *d, grad,
          [&](int8_t j) {
            return tensors_[j].unpack(*this, info_.name, fmt::format("`{}`", info_.tensor_names[j]));
          },
          [&](int8_t j) { return scalars_[j]; },
          [&] { return result_.unpack(*this, info_.name, "its result"); });
    }
  }

  void release_variables() noexcept final {
    for (SavedTensor& t : tensors_) t.release();
    result_.release();
  }

 private:
  const PointwiseInfo& info_;
  std::string name_;
  bool uses_result_ = false;
  SavedTensor tensors_[kMaxOperands];
  SavedTensor result_;
  Scalar scalars_[PointwiseInfo::kMaxScalars];
};

// The argument position of operand or number `n`.
size_t position(uint64_t arguments, size_t n) {
  for (; n > 0; --n) arguments &= arguments - 1;
  return std::countr_zero(arguments);
}

}  // namespace

Tensor pointwise_recorded(const PointwiseInfo& info, std::span<const Tensor* const> tensors,
                          std::span<const Scalar* const> scalars) {
  bool record = false;
  if (thread_state.grad_enabled && info.result != ResultRule::Bool) {
    for (const Tensor* t : tensors) record |= requires_grad(*t->impl());
  }
  if (!record) return pointwise(info, tensors, scalars);
  auto* node = new PointwiseNode(info, tensors, scalars);
  const auto owner = IntrusivePtr<Node>::adopt(node);
  Tensor result = pointwise(info, tensors, scalars);
  if (!is_differentiable(result.dtype())) return result;
  node->add_input(TensorMeta(result));
  set_history(result, {owner, 0});
  if (node->uses_result()) node->save_result(result);
  return result;
}

void pointwise_backward(const OpNode& node, std::span<const Tensor> grads, Gradients& out) {
  const PointwiseInfo& info = *static_cast<const PointwiseInfo*>(node.info().data);
  const CallShape& shape = node.shape();
  const size_t operands = info.tensor_names.size();
  for (size_t i = 0; i < operands; ++i) {
    const size_t argument = position(shape.tensors, i);
    if (!out.wanted(argument)) continue;
    const PointwiseDerivative* d = derivative(info, i);
    if (!d) continue;
    out.set(argument, gradient(
                          *d, grads[0], [&](int8_t j) { return node.tensor(position(shape.tensors, j)); },
                          [&](int8_t j) { return node.scalar(position(shape.numbers, j)); },
                          [&] { return node.result(0); }));
  }
}

}  // namespace tenon::autograd
