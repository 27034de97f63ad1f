#include "tenon/autograd/fallback.h"

#include <fmt/core.h>

#include <algorithm>

#include "tenon/autograd/autograd_meta.h"
#include "tenon/autograd/strided.h"
#include "tenon/core/thread_state.h"
#include "tenon/dispatch/dispatcher.h"
#include "tenon/dispatch/operator.h"
#include "tenon/schema/schema.h"

namespace tenon::autograd {
namespace {

class NotImplementedNode final : public Node {
 public:
  NotImplementedNode(OperatorHandle op, bool chosen) : op_(op), chosen_(chosen) {}

  std::string_view name() const noexcept final { return "NotImplemented"; }
  void apply(NodeCall& call) final {
    const auto defined = [](const Tensor& g) { return g.defined(); };
    if (std::none_of(call.grads.begin(), call.grads.end(), defined)) return;
    std::string text = fmt::format("derivative for {} is not implemented", op_.full_name());
    if (!chosen_) {
      text += fmt::format(
          "; register one: register_autograd(\"{0}\", backward) in Python, autograd::custom_derivative in "
          "C++. "
          "If the operator has no gradient, say so: register_not_differentiable(\"{0}\") in Python, "
          "autograd::not_differentiable() in C++",
          op_.full_name());
    }
    throw_error(ErrorKind::NotImplemented, text);
  }

 private:
  OperatorHandle op_;
  bool chosen_;  // by the operator's author
};

/// The old elements of a tensor that an operator without gradient has written.
class OverwrittenNode final : public Node {
 public:
  std::string_view name() const noexcept final { return "NotDifferentiable"; }
  void apply(NodeCall&) final {}
};

/// Calls `f` with each defined tensor of the i-th value.
template <class F>
void for_each_tensor(Stack& stack, size_t i, F&& f) {
  if (stack.tag(i) == CellTag::Tensor) {
    if (Tensor& t = stack.at<Tensor>(i); t.defined()) f(t);
  } else if (stack.tag(i) == CellTag::TensorList) {
    for (Tensor& t : stack.at<std::vector<Tensor>>(i)) {
      if (t.defined()) f(t);
    }
  }
}

/// A call of an operator without a registered derivative.
class UnknownDerivative {
 public:
  UnknownDerivative(const OperatorHandle& op, Stack& stack, bool chosen)
      : op_(op),
        chosen_(chosen),
        schema_(op.schema()),
        stack_(stack),
        first_(stack.size() - schema_.arguments.size()) {}

  /// Whether the results of this call have a history.
  bool recording() const {
    if (!thread_state.grad_enabled) return false;
    bool any = false;
    for_each_argument([&](const schema::Argument&, const Tensor& t) { any |= requires_grad(*t.impl()); });
    return any;
  }

  /// Throws for an argument that may not be written.
  void begin() {
    node_ = IntrusivePtr<Node>::adopt(new NotImplementedNode(op_, chosen_));
    for_each_argument([&](const schema::Argument& argument, const Tensor& t) {
      if (argument.is_write()) {
        check_in_place(t);
        const Tensor whole = t.is_view() ? t._base() : t;
        written_.push_back({whole, histories(whole)});
      }
      node_->add_edge(gradient_edge(t));
    });
  }

  /// `keep`: what the kernel recorded itself stays.
  void finish(bool keep) {
    for (const auto& [whole, before] : written_) {
      if (!is_differentiable(whole.dtype()) || (keep && histories(whole) != before)) continue;
      // The write has no derivative, through a view no more than directly.
      replace_history(whole, {node_, node_->add_input(TensorMeta(whole))});
    }
    const auto& returns = schema_.returns;
    const bool several = returns.size() != 1 || returns[0].type.list;
    for (size_t i = 0; i < returns.size(); ++i) {
      if (returns[i].is_write()) continue;
      for_each_tensor(stack_, stack_.size() - returns.size() + i, [&](Tensor& t) {
        if (!is_differentiable(t.dtype()) || (keep && requires_grad(*t.impl()))) return;
        // An argument that comes back has a history of its own.
        if (requires_grad(*t.impl())) t = make_view(t, t.sizes(), t.strides(), t.storage_offset());
        set_history(t, {node_, node_->add_input(TensorMeta(t))});
        if (t.is_view() && several) meta_of(*t.impl())->creation = ViewCreation::MultiOutput;
      });
    }
  }

 private:
  template <class F>
  void for_each_argument(F&& f) const {
    for (size_t i = 0; i < schema_.arguments.size(); ++i) {
      for_each_tensor(stack_, first_ + i, [&](const Tensor& t) { f(schema_.arguments[i], t); });
    }
  }
  static uint32_t histories(const Tensor& t) noexcept {
    const AutogradMeta* meta = meta_of(*t.impl());
    return meta ? meta->history : 0;
  }

  OperatorHandle op_;
  bool chosen_;
  const schema::FunctionSchema& schema_;
  Stack& stack_;
  size_t first_;
  IntrusivePtr<Node> node_;
  /// What is written, or its base, and how often that had been given another history.
  std::vector<std::pair<Tensor, uint32_t>> written_;
};

template <bool chosen>
void not_implemented(const OperatorHandle& op, DispatchKeySet keys, Stack& stack) {
  UnknownDerivative call(op, stack, chosen);
  const bool recording = call.recording();
  if (recording) call.begin();
  {
    const ExcludeDispatchKeyGuard below(kAutogradKeys);
    op.redispatch_boxed(keys.below(Functionality::Autograd), stack);
  }
  if (recording) call.finish(false);
}

/// What an operator does at Autograd for which nothing is registered there.
void unregistered(const OperatorHandle& op, DispatchKeySet keys, Stack& stack) {
  UnknownDerivative call(op, stack, false);
  const bool recording = call.recording();
  if (recording) call.begin();
  op.redispatch_boxed(keys.below(Functionality::Autograd), stack);
  if (recording) call.finish(true);
}

void no_gradient(const OperatorHandle& op, DispatchKeySet keys, Stack& stack) {
  const schema::FunctionSchema& schema = op.schema();
  const size_t first = stack.size() - schema.arguments.size();
  std::vector<Tensor> written;
  for (size_t i = 0; thread_state.grad_enabled && i < schema.arguments.size(); ++i) {
    if (!schema.arguments[i].is_write()) continue;
    for_each_tensor(stack, first + i, [&](const Tensor& t) {
      const TensorImpl* base = t.impl()->base().get();
      if (!requires_grad(*t.impl()) && !(base && requires_grad(*base))) return;
      check_in_place(t);
      written.push_back(t);
    });
  }
  {
    const ExcludeDispatchKeyGuard below(kAutogradKeys);
    op.redispatch_boxed(keys.below(Functionality::Autograd), stack);
  }
  for (const Tensor& t : written) {
    const auto node = IntrusivePtr<Node>::adopt(new OverwrittenNode);
    node->add_edge(gradient_edge(t));
    node->add_input(TensorMeta(t));
    if (!t.is_view()) {
      replace_history(t, {node, 0});
      continue;
    }
    // The elements of the base outside the view keep their gradient.
    const Tensor whole = t._base();
    replace_history(whole, {make_copy_slices_node(whole, t, node), 0});
  }
  for (size_t i = 0; i < schema.returns.size(); ++i) {
    if (schema.returns[i].is_write()) continue;
    for_each_tensor(stack, stack.size() - schema.returns.size() + i, [](Tensor& t) {
      if (requires_grad(*t.impl())) t = alias_without_history(t);
    });
  }
}

[[maybe_unused]] const bool filled_in =
    (tenon::detail::underived_kernel = CppFunction::from_boxed(&unregistered).kernel(), true);

}  // namespace

CppFunction autograd_not_implemented_fallback() { return CppFunction::from_boxed(&not_implemented<true>); }
CppFunction missing_derivative_fallback() { return CppFunction::from_boxed(&not_implemented<false>); }
CppFunction not_differentiable() { return CppFunction::from_boxed(&no_gradient); }

}  // namespace tenon::autograd
