// DeviceCache: how memory comes from the device and goes back, and what is tried when there is none. Included
// by device_cache_impl.h.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "tenon/core/device_cache.h"
#include "tenon/core/error.h"
#include "tenon/core/host_memory.h"

namespace tenon {

namespace detail {

constexpr size_t round_up(size_t n, size_t step) { return (n + step - 1) & ~(step - 1); }
constexpr size_t round_down(size_t n, size_t step) { return n & ~(step - 1); }

}  // namespace detail

template <class Faults>
size_t BasicDeviceCache<Faults>::segment_size(size_t size) const noexcept {
  if (size <= kSmallRequest) return kSmallSegment;
  if (size < kMiddleRequest) return kMiddleSegment;
  return detail::round_up(size, kSmallSegment);
}

/// Finds a block for a request that no free block fits; throws when all means are used up.
template <class Faults>
MemoryBlock* BasicDeviceCache<Faults>::make_room(Stream stream, size_t size, size_t nbytes, Lock& lock) {
  lock.unlock();
  const std::lock_guard slow(slow_mutex_);
  lock.lock();
  // Another thread may have freed or gained something, and dropped the pool while it was empty. As long as
  // `slow_mutex_` is held, it stays.
  CachePool& pool = pool_for(stream, size > kSmallRequest);
  poll();
  if (MemoryBlock* block = search(pool, size)) return block;
  tally_.fragmentation_peak = std::max(tally_.fragmentation_peak, stats_locked().fragmentation());

  const size_t want = segment_size(size);
  if (MemoryBlock* block = grow(pool, want, size, lock)) return block;
  // The device may have less than a whole segment left.
  const auto grow_least = [&] { return want > size ? grow(pool, size, size, lock) : nullptr; };
  if (!captures_.empty() && !Faults::planted(CacheFault::WaitsInCapture)) {
    if (MemoryBlock* block = grow_least()) return block;
    throw_out_of_memory(nbytes, pool.stream, lock,
                        "; while something is captured, nothing is waited for or returned to the device");
  }

  ++tally_.alloc_retries;
  if (give_back(cheapest(want), lock) > 0) {
    if (MemoryBlock* block = search(pool, size)) return block;
    if (MemoryBlock* block = grow(pool, want, size, lock)) return block;
  }
  if (wait_for_events(lock)) {
    if (Faults::planted(CacheFault::NoSearchAfterWait)) throw_out_of_memory(nbytes, pool.stream, lock);
    if (MemoryBlock* block = search(pool, size)) return block;
    if (MemoryBlock* block = grow(pool, want, size, lock)) return block;
  }
  give_back(all_returnable(), lock);
  if (MemoryBlock* block = search(pool, size)) return block;
  if (MemoryBlock* block = grow(pool, want, size, lock)) return block;
  if (MemoryBlock* block = grow_least()) return block;
  throw_out_of_memory(nbytes, pool.stream, lock);
}

/// A block of at least `size` bytes, in no bin, from `want` bytes of the device's; null if it has none.
template <class Faults>
MemoryBlock* BasicDeviceCache<Faults>::grow(CachePool& pool, size_t want, size_t size, Lock& lock) {
  if (options_.expandable) {
    bool exhausted = false;
    if (MemoryBlock* block = map_more(pool, want, size, exhausted)) return block;
    if (!exhausted) return nullptr;
  }
  return take_segment(pool, want, size, lock);
}

template <class Faults>
MemoryBlock* BasicDeviceCache<Faults>::take_segment(CachePool& pool, size_t want, size_t size, Lock& lock) {
  auto segment = std::make_unique<MemorySegment>();
  lock.unlock();
  const Address address = memory_.allocate(device_, want);
  lock.lock();
  if (address == 0) return nullptr;
  try {
    TENON_CHECK(address % granularity_ == 0, Device,
                fmt::format("{}: the device returned memory at address {:#x}, which is not a multiple of {}",
                            name_, address, granularity_));
    store_.reserve(3);
    live_.reserve_one();
    segments_.reserve(segments_.size() + 1);
  } catch (...) {
    memory_.free(device_, address, want);
    throw;
  }
  *segment = {&pool, address, want, false, want, &store_.make(*segment, address, want)};
  MemoryBlock* block = segment->first;
  segments_.push_back(std::move(segment));
  ++tally_.device_allocs;
  tally_.segment.add(pool.large, 1);
  tally_.reserved_bytes.add(pool.large, static_cast<int64_t>(want));
  if (size >= options_.max_split_size) tally_.oversize_segments.add(1);
  if (history_.on()) history_.record(Action::SegmentAlloc, address, want, pool.stream, nullptr);
  return block;
}

/// Reserves addresses for all that the device has, and some for what other pools hold in between.
template <class Faults>
bool BasicDeviceCache<Faults>::reserve_range(CachePool& pool) {
  const uint64_t total = memory_.info(device_).total;
  const size_t size =
      detail::round_up(total > 0 ? total + total / 8 : kUnknownTotal, memory_.map_granularity());
  auto segment = std::make_unique<MemorySegment>();
  segments_.reserve(segments_.size() + 1);
  store_.reserve(4);
  const Address address = memory_.reserve(device_, size);
  if (address == 0) return false;
  *segment = {&pool, address, size, true, 0, &store_.make(*segment, address, size)};
  segment->first->state = State::Unmapped;
  pool.range = segment.get();
  segments_.push_back(std::move(segment));
  return true;
}

/// Maps memory into a hole of the pool's range, together with the free memory next to it. `exhausted`: no
/// hole is large enough.
template <class Faults>
MemoryBlock* BasicDeviceCache<Faults>::map_more(CachePool& pool, size_t want, size_t size, bool& exhausted) {
  store_.reserve(3);
  live_.reserve_one();
  exhausted = !pool.range && !reserve_range(pool);
  if (exhausted) return nullptr;
  MemorySegment& range = *pool.range;
  const size_t granule = memory_.map_granularity();
  const auto free_size = [](const MemoryBlock* b) { return b && b->state == State::Free ? b->size : 0; };
  MemoryBlock* hole = range.first;
  while (hole && (hole->state != State::Unmapped ||
                  free_size(hole->before) + hole->size + free_size(hole->after) < size))
    hole = hole->after;
  exhausted = !hole;
  if (exhausted) return nullptr;
  const size_t missing = want - std::min(want - 1, free_size(hole->before));
  const size_t mapped = std::min(hole->size, detail::round_up(missing, granule));
  if (!memory_.map(device_, hole->address, mapped)) return nullptr;

  if (mapped < hole->size) split_off(*hole, mapped, State::Unmapped);
  hole->state = State::Live;
  if (range.mapped == 0) tally_.segment.add(pool.large, 1);
  range.mapped += mapped;
  ++tally_.device_allocs;
  tally_.reserved_bytes.add(pool.large, static_cast<int64_t>(mapped));
  if (history_.on()) history_.record(Action::SegmentMap, hole->address, mapped, pool.stream, nullptr);
  return &unite(*hole, State::Free);
}

/// Whether a pool's free memory may be returned: what a graph has captured stays where it is.
template <class Faults>
bool BasicDeviceCache<Faults>::returnable(const CachePool& pool) const noexcept {
  return pool.id == 0 || Faults::planted(CacheFault::ReturnsCaptured) ||
         std::find(private_pools_.begin(), private_pools_.end(), pool.id) == private_pools_.end();
}

/// Takes the free segments out of the bins that cost least and have `want` bytes: the smallest that is large
/// enough, else the largest ones. None if all of them are not enough.
template <class Faults>
std::vector<MemoryBlock*> BasicDeviceCache<Faults>::cheapest(size_t want) {
  std::vector<MemoryBlock*> found;
  for (const auto& segment : segments_) {
    MemoryBlock* block = segment->first;
    if (!segment->expandable && returnable(*segment->pool) && block->state == State::Free && is_whole(*block))
      found.push_back(block);
  }
  const auto smaller = [](const MemoryBlock* a, const MemoryBlock* b) { return a->size < b->size; };
  std::sort(found.begin(), found.end(), smaller);
  const auto fit = std::find_if(found.begin(), found.end(), [&](const auto* b) { return b->size >= want; });
  if (fit != found.end()) {
    found = {*fit};
  } else {
    size_t total = 0, count = 0;
    std::reverse(found.begin(), found.end());
    while (count < found.size() && total < want) total += found[count++]->size;
    found.resize(total < want ? 0 : count);
  }
  for (MemoryBlock* block : found) {
    take(*block);
    block->state = State::Leaving;
  }
  return found;
}

/// Takes all free segments out of the bins, and all free memory that can be unmapped.
template <class Faults>
std::vector<MemoryBlock*> BasicDeviceCache<Faults>::all_returnable() {
  const size_t granule = memory_.map_granularity();
  // Whatever needs memory comes first.
  size_t count = 0;
  for (const auto& segment : segments_) {
    for (const MemoryBlock* b = segment->first; b; b = b->after) count += b->state == State::Free;
  }
  std::vector<MemoryBlock*> found;
  found.reserve(count);
  store_.reserve(2 * count);
  for (const auto& segment : segments_) {
    if (!returnable(*segment->pool)) continue;
    for (MemoryBlock* block = segment->first; block; block = block->after) {
      if (block->state != State::Free || (!segment->expandable && !is_whole(*block))) continue;
      if (segment->expandable) {
        const Address end = block->address + block->size;
        const Address from = detail::round_up(block->address, granule), to = detail::round_down(end, granule);
        if (from >= to) continue;
        take(*block);
        if (to < end) split_off(*block, to - block->address, State::Free);
        if (from > block->address) {
          split_off(*block, from - block->address, State::Leaving);
          put(*block);
          block = block->after;
        }
      } else {
        take(*block);
      }
      block->state = State::Leaving;
      found.push_back(block);
    }
  }
  return found;
}

/// Returns blocks that were taken out to the device, once their streams have passed; the bytes.
template <class Faults>
size_t BasicDeviceCache<Faults>::give_back(const std::vector<MemoryBlock*>& blocks, Lock& lock) {
  std::vector<Stream> streams;
  for (const MemoryBlock* block : blocks) {
    const Stream stream = block->segment->pool->stream;
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  }
  lock.unlock();
  std::exception_ptr failure;
  try {
    if (!Faults::planted(CacheFault::ReturnsUnwaited)) {
      for (const Stream stream : streams) stream.synchronize();
    }
  } catch (...) {
    failure = std::current_exception();
  }
  if (!failure) {
    for (const MemoryBlock* block : blocks) {
      if (!block->segment->expandable)
        memory_.free(device_, block->address, block->size);
      else if (Faults::planted(CacheFault::UnmapsTooMuch))
        memory_.unmap(device_, block->address, block->size + memory_.map_granularity());
      else
        memory_.unmap(device_, block->address, block->size);
    }
  }
  lock.lock();
  size_t returned = 0;
  for (MemoryBlock* block : blocks) {
    if (failure)
      put(unite(*block, State::Free));
    else
      returned += forget(*block);
  }
  if (failure) std::rethrow_exception(failure);
  return returned;
}

/// The memory of a block is the device's again; returns its size.
template <class Faults>
size_t BasicDeviceCache<Faults>::forget(MemoryBlock& block) noexcept {
  MemorySegment& segment = *block.segment;
  CachePool& pool = *segment.pool;
  const size_t size = block.size;
  ++tally_.device_frees;
  tally_.reserved_bytes.subtract(pool.large, static_cast<int64_t>(size));
  if (history_.on())
    history_.record(segment.expandable ? Action::SegmentUnmap : Action::SegmentFree, block.address, size,
                    pool.stream, nullptr);
  segment.mapped -= size;
  if (segment.mapped == 0) tally_.segment.subtract(pool.large, 1);
  if (segment.expandable) {
    unite(block, State::Unmapped).state = State::Unmapped;
    return size;
  }
  if (size >= options_.max_split_size) tally_.oversize_segments.subtract(1);
  erase(segment);
  return size;
}

template <class Faults>
void BasicDeviceCache<Faults>::erase(MemorySegment& segment) noexcept {
  store_.give_back(*segment.first);
  std::erase_if(segments_, [&](const auto& known) { return known.get() == &segment; });
}

template <class Faults>
size_t BasicDeviceCache<Faults>::empty() {
  const std::lock_guard slow(slow_mutex_);
  Lock lock(mutex_);
  if (!captures_.empty()) return 0;
  wait_for_events(lock);
  const size_t returned = give_back(all_returnable(), lock);
  drop_unused();
  return returned;
}

/// Gives up reserved ranges without memory, and pools without segments unless a graph may still use them.
template <class Faults>
void BasicDeviceCache<Faults>::drop_unused() noexcept {
  if (Faults::planted(CacheFault::KeepsRange)) return;
  for (const auto& entry : pools_) {
    for (CachePool& pool : entry->pools) {
      if (!pool.range || pool.range->mapped > 0) continue;
      memory_.unreserve(device_, pool.range->address, pool.range->size);
      erase(*std::exchange(pool.range, nullptr));
    }
  }
  std::erase_if(pools_, [&](const auto& entry) {
    const auto is_of = [&](const auto& segment) {
      return segment->pool == &entry->pools[0] || segment->pool == &entry->pools[1];
    };
    return returnable(entry->pools[0]) && std::none_of(segments_.begin(), segments_.end(), is_of);
  });
}

/// The largest free block that a request of a stream may have, and the largest of all others.
template <class Faults>
typename BasicDeviceCache<Faults>::FreeBlocks BasicDeviceCache<Faults>::free_blocks_for(Stream stream) const {
  FreeBlocks found;
  const uint64_t own = pool_id_for(stream);
  for (const auto& entry : pools_) {
    for (const CachePool& pool : entry->pools) {
      const size_t largest = pool.bins.largest();
      if (pool.id == own && pool.stream.id == stream.id) {
        found.largest = std::max(found.largest, largest);
      } else if (largest > found.elsewhere) {
        found.elsewhere = largest;
        found.owner = pool.id == 0 ? to_string(pool.stream) : "a captured graph";
      }
    }
  }
  return found;
}

template <class Faults>
void BasicDeviceCache<Faults>::throw_out_of_memory(size_t nbytes, Stream stream, Lock& lock, const char* why,
                                                   bool asked) {
  ++tally_.ooms;
  if (history_.on()) history_.record(Action::OutOfMemory, 0, nbytes, stream, MemoryStack::take());
  const MemoryStats stats = stats_locked();
  const FreeBlocks free_blocks = free_blocks_for(stream);
  std::vector<std::pair<size_t, Stack>> largest;
  if (history_.on()) {
    live_.for_each(
        [&](const MemoryBlock& b) { largest.emplace_back(b.requested, history_.made_by(b.address)); });
    std::sort(largest.begin(), largest.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    largest.resize(std::min<size_t>(largest.size(), 3));
  }
  lock.unlock();

  const auto bytes = [](int64_t n) { return format_bytes(static_cast<uint64_t>(n)); };
  std::string text = fmt::format("{}: {} are not to be had: ", name_, detail::describe_request(nbytes));
  const DeviceMemory::Info info = memory_.info(device_);
  if (info.total > 0)
    text += fmt::format("the device has {} free of {}, ", format_bytes(info.free), format_bytes(info.total));
  text += fmt::format("of {} reserved tensors hold {}", bytes(stats.reserved_bytes.current),
                      bytes(stats.allocated_bytes.current));
  if (const int64_t awaiting = stats.active_bytes.current - stats.allocated_bytes.current)
    text += fmt::format(", streams may still use {} that were freed", bytes(awaiting));
  text += fmt::format(", and the largest of the free blocks has {}", format_bytes(free_blocks.largest));
  if (free_blocks.elsewhere > free_blocks.largest)
    text += fmt::format("; one that only {} may use has {}", free_blocks.owner,
                        format_bytes(free_blocks.elsewhere));
  text += why;
  if (const std::string said = memory_.shortage(device_); asked && !said.empty())
    text += fmt::format("; the device says: {}", said);
  for (size_t i = 0; i < largest.size(); ++i)
    text += fmt::format("{} {} from {}", i == 0 ? "; largest:" : ",", format_bytes(largest[i].first),
                        largest[i].second ? describe_site(*largest[i].second) : "before the history began");
  throw_error(ErrorKind::OutOfMemory, text);
}

}  // namespace tenon
