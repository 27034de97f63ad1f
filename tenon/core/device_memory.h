// DeviceMemory: the raw memory of a backend's devices, which a device implements so that CachingAllocator can
// serve its tensors from it. Used by CachingAllocator alone; devices derive from it. Independent of caches;
// streams and events are a DeviceRuntime's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tenon/core/allocator.h"
#include "tenon/core/stream.h"

namespace tenon {

/// Any thread may call these functions, also concurrently, and none depends on the current device. They may
/// take their time: the allocator calls them for whole segments, and not while it holds its lock, save for
/// `map` and `fill`. An exception that one throws reaches the caller of the allocator.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  /// Every address is a multiple of this, and so are the sizes of blocks: a power of two from 64 to 2 MiB.
  virtual size_t granularity() const noexcept { return 512; }
  /// Takes `nbytes` from the device, for work of any stream. 0 says that it has no such piece left; whatever
  /// else goes wrong is an exception.
  virtual Address allocate(Device device, size_t nbytes) = 0;
  /// What the device said when it last had nothing left; empty if it said nothing.
  virtual std::string shortage(Device device) const { return {}; }
  /// Returns a piece, which no queue of the device uses any more.
  virtual void free(Device device, Address address, size_t nbytes) noexcept = 0;
  /// Copies between two blocks of the stream's device, as work of the stream.
  virtual void copy(Address to, Address from, size_t nbytes, Stream stream) = 0;

  /// How much memory a device has, and how much of it is free; 0 where that is not known.
  struct Info {
    uint64_t total = 0, free = 0;
  };
  virtual Info info(Device device) const { return {}; }

  /// What memory is mapped in, a power of two and a multiple of `granularity()`; 0 for a device that cannot
  /// map memory, which need not have the next four functions.
  virtual size_t map_granularity() const noexcept { return 0; }
  /// Reserves a range of addresses without memory; 0 when there is none.
  virtual Address reserve(Device device, size_t nbytes) { return 0; }
  /// Maps memory into part of a reserved range; false: none is left, and nothing was mapped.
  /// Each multiple of the granularity can be unmapped apart from the rest.
  virtual bool map(Device device, Address address, size_t nbytes) { return false; }
  /// Takes away memory that `map` put there, in one call or in several, and that no queue uses any more.
  virtual void unmap(Device device, Address address, size_t nbytes) noexcept {}
  /// Gives up a reserved range without mapped memory.
  virtual void unreserve(Device device, Address address, size_t nbytes) noexcept {}

  /// Writes `byte` everywhere, as work of the stream; false where the device cannot. See TENON_MEMORY_FILL.
  virtual bool fill(Address address, uint8_t byte, size_t nbytes, Stream stream) { return false; }
};

}  // namespace tenon
