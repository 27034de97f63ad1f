// Allocator: where the bytes of a storage come from; one for each device.
// Used by Storage and by devices. Independent of shapes and dtypes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tenon/core/memory_stats.h"
#include "tenon/core/stream.h"

namespace tenon {

struct MemorySnapshot;

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

  /// Notes that work queued on `user` uses a block of `device` which was allocated for another stream: once
  /// it is freed, it is not reused before the work that was queued there by then has run. `user` may be a
  /// stream of another backend. Throws Error{Value} for an address that is not allocated.
  virtual void record_stream(Address /*address*/, Device /*device*/, Stream /*user*/) {}

  /// What the allocator holds of a device; all zeros of an allocator that does not count.
  virtual MemoryStats memory_stats(Device /*device*/) const { return {}; }
  /// Resets each peak to the current value, and each sum (allocated, freed, and counts of calls) to zero.
  virtual void reset_peak_memory_stats(Device /*device*/) noexcept {}
  virtual void reset_accumulated_memory_stats(Device /*device*/) noexcept {}
  /// Returns what is kept for reuse to the device, which may wait for its queues, and says how many bytes
  /// that was. Never touches blocks in use.
  virtual size_t empty_cache(Device /*device*/) { return 0; }
  /// Every segment and block that is held of a device; empty of an allocator without segments.
  virtual MemorySnapshot memory_snapshot(Device device) const;
  /// Whether segments that are taken from now on grow in place; see CacheOptions. Does nothing where memory
  /// cannot be mapped.
  virtual void set_expandable_segments(Device /*device*/, bool /*on*/) {}
  /// Keeps the latest `max_events` events and the stack of every allocation from now on, for snapshots and
  /// errors; 0 stops and forgets. Does nothing in an allocator without a history.
  virtual void record_memory_history(Device /*device*/, size_t /*max_events*/) {}
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
/// blocks of more than 64 KiB are kept up to a limit, by default a quarter of the memory of the machine or of
/// the process's control group. The cache shrinks when the system runs short of memory, and is emptied before
/// an allocation fails.
size_t empty_cpu_cache() noexcept;
size_t cpu_cache_limit() noexcept;
/// Sets the limit of that cache; zero keeps nothing.
void set_cpu_cache_limit(size_t nbytes) noexcept;

/// For tests: makes the `count`-th host allocation of more than `threshold` bytes from now on fail, as if
/// memory had run out. Zero switches this off.
void fail_cpu_allocation_after(int64_t count, size_t threshold) noexcept;

/// For tests: makes the `count`-th allocation of more than `threshold` bytes on any device from now on fail,
/// as if memory had run out. Zero switches this off. Host allocations have their own function above.
void fail_device_allocation_after(int64_t count, size_t threshold = 0) noexcept;

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

/// Counts down to an allocation that is to fail, for tests.
class PlannedFailure {
 public:
  void set(int64_t count, size_t threshold) noexcept {
    threshold_ = threshold;
    countdown_ = count;
  }
  /// Whether this allocation is the one.
  bool comes(size_t nbytes) noexcept {
    if (countdown_.load(std::memory_order_relaxed) == 0 || nbytes <= threshold_.load()) return false;
    return countdown_.fetch_sub(1) == 1;
  }

 private:
  std::atomic<int64_t> countdown_{0};
  std::atomic<size_t> threshold_{0};
};
/// That of fail_device_allocation_after.
extern PlannedFailure planned_device_failure;

/// "1048576 bytes (1.0 MiB)"
std::string describe_request(size_t nbytes);

}  // namespace detail

}  // namespace tenon
