// A device for passes over several devices, in host memory: its work runs only when somebody waits for it,
// and freed memory is overwritten, so that a missing event or a missing record_stream gives wrong numbers,
// every time. Any thread may call it. It has byte copies, expressions, and all else on host copies.
#pragma once

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "tenon/core/device_runtime.h"
#include "tenon/iter/pointwise_device.h"
#include "tenon/ops/fallback/cpu_fallback.h"
#include "tests/ops/launch_evaluator.h"

namespace tenon::testing {

class QueuedDevice final : public DeviceRuntime, public Allocator {
 public:
  static QueuedDevice& get() {
    static QueuedDevice& device = *new QueuedDevice;
    return device;
  }
  static Device device(int index) { return Device(get().backend_, static_cast<int8_t>(index)); }

  int device_count() const noexcept override { return 2; }
  uint64_t create_stream(Device) override {
    const Lock lock(mutex_);
    // As large as a pointer, which is what the streams of a vendor's library are.
    return (++last_id_ << 32) + 1;
  }
  void synchronize(Stream stream) override {
    const Lock lock(mutex_);
    run({stream, queue(stream).given});
    return_freed();
  }
  uint64_t create_event(Device) override {
    const Lock lock(mutex_);
    return ++last_id_;
  }
  void destroy_event(Device, uint64_t event) noexcept override {
    const Lock lock(mutex_);
    events_.erase(event);
  }
  void record(uint64_t event, Stream stream) override {
    const Lock lock(mutex_);
    events_[event] = {stream, queue(stream).given};
  }
  void wait(Stream stream, Device, uint64_t event) override {
    const Lock lock(mutex_);
    give(stream, [this, point = events_.at(event)] { run(point); });
  }
  bool query(Device, uint64_t event) override {
    const Lock lock(mutex_);
    const Point& point = events_.at(event);
    return queue(point.stream).done >= point.count;
  }
  void synchronize(Device, uint64_t event) override {
    const Lock lock(mutex_);
    run(events_.at(event));
  }

  bool copies_bytes() const noexcept override { return true; }
  void copy_bytes(Stream stream, Address to, Place to_place, Address from, Place from_place, size_t nbytes,
                  uint32_t flags) override {
    const Lock lock(mutex_);
    const char* source = reinterpret_cast<const char*>(from);
    const bool stays = (flags & kCopyHostStays) != 0;
    if (from_place == Place::Host && !stays) {
      give(stream, [to, bytes = std::vector<char>(source, source + nbytes)] {
        std::memcpy(reinterpret_cast<void*>(to), bytes.data(), bytes.size());
      });
      return;
    }
    copy(to, from, nbytes, stream);
    if (to_place == Place::Host && !stays) synchronize(stream);
  }

  Address allocate(size_t nbytes, Stream) override {
    void* block = std::malloc(std::max<size_t>(nbytes, 1));
    std::memset(block, kUnwritten, nbytes);
    return reinterpret_cast<Address>(block);
  }
  void deallocate(Address address, size_t nbytes, Stream stream) noexcept override {
    const Lock lock(mutex_);
    Freed freed{address, nbytes, {}};
    for (const Stream& user : users_[address]) freed.users.push_back({user, queue(user).given});
    users_.erase(address);
    give(stream, [this, freed] { freed_.push_back(freed), return_freed(); });
  }
  void record_stream(Address address, Device, Stream user) override {
    const Lock lock(mutex_);
    users_[address].insert(user);
  }
  void copy(Address to, Address from, size_t nbytes, Stream stream) override {
    give(stream,
         [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), nbytes); });
  }
  std::string_view name() const noexcept override { return "queued"; }

  void give(Stream stream, std::function<void()> task) {
    const Lock lock(mutex_);
    Queue& q = queue(stream);
    q.tasks.push_back(std::move(task));
    ++q.given;
  }

 private:
  /// Bytes of a NaN of every floating dtype.
  static constexpr int kUnwritten = 0xFF;
  using Lock = std::lock_guard<std::recursive_mutex>;

  struct Queue {
    std::deque<std::function<void()>> tasks;
    uint64_t given = 0, done = 0;
  };
  /// Stands for the first `count` tasks of a stream.
  struct Point {
    Stream stream;
    uint64_t count;
  };
  struct Order {
    bool operator()(const Stream& a, const Stream& b) const noexcept {
      return std::pair(a.device.index, a.id) < std::pair(b.device.index, b.id);
    }
  };

  /// A block that its stream has passed, and those that were recorded for it.
  struct Freed {
    Address address;
    size_t nbytes;
    std::vector<Point> users;
  };
  /// Overwrites and frees what all users have passed; waits for none.
  void return_freed() {
    std::erase_if(freed_, [&](const Freed& f) {
      for (const Point& user : f.users) {
        if (queue(user.stream).done < user.count) return false;
      }
      std::memset(reinterpret_cast<void*>(f.address), kUnwritten, f.nbytes);
      std::free(reinterpret_cast<void*>(f.address));
      return true;
    });
  }

  QueuedDevice() : backend_(register_device("queued", "Queued", "the test")) {
    set_allocator(backend_, this);
    set_device_runtime(backend_, this);
    set_cpu_fallback(backend_, {.kind = FallbackPolicy::Kind::All});
    set_pointwise_device(
        backend_,
        [](void* self, const TenonLaunch& launch) {
          const TenonStream& s = launch.stream;
          static_cast<QueuedDevice*>(self)->give({{s.device.backend, s.device.index}, s.id}, kept(launch));
          return true;
        },
        this);
  }

  Queue& queue(Stream stream) { return queues_[stream]; }
  void run(Point point) {
    Queue& q = queue(point.stream);
    while (q.done < point.count) {
      const std::function<void()> task = std::move(q.tasks.front());
      q.tasks.pop_front();
      ++q.done;
      task();
    }
  }

  const Backend backend_;
  std::recursive_mutex mutex_;
  std::map<Stream, Queue, Order> queues_;
  std::map<uint64_t, Point> events_;
  std::map<Address, std::set<Stream, Order>> users_;
  std::vector<Freed> freed_;
  uint64_t last_id_ = 0;
};

}  // namespace tenon::testing
