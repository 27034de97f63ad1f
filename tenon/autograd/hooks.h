// GradSlot and NodeHooks: what happens to a gradient on its way into a node: user hooks, and keeping it.
// Used by the engine, by AutogradMeta and by bindings.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "tenon/core/tensor.h"

namespace tenon::autograd {

/// A tensor's `.grad`, shared by the tensor and by the node that fills it, so that neither needs to keep the
/// other.
struct GradSlot final : RefCounted {
  static void destroy(GradSlot* slot) noexcept { delete slot; }

  Tensor grad;
  std::atomic_flag busy;
};

/// Holds a slot against other threads.
class GradSlotLock {
 public:
  explicit GradSlotLock(GradSlot& slot) noexcept : slot_(slot) {
    while (slot_.busy.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  ~GradSlotLock() { slot_.busy.clear(std::memory_order_release); }
  GradSlotLock(const GradSlotLock&) = delete;

 private:
  GradSlot& slot_;
};

/// Sees a gradient; what it returns replaces it, unless undefined.
using TensorHook = std::function<Tensor(const Tensor& grad)>;

struct NodeHooks {
  struct Hook {
    uint64_t id;
    uint32_t input_nr;
    TensorHook call;
  };
  struct Retained {
    uint32_t input_nr;
    IntrusivePtr<GradSlot> slot;
  };
  /// Run in order, once the gradient of the input is complete.
  std::vector<Hook> hooks;
  /// Results that asked for `retain_grad`.
  std::vector<Retained> retained;
};

}  // namespace tenon::autograd
