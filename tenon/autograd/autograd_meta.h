// AutogradMeta: what autograd keeps for one tensor, and the few operations on it that recording and nodes
// share. Used inside this room only; everybody else asks through Tensor's methods or autograd.h.
#pragma once

#include "tenon/autograd/hooks.h"
#include "tenon/autograd/node.h"
#include "tenon/core/tensor.h"

namespace tenon::autograd {

/// How a view came to be, where that forbids writing through it later.
/// OfLeaf: of a leaf that requires grad and is itself a view, so that the base does not tell.
enum class ViewCreation : uint8_t { Default, NoGrad, InferenceMode, MultiOutput, CustomFunction, OfLeaf };

/// Leaves that began to require grad after a node had saved them, by identity: `late_leaf` gives the node
/// that adds to such a leaf's gradient, and null for any other tensor, also for a leaf that is gone.
void note_late_leaf(uint32_t identity, Node& accumulator);
void forget_late_leaf(uint32_t identity) noexcept;
IntrusivePtr<Node> late_leaf(uint32_t identity);

struct AutogradMeta final : AutogradMetaBase {
  /// Who made the tensor; empty for a leaf.
  Edge grad_fn;
  /// Asked for by the user; leaves only.
  bool requires_grad = false;
  bool retains_grad = false;
  /// Detached in place by the latest change of history. Views from before keep the one they had until
  /// somebody writes: until the storage has another version than `detached_version`.
  bool detached = false;
  ViewCreation creation = ViewCreation::Default;
  /// How often an in-place write, or detach_, has given this tensor another history. A view compares it to
  /// `base_history`, the count of its base when its own `grad_fn` was made.
  uint32_t history = 0;
  uint32_t base_history = 0;
  uint64_t detached_version = 0;
  /// `.grad`, shared with the node that fills it.
  IntrusivePtr<GradSlot> slot;
  /// The node that adds to the slot; made with the leaf's first wish for a gradient.
  IntrusivePtr<Node> accumulator;
  /// The tensor's TensorImpl::identity, where a node had saved it before it became a leaf that requires grad.
  uint32_t late_identity = 0;

  AutogradMeta() = default;
  AutogradMeta(const AutogradMeta&) = delete;
  ~AutogradMeta() override {
    if (late_identity) forget_late_leaf(late_identity);
  }

  static void* operator new(size_t nbytes) { return Node::operator new(nbytes); }
  static void operator delete(void* p, size_t nbytes) noexcept { Node::operator delete(p, nbytes); }
};

inline AutogradMeta* meta_of(const TensorImpl& impl) noexcept {
  return static_cast<AutogradMeta*>(impl.autograd_meta());
}
AutogradMeta& ensure_meta(TensorImpl& impl);

/// Whether the tensor has history, or is a leaf that wants a gradient.
bool requires_grad(const TensorImpl& impl) noexcept;
/// A view that kept its history when its base was detached, and that nobody has written to since.
inline bool outlives_detached_base(const TensorImpl& impl) noexcept {
  const AutogradMeta* base = impl.base() ? meta_of(*impl.base()) : nullptr;
  if (!base || !base->detached || impl.storage().version() != base->detached_version) return false;
  const AutogradMeta* own = meta_of(impl);
  return base->history == (own ? own->base_history : 0) + 1;
}
/// A view whose base was given another history after the view's own was made.
inline bool is_outdated_view(const TensorImpl& impl) noexcept {
  if (!impl.base()) [[likely]]
    return false;
  const AutogradMeta* base = meta_of(*impl.base());
  if (!base || base->history == 0) return false;
  const AutogradMeta* own = meta_of(impl);
  return base->history != (own ? own->base_history : 0) && !outlives_detached_base(impl);
}
/// Where the gradient of `t` goes: into the node that made it, into a leaf's accumulator, or nowhere.
/// Renews the history of an outdated view. Throws Error{Runtime} for a view that must not have one.
Edge gradient_edge(const Tensor& t);

/// Makes `t`, just computed, a result of `from`, taking part in autograd.
void set_history(const Tensor& t, Edge from);
/// The same after an in-place write: `t` forgets the history it had, and so do views of it.
void replace_history(const Tensor& t, Edge from);

/// Keeps the gradients that arrive at an input of `node` in `slot`.
void retain(Node& node, uint32_t input_nr, IntrusivePtr<GradSlot> slot);

/// Another tensor over the same elements, without history and without a base.
Tensor alias_without_history(const Tensor& t);

/// Throws Error{Runtime} unless `t` may be written in place while history is recorded.
void check_in_place(const Tensor& t);
[[noreturn]] void refuse_view(const AutogradMeta& view, bool written_through);

constexpr bool is_differentiable(DType t) noexcept { return is_floating_point(t) || is_complex(t); }

}  // namespace tenon::autograd
