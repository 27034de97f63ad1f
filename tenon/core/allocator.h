// Allocator: where the bytes of a storage come from; one for each device.
// Used by Storage and by devices. Knows nothing of shapes and dtypes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tenon/core/device.h"

namespace tenon {

/// An address on some device. Only that device can turn it into something to read; on cpu it is a pointer.
using Address = uint64_t;

/// Where a device's storages come from; one object for all devices of a backend.
class Allocator {
 public:
  virtual ~Allocator() = default;
  /// `nbytes` uninitialised bytes on `device`, whose index is settled, for use in its current stream; aligned
  /// to at least 64. 0 bytes may give address 0. Throws Error{OutOfMemory} and takes nothing.
  virtual Address allocate(size_t nbytes, Device device) = 0;
  virtual void deallocate(Address address, size_t nbytes, Device device) noexcept = 0;
  /// Copies between two blocks of `device`, in its current stream.
  virtual void copy(Address to, Address from, size_t nbytes, Device device) = 0;
  virtual std::string_view name() const noexcept = 0;
};

/// The allocator of host memory.
Allocator& cpu_allocator() noexcept;

/// Bytes held now by host blocks above kSmallBlockMax (small ones are not counted: it would double their
/// cost).
int64_t cpu_live_bytes() noexcept;

/// Lets the next `count`-th host allocation of more than `threshold` bytes fail, as if memory had run out;
/// for tests of what callers do then. Zero switches it off.
void fail_cpu_allocation_after(int64_t count, size_t threshold) noexcept;

/// The allocator of a device's storages. Throws Error{Device} when the device has none.
Allocator& allocator_for(Device device);
/// Sets it; devices call this once when they load.
void set_allocator(Backend backend, Allocator* allocator) noexcept;

}  // namespace tenon
