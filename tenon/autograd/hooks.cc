#include "tenon/autograd/hooks.h"

#include <thread>
#include <utility>

namespace tenon::autograd {

void GradSlot::destroy(GradSlot* slot) noexcept {
  thread_local constinit GradSlot* waiting = nullptr;
  thread_local constinit bool freeing = false;
  if (freeing) {
    slot->next_to_free = std::exchange(waiting, slot);
    return;
  }
  freeing = true;
  delete slot;
  while (waiting) delete std::exchange(waiting, waiting->next_to_free);
  freeing = false;
}

void GradSlotLock::let_others_run() noexcept { std::this_thread::yield(); }

void NodeHooks::remove(uint64_t id) {
  // A hook's own destructor may take locks: it runs after this one is given back.
  NodeHooks gone;
  const auto take = [&](auto& list, auto& out) {
    for (auto it = list.begin(); it != list.end(); ++it) {
      if (it->id != id) continue;
      out.push_back(std::move(*it));
      list.erase(it);
      return;
    }
  };
  const std::lock_guard lock(mutex);
  take(inputs, gone.inputs);
  take(before, gone.before);
  take(after, gone.after);
  take(leaf, gone.leaf);
  for (const auto& hooks : of_detached) hooks->remove(id);
}

void NodeHooks::share_with(NodeHooks& accumulator, uint32_t input_nr) {
  const std::scoped_lock lock(mutex, accumulator.mutex);
  for (const OfInput& hook : inputs) {
    if (hook.input_nr == input_nr) accumulator.inputs.push_back({hook.id, 0, hook.call});
  }
  of_detached.push_back(IntrusivePtr<NodeHooks>::share(&accumulator));
}

void NodeHooks::clear_inputs() {
  std::vector<OfInput> gone;
  const std::lock_guard lock(mutex);
  gone.swap(inputs);
}

void NodeHooks::clear() {
  NodeHooks gone;
  const std::lock_guard lock(mutex);
  gone.inputs.swap(inputs);
  gone.retained.swap(retained);
  gone.before.swap(before);
  gone.after.swap(after);
  gone.leaf.swap(leaf);
}

uint64_t NodeHooks::next_id() noexcept {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace tenon::autograd
