// DeviceSlots: a place for each device that runs an expression, where it keeps what it has made of it.
// Internal to tenon/iter; a device gets its place with a launch. The host's is a typed pointer beside it.
#pragma once

#include <atomic>

namespace tenon::detail {

/// A list that only grows, of a place for each device that has asked; most processes have none or one.
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

  /// The place of whoever `owner` stands for; null at first. Safe to call from many threads at once.
  std::atomic<void*>& of(const void* owner) {
    Place* first = first_.load(std::memory_order_acquire);
    for (Place* known = nullptr;;) {
      for (Place* p = first; p != known; p = p->next) {
        if (p->owner == owner) return p->made;
      }
      // Nobody has added it since: then this one is the only one.
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
