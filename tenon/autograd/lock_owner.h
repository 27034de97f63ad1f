// LockOwner: on whose behalf a thread locks nodes. Used by NodeLock, and by passes that several threads run:
// a worker may enter nodes that are locked by a thread which waits for the worker's pass.
#pragma once

#include <cstdint>

namespace tenon::autograd {

/// A number that locks bear, and the owner that waits until this one has finished; null if there is none.
struct LockOwner {
  uint32_t id;
  const LockOwner* outer;
};

/// On whose behalf this thread locks now.
LockOwner current_lock_owner() noexcept;

/// Gives this thread, for a scope, an owner of its own, for which `outer` waits. `outer` must outlive it.
class LockOwnerScope {
 public:
  explicit LockOwnerScope(const LockOwner& outer) noexcept;
  ~LockOwnerScope();
  LockOwnerScope(const LockOwnerScope&) = delete;
  LockOwnerScope& operator=(const LockOwnerScope&) = delete;

 private:
  LockOwner before_;
};

}  // namespace tenon::autograd
