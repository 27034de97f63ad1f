#include "tenon/autograd/autograd.h"

#include <fmt/core.h>

#include <algorithm>

#include "tenon/autograd/autograd_meta.h"
#include "tenon/autograd/engine.h"
#include "tenon/generated/factory/functions.h"

namespace tenon::autograd {
namespace {

/// What the user called: backward, or grad.
struct Caller {
  const char* function;
  const char* gradients;  ///< The argument that has the outputs' gradients.
  bool accumulate;        ///< Into .grad.
};
constexpr Caller kBackward{"backward", "gradient", true}, kGrad{"grad", "grad_outputs", false};

// The texts contain PyTorch's sentences, which programs look for.

Tensor root_gradient(const Caller& caller, size_t i, const Tensor& output, const Tensor& given) {
  if (!given.defined()) {
    TENON_CHECK(
        output.numel() == 1, Runtime,
        fmt::format("{}: grad can be implicitly created only for scalar outputs; output {} has shape {}: "
                    "pass its gradient as `{}`",
                    caller.function, i, to_string(output.sizes()), caller.gradients));
    TENON_CHECK(is_floating_point(output.dtype()), Runtime,
                fmt::format("{}: grad can be implicitly created only for real scalar outputs but got {} for "
                            "output {}; pass its gradient as `{}`",
                            caller.function, tenon::name(output.dtype()), i, caller.gradients));
    const NoGradGuard no_grad;
    return tenon::ones_like(output);
  }
  TENON_CHECK(
      given.sizes() == output.sizes(), Runtime,
      fmt::format(
          "{}: Mismatch in shape: the gradient has a shape of {} and the output has a shape of {}: `{}` {}",
          caller.function, to_string(given.sizes()), to_string(output.sizes()), caller.gradients, i));
  TENON_CHECK(given.is_complex() == output.is_complex(), Runtime,
              fmt::format("{}: Mismatch in dtype: the gradient is {} and the output is {}; both must be "
                          "complex or both real: `{}` {}",
                          caller.function, name(given.dtype()), name(output.dtype()), caller.gradients, i));
  TENON_CHECK(given.device() == output.device(), Device,
              fmt::format("{}: `{}` {} is on {}, the output on {}", caller.function, caller.gradients, i,
                          to_string(given.device()), to_string(output.device())));
  return given.dtype() == output.dtype() ? given : given.to(output.dtype());
}

std::vector<Tensor> run(const Caller& caller, TensorList outputs, TensorList grad_outputs, TensorList inputs,
                        std::optional<bool> retain_graph, bool create_graph) {
  TENON_CHECK(grad_outputs.empty() || grad_outputs.size() == outputs.size(), Runtime,
              fmt::format("{}: got {} tensors and {} gradients in `{}`; each tensor needs one",
                          caller.function, outputs.size(), grad_outputs.size(), caller.gradients));
  std::vector<Edge> roots, captures;
  std::vector<Tensor> grads;
  for (size_t i = 0; i < outputs.size(); ++i) {
    TENON_CHECK(outputs[i].defined(), Type, fmt::format("{}: output {} is undefined", caller.function, i));
    roots.push_back(gradient_edge(outputs[i]));
    TENON_CHECK(roots.back(), Runtime,
                fmt::format("{}: element {} of tensors does not require grad and does not have a grad_fn",
                            caller.function, i));
    grads.push_back(root_gradient(caller, i, outputs[i], grad_outputs.empty() ? Tensor() : grad_outputs[i]));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    TENON_CHECK(inputs[i].defined(), Type, fmt::format("{}: input {} is undefined", caller.function, i));
    captures.push_back(gradient_edge(inputs[i]));
    TENON_CHECK(captures.back(), Runtime,
                fmt::format("{}: One of the differentiated Tensors does not require grad: input {}, {} {}",
                            caller.function, i, name(inputs[i].dtype()), to_string(inputs[i].sizes())));
  }
  const BackwardOptions options{.retain_graph = retain_graph.value_or(create_graph),
                                .create_graph = create_graph,
                                .accumulate = caller.accumulate};
  return run_backward(roots, grads, captures, options);
}

}  // namespace

void backward(TensorList outputs, TensorList grad_outputs, std::optional<bool> retain_graph,
              bool create_graph, TensorList inputs) {
  for (const Tensor& input : inputs) {
    if (input.defined() && !input.is_leaf()) input.retain_grad();
  }
  run(kBackward, outputs, grad_outputs, inputs, retain_graph, create_graph);
}

std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList grad_outputs,
                         std::optional<bool> retain_graph, bool create_graph, bool allow_unused) {
  TENON_CHECK(!inputs.empty(), Value, "grad: `inputs` is empty");
  std::vector<Tensor> grads = run(kGrad, outputs, grad_outputs, inputs, retain_graph, create_graph);
  for (size_t i = 0; i < grads.size(); ++i) {
    TENON_CHECK(
        allow_unused || grads[i].defined(), Runtime,
        fmt::format("grad: input {}, {} {}, has no part in the outputs. One of the differentiated Tensors "
                    "appears to not have been used in the graph. Set allow_unused=True if this is the "
                    "desired behavior.",
                    i, name(inputs[i].dtype()), to_string(inputs[i].sizes())));
  }
  return grads;
}

namespace {

/// Hooks belong to the tensor: they see the gradients of the leaf that it becomes.
void keep_hooks(const Tensor& t, const Edge& history) {
  NodeHooks* hooks = history.node->hooks();
  if (!hooks) return;
  const auto inputs = hooks->copy(hooks->inputs);
  if (std::none_of(inputs.begin(), inputs.end(),
                   [&](const NodeHooks::OfInput& h) { return h.input_nr == history.input_nr; }))
    return;
  hooks->share_with(ensure_accumulator(t).ensure_hooks(), history.input_nr);
}

}  // namespace

void detach_(const Tensor& t) {
  TENON_CHECK(!t.is_view(), Runtime, "Can't detach views in-place. Use detach() instead.");
  TensorImpl& impl = t.checked_impl();
  if (AutogradMeta* meta = meta_of(impl)) {
    if (meta->grad_fn && impl.use_count() > 1) {
      ++meta->history;
      meta->detached = true;
      meta->detached_version = t._version();
    }
    if (meta->grad_fn) keep_hooks(t, meta->grad_fn);
    meta->grad_fn = {};
    meta->requires_grad = meta->retains_grad = false;
    if (meta->late_identity) forget_late_leaf(std::exchange(meta->late_identity, 0));
  }
  impl.set_keys(impl.own_keys() - kAutogradKeys);
}

namespace {

template <class List, class Entry>
HookHandle add_hook(Node& node, List NodeHooks::*list, Entry entry) {
  NodeHooks& hooks = node.ensure_hooks();
  const uint64_t id = entry.id;
  const std::lock_guard lock(hooks.mutex);
  (hooks.*list).push_back(std::move(entry));
  return {IntrusivePtr<NodeHooks>::share(&hooks), id};
}

}  // namespace

HookHandle register_hook(const Tensor& t, TensorHook hook) {
  const Edge edge = gradient_edge(t);
  TENON_CHECK(edge, Runtime, "cannot register a hook on a tensor that doesn't require gradient");
  return add_hook(*edge.node, &NodeHooks::inputs,
                  NodeHooks::OfInput{NodeHooks::next_id(), edge.input_nr, std::move(hook)});
}

namespace {

void check_has_accumulator(const Tensor& t) {
  TENON_CHECK(t.requires_grad(), Runtime, "cannot register a hook on a tensor that doesn't require gradient");
  TENON_CHECK(t.is_leaf(), Runtime, "post accumulate grad hooks cannot be registered on non-leaf tensors");
}

}  // namespace

HookHandle register_post_accumulate_grad_hook(const Tensor& t, std::function<void()> hook) {
  check_has_accumulator(t);
  return add_hook(*gradient_edge(t).node, &NodeHooks::leaf,
                  NodeHooks::Entry<std::function<void()>>{NodeHooks::next_id(), std::move(hook)});
}

HookHandle register_post_accumulate_grad_hook(const Tensor& t, LeafHook hook) {
  check_has_accumulator(t);
  const AutogradMeta& meta = *meta_of(*t.impl());
  return register_post_accumulate_grad_hook(
      t, std::function<void()>(LeafCall{.elements = alias_without_history(t),
                                        .slot = meta.slot,
                                        .node = meta.accumulator.get(),
                                        .hook = std::move(hook)}));
}

void LeafCall::operator()() const {
  const Tensor leaf = alias_without_history(elements);
  AutogradMeta& own = ensure_meta(*leaf.impl());
  own.requires_grad = true;
  own.slot = slot;
  own.accumulator = IntrusivePtr<Node>::share(node);
  leaf.impl()->set_keys(leaf.impl()->own_keys() | kAutogradKeys);
  hook(leaf);
}

KeptNodes nodes_kept_by(const TensorImpl& impl) noexcept {
  const AutogradMeta* meta = meta_of(impl);
  if (!meta) return {};
  return {.grad_fn = meta->grad_fn.node.get(), .accumulator = meta->accumulator.get()};
}

HookHandle register_prehook(Node& node, NodePreHook hook) {
  return add_hook(node, &NodeHooks::before,
                  NodeHooks::Entry<NodePreHook>{NodeHooks::next_id(), std::move(hook)});
}
HookHandle register_posthook(Node& node, NodePostHook hook) {
  return add_hook(node, &NodeHooks::after,
                  NodeHooks::Entry<NodePostHook>{NodeHooks::next_id(), std::move(hook)});
}

}  // namespace tenon::autograd

namespace tenon {

void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph) const {
  autograd::backward({this, 1}, {&gradient, 1}, retain_graph, create_graph);
}

}  // namespace tenon
