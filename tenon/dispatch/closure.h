// ClosureSlot: a kernel that owns state and can go away while calls are under way.
// Used by registration, and by bindings that call their own closures without boxing. Knows nothing of what a
// closure holds.
#pragma once

#include <memory>
#include <mutex>

#include "tenon/dispatch/kernel.h"

namespace tenon::detail {

/// Owns a registered closure until it is removed. Tables may name a removed kernel for ever, so the slot
/// itself stays; a call that finds it empty starts again with the new table.
struct ClosureSlot {
  std::mutex mutex;  ///< Guards `closure`.
  std::shared_ptr<ClosureBase> closure;
  BoxedEntry entry = nullptr;
};

/// Enters the closure of the slot that `kernel` points to, and keeps it alive meanwhile.
void call_closure(const Kernel& kernel, const OperatorHandle& op, DispatchKeySet keys, Stack& stack);

/// The slot behind a table's cell whose closure is entered through `entry`; null for every other kernel.
inline ClosureSlot* slot_of(const Kernel& kernel, BoxedEntry entry) noexcept {
  if (kernel.boxed != &call_closure) return nullptr;
  auto* slot = static_cast<ClosureSlot*>(const_cast<void*>(kernel.data));
  return slot->entry == entry ? slot : nullptr;
}

}  // namespace tenon::detail
