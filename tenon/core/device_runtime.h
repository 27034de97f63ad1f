// DeviceRuntime: the interface that a device implements to have streams, events and copies of bytes. Used by
// core/stream and by copies between devices; devices derive from it. Independent of the source of memory
// (Allocator) and of kernels (stubs).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tenon/core/allocator.h"
#include "tenon/core/stream.h"

namespace tenon {

/// Which memory one side of a copy is in.
enum class Place : uint8_t { Device, Host };

/// A flag of copy_bytes: the host memory stays as it is until the stream has passed the copy, so that the
/// call need not wait for it.
inline constexpr uint32_t kCopyHostStays = 1;

/// The queues of all devices of a backend. Any thread may call these functions, also concurrently, and none
/// depends on the current device. An exception that one throws reaches the caller of Stream, Event or of the
/// copy.
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
  /// Creates an event whose time is noted when its work has run.
  virtual uint64_t create_timed_event(Device device) { return create_event(device); }
  /// Milliseconds between two such events whose work has run.
  virtual double elapsed(Device device, uint64_t begin, uint64_t end);

  /// Whether the device records work, with the four functions that follow (core/capture.h).
  virtual bool captures() const noexcept { return false; }
  /// From now on, work that is queued on the stream is recorded and does not run.
  virtual void begin_capture(Stream stream) {}
  /// The id of what was recorded; 0 if it is not kept.
  virtual uint64_t end_capture(Stream stream, bool keep) { return 0; }
  /// Queues what was recorded.
  virtual void launch_capture(Stream stream, uint64_t capture) {}
  /// What was launched still runs.
  virtual void destroy_capture(Device device, uint64_t capture) noexcept {}

  /// Whether copy_bytes is implemented. A device that has it and an Allocator needs nothing more to be filled
  /// and copied, with any strides and dtypes, and to run every operator on host copies
  /// (ops/fallback/cpu_fallback.h).
  virtual bool copies_bytes() const noexcept { return false; }
  /// Copies `nbytes` as work of `stream`. One side is memory of the stream's device, the other is too, or is
  /// host memory. Without kCopyHostStays the call returns when the host memory has been read, or has been
  /// written.
  virtual void copy_bytes(Stream stream, Address to, Place to_place, Address from, Place from_place,
                          size_t nbytes, uint32_t flags);
  /// Whether other libraries name this device's memory by handles, with the three functions that follow.
  /// Elsewhere an address means the same to all.
  virtual bool has_handles() const noexcept { return false; }
  struct Handle {
    void* memory;
    size_t offset;  ///< In bytes.
  };
  /// What others call an address; valid as long as its memory.
  virtual Handle export_memory(Device device, Address address) {
    return {reinterpret_cast<void*>(address), 0};
  }
  /// An address for `nbytes` bytes of others' memory, until forget_memory. Throws Error{Value} for memory
  /// that the device cannot use.
  virtual Address import_memory(Device device, Handle from, size_t nbytes) {
    return reinterpret_cast<Address>(from.memory) + from.offset;
  }
  /// Work that uses the address has run.
  virtual void forget_memory(Device device, Address address) noexcept {}
  /// Throws, once, what went wrong where nothing could be thrown (destroying an event, freeing memory).
  virtual void throw_unreported() {}
  /// Where pinned host memory comes from: copies from and to it need not wait. Null: there is none.
  virtual Allocator* pinned_memory() noexcept { return nullptr; }
};

/// The runtime of a backend; null for the host, for meta, and for a backend that has set none.
DeviceRuntime* device_runtime(Backend backend) noexcept;
/// Sets the runtime of a backend; a device calls this when it is loaded, and with null when it is unloaded.
/// The object must live as long as the process.
void set_device_runtime(Backend backend, DeviceRuntime* runtime) noexcept;

/// Where pinned memory comes from unless a device is named: the first one that has some; null if none has.
Allocator* pinned_allocator() noexcept;
/// Whether a host storage's allocator is that of some device's pinned memory.
bool is_pinned(const Allocator* allocator) noexcept;

namespace detail {
/// Called after a backend's runtime was set. The dispatcher's: what serves the backend has changed.
extern std::atomic<void (*)()> runtime_was_set;
}  // namespace detail

}  // namespace tenon
