// Stream: a queue of work on a device. Event: a point in such a queue. Also the thread's current device and
// stream, and guards that set them for a scope. Used by allocators, by kernels and copies of devices, and by
// callers that overlap work. Independent of how a device runs its queues; its DeviceRuntime decides that.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tenon/core/device.h"

namespace tenon {

/// A queue of work on a device. Work in one stream runs in order; work in different streams runs in no
/// particular order unless events impose one. The host has one stream, whose work runs at once: a call
/// returns when its work is done.
struct Stream {
  Device device;    ///< With an index, where its backend has several devices.
  uint64_t id = 0;  ///< 0: the default stream, which every device has.

  /// Creates another stream of a device; a device without an index means the current device of its backend.
  /// For the host it returns the host's only stream. Streams live as long as their device: once it has 32,
  /// one that was released is handed out again, the one that was released first. Throws Error{Device} for a
  /// device without streams.
  static Stream create(Device device);
  /// Says that the caller of `create` will queue no work here any more, so that the device may be unloaded
  /// (plugin/load.h), or the stream be reused by another caller. What was queued still runs, and memory may
  /// still belong to the stream. Does nothing for the default stream.
  void release() const noexcept;

  /// Blocks until all work that was queued has run.
  void synchronize() const;
  friend bool operator==(Stream, Stream) = default;
};

/// "gizmo:0, stream 2"
std::string to_string(Stream stream);

/// A point in a stream that other streams may wait for. Movable; destroyed on its device with its owner.
class Event {
 public:
  /// An event that is not recorded yet: waiting for it returns at once. `timed`: its time is noted, too.
  explicit Event(Device device, bool timed = false) noexcept : device_(device), timed_(timed) {}
  Event(Event&& other) noexcept
      : device_(other.device_),
        timed_(other.timed_),
        id_(std::exchange(other.id_, 0)),
        captured_(std::exchange(other.captured_, 0)) {}
  Event& operator=(Event other) noexcept {
    std::swap(device_, other.device_);
    std::swap(timed_, other.timed_);
    std::swap(id_, other.id_);
    std::swap(captured_, other.captured_);
    return *this;
  }
  ~Event();

  /// Marks the end of the work queued on `stream` so far. The first record fixes the device of an event that
  /// was made without an index. Throws Error{Device} for a stream of another device.
  void record(Stream stream);
  /// Makes work that is queued on `stream` from now on run after the event; the caller does not wait. Throws
  /// Error{Device} for a stream of another backend, which cannot wait for it; use `synchronize()` there.
  void wait(Stream stream) const;
  /// Whether all work before the event has run.
  bool query() const;
  /// Blocks until all work before the event has run.
  void synchronize() const;
  /// Milliseconds from this event to a later one. Throws Error{Runtime} unless both are timed, and their work
  /// has run.
  double elapsed_until(const Event& end) const;

  Device device() const noexcept { return device_; }

 private:
  void refuse_if_captured(const char* what) const;

  Device device_;
  bool timed_ = false;
  uint64_t id_ = 0;  // of the device's runtime; 0 until it is recorded, and on the host
  uint64_t captured_ =
      0;  // the id of the stream, if it was recorded in a capture: no event of the device then
};

/// Fills in a missing index of `device` with that of the thread's current device. The host, meta and backends
/// without a DeviceRuntime have a single device, which has no index.
Device resolved(Device device) noexcept;
/// Whether both name the same device. If a backend has one device only, the index makes no difference.
bool same_device(Device a, Device b) noexcept;
/// The stream on which this thread queues work for `device`: the default stream unless another was set.
Stream current_stream(Device device) noexcept;

/// Blocks until the work of all streams of a device has run; a device without an index means the current one.
/// Throws, once, what the device could not report when it happened, such as a free that failed.
void synchronize_device(Device device);

/// Throws an Error{Device} that begins with `what` for an index that the device's backend does not have.
void check_device_index(Device device, const char* what);
/// Throws an Error{Value} that begins with `what` for an id that no stream of the device has.
void check_stream(Stream stream, const char* what);

/// How many streams of a backend were created and not released.
size_t count_streams(Backend backend) noexcept;
/// Forgets the streams of a backend that goes, with what threads have made current of it, and returns them.
std::vector<Stream> forget_streams(Backend backend);

/// Makes a device the current one of its backend on this thread. Does nothing for the host, for meta, and for
/// a device without an index. Throws Error{Device} for an index that the backend does not have.
void set_current_device(Device device);
/// Makes a stream the current one of its device on this thread; the current device does not change.
void set_current_stream(Stream stream);

/// What is current on a thread, for another thread that continues its work.
struct CurrentDevices {
  std::array<int8_t, 32> index{};  ///< Of each backend's current device.
  std::vector<Stream> streams;     ///< Those that are not default streams.
};
CurrentDevices current_devices();
void set_current_devices(const CurrentDevices& current);

/// Makes a device the current one of its backend for a scope, and restores the previous one at its end, also
/// when an exception leaves the scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device) : before_(resolved(Device(device.backend))) {
    set_current_device(device);
  }
  ~DeviceGuard() { set_current_device(before_); }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  Device before_;
};

/// Makes a stream and its device current for a scope; see DeviceGuard.
class StreamGuard {
 public:
  explicit StreamGuard(Stream stream) : device_(stream.device), before_(current_stream(stream.device)) {
    set_current_stream(stream);
  }
  ~StreamGuard() { set_current_stream(before_); }
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  DeviceGuard device_;
  Stream before_;
};

namespace detail {
/// What a thread gives up while it waits for a device, and takes back afterwards: the interpreter's lock.
/// `begin` returns what `end` gets; null: nothing was given up. Filled in by the Python package.
struct WaitHooks {
  void* (*begin)() noexcept;
  void (*end)(void*) noexcept;
};
extern std::atomic<const WaitHooks*> wait_hooks;
}  // namespace detail

/// Held around a wait for a device, or for another thread that may wait for one.
class WaitScope {
 public:
  WaitScope() noexcept : hooks_(detail::wait_hooks.load(std::memory_order_acquire)) {
    if (hooks_) given_up_ = hooks_->begin();
  }
  ~WaitScope() {
    if (given_up_) hooks_->end(given_up_);
  }
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

 private:
  const detail::WaitHooks* hooks_;
  void* given_up_ = nullptr;
};

}  // namespace tenon
