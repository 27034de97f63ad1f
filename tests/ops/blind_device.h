// A device for tests that the host cannot look into: its addresses are no addresses of the host, so that
// every hidden access faults, and its work runs only when somebody waits, so that a missing wait reads what
// was there before. It has an allocator and byte copies, and nothing else.
#pragma once

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tenon/core/device_runtime.h"

namespace tenon::testing {

class BlindDevice final : public DeviceRuntime, public Allocator {
 public:
  /// Registers a backend of that name with so many devices; lives as long as the process.
  static BlindDevice& make(const char* name, const char* key, int devices = 2) {
    auto& device = *new BlindDevice(devices);
    device.backend_ = register_device(name, key, "the test");
    set_allocator(device.backend_, &device);
    set_device_runtime(device.backend_, &device);
    return device;
  }
  Backend backend() const noexcept { return backend_; }
  Device device(int index = 0) const noexcept { return Device(backend_, static_cast<int8_t>(index)); }

  int device_count() const noexcept override { return devices_; }
  uint64_t create_stream(Device) override { return ++last_id_; }
  void synchronize(Stream stream) override {
    const Lock lock(mutex_);
    ++waits;
    run(stream, queue(stream).given);
  }
  uint64_t create_event(Device) override { return ++last_id_; }
  void destroy_event(Device, uint64_t event) noexcept override { events_.erase(event); }
  void record(uint64_t event, Stream stream) override {
    const Lock lock(mutex_);
    events_[event] = {stream, queue(stream).given};
  }
  void wait(Stream stream, Device, uint64_t event) override {
    give(stream, [this, place = events_.at(event)] { run(place.stream, place.count); });
  }
  bool query(Device, uint64_t event) override {
    const Lock lock(mutex_);
    const Point& p = events_.at(event);
    return queue(p.stream).done >= p.count;
  }
  void synchronize(Device, uint64_t event) override {
    const Lock lock(mutex_);
    ++waits;
    const Point p = events_.at(event);
    run(p.stream, p.count);
  }

  bool copies_bytes() const noexcept override { return true; }
  void copy_bytes(Stream stream, Address to, Place to_place, Address from, Place from_place, size_t nbytes,
                  uint32_t flags) override {
    ++copies;
    auto* dst = real(to, to_place);
    const auto* src = real(from, from_place);
    const bool stays = (flags & kCopyHostStays) != 0;
    if (from_place == Place::Host && !stays) {
      // The caller may change its memory when the call has returned.
      give(stream, [dst, bytes = std::vector<char>(src, src + nbytes)] {
        std::memcpy(dst, bytes.data(), bytes.size());
      });
      return;
    }
    give(stream, [=] { std::memmove(dst, src, nbytes); });
    if (to_place == Place::Host && !stays) synchronize(stream);
  }

  Allocator* pinned_memory() noexcept override { return pinned; }

  Address allocate(size_t nbytes, Stream) override {
    auto* block = static_cast<char*>(std::aligned_alloc(64, (nbytes + 127) / 64 * 64));
    std::memset(block, 0x7B, nbytes);
    {
      const std::lock_guard lock(blocks_mutex_);
      blocks_.insert(block);
    }
    return reinterpret_cast<Address>(block) | kHidden;
  }
  void deallocate(Address address, size_t nbytes, Stream stream) noexcept override {
    give(stream, [=] {
      std::memset(real(address, Place::Device), 0x5D, nbytes);
      const std::lock_guard lock(blocks_mutex_);
      blocks_.erase(real(address, Place::Device));
      std::free(real(address, Place::Device));
    });
  }
  void copy(Address to, Address from, size_t nbytes, Stream stream) override {
    ++copies;
    give(stream, [=] { std::memmove(real(to, Place::Device), real(from, Place::Device), nbytes); });
  }
  std::string_view name() const noexcept override { return "blind"; }

  /// Adds work to a stream.
  void give(Stream stream, std::function<void()> task) {
    const Lock lock(mutex_);
    Queue& q = queue(stream);
    q.tasks.push_back(std::move(task));
    ++q.given;
  }
  /// Where a device's address really is, for work of its streams.
  static char* real(Address address, Place place) noexcept {
    return reinterpret_cast<char*>(place == Place::Device ? address & ~kHidden : address);
  }

  int waits = 0;   ///< How often the host has waited.
  int copies = 0;  ///< Copies of bytes that were asked for.
  Allocator* pinned = nullptr;

 private:
  // A leak checker does not see through hidden addresses: what is freed by work that nobody waited for is
  // here.
  std::mutex blocks_mutex_;
  std::set<void*> blocks_;
  /// No address of a process has this bit without all those above it.
  static constexpr Address kHidden = Address{1} << 62;
  using Lock = std::lock_guard<std::recursive_mutex>;

  explicit BlindDevice(int devices) : devices_(devices) {}

  struct Queue {
    std::deque<std::function<void()>> tasks;
    uint64_t given = 0, done = 0;
  };
  /// Stands for the first `count` tasks of a stream.
  struct Point {
    Stream stream;
    uint64_t count;
  };
  Queue& queue(Stream stream) { return queues_[{stream.device.index, stream.id}]; }
  void run(Stream stream, uint64_t count) {
    Queue& q = queue(stream);
    while (q.done < count) {
      const std::function<void()> task = std::move(q.tasks.front());
      q.tasks.pop_front();
      ++q.done;
      task();
    }
  }

  const int devices_;
  Backend backend_ = 0;
  std::recursive_mutex mutex_;
  std::map<std::pair<int, uint64_t>, Queue> queues_;
  std::map<uint64_t, Point> events_;
  uint64_t last_id_ = 0;
};

}  // namespace tenon::testing
