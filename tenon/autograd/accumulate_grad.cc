#include "tenon/autograd/accumulate_grad.h"

#include "tenon/autograd/autograd_meta.h"
#include "tenon/autograd/pass_streams.h"
#include "tenon/core/thread_state.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/copy/functions.h"

namespace tenon::autograd {
namespace {

class AccumulateGrad final : public Node {
 public:
  AccumulateGrad(const Tensor& leaf, IntrusivePtr<GradSlot> slot)
      : Node(RunsFirst{}), slot_(std::move(slot)) {
    add_input(TensorMeta(leaf));
  }

  std::string_view name() const noexcept final { return "AccumulateGrad"; }

  void apply(NodeCall& call) final {
    // The leaf was destroyed, so the sum cannot be read.
    if (!call.grads[0].defined() || slot_->use_count() == 1 || !slot_->wanted) return;
    accumulate(*slot_, std::move(call.grads[0]));
  }

 private:
  IntrusivePtr<GradSlot> slot_;
};

// These elements have no other owner, and each has a place of its own.
bool is_sole_owner(const Tensor& t) {
  if (t.use_count() != 1 || !t.is_contiguous()) return false;
  // A view of a tensor with no other owner is as good: the two hold the storage.
  const auto& base = t.impl()->base();
  if (!base) return t.storage().use_count() == 1;
  return base->use_count() == 1 && t.storage().use_count() == 2 && t.storage().nbytes() == t.nbytes();
}

}  // namespace

IntrusivePtr<Node> make_accumulate_grad(const Tensor& leaf, IntrusivePtr<GradSlot> slot) {
  return IntrusivePtr<Node>::adopt(new AccumulateGrad(leaf, std::move(slot)));
}

namespace {

/// Passes of several threads, each in a stream of its own, may add to one gradient.
void go_on_in_current_stream(const Tensor& kept, Stream stream) {
  const Stream here = current_stream(kept.device());
  if (here == stream || here.device != stream.device) return;
  Event computed(here.device);
  computed.record(stream);
  computed.wait(here);
  note_use(kept, here);
}

/// `own`: only the slot needs `grad` and the tensor that it holds.
void add_to(GradSlot& slot, Tensor grad, bool own) {
  // Taken out while it is added to: operators may run anything, also code that reads this very gradient.
  Tensor kept;
  Stream stream;
  const auto take = [&] {
    const GradSlotLock lock(slot);
    kept = std::move(slot.grad);
    stream = slot.stream;
  };
  take();
  for (;;) {
    if (kept.defined()) {
      if (!kept.device().is_cpu()) go_on_in_current_stream(kept, stream);
      if (thread_state.grad_enabled || !own)
        grad = tenon::add(kept, grad);
      else
        grad = kept.add_(grad);
    } else if (!own || !is_sole_owner(grad)) {
      grad = tenon::clone(grad);
    } else if (!thread_state.grad_enabled) {
      grad = alias_without_history(grad);
    }
    const GradSlotLock lock(slot);
    if (!slot.grad.defined()) {
      if (!grad.device().is_cpu()) slot.stream = current_stream(grad.device());
      slot.grad = std::move(grad);
      return;
    }
    // Another thread has put its own there meanwhile.
    kept = std::move(slot.grad);
    stream = slot.stream;
  }
}

}  // namespace

void accumulate(GradSlot& slot, Tensor grad) { add_to(slot, std::move(grad), true); }

void keep_copy(GradSlot& slot, const Tensor& grad) { add_to(slot, grad, false); }

}  // namespace tenon::autograd
