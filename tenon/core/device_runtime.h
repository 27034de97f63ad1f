// DeviceRuntime: the interface that a device implements to have streams and events. Used by core/stream;
// devices derive from it. Knows nothing of memory (Allocator) or kernels (stubs).
#pragma once

#include <cstdint>

#include "tenon/core/stream.h"

namespace tenon {

/// The queues of all devices of a backend. Any thread may call these functions, also concurrently, and none
/// depends on the current device. An exception that one throws reaches the caller of Stream or Event.
class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;

  /// The number of devices: at least one, and constant.
  virtual int device_count() const noexcept = 0;

  /// Creates a stream and returns its id, which is not 0.
  virtual uint64_t create_stream(Device device) = 0;
  /// Blocks until all work that was queued on the stream has run.
  virtual void synchronize(Stream stream) = 0;

  /// Creates an event and returns its id, which is not 0.
  virtual uint64_t create_event(Device device) = 0;
  /// Destroys an event; streams that already wait for it keep waiting.
  virtual void destroy_event(Device device, uint64_t event) noexcept = 0;
  /// Marks the end of the work queued on `stream` so far; replaces what the event marked before.
  virtual void record(uint64_t event, Stream stream) = 0;
  /// Makes work that is queued on `stream` from now on run after the work that the event marks now. Both
  /// belong to this backend.
  virtual void wait(Stream stream, Device device, uint64_t event) = 0;
  /// Whether the work that the event marks has run.
  virtual bool query(Device device, uint64_t event) = 0;
  /// Blocks until that work has run.
  virtual void synchronize(Device device, uint64_t event) = 0;
};

/// The runtime of a backend; null for the host, for meta, and for a backend that has set none.
DeviceRuntime* device_runtime(Backend backend) noexcept;
/// Sets the runtime of a backend; a device calls this once when it is loaded. The object must live as long as
/// the process.
void set_device_runtime(Backend backend, DeviceRuntime* runtime) noexcept;

}  // namespace tenon
