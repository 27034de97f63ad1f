// DeviceCache: how blocks are found, cut, handed out, freed and counted. Included by device_cache.cc, and by
// the test that plants faults.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>

#include "tenon/core/device_cache.h"
#include "tenon/core/device_cache_events.h"
#include "tenon/core/device_cache_segments.h"
#include "tenon/core/error.h"

namespace tenon {

template <class Faults>
BasicDeviceCache<Faults>::BasicDeviceCache(std::string name, Device device, DeviceMemory& memory,
                                           const CacheOptions& options)
    : name_(std::move(name)),
      device_(device),
      memory_(memory),
      granularity_(memory.granularity()),
      options_(options) {
  const size_t map = memory.map_granularity();
  TENON_CHECK(std::has_single_bit(granularity_) && granularity_ >= 64 && granularity_ <= kSmallSegment,
              Device,
              fmt::format("{}: the granularity of its memory is {}, and must be a power of two from 64 to {}",
                          name_, granularity_, kSmallSegment));
  TENON_CHECK(
      map == 0 || (std::has_single_bit(map) && map >= granularity_), Device,
      fmt::format("{}: it maps memory in multiples of {}, which must be a power of two of at least {}", name_,
                  map, granularity_));
  if (map == 0) options_.expandable = false;
}

template <class Faults>
BasicDeviceCache<Faults>::~BasicDeviceCache() {
  captures_.clear();
  private_pools_.clear();
  try {
    empty();
  } catch (...) {
    // A device that has failed keeps its memory.
  }
}

template <class Faults>
Address BasicDeviceCache<Faults>::allocate(size_t nbytes, Stream stream) {
  if (nbytes == 0) return 0;
  Stack stack = history_.on() ? MemoryStack::take() : nullptr;
  Lock lock(mutex_);
  if (nbytes > kMostBytes || detail::planned_device_failure.comes(nbytes)) [[unlikely]]
    throw_out_of_memory(nbytes, stream, lock, "", false);
  const size_t size = detail::round_up(nbytes, granularity_);
  if (awaited_events_ > 0) [[unlikely]]
    poll();
  CachePool& pool = pool_for(stream, size > kSmallRequest);
  MemoryBlock* block = search(pool, size);
  if (!block) [[unlikely]]
    block = make_room(stream, size, nbytes, lock);
  return hand_out(*block, size, nbytes, std::move(stack));
}

/// The private pool of a stream that is captured; else 0.
template <class Faults>
uint64_t BasicDeviceCache<Faults>::pool_id_for(Stream stream) const noexcept {
  for (const CapturedStream& capture : captures_) {
    if (capture.stream == stream.id) return capture.pool;
  }
  return 0;
}

template <class Faults>
CachePool& BasicDeviceCache<Faults>::pool_for(Stream stream, bool large) {
  const uint64_t id = pool_id_for(stream);
  for (const auto& entry : pools_) {
    CachePool& pool = entry->pools[large];
    if (pool.id == id && (pool.stream.id == stream.id || Faults::planted(CacheFault::OtherStreamsPool)))
      return pool;
  }
  pools_.push_back(std::make_unique<StreamPools>(granularity_, id, Stream{device_, stream.id}));
  return pools_.back()->pools[large];
}

/// Takes a free block out of a pool, and makes sure that handing it out cannot fail.
template <class Faults>
MemoryBlock* BasicDeviceCache<Faults>::search(CachePool& pool, size_t size) {
  store_.reserve(3);
  live_.reserve_one();
  const size_t most = options_.max_split_size;
  // Blocks that are never split serve only requests that nearly fill them.
  const size_t limit = !pool.large || most == SIZE_MAX ? SIZE_MAX
                       : size < most                   ? most
                                                       : size + kMiddleSegment;
  MemoryBlock* block = pool.bins.find(size, limit);
  if (block) take(*block);
  return block;
}

/// Splits a block that is in no bin, and counts it as in use.
template <class Faults>
Address BasicDeviceCache<Faults>::hand_out(MemoryBlock& block, size_t size, size_t nbytes, Stack stack) {
  const CachePool& pool = *block.segment->pool;
  const size_t rest = block.size - size;
  // A small rest of a large block would only be in the way of those that unite.
  const bool split = (!pool.large || block.segment->expandable)
                         ? rest > 0
                         : rest > kSmallRequest && size < options_.max_split_size;
  if (split) split_off(block, size, State::Free);
  block.state = State::Live;
  block.requested = nbytes;
  live_.insert(block);
  tally_.allocated.add(pool.large, block.size);
  tally_.active.add(pool.large, block.size);
  tally_.requested_bytes.add(pool.large, static_cast<int64_t>(nbytes));
  if (block.size >= options_.max_split_size) tally_.oversize_allocations.add(1);
  if (stack) history_.record(Action::Alloc, block.address, nbytes, pool.stream, std::move(stack));
  return block.address;
}

/// Puts a block that has no free neighbours into its bin.
template <class Faults>
void BasicDeviceCache<Faults>::put(MemoryBlock& block) noexcept {
  CachePool& pool = *block.segment->pool;
  block.state = State::Free;
  pool.bins.insert(block);
  if (block.segment->expandable || is_whole(block)) return;
  tally_.inactive_split.add(pool.large, block.size);
}

/// Takes a free block out of its bin.
template <class Faults>
void BasicDeviceCache<Faults>::take(MemoryBlock& block) noexcept {
  CachePool& pool = *block.segment->pool;
  pool.bins.erase(block);
  block.state = State::Live;
  if (block.segment->expandable || is_whole(block)) return;
  tally_.inactive_split.subtract(pool.large, block.size);
}

/// Unites a block that is in no bin with the neighbours of a state, Free or Unmapped; returns the whole.
template <class Faults>
MemoryBlock& BasicDeviceCache<Faults>::unite(MemoryBlock& block, State state) noexcept {
  if (Faults::planted(CacheFault::NoMerge)) return block;
  if (MemoryBlock* before = block.before; before && before->state == state) {
    if (state == State::Free) take(*before);
    block.address = before->address;
    block.size += before->size;
    block.before = before->before;
    (block.before ? block.before->after : block.segment->first) = &block;
    store_.give_back(*before);
  }
  if (MemoryBlock* after = block.after; after && after->state == state) {
    if (state == State::Free) take(*after);
    block.size += after->size;
    block.after = after->after;
    if (block.after) block.after->before = &block;
    store_.give_back(*after);
  }
  return block;
}

/// Cuts a block that is in no bin down to `size`; the rest becomes a block of a state, in its bin if Free.
template <class Faults>
void BasicDeviceCache<Faults>::split_off(MemoryBlock& block, size_t size, State state) noexcept {
  const size_t rest_size = block.size - size;
  block.size = size;
  if (Faults::planted(CacheFault::LostSplit) && state == State::Free) return;
  MemoryBlock& rest = store_.make(*block.segment, block.address + size, rest_size);
  rest.before = &block;
  rest.after = block.after;
  if (rest.after) rest.after->before = &rest;
  block.after = &rest;
  rest.state = state;
  if (state != State::Free || Faults::planted(CacheFault::ForgottenRest)) return;
  put(rest);
  if (Faults::planted(CacheFault::UncountedSplit) && !block.segment->expandable)
    tally_.inactive_split.subtract(block.segment->pool->large, rest_size);
}

template <class Faults>
void BasicDeviceCache<Faults>::free(Address address, Stream stream) noexcept {
  Stack stack = history_.on() ? MemoryStack::take() : nullptr;
  const Lock lock(mutex_);
  MemoryBlock* const block = live_.take(address);
  if (!block) {
    // To go on would give memory to two owners.
    fmt::print(stderr, "tenon: {}: address {:#x} is freed, but is not allocated\n", name_, address);
    std::abort();
  }
  const CachePool& pool = *block->segment->pool;
  tally_.allocated.subtract(pool.large, block->size);
  tally_.requested_bytes.subtract(pool.large, static_cast<int64_t>(block->requested));
  if (block->size >= options_.max_split_size) tally_.oversize_allocations.subtract(1);
  if (stack) history_.record(Action::FreeRequested, address, block->requested, pool.stream, std::move(stack));
  block->requested = 0;
  stream.device = device_;
  const bool elsewhere = stream.id != pool.stream.id && !Faults::planted(CacheFault::FreeingStream);
  if ((block->users.empty() && !elsewhere) || Faults::planted(CacheFault::NoEvent)) [[likely]]
    set_free(*block);
  else
    await(*block, elsewhere ? &stream : nullptr);
}

/// No stream uses the block any more, apart from its own.
template <class Faults>
void BasicDeviceCache<Faults>::set_free(MemoryBlock& block) noexcept {
  const CachePool& pool = *block.segment->pool;
  tally_.active.subtract(pool.large, block.size);
  if (history_.on()) history_.record(Action::FreeCompleted, block.address, block.size, pool.stream, nullptr);
  if (options_.fill >= 0 && captures_.empty()) {
    try {
      memory_.fill(block.address, static_cast<uint8_t>(options_.fill), block.size, pool.stream);
    } catch (...) {
      // The device has failed, which the next call of it says.
    }
  }
  put(unite(block, State::Free));
}

template <class Faults>
void BasicDeviceCache<Faults>::set_expandable(bool on) {
  const Lock lock(mutex_);
  options_.expandable = on && memory_.map_granularity() > 0;
}

template <class Faults>
MemoryStats BasicDeviceCache<Faults>::stats_locked() const noexcept {
  MemoryStats stats = tally_.read();
  if (options_.max_split_size != SIZE_MAX)
    stats.max_split_size = static_cast<int64_t>(options_.max_split_size);
  stats.free_bytes = stats.reserved_bytes.current - stats.active_bytes.current;
  size_t largest = 0;
  for (const auto& entry : pools_) {
    for (const CachePool& pool : entry->pools) largest = std::max(largest, pool.bins.largest());
  }
  stats.largest_free_block = static_cast<int64_t>(largest);
  return stats;
}

template <class Faults>
MemoryStats BasicDeviceCache<Faults>::stats() const {
  const Lock lock(mutex_);
  return stats_locked();
}

template <class Faults>
void BasicDeviceCache<Faults>::reset_peaks() noexcept {
  const Lock lock(mutex_);
  tally_.reset_peaks();
  tally_.fragmentation_peak = stats_locked().fragmentation();
}

template <class Faults>
void BasicDeviceCache<Faults>::reset_sums() noexcept {
  const Lock lock(mutex_);
  tally_.reset_sums();
}

template <class Faults>
MemorySnapshot BasicDeviceCache<Faults>::snapshot() const {
  using Shown = MemorySnapshot::Block::State;
  const Lock lock(mutex_);
  MemorySnapshot shown;
  for (const auto& segment : segments_) {
    MemorySnapshot::Segment entry{.address = segment->address,
                                  .size = segment->mapped,
                                  .stream = segment->pool->stream,
                                  .pool = segment->pool->id,
                                  .small = !segment->pool->large,
                                  .expandable = segment->expandable};
    for (const MemoryBlock* b = segment->first; b; b = b->after) {
      if (b->state == State::Unmapped) continue;
      entry.blocks.push_back({.address = b->address,
                              .size = b->size,
                              .requested = b->requested,
                              .state = b->state == State::Live       ? Shown::Allocated
                                       : b->state == State::Awaiting ? Shown::AwaitingFree
                                                                     : Shown::Inactive,
                              .stack = history_.made_by(b->address)});
    }
    shown.segments.push_back(std::move(entry));
  }
  std::sort(shown.segments.begin(), shown.segments.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  shown.events = history_.events();
  return shown;
}

template <class Faults>
void BasicDeviceCache<Faults>::record_history(size_t max_events) {
  const Lock lock(mutex_);
  if (max_events > 0)
    history_.start(max_events);
  else
    history_.stop();
}

}  // namespace tenon
