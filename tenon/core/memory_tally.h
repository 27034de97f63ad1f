// The counts of a DeviceCache: plain numbers, which the owner's lock protects. MemoryCounter is their like
// for the host's allocator, which has no lock to count under.
#pragma once

#include <cstdint>

#include "tenon/core/memory_stats.h"

namespace tenon {

/// Sums, current and peak of one quantity.
class MemoryTally {
 public:
  void add(int64_t n) noexcept {
    in_ += n;
    if (in_ - out_ > peak_) peak_ = in_ - out_;
  }
  void subtract(int64_t n) noexcept { out_ += n; }
  int64_t current() const noexcept { return in_ - out_; }
  MemoryStat read() const noexcept { return {current(), peak_, in_ - in_before_, out_ - out_before_}; }
  void reset_peak() noexcept { peak_ = current(); }
  void reset_sums() noexcept {
    in_before_ = in_;
    out_before_ = out_;
  }

 private:
  int64_t in_ = 0, out_ = 0, peak_ = 0, in_before_ = 0, out_before_ = 0;
};

struct PooledTally {
  MemoryTally all, pools[2];  ///< Small and large.
  void add(bool large, int64_t n) noexcept {
    all.add(n);
    pools[large].add(n);
  }
  void subtract(bool large, int64_t n) noexcept {
    all.subtract(n);
    pools[large].subtract(n);
  }
};

/// A number of blocks or segments and of their bytes.
struct SizedTally {
  PooledTally count, bytes;
  void add(bool large, size_t nbytes) noexcept {
    count.add(large, 1);
    bytes.add(large, static_cast<int64_t>(nbytes));
  }
  void subtract(bool large, size_t nbytes) noexcept {
    count.subtract(large, 1);
    bytes.subtract(large, static_cast<int64_t>(nbytes));
  }
};

/// What MemoryStats shows, under the same names.
struct CacheTally {
  SizedTally allocated, active, inactive_split;
  PooledTally requested_bytes, segment, reserved_bytes;
  MemoryTally oversize_allocations, oversize_segments;
  int64_t alloc_retries = 0, ooms = 0, syncs = 0, device_allocs = 0, device_frees = 0;
  double fragmentation_peak = 0;

  /// What is neither current (free bytes, the largest block) nor an option.
  MemoryStats read() const noexcept;
  /// All but that of fragmentation.
  void reset_peaks() noexcept;
  void reset_sums() noexcept;

 private:
  template <class F>
  void for_each(F&& visit) noexcept;
};

}  // namespace tenon
