// GradSlot and NodeHooks: where a gradient is stored, and the hooks that users add to a node's inputs and
// results. Used by the engine, by AutogradMeta and by bindings.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "tenon/core/tensor.h"

namespace tenon::autograd {

/// A tensor's `.grad`. The tensor and the node that fills it share it, so that neither keeps the other alive.
struct GradSlot final : RefCounted {
  /// Frees without recursion: a gradient may have a gradient itself, and so on.
  static void destroy(GradSlot* slot) noexcept;

  Tensor grad;
  /// The stream that a gradient on a device was last computed in.
  Stream stream;
  GradSlot* next_to_free = nullptr;
  /// Whether the leaf still requires grad, which may have changed since the forward pass.
  std::atomic<bool> wanted{true};
  std::atomic_flag busy;
};

/// Locks a slot against other threads.
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

/// Gets a gradient, and may return a tensor that replaces it; an undefined tensor keeps it.
using TensorHook = std::function<Tensor(const Tensor& grad)>;
/// Gets the gradients that a node is about to run on, and may replace them; some may be undefined.
using NodePreHook = std::function<void(std::vector<Tensor>& grads)>;
/// Gets the results of a node, one for each edge, and may replace them; `grads` are the gradients that it ran
/// on.
using NodePostHook = std::function<void(std::vector<Tensor>& results, const std::vector<Tensor>& grads)>;
/// Called when a leaf's `.grad` has been added to.
using LeafHook = std::function<void(const Tensor& leaf)>;

/// A leaf's hook with the parts of the leaf. None of them keeps a node alive, because the leaf owns the node
/// that owns this.
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
  /// Hooks of accumulators that share entries of `inputs` since detach_ made their tensors leaves. `remove`
  /// removes from them, too, even after the node was destroyed.
  std::vector<IntrusivePtr<NodeHooks>> of_detached;

  template <class List>
  List copy(const List& list) {
    const std::lock_guard lock(mutex);
    return list;
  }
  void remove(uint64_t id);
  /// Also calls the hooks of input `input_nr` with the gradient that `accumulator` gets.
  void share_with(NodeHooks& accumulator, uint32_t input_nr);
  /// Removes the hooks on gradients: the tensor was written, and they belong to what it was.
  void clear_inputs();
  /// Removes all hooks, because the node was destroyed.
  void clear();
  static uint64_t next_id() noexcept;
};

/// Removes a hook. Does not keep the node alive.
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
