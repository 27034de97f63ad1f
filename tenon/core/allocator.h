// Allocator: where the bytes of a storage come from; one for each device.
// Used by Storage and by devices. Knows nothing of shapes and dtypes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tenon/core/memory_stats.h"
#include "tenon/core/stream.h"

namespace tenon {

/// An address on some device. Only that device can turn it into something to read; on cpu it is a pointer.
using Address = uint64_t;

/// Where a device's storages come from; one object for all devices of a backend.
class Allocator {
 public:
  virtual ~Allocator() = default;
  /// `nbytes` uninitialised bytes on the stream's device, for work of that stream; aligned to at least 64. 0
  /// bytes may give address 0. Throws Error{OutOfMemory} and takes nothing.
  virtual Address allocate(size_t nbytes, Stream stream) = 0;
  /// Takes a block back. Work that `stream` was given before may still use it: the block serves another
  /// stream, or goes back to the device, only after that.
  virtual void deallocate(Address address, size_t nbytes, Stream stream) noexcept = 0;
  /// Copies between two blocks of the stream's device, as work of the stream.
  virtual void copy(Address to, Address from, size_t nbytes, Stream stream) = 0;
  virtual std::string_view name() const noexcept = 0;
};

/// The allocator of host memory.
Allocator& cpu_allocator() noexcept;

/// `nbytes` bytes of zero from `cpu_allocator()`, which takes them back. Memory fresh from the system is not
/// written to.
Address allocate_zeros_on_cpu(size_t nbytes);

/// What the host's allocator has counted: blocks above kSmallBlockMax (to count small ones would double their
/// cost).
MemoryStats cpu_memory_stats() noexcept;
/// Peaks start again from what is current, sums (allocated, freed, retries, failures) from zero.
void reset_cpu_peak_memory_stats() noexcept;
void reset_cpu_accumulated_memory_stats() noexcept;

/// Gives host blocks that are kept for reuse back to the system; how many bytes that were. Blocks of 128 KiB
/// and more are kept, up to a limit: a quarter of the memory that the machine or the process's control group
/// has, unless set. What is kept shrinks when the system runs short, and goes before an allocation fails.
size_t empty_cpu_cache() noexcept;
size_t cpu_cache_limit() noexcept;
/// Zero keeps nothing.
void set_cpu_cache_limit(size_t nbytes) noexcept;

/// Lets the next `count`-th host allocation of more than `threshold` bytes fail, as if memory had run out;
/// for tests of what callers do then. Zero switches it off.
void fail_cpu_allocation_after(int64_t count, size_t threshold) noexcept;

/// The allocator of a device's storages. Throws Error{Device} when the device has none.
Allocator& allocator_for(Device device);
/// Sets it; devices call this once when they load.
void set_allocator(Backend backend, Allocator* allocator) noexcept;

namespace detail {

/// Throws Error{OutOfMemory} that says what was asked for and what there is. `emptied`: what the cache held
/// when it was emptied for this allocation.
[[noreturn]] void throw_cpu_out_of_memory(size_t nbytes, size_t emptied);

}  // namespace detail

}  // namespace tenon
