#include "tenon/core/memory_tally.h"

namespace tenon {
namespace {

PooledStat read_pools(const PooledTally& tally) noexcept {
  return {{tally.all.read()}, tally.pools[0].read(), tally.pools[1].read()};
}

}  // namespace

MemoryStats CacheTally::read() const noexcept {
  MemoryStats stats;
  stats.allocation = read_pools(allocated.count);
  stats.allocated_bytes = read_pools(allocated.bytes);
  stats.active = read_pools(active.count);
  stats.active_bytes = read_pools(active.bytes);
  stats.segment = read_pools(segment);
  stats.reserved_bytes = read_pools(reserved_bytes);
  stats.inactive_split = read_pools(inactive_split.count);
  stats.inactive_split_bytes = read_pools(inactive_split.bytes);
  stats.requested_bytes = read_pools(requested_bytes);
  stats.oversize_allocations = oversize_allocations.read();
  stats.oversize_segments = oversize_segments.read();
  stats.num_alloc_retries = alloc_retries;
  stats.num_ooms = ooms;
  stats.num_sync_all_streams = syncs;
  stats.num_device_alloc = device_allocs;
  stats.num_device_free = device_frees;
  stats.fragmentation_peak = fragmentation_peak;
  return stats;
}

template <class F>
void CacheTally::for_each(F&& visit) noexcept {
  for (PooledTally* tally :
       {&allocated.count, &allocated.bytes, &active.count, &active.bytes, &inactive_split.count,
        &inactive_split.bytes, &requested_bytes, &segment, &reserved_bytes}) {
    visit(tally->all);
    for (MemoryTally& pool : tally->pools) visit(pool);
  }
  visit(oversize_allocations);
  visit(oversize_segments);
}

void CacheTally::reset_peaks() noexcept {
  for_each([](MemoryTally& tally) { tally.reset_peak(); });
}

void CacheTally::reset_sums() noexcept {
  for_each([](MemoryTally& tally) { tally.reset_sums(); });
  alloc_retries = ooms = syncs = device_allocs = device_frees = 0;
}

}  // namespace tenon
