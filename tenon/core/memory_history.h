// MemoryHistory: the latest events of an allocator with the lines of the program that caused them, and the
// line that made each block in use. Off until it is asked for. Used by DeviceCache, which shows it in its
// snapshot and when memory runs out. Independent of the search for blocks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/core/allocator.h"
#include "tenon/core/source_mark.h"

namespace tenon {

/// Where an allocation came from: the line of a language binding, if its program runs on the thread, then the
/// callers in C++, innermost first, without those inside the library.
struct MemoryStack {
  std::vector<SourceMark> marks;

  /// The stack of the calling thread. Takes microseconds; the lines are found when they are described.
  static std::shared_ptr<const MemoryStack> take();
};
/// "train.py:12", "step() (no debug information)"; outermost last.
std::vector<std::string> describe(const MemoryStack& stack);
/// The line of the program: the first of those.
std::string describe_site(const MemoryStack& stack);

struct MemoryEvent {
  enum class Action : uint8_t {
    Alloc,
    FreeRequested,  ///< By the program.
    FreeCompleted,  ///< No stream uses the block any more.
    SegmentAlloc,
    SegmentFree,
    SegmentMap,
    SegmentUnmap,
    OutOfMemory,
  };
  Action action;
  Address address;
  size_t size;
  Stream stream;
  int64_t time_us;  ///< Of the steady clock.
  std::shared_ptr<const MemoryStack> stack;
};
/// PyTorch's name of an action: "alloc", "free_requested", "segment_map", "oom".
const char* name(MemoryEvent::Action action) noexcept;

/// The owner's lock protects all but `on`.
class MemoryHistory {
 public:
  bool on() const noexcept { return on_.load(std::memory_order_relaxed); }
  /// Keeps the latest `max_events` events from now on, and the stack of every block that is made.
  void start(size_t max_events);
  /// Forgets everything.
  void stop() noexcept;

  /// Leaves the event out if there is no memory for it.
  void record(MemoryEvent::Action action, Address address, size_t size, Stream stream,
              std::shared_ptr<const MemoryStack> stack) noexcept;
  /// The stack that made a block in use; null if it was made while the history was off.
  std::shared_ptr<const MemoryStack> made_by(Address address) const;
  std::vector<MemoryEvent> events() const {
    return events_ ? std::vector<MemoryEvent>(events_->begin(), events_->end()) : std::vector<MemoryEvent>();
  }

 private:
  std::atomic<bool> on_{false};
  size_t max_events_ = 0;
  std::optional<std::deque<MemoryEvent>> events_;  // An empty deque takes memory, and most are off.
  std::unordered_map<Address, std::shared_ptr<const MemoryStack>> made_by_;
};

}  // namespace tenon
