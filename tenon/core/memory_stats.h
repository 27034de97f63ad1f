// MemoryStats: how much memory tensors use of an allocator, and how much the allocator uses of the system.
// Filled in by allocators. The names are PyTorch's.
#pragma once

#include <cstdint>

namespace tenon {

/// One quantity over time. `current` is `allocated - freed` since the process began.
struct MemoryStat {
  int64_t current = 0;
  int64_t peak = 0;       ///< The highest `current` since the peaks were reset.
  int64_t allocated = 0;  ///< All that was added since the sums were reset.
  int64_t freed = 0;      ///< All that was taken away since the sums were reset.
};

/// The statistics of an allocator. Allocated blocks are in use. Active blocks are those and the freed ones
/// that a queue of the device may still use; on the host there are none of these. Reserved blocks are all
/// that the allocator holds, in use or kept for reuse.
struct MemoryStats {
  MemoryStat allocation;       ///< Blocks in use.
  MemoryStat allocated_bytes;  ///< What was asked for, of blocks in use.
  MemoryStat active;
  MemoryStat active_bytes;
  MemoryStat reserved_bytes;      ///< Of the system, rounding included.
  int64_t num_alloc_retries = 0;  ///< Allocations that worked only after the cache had been emptied.
  int64_t num_ooms = 0;           ///< Allocations that failed.
};

}  // namespace tenon
