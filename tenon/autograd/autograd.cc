#include "tenon/autograd/autograd.h"

#include <fmt/core.h>

#include <algorithm>

#include "tenon/autograd/autograd_meta.h"
#include "tenon/autograd/engine.h"
#include "tenon/generated/factory/functions.h"

namespace tenon::autograd {
namespace {

Tensor root_gradient(const Tensor& output, const Tensor& given) {
  if (!given.defined()) {
    TENON_CHECK(output.numel() == 1, Runtime, "grad can be implicitly created only for scalar outputs");
    TENON_CHECK(is_floating_point(output.dtype()), Runtime,
                fmt::format("grad can be implicitly created only for real scalar outputs but got {}",
                            tenon::name(output.dtype())));
    const NoGradGuard no_grad;
    return tenon::ones_like(output);
  }
  TENON_CHECK(
      given.sizes() == output.sizes(), Runtime,
      fmt::format("Mismatch in shape: the gradient has a shape of {} and the output has a shape of {}",
                  to_string(given.sizes()), to_string(output.sizes())));
  TENON_CHECK(
      given.is_complex() == output.is_complex(), Runtime,
      fmt::format(
          "Mismatch in dtype: the gradient is {} and the output is {}; both must be complex or both real",
          name(given.dtype()), name(output.dtype())));
  TENON_CHECK(given.device() == output.device(), Device,
              fmt::format("backward: the gradient is on {}, the output on {}", to_string(given.device()),
                          to_string(output.device())));
  return given.dtype() == output.dtype() ? given : given.to(output.dtype());
}

std::vector<Tensor> run(TensorList outputs, TensorList grad_outputs, TensorList inputs,
                        std::optional<bool> retain_graph, bool create_graph, bool accumulate) {
  TENON_CHECK(grad_outputs.empty() || grad_outputs.size() == outputs.size(), Runtime,
              fmt::format("got {} tensors and {} gradients", outputs.size(), grad_outputs.size()));
  std::vector<Edge> roots, captures;
  std::vector<Tensor> grads;
  for (size_t i = 0; i < outputs.size(); ++i) {
    TENON_CHECK(outputs[i].defined(), Type, fmt::format("backward: output {} is undefined", i));
    roots.push_back(gradient_edge(outputs[i]));
    TENON_CHECK(roots.back(), Runtime,
                fmt::format("element {} of tensors does not require grad and does not have a grad_fn", i));
    grads.push_back(root_gradient(outputs[i], grad_outputs.empty() ? Tensor() : grad_outputs[i]));
  }
  for (const Tensor& input : inputs) {
    TENON_CHECK(input.defined(), Type, "grad: an input is undefined");
    captures.push_back(gradient_edge(input));
    TENON_CHECK(captures.back(), Runtime, "One of the differentiated Tensors does not require grad");
  }
  const BackwardOptions options{.retain_graph = retain_graph.value_or(create_graph),
                                .create_graph = create_graph,
                                .accumulate = accumulate};
  return run_backward(roots, grads, captures, options);
}

}  // namespace

void backward(TensorList outputs, TensorList grad_outputs, std::optional<bool> retain_graph,
              bool create_graph, TensorList inputs) {
  for (const Tensor& input : inputs) {
    if (input.defined() && !input.is_leaf()) input.retain_grad();
  }
  run(outputs, grad_outputs, inputs, retain_graph, create_graph, true);
}

std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList grad_outputs,
                         std::optional<bool> retain_graph, bool create_graph, bool allow_unused) {
  TENON_CHECK(!inputs.empty(), Value, "grad: `inputs` is empty");
  std::vector<Tensor> grads = run(outputs, grad_outputs, inputs, retain_graph, create_graph, false);
  for (const Tensor& g : grads) {
    TENON_CHECK(allow_unused || g.defined(), Runtime,
                "One of the differentiated Tensors appears to not have been used in the graph. Set "
                "allow_unused=True if "
                "this is the desired behavior.");
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
