// DeviceRuntime: what a device implements so that its tensors have streams and events.
// Used by core/stream; devices derive from it. Knows nothing of memory (Allocator) and kernels (stubs).
#pragma once

#include <cstdint>

#include "tenon/core/stream.h"

namespace tenon {

/// The queues of all devices of a backend. Calls come from any thread, several at once; none depends on a
/// current device. What a function throws reaches the caller of Stream or Event.
class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;

  /// How many devices there are; at least one, and always the same number.
  virtual int device_count() const noexcept = 0;

  /// The id of a further stream of a device, not 0.
  virtual uint64_t create_stream(Device device) = 0;
  /// Returns when all that was queued has run.
  virtual void synchronize(Stream stream) = 0;

  /// The id of an event, not 0.
  virtual uint64_t create_event(Device device) = 0;
  /// Streams that wait for the event go on waiting.
  virtual void destroy_event(Device device, uint64_t event) noexcept = 0;
  /// The event stands for all that `stream` has been given so far, and no longer for what it stood for.
  virtual void record(uint64_t event, Stream stream) = 0;
  /// What `stream` is given from now on runs after what the event stands for now; both of this backend.
  virtual void wait(Stream stream, Device device, uint64_t event) = 0;
  /// Whether what the event stands for has run.
  virtual bool query(Device device, uint64_t event) = 0;
  /// Returns when it has run.
  virtual void synchronize(Device device, uint64_t event) = 0;
};

/// The runtime of a backend; null for the host and meta, and where nobody set one.
DeviceRuntime* device_runtime(Backend backend) noexcept;
/// Sets it; devices call this once when they load. It lives as long as the process.
void set_device_runtime(Backend backend, DeviceRuntime* runtime) noexcept;

}  // namespace tenon
