#include "tenon/autograd/custom_function.h"

#include <algorithm>

#include "tenon/autograd/autograd.h"
#include "tenon/autograd/autograd_meta.h"
#include "tenon/autograd/strided.h"
#include "tenon/core/thread_state.h"

namespace tenon::autograd {
namespace {

bool contains(std::span<const Tensor> list, const Tensor& t) noexcept {
  return std::any_of(list.begin(), list.end(), [&](const Tensor& each) { return each.is_same(t); });
}

Tensor view_of(const Tensor& t) {
  const NoGradGuard no_grad;
  return make_view(t, t.sizes(), t.strides(), t.storage_offset());
}

void rewrite(const Tensor& t, Edge from, size_t results) {
  const AutogradMeta* meta = meta_of(*t.impl());
  TENON_CHECK(!(meta && meta->requires_grad && !meta->grad_fn), Runtime,
              "a leaf Variable that requires grad is being used in an in-place operation.");
  if (!t.is_view()) return replace_history(t, std::move(from));
  TENON_CHECK(results == 1, Runtime,
              "If your Function modifies inplace an input that is a view of another Tensor, your Function "
              "cannot return more than one Tensor. This is not supported by the current autograd engine. You "
              "should either make sure the input is not a view (using .clone() for example) or make your "
              "Function only return one Tensor (potentially splitting it into two Functions: one doing the "
              "inplace that returns a single Tensor and a second one that does the other operations).");
  check_in_place(t);
  const Tensor whole(t.impl()->base());
  // Edge 0 of a write through a view is the view's old self.
  replace_history(whole, {make_copy_slices_node(whole, t, from.node), 0});
}

// Of a tensor that a function computed, or was given, and that has no gradient.
Tensor cut(const Tensor& t, bool is_input) {
  if (!t.requires_grad()) return t;
  if (is_input || t.is_leaf()) return t.detach();
  if (!t.is_view()) detach_(t);
  return t;
}

class DelayedError final : public Node {
 public:
  explicit DelayedError(std::string message) : message_(std::move(message)) {}
  std::string_view name() const noexcept final { return "DelayedError"; }
  void apply(NodeCall&) final { throw_error(ErrorKind::Runtime, message_); }

 private:
  std::string message_;
};

}  // namespace

bool records(std::span<const Tensor> inputs) noexcept {
  return thread_state.grad_enabled && std::any_of(inputs.begin(), inputs.end(), [](const Tensor& t) {
           return t.defined() && requires_grad(*t.impl());
         });
}

void finish_custom_call(const CustomCall& call, std::span<Tensor> results) {
  for (const Tensor& t : call.dirty) {
    TENON_CHECK(contains(results, t), Runtime,
                "Some elements marked as dirty during the forward method were not returned as output. The "
                "inputs that are modified inplace must all be outputs of the Function.");
  }
  size_t differentiable = 0;
  for (Tensor& t : results) {
    const uint32_t nr = !call.node    ? 0
                        : t.defined() ? call.node->add_input(t)
                                      : call.node->add_input(TensorMeta());
    if (!t.defined()) continue;
    const bool is_input = contains(call.inputs, t), is_dirty = is_input && contains(call.dirty, t);
    if (!call.node) {
      if (is_input && !is_dirty) t = view_of(t);
      continue;
    }
    if (!is_differentiable(t.dtype()) || contains(call.non_differentiable, t)) {
      t = cut(t, is_input);
      continue;
    }
    ++differentiable;
    if (is_dirty) {
      rewrite(t, {call.node, nr}, results.size());
      continue;
    }
    if (is_input)
      t = view_of(t);
    else if (t.is_leaf() && t.requires_grad())
      t = t.detach();
    set_history(t, {call.node, nr});
    if (t.is_view()) meta_of(*t.impl())->creation = ViewCreation::CustomFunction;
  }
  if (differentiable <= 1) return;
  for (const Tensor& t : results) {
    AutogradMeta* meta = t.defined() && t.is_view() ? meta_of(*t.impl()) : nullptr;
    if (meta && meta->creation == ViewCreation::CustomFunction) meta->creation = ViewCreation::MultiOutput;
  }
}

std::vector<Tensor> delayed_error(std::string message, std::span<const Tensor> tensors) {
  const auto node = IntrusivePtr<Node>::adopt(new DelayedError(std::move(message)));
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) {
    if (!t.defined() || !is_differentiable(t.dtype())) {
      out.push_back(t);
      continue;
    }
    node->add_edge(gradient_edge(t));
    const uint32_t nr = node->add_input(t);
    out.push_back(alias_without_history(t));
    set_history(out.back(), {node, nr});
  }
  return out;
}

}  // namespace tenon::autograd
