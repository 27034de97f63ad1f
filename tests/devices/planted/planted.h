// Planted: a device for the tests of the conformance kit, with one fault that an option plants: plant=NAME.
// Without one it is right. Its memory cannot be read by the host, and work runs only when something waits, so
// that a fault shows every time.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tenon/abi/plugin.h"

namespace planted {

namespace abi = tenon::abi;
using Task = std::function<void()>;
using Tasks = std::vector<Task>;

constexpr int32_t kDevices = 2;
constexpr uint64_t kLimit = uint64_t{1} << 28;  // Of each device.
constexpr uint64_t kGranule = uint64_t{2} << 20;
constexpr uint64_t kAside = 1000;  // A queue of the plug-in's own.

struct Planted {
  explicit Planted(abi::Options options) : plant(options.text("plant", "")) {
    options.finish();
    const int file = memfd_create("planted", MFD_CLOEXEC);
    constexpr uint64_t whole = kDevices * kLimit;
    if (ftruncate(file, whole) != 0) throw abi::Error(TENON_ERROR_RUNTIME, "no memory");
    base = reinterpret_cast<uint64_t>(mmap(nullptr, whole, PROT_NONE, MAP_SHARED, file, 0));
    seen = static_cast<char*>(mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    ::close(file);
  }
  bool has(const char* name) const { return plant == name; }
  /// Where the device finds what has an address.
  char* at(uint64_t address) const {
    const auto range = ranges.upper_bound(address);
    if (range == ranges.begin() || address - std::prev(range)->first >= std::prev(range)->second.nbytes)
      return seen + (address - base);
    return std::prev(range)->second.seen + (address - std::prev(range)->first);
  }

  uint64_t queue_of(TenonStream stream) const {
    if (has("one queue")) return 0;
    return uint64_t(has("one device's queues") ? 0 : stream.device.index) << 32 | stream.id;
  }
  /// Queues a task, or records it where its queue is captured.
  void give(uint64_t queue, Task task) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (const auto recording = captured.find(queue); recording != captured.end())
      return recording->second.push_back(std::move(task));
    queues[queue].push_back(std::move(task));
    ++given[queue];
  }
  /// Runs the queue's first tasks, until so many of it have run.
  void run(uint64_t queue, uint64_t count) {
    const std::lock_guard<std::recursive_mutex> running(order);
    while (run_first(queue, count)) {
      if (!has("scratch buffer")) continue;
      std::vector<uint64_t> others;  // Streams may run in turns, which shows what they share.
      for (const auto& [other, tasks] : queues)
        if (other != queue && busy.count(other) == 0) others.push_back(other);
      for (const uint64_t other : others) run_first(other, given[other]);
    }
  }
  void run(uint64_t queue) { run(queue, given[queue]); }
  /// Runs the queue's first task; false if there is none, or so many have run.
  bool run_first(uint64_t queue, uint64_t count) {
    Task task;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (done[queue] >= count || queues[queue].empty()) return false;
      task = std::move(queues[queue].front());
      queues[queue].pop_front();
      ++done[queue];
    }
    busy.insert(queue);  // A task may wait for another queue.
    task();
    busy.erase(busy.find(queue));
    return true;
  }

  struct Range {
    uint64_t nbytes;
    char* seen;
  };

  const std::string plant;
  TenonDeviceTable table{};
  uint64_t base = 0, last_id = 0;
  uint64_t used[kDevices] = {}, taken[kDevices] = {};  // What was ever handed out, and what is.
  char* seen = nullptr;
  std::map<uint64_t, std::deque<uint64_t>> free_blocks[kDevices];  // by size
  std::map<uint64_t, Range> ranges;                                // reserved addresses
  std::map<uint64_t, std::deque<Task>> queues;
  std::map<uint64_t, uint64_t> given, done;
  std::multiset<uint64_t> busy;                              // Queues whose task runs.
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> events;  // queue, count
  std::map<uint64_t, std::chrono::steady_clock::time_point> times;
  std::map<uint64_t, Tasks> captured;                                     // by queue that is captured
  std::map<uint64_t, std::shared_ptr<Tasks>> graphs;                      // what was
  std::vector<float> scratch;                                             // of "scratch buffer"
  std::vector<abi::Tensor> kept;                                          // of "kept results"
  std::map<std::pair<uint64_t, int64_t>, std::vector<float>> remembered;  // of "remembered results"
  std::mutex mutex;
  std::recursive_mutex order;
};

inline Planted& of(void* self) { return *static_cast<Planted*>(self); }

/// The functions of the table, but for `pointwise`.
void fill_table(const Planted& device, TenonDeviceTable& table);

}  // namespace planted
