// GradSlot and NodeHooks: what happens to a gradient on its way into a node and out of it: user hooks, and
// keeping it. Used by the engine, by AutogradMeta and by bindings.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "tenon/core/tensor.h"

namespace tenon::autograd {

/// A tensor's `.grad`, shared by the tensor and by the node that fills it, so that neither needs to keep the
/// other.
struct GradSlot final : RefCounted {
  /// A gradient may have a gradient itself, and so on: freed without recursion.
  static void destroy(GradSlot* slot) noexcept;

  Tensor grad;
  GradSlot* next_to_free = nullptr;
  /// Whether the leaf still requires grad; it may have said no since the forward pass.
  std::atomic<bool> wanted{true};
  std::atomic_flag busy;
};

/// Holds a slot against other threads.
class GradSlotLock {
 public:
  explicit GradSlotLock(GradSlot& slot) noexcept : slot_(slot) {
    while (slot_.busy.test_and_set(std::memory_order_acquire)) let_others_run();
  }
  ~GradSlotLock() { slot_.busy.clear(std::memory_order_release); }
  GradSlotLock(const GradSlotLock&) = delete;

 private:
  static void let_others_run() noexcept;

  GradSlot& slot_;
};

/// Sees a gradient; what it returns replaces it, unless undefined.
using TensorHook = std::function<Tensor(const Tensor& grad)>;
/// Sees the gradients that a node is about to run on, undefined ones included, and may replace them.
using NodePreHook = std::function<void(std::vector<Tensor>& grads)>;
/// Sees what a node has computed, one for each of its edges, and may replace it; `grads` is what it ran on.
using NodePostHook = std::function<void(std::vector<Tensor>& results, const std::vector<Tensor>& grads)>;
/// Called when a leaf's `.grad` has been added to.
using LeafHook = std::function<void(const Tensor& leaf)>;

/// A leaf's hook with the parts of the leaf, of which none keeps a node: the leaf owns the node, which owns
/// this.
struct LeafCall {
  /// Makes the leaf afresh and calls the hook.
  void operator()() const;

  Tensor elements;
  IntrusivePtr<GradSlot> slot;
  Node* node;  ///< The one that runs this hook.
  LeafHook hook;
};

/// The hooks of one node. Lists are copied before they run, so that a hook may add and remove hooks.
struct NodeHooks final : RefCounted {
  static void destroy(NodeHooks* hooks) noexcept { delete hooks; }

  template <class F>
  struct Entry {
    uint64_t id;
    F call;
  };
  struct OfInput {
    uint64_t id;
    uint32_t input_nr;
    TensorHook call;
  };
  struct Retained {
    uint32_t input_nr;
    IntrusivePtr<GradSlot> slot;
  };

  std::mutex mutex;
  /// Run in order, once the gradient of the input is complete.
  std::vector<OfInput> inputs;
  /// Results that asked for `retain_grad`.
  std::vector<Retained> retained;
  std::vector<Entry<NodePreHook>> before;
  std::vector<Entry<NodePostHook>> after;
  std::vector<Entry<std::function<void()>>> leaf;

  template <class List>
  List copy(const List& list) {
    const std::lock_guard lock(mutex);
    return list;
  }
  void remove(uint64_t id);
  /// Forgets all hooks: the node is gone.
  void clear();
  static uint64_t next_id() noexcept;
};

/// Takes a hook off again. Does not keep the node.
class HookHandle {
 public:
  HookHandle() = default;
  HookHandle(IntrusivePtr<NodeHooks> hooks, uint64_t id) noexcept : hooks_(std::move(hooks)), id_(id) {}

  uint64_t id() const noexcept { return id_; }
  void remove() const {
    if (hooks_) hooks_->remove(id_);
  }

 private:
  IntrusivePtr<NodeHooks> hooks_;
  uint64_t id_ = 0;
};

}  // namespace tenon::autograd
