// AutogradMeta: what autograd keeps for one tensor, and the operations on it that recording and nodes share.
// Used inside tenon/autograd only; other code uses Tensor's methods or autograd.h.
#pragma once

#include "tenon/autograd/hooks.h"
#include "tenon/autograd/node.h"
#include "tenon/core/tensor.h"

namespace tenon::autograd {

/// How a view was made, if that forbids writing through it later. OfLeaf is a view of a leaf that requires
/// grad and is itself a view, which the base alone does not show.
enum class ViewCreation : uint8_t { Default, NoGrad, InferenceMode, MultiOutput, CustomFunction, OfLeaf };

/// Leaves that began to require grad after a node had saved them, by identity. `late_leaf` returns the node
/// that adds to such a leaf's gradient; null for any other tensor, and for a leaf that was destroyed.
void note_late_leaf(uint32_t identity, Node& accumulator);
void forget_late_leaf(uint32_t identity) noexcept;
IntrusivePtr<Node> late_leaf(uint32_t identity);

struct AutogradMeta final : AutogradMetaBase {
  /// The node that made the tensor; empty for a leaf.
  Edge grad_fn;
  /// Whether the user asked for a gradient; leaves only.
  bool requires_grad = false;
  bool retains_grad = false;
  /// Whether the latest change of history was detach_. Views made before it keep their history until the next
  /// write, that is, as long as the storage's version is `detached_version`.
  bool detached = false;
  ViewCreation creation = ViewCreation::Default;
  /// How often an in-place write or detach_ has replaced this tensor's history. A view compares its base's
  /// count with `base_history`, the count at the time when the view's own `grad_fn` was made.
  uint32_t history = 0;
  uint32_t base_history = 0;
  uint64_t detached_version = 0;
  /// `.grad`, shared with the node that fills it.
  IntrusivePtr<GradSlot> slot;
  /// The node that adds to the slot; made when the leaf first needs it.
  IntrusivePtr<Node> accumulator;
  /// The tensor's TensorImpl::identity, if a node had saved the tensor before it became a leaf that requires
  /// grad.
  uint32_t late_identity = 0;

  AutogradMeta() = default;
  AutogradMeta(const AutogradMeta&) = delete;
  ~AutogradMeta() override {
    if (late_identity) forget_late_leaf(late_identity);
  }

  /// The gradient of a leaf has the shape and dtype that the leaf has now.
  void header_changed(const TensorImpl& tensor) override;

  static void* operator new(size_t nbytes) { return Node::operator new(nbytes); }
  static void operator delete(void* p, size_t nbytes) noexcept { Node::operator delete(p, nbytes); }
};

inline AutogradMeta* meta_of(const TensorImpl& impl) noexcept {
  return static_cast<AutogradMeta*>(impl.autograd_meta());
}
AutogradMeta& ensure_meta(TensorImpl& impl);

/// Whether the tensor has history or is a leaf that requires grad.
bool requires_grad(const TensorImpl& impl) noexcept;
/// Whether this is a view that kept its history when its base was detached, and was not written to since.
inline bool outlives_detached_base(const TensorImpl& impl) noexcept {
  const AutogradMeta* base = impl.base() ? meta_of(*impl.base()) : nullptr;
  if (!base || !base->detached || impl.storage().version() != base->detached_version) return false;
  const AutogradMeta* own = meta_of(impl);
  return base->history == (own ? own->base_history : 0) + 1;
}
/// Whether this is a view whose base was given another history after the view's own was made.
inline bool is_outdated_view(const TensorImpl& impl) noexcept {
  if (!impl.base()) [[likely]]
    return false;
  const AutogradMeta* base = meta_of(*impl.base());
  if (!base || base->history == 0) return false;
  const AutogradMeta* own = meta_of(impl);
  return base->history != (own ? own->base_history : 0) && !outlives_detached_base(impl);
}
/// The edge along which the gradient of `t` flows: to the node that made it, to a leaf's accumulator, or
/// nowhere. Makes a new history for an outdated view. Throws Error{Runtime} for a view that must not have
/// one.
Edge gradient_edge(const Tensor& t);

/// Makes `t`, which was just computed, a result of the node in `from`.
void set_history(const Tensor& t, Edge from);
/// As set_history, after an in-place write: replaces the history of `t`, and makes that of its views
/// outdated.
void replace_history(const Tensor& t, Edge from);

/// Stores the gradients that arrive at an input of `node` in `slot`.
void retain(Node& node, uint32_t input_nr, IntrusivePtr<GradSlot> slot);

/// The node that adds to the `.grad` of `t`, made the first time, as leaves that require grad have it.
Node& ensure_accumulator(const Tensor& t);

/// Another tensor over the same elements, without history and without a base.
Tensor alias_without_history(const Tensor& t);

/// Throws Error{Runtime} unless `t` may be written in place while history is recorded.
void check_in_place(const Tensor& t);
[[noreturn]] void refuse_view(const AutogradMeta& view, bool written_through);

constexpr bool is_differentiable(DType t) noexcept { return is_floating_point(t) || is_complex(t); }

}  // namespace tenon::autograd
