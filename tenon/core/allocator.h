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

/// Allocates the storages of a backend; one object serves all devices of that backend.
class Allocator {
 public:
  virtual ~Allocator() = default;
  /// Allocates `nbytes` uninitialised bytes on the stream's device for work of that stream, aligned to at
  /// least 64 bytes. An allocation of 0 bytes may return address 0. Throws Error{OutOfMemory}, and then
  /// allocates nothing.
  virtual Address allocate(size_t nbytes, Stream stream) = 0;
  /// Frees a block. Work queued on `stream` earlier may still use it: the block is reused on another stream,
  /// or returned to the device, only once that work has run.
  virtual void deallocate(Address address, size_t nbytes, Stream stream) noexcept = 0;
  /// Copies between two blocks of the stream's device, as work of the stream.
  virtual void copy(Address to, Address from, size_t nbytes, Stream stream) = 0;
  virtual std::string_view name() const noexcept = 0;
};

/// The allocator of host memory.
Allocator& cpu_allocator() noexcept;

/// Allocates `nbytes` zero bytes from `cpu_allocator()`, which also frees them. Memory that the system has
/// just handed out is zero already and is not written.
Address allocate_zeros_on_cpu(size_t nbytes);

/// The statistics of the host's allocator. They leave out blocks of at most kSmallBlockMax bytes, because
/// counting those would double their cost.
MemoryStats cpu_memory_stats() noexcept;
/// Resets each peak to the current value, and each sum (allocated, freed, retries, failures) to zero.
void reset_cpu_peak_memory_stats() noexcept;
void reset_cpu_accumulated_memory_stats() noexcept;

/// Returns the host blocks that are kept for reuse to the system, and says how many bytes they had. Freed
/// blocks of 128 KiB and more are kept up to a limit, by default a quarter of the memory of the machine or of
/// the process's control group. The cache shrinks when the system runs short of memory, and is emptied before
/// an allocation fails.
size_t empty_cpu_cache() noexcept;
size_t cpu_cache_limit() noexcept;
/// Sets the limit of that cache; zero keeps nothing.
void set_cpu_cache_limit(size_t nbytes) noexcept;

/// For tests: makes the `count`-th host allocation of more than `threshold` bytes from now on fail, as if
/// memory had run out. Zero switches this off.
void fail_cpu_allocation_after(int64_t count, size_t threshold) noexcept;

/// The allocator of a device's storages. Throws Error{Device} when the device has none.
Allocator& allocator_for(Device device);
/// Sets the allocator of a backend; a device calls this once when it is loaded.
void set_allocator(Backend backend, Allocator* allocator) noexcept;

namespace detail {

/// "of 24.0 GiB of memory 1.2 GiB are available, tensors of Tenon hold 20.0 GiB, ": what an error says when
/// an allocation has failed.
std::string describe_cpu_memory();

/// Throws an Error{OutOfMemory} whose message says what was asked for and what is left. `emptied` is the
/// number of bytes that were released when the cache was emptied for this allocation.
[[noreturn]] void throw_cpu_out_of_memory(size_t nbytes, size_t emptied);

}  // namespace detail

}  // namespace tenon
