#include "tenon/autograd/autograd_meta.h"

#include <fmt/core.h>

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "tenon/autograd/accumulate_grad.h"
#include "tenon/autograd/strided.h"
#include "tenon/core/thread_state.h"

namespace tenon::autograd {
namespace {

// Renewing a view's history happens while reading it, so readers on several threads must agree.
std::mutex& renewal_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// Takes back what `retain` asked of a node.
void forget(Node& node, const GradSlot& slot) {
  NodeHooks& hooks = node.ensure_hooks();
  const std::lock_guard lock(hooks.mutex);
  std::erase_if(hooks.retained, [&](const auto& r) { return r.slot.get() == &slot; });
}

void renew_view(const Tensor& t) {
  const std::lock_guard lock(renewal_mutex());
  TensorImpl& impl = *t.impl();
  if (!is_outdated_view(impl)) return;
  AutogradMeta& meta = ensure_meta(impl);
  const Tensor base(impl.base());
  AutogradMeta& of_base = *meta_of(*base.impl());
  if (!requires_grad(*base.impl())) {
    meta.grad_fn = {};
    meta.base_history = of_base.history;
    return;
  }
  if (meta.creation == ViewCreation::OfLeaf)
    meta.creation = ViewCreation::Default;
  else if (meta.creation != ViewCreation::Default)
    refuse_view(meta, false);
  if (meta.retains_grad && meta.grad_fn) forget(*meta.grad_fn.node, *meta.slot);
  meta.grad_fn = {make_strided_view_node(base, t), 0};
  if (meta.retains_grad) retain(*meta.grad_fn.node, 0, meta.slot);
  meta.base_history = of_base.history;
  impl.set_keys(impl.own_keys() | kAutogradKeys);
}

/// Few tensors, if any, are here.
struct LateLeaves {
  std::mutex mutex;
  std::unordered_map<uint32_t, Node*> accumulators;
  std::atomic<size_t> count{0};
};
LateLeaves& late_leaves() {
  static LateLeaves& leaves = *new LateLeaves;
  return leaves;
}

}  // namespace

void note_late_leaf(uint32_t identity, Node& accumulator) {
  LateLeaves& leaves = late_leaves();
  const std::lock_guard lock(leaves.mutex);
  leaves.accumulators[identity] = &accumulator;
  leaves.count.store(leaves.accumulators.size(), std::memory_order_relaxed);
}

void forget_late_leaf(uint32_t identity) noexcept {
  LateLeaves& leaves = late_leaves();
  const std::lock_guard lock(leaves.mutex);
  leaves.accumulators.erase(identity);
  leaves.count.store(leaves.accumulators.size(), std::memory_order_relaxed);
}

IntrusivePtr<Node> late_leaf(uint32_t identity) {
  LateLeaves& leaves = late_leaves();
  if (leaves.count.load(std::memory_order_relaxed) == 0) return {};
  const std::lock_guard lock(leaves.mutex);
  const auto found = leaves.accumulators.find(identity);
  // The leaf's AutogradMeta owns the node, and waits for the lock before it lets go.
  return found == leaves.accumulators.end() ? nullptr : IntrusivePtr<Node>::share(found->second);
}

void AutogradMeta::header_changed(const TensorImpl& tensor) {
  if (accumulator)
    accumulator->set_input_meta(0, TensorMeta(tensor.sizes(), tensor.dtype(), tensor.device()));
}

AutogradMeta& ensure_meta(TensorImpl& impl) {
  if (!impl.autograd_meta()) impl.set_autograd_meta(std::make_unique<AutogradMeta>());
  return *meta_of(impl);
}

bool requires_grad(const TensorImpl& impl) noexcept {
  if (is_outdated_view(impl)) [[unlikely]]
    return requires_grad(*impl.base());
  const AutogradMeta* meta = meta_of(impl);
  return meta && (meta->grad_fn || meta->requires_grad);
}

Edge gradient_edge(const Tensor& t) {
  if (is_outdated_view(t.checked_impl())) [[unlikely]]
    renew_view(t);
  AutogradMeta* meta = meta_of(*t.impl());
  if (!meta) return {};
  if (meta->grad_fn) return meta->grad_fn;
  if (!meta->requires_grad) return {};
  return {meta->accumulator, 0};
}

void set_history(const Tensor& t, Edge from) {
  TensorImpl& impl = *t.impl();
  AutogradMeta& meta = ensure_meta(impl);
  meta.grad_fn = std::move(from);
  if (impl.base()) [[unlikely]] {
    const AutogradMeta* base = meta_of(*impl.base());
    meta.base_history = base ? base->history : 0;
  }
  impl.set_keys(impl.own_keys() | kAutogradKeys);
}

void replace_history(const Tensor& t, Edge from) {
  AutogradMeta& meta = ensure_meta(*t.impl());
  ++meta.history;
  meta.detached = false;
  if (NodeHooks* hooks = meta.accumulator ? meta.accumulator->hooks() : nullptr) hooks->clear_inputs();
  if (meta.retains_grad && meta.slot) {
    // The gradient that was asked for is that of the tensor as it is now.
    if (meta.grad_fn) forget(*meta.grad_fn.node, *meta.slot);
    const uint32_t nr = from.input_nr;
    retain(*from.node, nr, meta.slot);
  }
  set_history(t, std::move(from));
}

void retain(Node& node, uint32_t input_nr, IntrusivePtr<GradSlot> slot) {
  NodeHooks& hooks = node.ensure_hooks();
  const std::lock_guard lock(hooks.mutex);
  hooks.retained.push_back({input_nr, std::move(slot)});
}

Node& ensure_accumulator(const Tensor& t) {
  AutogradMeta& meta = ensure_meta(*t.impl());
  if (!meta.accumulator) {
    if (!meta.slot) meta.slot = IntrusivePtr<GradSlot>::adopt(new GradSlot);
    meta.accumulator = make_accumulate_grad(t, meta.slot);
  }
  return *meta.accumulator;
}

Tensor alias_without_history(const Tensor& t) { return Tensor(t.impl()->alias(nullptr)); }

void refuse_view(const AutogradMeta& view, bool written_through) {
  const char* what = written_through ? "is being modified inplace"
                                     : "its base or another view of its base has been modified inplace";
  const std::string subject = view.grad_fn ? fmt::format("Output {} of {} is a view and",
                                                         view.grad_fn.input_nr, view.grad_fn.node->name())
                                           : "A view";
  switch (view.creation) {
    case ViewCreation::MultiOutput:
      throw_error(
          ErrorKind::Runtime,
          fmt::format(
              "{} {}. This view is the output of a function that returns multiple views. Such "
              "functions do not allow the output views to be modified inplace. You should replace the "
              "inplace operation by an out-of-place one.",
              subject, what));
    case ViewCreation::CustomFunction:
      throw_error(
          ErrorKind::Runtime,
          fmt::format(
              "{} {}. This view was created inside a custom Function (or because an input was returned "
              "as-is) "
              "and the autograd logic to handle view+inplace would override the custom backward associated "
              "with the custom Function, leading to incorrect gradients. This behavior is forbidden. You can "
              "fix this by cloning the output of the custom Function.",
              subject, what));
    case ViewCreation::OfLeaf:
      throw_error(ErrorKind::Runtime,
                  "a view of a leaf Variable that requires grad is being used in an in-place operation.");
    case ViewCreation::InferenceMode:
      throw_error(ErrorKind::Runtime,
                  fmt::format("A view was created in inference mode and {} in normal mode. Create "
                              "the view outside inference mode, or clone it first.",
                              what));
    default:
      throw_error(
          ErrorKind::Runtime,
          fmt::format(
              "A view was created in no_grad mode and {} with grad mode enabled. Given that this use "
              "case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving "
              "both the view and the inplace either both inside the no_grad block (if you don't want "
              "the inplace to be tracked) or both outside (if you want the inplace to be tracked).",
              what));
  }
}

void check_in_place(const Tensor& t) {
  const TensorImpl& impl = *t.impl();
  const AutogradMeta* meta = meta_of(impl);
  if (impl.is_inference() && !thread_state.inference_mode) {
    // A view that was made in inference mode, of a tensor that was not.
    if (impl.base() && !impl.base()->is_inference()) {
      AutogradMeta view;
      view.creation = ViewCreation::InferenceMode;
      refuse_view(view, true);
    }
    throw_error(
        ErrorKind::Runtime,
        "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone "
        "to get a normal tensor before doing inplace update.");
  }
  if (impl.base() || (meta && meta->creation != ViewCreation::Default)) {
    if (meta && meta->creation != ViewCreation::Default) refuse_view(*meta, true);
    const AutogradMeta* base = meta_of(*impl.base());
    TENON_CHECK(
        !(outlives_detached_base(impl) && requires_grad(impl)), Runtime,
        "a view whose base was detached in place after it was made is being used in an in-place operation; "
        "the base has no history that the write could become part of. Clone the view first.");
    TENON_CHECK(!(base && base->requires_grad && !base->grad_fn), Runtime,
                "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  }
  TENON_CHECK(!(meta && meta->requires_grad && !meta->grad_fn && !is_outdated_view(impl)), Runtime,
              "a leaf Variable that requires grad is being used in an in-place operation.");
}

}  // namespace tenon::autograd

namespace tenon {

using autograd::AutogradMeta;
using autograd::ensure_meta;
using autograd::GradSlot;
using autograd::meta_of;

bool Tensor::requires_grad() const { return impl_ && autograd::requires_grad(*impl_); }

Tensor& Tensor::requires_grad_(bool on) {
  TensorImpl& impl = checked_impl();
  const AutogradMeta* meta = meta_of(impl);
  const bool leaf = is_leaf();
  TENON_CHECK(leaf || on, Runtime,
              "you can only change requires_grad flags of leaf variables. If you want to use a computed "
              "variable in a "
              "subgraph that doesn't require differentiation use var_no_grad = var.detach().");
  if (!leaf || on == (meta && meta->requires_grad)) return *this;
  TENON_CHECK(
      !on || autograd::is_differentiable(dtype()), Runtime,
      fmt::format(
          "requires_grad_: only tensors of floating point and complex dtype can require gradients, got {}",
          name(dtype())));
  TENON_CHECK(!on || !impl.is_inference() || thread_state.inference_mode, Runtime,
              "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  AutogradMeta& own = ensure_meta(impl);
  own.grad_fn = {};  // that of a view whose base was detached since
  own.requires_grad = on;
  if (impl.base()) {
    const AutogradMeta* base = meta_of(*impl.base());
    own.base_history = base ? base->history : 0;
  }
  if (own.slot) own.slot->wanted = on;
  if (on) autograd::ensure_accumulator(*this);
  if (on && impl.known_identity() != 0) {
    own.late_identity = impl.known_identity();
    autograd::note_late_leaf(own.late_identity, *own.accumulator);
  } else if (own.late_identity) {
    autograd::forget_late_leaf(std::exchange(own.late_identity, 0));
  }
  const auto keys = impl.own_keys();
  impl.set_keys(on ? keys | kAutogradKeys : keys - kAutogradKeys);
  return *this;
}

bool Tensor::is_leaf() const {
  const TensorImpl& impl = checked_impl();
  // The history of an outdated view is its base's, which may have none.
  if (autograd::is_outdated_view(impl)) return !autograd::requires_grad(*impl.base());
  const AutogradMeta* meta = meta_of(impl);
  return !(meta && meta->grad_fn);
}

Tensor Tensor::grad() const {
  const AutogradMeta* meta = meta_of(checked_impl());
  if (!meta || !meta->slot) return {};
  const autograd::GradSlotLock lock(*meta->slot);
  return meta->slot->grad;
}

void Tensor::set_grad(Tensor grad) {
  if (grad.defined()) {
    TENON_CHECK(grad.sizes() == sizes(), Shape,
                fmt::format("grad: assigned a gradient of shape {} to a tensor of shape {}",
                            to_string(grad.sizes()), to_string(sizes())));
    TENON_CHECK(grad.dtype() == dtype(), Type,
                fmt::format("grad: assigned a gradient of dtype {} to a tensor of dtype {}",
                            name(grad.dtype()), name(dtype())));
    TENON_CHECK(grad.device() == device(), Device,
                fmt::format("grad: assigned a gradient on {} to a tensor on {}",
                            tenon::to_string(grad.device()), tenon::to_string(device())));
    TENON_CHECK(!grad.is_same(*this), Runtime, "grad: a tensor cannot be its own gradient");
  } else if (!meta_of(checked_impl())) {
    return;
  }
  AutogradMeta& meta = ensure_meta(checked_impl());
  if (!meta.slot) meta.slot = IntrusivePtr<GradSlot>::adopt(new GradSlot);
  // The old gradient may be the last owner of a graph: free it outside the lock.
  const autograd::GradSlotLock lock(*meta.slot);
  std::swap(meta.slot->grad, grad);
}

IntrusivePtr<Node> Tensor::grad_fn() const {
  if (is_leaf()) return nullptr;
  return autograd::gradient_edge(*this).node;
}

uint32_t Tensor::output_nr() const { return is_leaf() ? 0 : autograd::gradient_edge(*this).input_nr; }

void Tensor::retain_grad() const {
  TENON_CHECK(requires_grad(), Runtime, "can't retain_grad on Tensor that has requires_grad=False");
  if (is_leaf()) return;
  const Edge edge = autograd::gradient_edge(*this);
  AutogradMeta& meta = *meta_of(checked_impl());
  if (meta.retains_grad) return;
  meta.retains_grad = true;
  if (!meta.slot) meta.slot = IntrusivePtr<GradSlot>::adopt(new GradSlot);
  autograd::retain(*edge.node, edge.input_nr, meta.slot);
}

}  // namespace tenon
