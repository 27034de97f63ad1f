// DeviceCache: freed blocks that other streams may still use, and the captures during which nothing may be
// asked of a stream. Included by device_cache_impl.h.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "tenon/core/device_cache.h"
#include "tenon/core/error.h"

namespace tenon {

template <class Faults>
void BasicDeviceCache<Faults>::record_stream(Address address, Stream stream) {
  stream.device = resolved(stream.device);
  const Lock lock(mutex_);
  MemoryBlock* block = live_.find(address);
  TENON_CHECK(block, Value, fmt::format("record_stream: {} has no block at address {:#x}", name_, address));
  const Stream own = block->segment->pool->stream;
  // The host's work is done when its call returns.
  if (stream == own || stream.device.is_cpu() || stream.device.is_meta()) return;
  add_user(*block, stream);
}

template <class Faults>
void BasicDeviceCache<Faults>::add_user(MemoryBlock& block, Stream stream) {
  if (std::find(block.users.begin(), block.users.end(), stream) == block.users.end())
    block.users.push_back(stream);
}

/// Frees a block once its users, among them the stream in whose order it is freed, have passed. If a device
/// fails to say when that is, the block is never reused.
template <class Faults>
void BasicDeviceCache<Faults>::await(MemoryBlock& block, const Stream* freeing) noexcept {
  block.state = State::Awaiting;
  try {
    if (freeing) add_user(block, *freeing);
    if (!captures_.empty()) {
      deferred_.push_back(&block);
      return;
    }
    for (const Stream user : block.users) {
      Event event = event_for(user.device);
      event.record(user);
      auto queue = std::find_if(awaited_.begin(), awaited_.end(),
                                [&](const AwaitedStream& awaited) { return awaited.stream == user; });
      if (queue == awaited_.end()) queue = awaited_.insert(queue, AwaitedStream{user, {}});
      queue->events.emplace_back(std::move(event), &block);
      ++block.awaited;
      ++awaited_events_;
      if (Faults::planted(CacheFault::FirstStreamOnly)) break;
    }
  } catch (...) {
    ++block.awaited;
  }
  block.users.clear();
}

template <class Faults>
Event BasicDeviceCache<Faults>::event_for(Device device) {
  const auto spare = std::find_if(spare_events_.rbegin(), spare_events_.rend(),
                                  [&](const Event& event) { return event.device() == device; });
  if (spare == spare_events_.rend()) return Event(device);
  Event event = std::move(*spare);
  *spare = std::move(spare_events_.back());
  spare_events_.pop_back();
  return event;
}

/// One of the block's events has passed, and has left its queue.
template <class Faults>
void BasicDeviceCache<Faults>::complete(Event event, MemoryBlock& block) noexcept {
  --awaited_events_;
  if (--block.awaited == 0) set_free(block);
  try {
    spare_events_.push_back(std::move(event));
  } catch (const std::bad_alloc&) {
  }
}

/// Frees blocks whose events have passed, oldest events first.
template <class Faults>
void BasicDeviceCache<Faults>::poll() {
  if (!captures_.empty()) return;
  for (AwaitedStream& awaited : awaited_) {
    while (!awaited.events.empty() && awaited.events.front().first.query()) {
      auto [event, block] = std::move(awaited.events.front());
      awaited.events.pop_front();
      complete(std::move(event), *block);
    }
  }
}

/// Waits for the events of all freed blocks, without the lock; false if there were none.
template <class Faults>
bool BasicDeviceCache<Faults>::wait_for_events(Lock& lock) {
  if (awaited_events_ == 0) return false;
  ++tally_.syncs;
  std::list<AwaitedStream> waited;
  waited.swap(awaited_);
  lock.unlock();
  std::exception_ptr failure;
  try {
    for (const AwaitedStream& stream : waited) {
      // Those before it have passed with it.
      if (!stream.events.empty() && !Faults::planted(CacheFault::ReturnsAwaiting))
        stream.events.back().first.synchronize();
    }
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  if (failure) {
    // The device has failed; its blocks stay what they are.
    awaited_.splice(awaited_.begin(), waited);
    std::rethrow_exception(failure);
  }
  for (AwaitedStream& stream : waited) {
    for (auto& [event, block] : stream.events) complete(std::move(event), *block);
  }
  return true;
}

template <class Faults>
size_t BasicDeviceCache<Faults>::events(Backend backend) const {
  const auto is_of = [&](const Event& event) { return event.device().backend == backend; };
  const Lock lock(mutex_);
  auto count = std::count_if(spare_events_.begin(), spare_events_.end(), is_of);
  for (const AwaitedStream& awaited : awaited_)
    count += std::count_if(awaited.events.begin(), awaited.events.end(),
                           [&](const auto& e) { return is_of(e.first); });
  return static_cast<size_t>(count);
}

template <class Faults>
void BasicDeviceCache<Faults>::drop_events(Backend backend) noexcept {
  std::vector<Event> dropped;  // dies after the lock
  const Lock lock(mutex_);
  const auto kept = std::partition(spare_events_.begin(), spare_events_.end(),
                                   [&](const Event& event) { return event.device().backend != backend; });
  dropped.assign(std::make_move_iterator(kept), std::make_move_iterator(spare_events_.end()));
  spare_events_.erase(kept, spare_events_.end());
}

template <class Faults>
uint64_t BasicDeviceCache<Faults>::create_pool() {
  const Lock lock(mutex_);
  private_pools_.push_back(++last_pool_);
  return last_pool_;
}

template <class Faults>
void BasicDeviceCache<Faults>::release_pool(uint64_t pool) noexcept {
  const Lock lock(mutex_);
  std::erase(private_pools_, pool);
}

template <class Faults>
void BasicDeviceCache<Faults>::begin_capture(uint64_t pool, Stream stream) {
  const std::lock_guard slow(slow_mutex_);  // other threads have finished waiting and returning memory
  const Lock lock(mutex_);
  TENON_CHECK(std::find(private_pools_.begin(), private_pools_.end(), pool) != private_pools_.end(), Value,
              fmt::format("begin_capture: {} has no private pool {}", name_, pool));
  for (const CapturedStream& capture : captures_)
    TENON_CHECK(capture.stream != stream.id, Runtime,
                fmt::format("begin_capture: {} is captured already", to_string(stream)));
  captures_.push_back({pool, stream.id});
}

template <class Faults>
void BasicDeviceCache<Faults>::end_capture(uint64_t pool, Stream stream) noexcept {
  const Lock lock(mutex_);
  std::erase_if(captures_, [&](const CapturedStream& c) { return c.pool == pool && c.stream == stream.id; });
  if (!captures_.empty()) return;
  std::vector<MemoryBlock*> deferred;
  deferred.swap(deferred_);
  for (MemoryBlock* block : deferred) await(*block);
}

}  // namespace tenon
