#include "tenon/autograd/fallback.h"

#include <fmt/core.h>

#include "tenon/autograd/autograd_meta.h"
#include "tenon/core/thread_state.h"
#include "tenon/dispatch/operator.h"
#include "tenon/schema/schema.h"

namespace tenon::autograd {
namespace {

class NotImplementedNode final : public Node {
 public:
  explicit NotImplementedNode(OperatorHandle op) : op_(op) {}

  std::string_view name() const noexcept final { return "NotImplemented"; }
  void apply(NodeCall&) final {
    throw_error(ErrorKind::NotImplemented,
                fmt::format("derivative for {} is not implemented", op_.full_name()));
  }

 private:
  OperatorHandle op_;
};

template <class F>
void for_each_tensor(Stack& stack, size_t i, F&& f) {
  if (stack.tag(i) == CellTag::Tensor) {
    f(stack.at<Tensor>(i));
  } else if (stack.tag(i) == CellTag::TensorList) {
    for (Tensor& t : stack.at<std::vector<Tensor>>(i)) {
      if (t.defined()) f(t);
    }
  }
}

void not_implemented(const OperatorHandle& op, DispatchKeySet keys, Stack& stack) {
  const auto& arguments = op.schema().arguments;
  const auto& returns = op.schema().returns;
  const size_t first = stack.size() - arguments.size();
  bool any = false;
  IntrusivePtr<Node> node;
  if (thread_state.grad_enabled) {
    for (size_t i = first; i < stack.size(); ++i) {
      for_each_tensor(stack, i, [&](const Tensor& t) { any |= t.defined() && requires_grad(*t.impl()); });
    }
  }
  std::vector<Tensor> written;
  if (any) {
    node = IntrusivePtr<Node>::adopt(new NotImplementedNode(op));
    for (size_t i = 0; i < arguments.size(); ++i) {
      const bool writes = arguments[i].alias && arguments[i].alias->is_write;
      for_each_tensor(stack, first + i, [&](const Tensor& t) {
        if (!t.defined()) return;
        if (writes) {
          check_in_place(t);
          written.push_back(t);
        }
        node->add_edge(gradient_edge(t));
      });
    }
  }
  {
    const ExcludeDispatchKeyGuard below(kAutogradKeys);
    op.redispatch_boxed(keys.below(Functionality::Autograd), stack);
  }
  if (!any) return;
  for (const Tensor& t : written) {
    if (!is_differentiable(t.dtype())) continue;
    // The write has no derivative, through a view no more than directly.
    const Tensor whole = t.is_view() ? t._base() : t;
    replace_history(whole, {node, node->add_input(TensorMeta(whole))});
  }
  for (size_t i = 0; i < returns.size(); ++i) {
    if (returns[i].alias && returns[i].alias->is_write) continue;
    for_each_tensor(stack, stack.size() - returns.size() + i, [&](const Tensor& t) {
      if (t.defined() && is_differentiable(t.dtype())) set_history(t, {node, node->add_input(TensorMeta(t))});
    });
  }
}

}  // namespace

CppFunction autograd_not_implemented_fallback() { return CppFunction::from_boxed(&not_implemented); }

}  // namespace tenon::autograd
