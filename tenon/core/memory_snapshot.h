// MemorySnapshot: everything that an allocator holds on a device, segment by segment and block by block, and
// its history. Made by DeviceCache, for people, tools and tests. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tenon/core/memory_history.h"

namespace tenon {

struct MemorySnapshot {
  struct Block {
    enum class State : uint8_t { Allocated, AwaitingFree, Inactive };
    Address address = 0;
    size_t size = 0;
    size_t requested = 0;  ///< What was asked for; 0 unless it is allocated.
    State state = State::Inactive;
    std::shared_ptr<const MemoryStack> stack;  ///< What made it, if the history was on.
  };
  struct Segment {
    Address address = 0;  ///< Of the reserved range, if it is expandable.
    size_t size = 0;      ///< The bytes that it has of the device.
    Stream stream;
    uint64_t pool = 0;  ///< 0, or a private pool.
    bool small = false;
    bool expandable = false;
    std::vector<Block> blocks;  ///< By address; only in an expandable segment are there gaps.
  };
  std::vector<Segment> segments;  ///< By address.
  std::vector<MemoryEvent> events;
};

/// The snapshot as JSON, with the keys of torch.cuda.memory_snapshot(): a list of segments with "address",
/// "total_size", "allocated_size", "active_size", "requested_size", "stream", "segment_type",
/// "segment_pool_id", "is_expandable" and "blocks" of "address", "size", "requested_size", "state", "frames".
std::string segments_as_json(const MemorySnapshot& snapshot);
/// The history likewise: a list of "action", "addr", "size", "stream", "time_us", "frames".
std::string events_as_json(const MemorySnapshot& snapshot);

}  // namespace tenon
