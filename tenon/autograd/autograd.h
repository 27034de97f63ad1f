// Reverse-mode differentiation for users: backward and grad, and what a hook needs.
// Tensor's own methods (requires_grad_, backward, grad, detach, ...) are in core/tensor.h.
#pragma once

#include "tenon/autograd/hooks.h"
#include "tenon/autograd/node.h"
#include "tenon/core/thread_state.h"

namespace tenon::autograd {

/// Adds the gradients of `outputs` to `.grad` of every leaf that they depend on, or only of `inputs` where
/// those are given. `grad_outputs[i]` has the shape of output i; an undefined one (or an empty list) means 1,
/// for outputs of one element. `retain_graph` (default: `create_graph`) keeps the graph for another pass;
/// `create_graph` records the pass. A leaf's `.grad` made with `create_graph` refers to the graph that leads
/// to the leaf: clear it with `set_grad({})`, or use `grad`, or neither is ever freed. Throws Error{Runtime}
/// for an output without history, a gradient of another shape, or a freed graph.
void backward(TensorList outputs, TensorList grad_outputs = {}, std::optional<bool> retain_graph = {},
              bool create_graph = false, TensorList inputs = {});

/// The gradients of `outputs` by `inputs`, and no change to any `.grad`. An input that the outputs do not
/// depend on gives an undefined tensor with `allow_unused`, and throws Error{Runtime} otherwise.
std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList grad_outputs = {},
                         std::optional<bool> retain_graph = {}, bool create_graph = false,
                         bool allow_unused = false);

inline bool is_grad_enabled() noexcept { return thread_state.grad_enabled; }
inline void set_grad_enabled(bool on) noexcept { thread_state.grad_enabled = on; }

/// Where the gradient of `t` goes: the node that made it, or a leaf's AccumulateGrad; no node for a tensor
/// that takes no part.
Edge gradient_edge(const Tensor& t);

/// Makes `t`, computed outside a recorded call, result `output_nr` of `node`, as custom functions do.
void set_history(const Tensor& t, Edge from);

/// The nodes that a tensor itself keeps alive: the one that made it, and a leaf's AccumulateGrad; null where
/// there is none. For a binding's collector of cycles.
struct KeptNodes {
  const Node* grad_fn = nullptr;
  const Node* accumulator = nullptr;
};
KeptNodes nodes_kept_by(const TensorImpl& impl) noexcept;

/// Cuts `t` from the graph in place: it becomes a leaf that does not require grad. Throws Error{Runtime} for
/// a view.
void detach_(const Tensor& t);

/// Calls `hook` with the gradient of `t` whenever a backward pass has completed it; what it returns, of the
/// same shape, dtype and device, replaces the gradient. A tensor written in place later keeps the hook on
/// what it was. Throws Error{Runtime} for a tensor that does not require grad.
HookHandle register_hook(const Tensor& t, TensorHook hook);
/// Calls `hook` whenever `.grad` of a leaf has been added to. It gets a tensor with the leaf's elements,
/// history and `.grad`. Throws Error{Runtime} for a tensor that is no leaf or does not require grad.
HookHandle register_post_accumulate_grad_hook(const Tensor& t, LeafHook hook);
/// The same without a tensor, for bindings, which know their own object of the leaf.
HookHandle register_post_accumulate_grad_hook(const Tensor& t, std::function<void()> hook);

/// Calls `hook` before a node runs, or after it has run.
HookHandle register_prehook(Node& node, NodePreHook hook);
HookHandle register_posthook(Node& node, NodePostHook hook);

}  // namespace tenon::autograd
