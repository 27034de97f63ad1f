// CachingAllocator: the allocator of a device's tensors. It takes memory from the device in segments and
// keeps freed blocks for reuse, in stream order (device_cache.h), because devices take and return memory
// slowly. A device that has raw memory (DeviceMemory) and streams (DeviceRuntime) makes one and passes it to
// `set_allocator`; page-locked host memory, which devices read on their own, has another one.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "tenon/core/allocator.h"
#include "tenon/core/device_cache.h"
#include "tenon/core/device_memory.h"

namespace tenon {

/// Reads TENON_EXPANDABLE_SEGMENTS (0 or 1), TENON_MAX_SPLIT_SIZE_MB and TENON_MEMORY_FILL (a byte, such as
/// 0xff). Throws Error{Value} for a value that is none.
CacheOptions cache_options_from_environment();

/// Thread-safe. `memory` must live as long as the allocator.
class CachingAllocator final : public Allocator {
 public:
  /// The allocator of all devices of a backend, which has a DeviceRuntime. Throws Error{Device} if `memory`
  /// is not as DeviceMemory demands.
  CachingAllocator(Backend backend, DeviceMemory& memory,
                   const CacheOptions& options = cache_options_from_environment());
  /// An allocator of host memory that devices use: its blocks belong to the host's stream, and what devices
  /// do with them is noted by `record_stream`.
  CachingAllocator(std::string name, DeviceMemory& memory,
                   const CacheOptions& options = cache_options_from_environment());

  Address allocate(size_t nbytes, Stream stream) override {
    const Address address = cache(stream.device).allocate(nbytes, stream);
    if (nbytes == 0) [[unlikely]]
      empty_.fetch_add(1, std::memory_order_relaxed);
    return address;
  }
  void deallocate(Address address, size_t nbytes, Stream stream) noexcept override {
    if (nbytes > 0)
      cache(stream.device).free(address, stream);
    else
      empty_.fetch_sub(1, std::memory_order_relaxed);
  }
  void copy(Address to, Address from, size_t nbytes, Stream stream) override;
  std::string_view name() const noexcept override { return name_; }

  void record_stream(Address address, Device device, Stream user) override {
    cache(device).record_stream(address, user);
  }
  MemoryStats memory_stats(Device device) const override { return cache(device).stats(); }
  void reset_peak_memory_stats(Device device) noexcept override { cache(device).reset_peaks(); }
  void reset_accumulated_memory_stats(Device device) noexcept override { cache(device).reset_sums(); }
  size_t empty_cache(Device device) override { return cache(device).empty(); }
  MemorySnapshot memory_snapshot(Device device) const override { return cache(device).snapshot(); }
  void set_expandable_segments(Device device, bool on) override { cache(device).set_expandable(on); }
  void record_memory_history(Device device, size_t max_events) override {
    cache(device).record_history(max_events);
  }

  /// How many allocations of all devices were not freed, those of no bytes included.
  int64_t live_storages() const;
  /// How many events of a backend the caches have made, and destroying those that they do not need now.
  int64_t own_events(Backend backend) const;
  void drop_events(Backend backend) noexcept;

  /// The cache of one device, which has what goes beyond an Allocator.
  /// Throws Error{Device} for an index that the backend does not have.
  DeviceCache& cache(Device device) const {
    const int index = device.index >= 0 ? device.index : std::max<int>(resolved(device).index, 0);
    if (static_cast<size_t>(index) >= caches_.size()) [[unlikely]]
      throw_no_device(device);
    return *caches_[static_cast<size_t>(index)];
  }

 private:
  [[noreturn]] void throw_no_device(Device device) const;

  std::string name_;
  DeviceMemory& memory_;
  std::vector<std::unique_ptr<DeviceCache>> caches_;  // by index of the device
  std::atomic<int64_t> empty_{0};                     // allocations of no bytes
};

/// A private pool of a device, for the memory of a captured graph. Its memory stays as it is while this
/// lives.
class PrivatePool {
 public:
  explicit PrivatePool(DeviceCache& cache) : cache_(cache), id_(cache.create_pool()) {}
  ~PrivatePool() { cache_.release_pool(id_); }
  PrivatePool(const PrivatePool&) = delete;
  PrivatePool& operator=(const PrivatePool&) = delete;

  DeviceCache& cache() const noexcept { return cache_; }
  uint64_t id() const noexcept { return id_; }

 private:
  DeviceCache& cache_;
  uint64_t id_;
};

/// While this lives, allocations for a stream come from a private pool, and the device's cache asks nothing
/// of any stream.
class CaptureScope {
 public:
  CaptureScope(const PrivatePool& pool, Stream stream) : pool_(pool), stream_(stream) {
    pool.cache().begin_capture(pool.id(), stream);
  }
  ~CaptureScope() { pool_.cache().end_capture(pool_.id(), stream_); }
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

 private:
  const PrivatePool& pool_;
  Stream stream_;
};

}  // namespace tenon
