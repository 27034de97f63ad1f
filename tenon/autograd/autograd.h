// Reverse-mode differentiation for users: backward, grad and hooks. Tensor's own methods (requires_grad_,
// backward, grad, detach, ...) are in core/tensor.h.
#pragma once

#include "tenon/autograd/hooks.h"
#include "tenon/autograd/node.h"
#include "tenon/core/thread_state.h"

namespace tenon::autograd {

/// Adds the gradients of `outputs` to `.grad` of every leaf that they depend on, or only of `inputs` where
/// those are given. `grad_outputs[i]` has the shape of output i; an undefined one (or an empty list) means 1,
/// for outputs of one element. `retain_graph` (default: `create_graph`) keeps the graph for another pass;
/// `create_graph` records the pass. A `.grad` made with `create_graph` refers to the graph that leads to its
/// leaf, a cycle that is never freed unless you clear it with `set_grad({})`; `grad` makes no such cycle.
/// Throws Error{Runtime} for an output without history, a gradient of another shape, or a freed graph.
void backward(TensorList outputs, TensorList grad_outputs = {}, std::optional<bool> retain_graph = {},
              bool create_graph = false, TensorList inputs = {});

/// The gradients of `outputs` with respect to `inputs`; changes no `.grad`. For an input that the outputs do
/// not depend on, returns an undefined tensor with `allow_unused`, and throws Error{Runtime} without.
std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList grad_outputs = {},
                         std::optional<bool> retain_graph = {}, bool create_graph = false,
                         bool allow_unused = false);

inline bool is_grad_enabled() noexcept { return thread_state.grad_enabled; }
inline void set_grad_enabled(bool on) noexcept { thread_state.grad_enabled = on; }

/// The edge along which the gradient of `t` flows: to the node that made it, or to a leaf's AccumulateGrad.
/// It has no node if the tensor takes no part in autograd.
Edge gradient_edge(const Tensor& t);

/// Makes `t`, which was computed outside a recorded call, a result of the edge's node, as custom functions
/// do.
void set_history(const Tensor& t, Edge from);

/// The nodes that a tensor itself keeps alive: the node that made it, and a leaf's AccumulateGrad; null if
/// there is none. For the garbage collector of a language binding.
struct KeptNodes {
  const Node* grad_fn = nullptr;
  const Node* accumulator = nullptr;
};
KeptNodes nodes_kept_by(const TensorImpl& impl) noexcept;

/// Cuts `t` from the graph in place: it becomes a leaf that does not require grad. Throws Error{Runtime} for
/// a view.
void detach_(const Tensor& t);

/// Calls `hook` with the gradient of `t` whenever a backward pass has completed that gradient. If the hook
/// returns a tensor, which must have the same shape, dtype and device, it replaces the gradient. If `t` is
/// written in place later, the hook stays with the value from before. Throws Error{Runtime} for a tensor that
/// does not require grad.
HookHandle register_hook(const Tensor& t, TensorHook hook);
/// Calls `hook` whenever a backward pass has added to a leaf's `.grad`. The hook gets a tensor with the
/// leaf's elements, history and `.grad`. Throws Error{Runtime} for a tensor that is no leaf or does not
/// require grad.
HookHandle register_post_accumulate_grad_hook(const Tensor& t, LeafHook hook);
/// As above, for a hook that takes no tensor: bindings pass their own object of the leaf.
HookHandle register_post_accumulate_grad_hook(const Tensor& t, std::function<void()> hook);

/// Calls `hook` before a node runs, or after it has run.
HookHandle register_prehook(Node& node, NodePreHook hook);
HookHandle register_posthook(Node& node, NodePostHook hook);

}  // namespace tenon::autograd
