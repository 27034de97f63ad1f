// ThreadState: what the current thread adds to every call: included and excluded keys, grad and inference
// mode. Used by the dispatcher, tensors and autograd. One thread-local block, so that a call reads one cache
// line.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tenon/core/key_set.h"
#include "tenon/core/small_alloc.h"

namespace tenon {

struct ThreadState {
  DispatchKeySet included;
  DispatchKeySet excluded;  ///< Functionalities only.
  bool grad_enabled = true;
  bool inference_mode = false;
  /// Depth of calls in a dispatch trace.
  uint16_t trace_depth = 0;
};

extern thread_local constinit ThreadState thread_state TENON_FAST_TLS;

/// Sets one member of the thread's state for a scope.
template <auto Member>
class ThreadStateGuard {
  using Value = std::remove_reference_t<decltype(thread_state.*Member)>;

 public:
  explicit ThreadStateGuard(Value value) noexcept : saved_(thread_state.*Member) {
    thread_state.*Member = value;
  }
  ~ThreadStateGuard() { thread_state.*Member = saved_; }
  ThreadStateGuard(const ThreadStateGuard&) = delete;
  ThreadStateGuard& operator=(const ThreadStateGuard&) = delete;

 private:
  Value saved_;
};

/// Adds keys to every call of this thread for a scope.
class IncludeDispatchKeyGuard : ThreadStateGuard<&ThreadState::included> {
 public:
  explicit IncludeDispatchKeyGuard(DispatchKeySet keys) noexcept
      : ThreadStateGuard(thread_state.included | keys) {}
};
/// Removes functionalities from every call of this thread for a scope.
class ExcludeDispatchKeyGuard : ThreadStateGuard<&ThreadState::excluded> {
 public:
  explicit ExcludeDispatchKeyGuard(DispatchKeySet keys) noexcept
      : ThreadStateGuard(thread_state.excluded |
                         (keys & DispatchKeySet(DispatchKeySet::kFunctionalityBits))) {}
};

/// Switches recording of history off for a scope; results do not require grad.
class NoGradGuard : ThreadStateGuard<&ThreadState::grad_enabled> {
 public:
  NoGradGuard() noexcept : ThreadStateGuard(false) {}
};
/// Sets whether history is recorded, for a scope.
class AutoGradMode : ThreadStateGuard<&ThreadState::grad_enabled> {
 public:
  explicit AutoGradMode(bool enabled) noexcept : ThreadStateGuard(enabled) {}
};
/// Switches off history and the tracking of views for a scope. Tensors made inside can never take part in
/// autograd.
class InferenceMode : ThreadStateGuard<&ThreadState::inference_mode>,
                      ThreadStateGuard<&ThreadState::grad_enabled> {
 public:
  explicit InferenceMode(bool enabled = true) noexcept
      : ThreadStateGuard<&ThreadState::inference_mode>(enabled),
        ThreadStateGuard<&ThreadState::grad_enabled>(!enabled && thread_state.grad_enabled) {}
};

inline bool grad_enabled() noexcept { return thread_state.grad_enabled; }

}  // namespace tenon
