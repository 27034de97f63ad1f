// ClosureSlot: holds a kernel that owns state and may be removed while calls are running. Used by
// registration, and by bindings that call their own closures without boxing. Independent of what a closure
// holds.
#pragma once

#include <memory>
#include <mutex>

#include "tenon/dispatch/kernel.h"

namespace tenon::detail {

/// Owns a registered closure until it is removed. Old tables may refer to a removed kernel as long as the
/// process runs, so the slot itself is never freed; a call that finds it empty starts again with the new
/// table.
struct ClosureSlot {
  std::mutex mutex;  ///< Guards `closure`.
  std::shared_ptr<ClosureBase> closure;
  BoxedEntry entry = nullptr;
};

/// Calls the closure in the slot that `kernel` points to, and keeps it alive during the call.
void call_closure(const Kernel& kernel, const OperatorHandle& op, DispatchKeySet keys, Stack& stack);

/// The slot of a kernel, if the kernel is a closure that is entered through `entry`; otherwise null.
inline ClosureSlot* slot_of(const Kernel& kernel, BoxedEntry entry) noexcept {
  if (kernel.boxed != &call_closure) return nullptr;
  auto* slot = static_cast<ClosureSlot*>(const_cast<void*>(kernel.data));
  return slot->entry == entry ? slot : nullptr;
}

}  // namespace tenon::detail
