// DeviceSlots: for one expression, a pointer for each device, where the device keeps what it compiled the
// expression to. Internal to tenon/iter; a launch gives a device its slot. The host has a typed pointer
// instead.
#pragma once

#include <atomic>

namespace tenon::detail {

/// A list of slots that only grows. Most processes have none or one.
class DeviceSlots {
 public:
  DeviceSlots() = default;
  DeviceSlots(const DeviceSlots&) = delete;
  ~DeviceSlots() {
    for (Place* p = first_.load(std::memory_order_relaxed); p;) {
      Place* next = p->next;
      delete p;
      p = next;
    }
  }

  /// The slot of `owner`, whose value is null at first. Safe to call from many threads at once.
  std::atomic<void*>& of(const void* owner) {
    Place* first = first_.load(std::memory_order_acquire);
    for (Place* known = nullptr;;) {
      for (Place* p = first; p != known; p = p->next) {
        if (p->owner == owner) return p->made;
      }
      // If no other thread has added the slot meanwhile, this one is the only one.
      known = first;
      Place* fresh = new Place{owner, first};
      if (first_.compare_exchange_strong(first, fresh, std::memory_order_acq_rel)) return fresh->made;
      delete fresh;
    }
  }

 private:
  struct Place {
    const void* owner;
    Place* next;
    std::atomic<void*> made{nullptr};
  };
  std::atomic<Place*> first_{nullptr};
};

}  // namespace tenon::detail
