// MemoryStats: how much memory tensors use of an allocator, and how much the allocator uses of the system or
// the device. Filled in by allocators, printed here. The names are PyTorch's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tenon {

/// One quantity over time. `current` is `allocated - freed` since the process began.
struct MemoryStat {
  int64_t current = 0;
  int64_t peak = 0;       ///< The highest `current` since the peaks were reset.
  int64_t allocated = 0;  ///< All that was added since the sums were reset.
  int64_t freed = 0;      ///< All that was taken away since the sums were reset.
};

/// A quantity of all blocks, and of those of small and of large requests (above 1 MiB) apart. The host has
/// one pool, the large one.
struct PooledStat : MemoryStat {
  MemoryStat small_pool, large_pool;
};

/// The statistics of an allocator on one device. Allocated blocks are in use. Active blocks are those and the
/// freed ones that a queue of the device may still use; on the host there are none of these. Reserved is what
/// the allocator holds, in use or kept for reuse, in segments, which are cut into blocks.
struct MemoryStats {
  PooledStat allocation;       ///< Blocks in use.
  PooledStat allocated_bytes;  ///< Of blocks in use, whole blocks; on the host what was asked for.
  PooledStat active;
  PooledStat active_bytes;
  PooledStat segment;
  PooledStat reserved_bytes;  ///< Of the system or the device, rounding included.
  PooledStat
      inactive_split;  ///< Free blocks next to others, which cannot go back to the device by themselves.
  PooledStat inactive_split_bytes;
  PooledStat requested_bytes;        ///< What was asked for, of blocks in use.
  MemoryStat oversize_allocations;   ///< Of at least `max_split_size` bytes.
  MemoryStat oversize_segments;      ///< Those of such allocations.
  int64_t num_alloc_retries = 0;     ///< Allocations for which the cache gave memory back, or waited.
  int64_t num_ooms = 0;              ///< Allocations that failed.
  int64_t num_sync_all_streams = 0;  ///< How often the host waited for freed blocks' events.
  int64_t num_device_alloc = 0;      ///< Calls that took memory from the device; on the host not counted.
  int64_t num_device_free = 0;       ///< Calls that returned memory; on the host not counted.
  int64_t max_split_size = -1;       ///< Larger blocks are not split; -1: no limit.
  int64_t free_bytes = 0;            ///< Kept for reuse, and used by no queue.
  int64_t largest_free_block = 0;    ///< In bytes.
  double fragmentation_peak = 0;     ///< Of the moments when memory was taken from the device.

  /// The part of the free bytes outside of the largest free block; 0 when nothing is free.
  double fragmentation() const noexcept {
    return free_bytes > 0 ? 1 - static_cast<double>(largest_free_block) / static_cast<double>(free_bytes) : 0;
  }
  /// The part of the most that was ever reserved that tensors did not need even at their own peak.
  double waste_peak() const noexcept {
    const auto reserved = static_cast<double>(reserved_bytes.peak);
    return reserved > 0 ? 1 - static_cast<double>(allocated_bytes.peak) / reserved : 0;
  }
};

using MemoryFigure = std::variant<int64_t, double>;
/// The statistics under PyTorch's 122 names ("allocated_bytes.all.current") and Tenon's own,
/// "fragmentation.current", "fragmentation.peak" and "waste.peak", sorted by name.
std::vector<std::pair<std::string, MemoryFigure>> named_memory_stats(const MemoryStats& stats);

/// A table for people. `abbreviated` leaves out the pools.
std::string memory_summary(std::string_view device, const MemoryStats& stats, bool abbreviated = false);

}  // namespace tenon
