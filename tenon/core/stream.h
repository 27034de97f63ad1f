// Stream: a queue of a device; Event: a place in one. The thread's current device and stream, and guards that
// set them for a scope. Used by allocators, devices' kernels and copies, and callers that overlap work. Knows
// nothing of how a device runs its queues; that is its DeviceRuntime's business.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "tenon/core/device.h"

namespace tenon {

/// A queue of work on a device: what is queued runs in order, and in no order with other streams unless
/// events say so. The host has one stream, whose work runs at once: a call returns when its work is done.
struct Stream {
  Device device;    ///< With an index, where its backend has several devices.
  uint64_t id = 0;  ///< 0: the default stream, which every device has.

  /// A further stream of a device, without an index of the current one; the host's own for the host. Streams
  /// live as long as the process. Throws Error{Device} for a device that has none.
  static Stream create(Device device);

  /// Returns when all work that was queued has run.
  void synchronize() const;
  friend bool operator==(Stream, Stream) = default;
};

/// "gizmo:0, stream 2"
std::string to_string(Stream stream);

/// A place in a stream, which others may wait for. Movable; its device forgets it with the last owner.
class Event {
 public:
  /// An event of a backend, not yet recorded: nobody waits for it.
  explicit Event(Device device) noexcept : device_(device) {}
  Event(Event&& other) noexcept : device_(other.device_), id_(std::exchange(other.id_, 0)) {}
  Event& operator=(Event other) noexcept {
    std::swap(device_, other.device_);
    std::swap(id_, other.id_);
    return *this;
  }
  ~Event();

  /// From now on the event stands for all that `stream` has been given so far. The first record settles the
  /// device of an event that was made without an index. Throws Error{Device} for a stream of another device.
  void record(Stream stream);
  /// Work that `stream` is given from now on runs after the event; the caller does not wait. Throws
  /// Error{Device} for a stream of another backend, which cannot know of it; `synchronize()` can.
  void wait(Stream stream) const;
  /// Whether all before it has run.
  bool query() const;
  /// Returns when all before it has run.
  void synchronize() const;

  Device device() const noexcept { return device_; }

 private:
  Device device_;
  uint64_t id_ = 0;  // of the device's runtime; 0 until it is recorded, and on the host
};

/// `device` with the index of the thread's current device where it has none. The host, meta and backends
/// without a DeviceRuntime have one device, without an index.
Device resolved(Device device) noexcept;
/// Whether both name one device: where a backend has one only, an index makes no difference.
bool same_device(Device a, Device b) noexcept;
/// The stream that work for `device` goes to on this thread; the default one, unless a guard says otherwise.
Stream current_stream(Device device) noexcept;

/// Makes a device the current one of its backend on this thread; for the host, meta and a device without an
/// index it changes nothing. Throws Error{Device} for an index that the backend does not have.
void set_current_device(Device device);
/// Makes a stream the current one of its device on this thread; the device stays what it is.
void set_current_stream(Stream stream);

/// Makes a device the current one of its backend for a scope; after it, also when an exception leaves it, the
/// one from before is current again.
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

}  // namespace tenon
