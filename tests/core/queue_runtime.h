// The streams and events of devices whose work runs only when somebody waits for it: a missing wait or event
// gives wrong numbers, every time. What is memory is for those who derive from it. Any thread may call it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "tenon/core/device_runtime.h"

namespace tenon::testing {

class QueueRuntime : public DeviceRuntime, public Allocator {
 public:
  explicit QueueRuntime(int devices = 2) noexcept : devices_(devices) {}

  int device_count() const noexcept override { return devices_; }
  uint64_t create_stream(Device) override {
    const Lock lock(mutex_);
    // As large as a pointer, which is what the streams of a vendor's library are.
    return (++last_id_ << 32) + 1;
  }
  void synchronize(Stream stream) override {
    const Lock lock(mutex_);
    run(now(stream));
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
    events_[event] = now(stream);
  }
  void wait(Stream stream, Device, uint64_t event) override {
    const Lock lock(mutex_);
    give(stream, [this, point = events_.at(event)] { run(point); });
  }
  bool query(Device, uint64_t event) override {
    const Lock lock(mutex_);
    return has_run(events_.at(event));
  }
  void synchronize(Device, uint64_t event) override {
    const Lock lock(mutex_);
    const Point point = events_.at(event);
    run(point);
  }

  /// Adds work to a stream.
  void give(Stream stream, std::function<void()> task) {
    const Lock lock(mutex_);
    Queue& q = queue(stream);
    q.tasks.push_back(std::move(task));
    ++q.given;
  }
  /// How much work a stream was ever given.
  uint64_t given(Stream stream) {
    const Lock lock(mutex_);
    return queue(stream).given;
  }

 protected:
  using Lock = std::lock_guard<std::recursive_mutex>;
  /// Stands for the first `count` tasks of a stream.
  struct Point {
    Stream stream;
    uint64_t count;
  };
  // Under the lock, which work has, too.
  Point now(Stream stream) { return {stream, queue(stream).given}; }
  bool has_run(const Point& point) { return queue(point.stream).done >= point.count; }
  void run(const Point& point) {
    Queue& q = queue(point.stream);
    while (q.done < point.count) {
      const std::function<void()> task = std::move(q.tasks.front());
      q.tasks.pop_front();
      ++q.done;
      task();
    }
  }

  std::recursive_mutex mutex_;

 private:
  struct Queue {
    std::deque<std::function<void()>> tasks;
    uint64_t given = 0, done = 0;
  };
  Queue& queue(Stream stream) { return queues_[{stream.device.index, stream.id}]; }

  const int devices_;
  std::map<std::pair<int, uint64_t>, Queue> queues_;
  std::map<uint64_t, Point> events_;
  uint64_t last_id_ = 0;
};

}  // namespace tenon::testing
