// A device without memory: pieces and mapped ranges are intervals of numbers, blocks have a tag in their
// first and last cell, and queued tasks run only when the test says so or something waits. It notes the first
// thing that a real device would not survive: memory returned while a task may use it, a task that finds
// another block's tag, a question to a stream during a capture.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/core/device_memory.h"
#include "tenon/core/device_runtime.h"

namespace tenon::testing {

class SimulatedDevice final : public DeviceMemory {
 public:
  static constexpr size_t kStreams = 3;
  static constexpr size_t kGranularity = 512, kMapGranularity = size_t{512} << 10;
  using Clock = std::array<uint64_t, kStreams>;

  explicit SimulatedDevice(size_t limit) : limit_(limit) { current() = this; }
  ~SimulatedDevice() override { current() = nullptr; }

  /// The backend of simulated devices; its runtime serves the one that exists.
  static Backend backend();
  static Device device() { return Device(backend(), 0); }
  static Stream stream(uint64_t id) { return {device(), id}; }

  // Memory.
  size_t granularity() const noexcept override { return kGranularity; }
  Address allocate(Device, size_t nbytes) override {
    if (refuses(nbytes)) return 0;
    // The lowest gap: neighbours that are not of one segment are the rule.
    Address at = kBase;
    for (const auto& [address, size] : pieces_) {
      if (address - at >= nbytes) break;
      at = address + size;
    }
    pieces_[at] = nbytes;
    used_ += nbytes;
    ++takes;
    return at;
  }
  void free(Device, Address address, size_t nbytes) noexcept override {
    check_returned(address, nbytes, "free");
    const auto piece = pieces_.find(address);
    if (piece == pieces_.end() || piece->second != nbytes)
      return fail(fmt::format("free: there is no piece of {} at {:#x}", nbytes, address));
    pieces_.erase(piece);
    used_ -= nbytes;
    ++returns;
  }
  void copy(Address to, Address from, size_t nbytes, Stream stream) override {
    use(stream.id, from, nbytes, 0, 0);
    use(stream.id, to, nbytes, 0, 0);
  }
  bool fill(Address address, uint8_t byte, size_t nbytes, Stream stream) override {
    fills.push_back(fmt::format("{} bytes of {:#x} on {}", nbytes, byte, to_string(stream)));
    use(stream.id, address, nbytes, 0, 0);
    return true;
  }
  Info info(Device) const override { return {limit_, limit_ - used_}; }

  size_t map_granularity() const noexcept override { return kMapGranularity; }
  Address reserve(Device, size_t nbytes) override {
    const Address at = next_range_;
    next_range_ += detail_round(nbytes) + kMapGranularity;
    ranges_[at] = nbytes;
    return at;
  }
  bool map(Device, Address address, size_t nbytes) override {
    if (refuses(nbytes)) return false;
    for (Address at = address; at < address + nbytes; at += kMapGranularity) {
      if (!in_range(at) || !mapped_.insert(at).second) fail(fmt::format("map: {:#x} cannot be mapped", at));
    }
    used_ += nbytes;
    ++takes;
    return true;
  }
  void unmap(Device, Address address, size_t nbytes) noexcept override {
    check_returned(address, nbytes, "unmap");
    for (Address at = address; at < address + nbytes; at += kMapGranularity) {
      if (mapped_.erase(at) == 0) return fail(fmt::format("unmap: {:#x} is not mapped", at));
      used_ -= kMapGranularity;
    }
    ++returns;
  }
  void unreserve(Device, Address address, size_t nbytes) noexcept override {
    const auto range = ranges_.find(address);
    if (range == ranges_.end() || range->second != nbytes) return fail("unreserve: no such range");
    const auto mapped = mapped_.lower_bound(address);
    if (mapped != mapped_.end() && *mapped < address + nbytes) fail("unreserve: memory is mapped there");
    ranges_.erase(range);
  }

  // Streams. A task has a number in its stream; the clock of a stream has, of every stream, the tasks that
  // what is queued next comes after.
  /// Queues a task that finds `tag` in a block, or anything if that is 0, and leaves `next` there, or what it
  /// found if that is 0.
  void use(uint64_t stream, Address address, size_t nbytes, uint32_t tag, uint32_t next) {
    give(stream, {.address = address, .nbytes = nbytes, .tag = tag, .next = next});
  }
  uint64_t create_event() { return ++last_event_; }
  void destroy_event(uint64_t event) { events_.erase(event); }
  void record(uint64_t event, uint64_t stream) {
    events_[event] = {stream, queues_[stream].given, queues_[stream].clock};
  }
  void wait(uint64_t stream, uint64_t event) {
    const Place& place = events_.at(event);
    Clock& clock = queues_[stream].clock;
    for (size_t i = 0; i < kStreams; ++i) clock[i] = std::max(clock[i], place.clock[i]);
    give(stream, {.waits_for = place.stream, .count = place.count, .is_wait = true});
  }
  bool query(uint64_t event) const {
    const Place& place = events_.at(event);
    return queues_[place.stream].done >= place.count;
  }
  void synchronize(uint64_t event) {
    const Place place = events_.at(event);
    run(place.stream, place.count);
  }
  void synchronize_stream(uint64_t stream) { run(stream, queues_[stream].given); }
  /// Runs the next task of a stream, if it has one that waits for nothing.
  void advance(uint64_t stream) {
    const Queue& queue = queues_[stream];
    if (queue.tasks.empty()) return;
    const Task& next = queue.tasks.front();
    if (!next.is_wait || queues_[next.waits_for].done >= next.count) run(stream, queue.done + 1);
  }

  /// A task that may use part of a range when `stream` does what is queued next; empty if there is none.
  std::string unordered_use(Address address, size_t nbytes, uint64_t stream) const {
    for (uint64_t other = 0; other < kStreams; ++other) {
      const Queue& queue = queues_[other];
      if (other == stream) continue;
      for (size_t i = 0; i < queue.tasks.size(); ++i) {
        const uint64_t number = queue.done + 1 + i;
        if (queue.tasks[i].overlaps(address, nbytes) && queues_[stream].clock[other] < number)
          return fmt::format("task {} of stream {} may still use it", number, other);
      }
    }
    return "";
  }

  size_t free_bytes() const noexcept { return limit_ - used_; }
  size_t used_bytes() const noexcept { return used_; }
  bool has_ranges() const noexcept { return !ranges_.empty(); }
  void fail(const std::string& what) {
    if (failure.empty()) failure = what;
  }
  void check_not_captured(const char* what) {
    if (capturing) fail(fmt::format("{} during a capture", what));
  }

  std::string failure;     ///< What went wrong first.
  bool capturing = false;  ///< Set by the test.
  int refuse_next = 0;     ///< The next so many requests for memory are refused.
  bool last_refusal_planned = false;
  bool broken = false;  ///< Events can no longer be recorded.
  size_t takes = 0, returns = 0;
  std::vector<std::string> fills;
  /// Ranges that must stay what they are, by private pool.
  std::map<uint64_t, std::vector<std::pair<Address, size_t>>> captured;

 private:
  static constexpr Address kBase = Address{1} << 32;
  struct Task {
    Address address = 0;
    size_t nbytes = 0;
    uint32_t tag = 0, next = 0;
    uint64_t waits_for = 0, count = 0;
    bool is_wait = false;
    bool overlaps(Address other, size_t size) const {
      return !is_wait && address < other + size && other < address + nbytes;
    }
  };
  struct Queue {
    std::deque<Task> tasks;
    uint64_t given = 0, done = 0;
    Clock clock{};
  };
  struct Place {
    uint64_t stream, count;
    Clock clock;
  };

  static SimulatedDevice*& current() {
    static SimulatedDevice* device = nullptr;
    return device;
  }
  struct Runtime;

  static size_t detail_round(size_t n) {
    return (n + kMapGranularity - 1) / kMapGranularity * kMapGranularity;
  }
  bool refuses(size_t nbytes) {
    last_refusal_planned = refuse_next > 0;
    if (last_refusal_planned) {
      --refuse_next;
      return true;
    }
    return nbytes > limit_ - used_;
  }
  bool in_range(Address at) const {
    auto range = ranges_.upper_bound(at);
    return range != ranges_.begin() && at < (--range)->first + range->second;
  }
  bool exists(Address address, size_t nbytes) const {
    auto piece = pieces_.upper_bound(address);
    if (piece != pieces_.begin() && (--piece, address + nbytes <= piece->first + piece->second)) return true;
    for (Address at = address / kMapGranularity * kMapGranularity; at < address + nbytes;
         at += kMapGranularity) {
      if (!mapped_.contains(at)) return false;
    }
    return true;
  }
  void check_returned(Address address, size_t nbytes, const char* what) {
    check_not_captured(what);
    for (const Queue& queue : queues_) {
      for (const Task& task : queue.tasks) {
        if (task.overlaps(address, nbytes))
          fail(fmt::format("{}: a task will use {:#x}", what, task.address));
      }
    }
    for (const auto& [pool, blocks] : captured) {
      for (const auto& [at, size] : blocks) {
        if (at < address + nbytes && address < at + size)
          fail(fmt::format("{}: pool {} has captured {:#x}", what, pool, at));
      }
    }
  }
  void give(uint64_t stream, const Task& task) {
    Queue& queue = queues_[stream];
    queue.tasks.push_back(task);
    queue.clock[stream] = ++queue.given;
  }
  void run(uint64_t stream, uint64_t count) {
    Queue& queue = queues_[stream];
    while (queue.done < count) {
      const Task task = queue.tasks.front();
      if (task.is_wait) run(task.waits_for, task.count);
      queue.tasks.pop_front();
      ++queue.done;
      if (!task.is_wait) run(task);
    }
  }
  void run(const Task& task) {
    if (!exists(task.address, task.nbytes))
      return fail(fmt::format("a task uses {:#x}, which is gone", task.address));
    const Address last = task.address + (task.nbytes - 1) / kGranularity * kGranularity;
    for (const Address cell : {task.address, last}) {
      const uint32_t found = cells_[cell];
      if (task.tag != 0 && found != task.tag)
        fail(fmt::format("a task finds tag {} at {:#x} and not {}", found, cell, task.tag));
    }
    if (task.next != 0) cells_[task.address] = cells_[last] = task.next;
  }

  size_t limit_, used_ = 0;
  std::map<Address, size_t> pieces_, ranges_;
  std::set<Address> mapped_;
  Address next_range_ = Address{1} << 40;
  std::array<Queue, kStreams> queues_;
  std::unordered_map<uint64_t, Place> events_;
  std::unordered_map<Address, uint32_t> cells_;
  uint64_t last_event_ = 0;
};

/// What the allocator asks of the streams; the test itself calls the device.
struct SimulatedDevice::Runtime final : DeviceRuntime {
  int device_count() const noexcept override { return 1; }
  uint64_t create_stream(Device) override { return ++last_stream_ % kStreams; }
  void synchronize(Stream stream) override {
    current()->check_not_captured("a wait for a stream");
    current()->synchronize_stream(stream.id);
  }
  uint64_t create_event(Device) override { return current()->create_event(); }
  void destroy_event(Device, uint64_t event) noexcept override {
    if (current()) current()->destroy_event(event);
  }
  void record(uint64_t event, Stream stream) override {
    current()->check_not_captured("an event");
    if (current()->broken) throw std::runtime_error("the device is lost");
    current()->record(event, stream.id);
  }
  void wait(Stream stream, Device, uint64_t event) override { current()->wait(stream.id, event); }
  bool query(Device, uint64_t event) override {
    current()->check_not_captured("a query");
    return current()->query(event);
  }
  void synchronize(Device, uint64_t event) override {
    current()->check_not_captured("a wait for an event");
    current()->synchronize(event);
  }

 private:
  uint64_t last_stream_ = 0;
};

inline Backend SimulatedDevice::backend() {
  static const Backend backend = [] {
    const Backend b = register_backend("simulated", "Simulated");
    set_device_runtime(b, new Runtime);
    return b;
  }();
  return backend;
}

}  // namespace tenon::testing
