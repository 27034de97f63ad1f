// A model of DeviceCache: random steps of a program on a simulated device, and after each step the rules that
// hold for what the cache hands out, keeps, counts and refuses. The reference is a list of live blocks and
// the clocks of the streams; nothing of the cache's own code is used, apart from what its snapshot shows.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tenon/core/device_cache.h"
#include "tenon/core/error.h"
#include "tests/core/simulated_device.h"

namespace tenon::testing {

template <class Cache>
class DeviceCacheModel {
 public:
  explicit DeviceCacheModel(uint64_t seed)
      : random_(seed),
        device_(96 * kMiB),
        max_split_(seed % 5 == 4 ? 8 * kMiB : SIZE_MAX),
        expandable_(seed % 3 == 1),
        cache_("simulated:0 allocator", SimulatedDevice::device(), device_,
               {.expandable = expandable_, .max_split_size = max_split_}) {}

  /// Runs `steps` steps and then frees everything; what went wrong first, and at which step; empty if
  /// nothing.
  std::string run(int steps) {
    for (step_ = 1; step_ <= steps; ++step_) {
      step();
      check();
      if (!device_.failure.empty()) return fmt::format("step {}: {}", step_, device_.failure);
    }
    finish();
    return device_.failure.empty() ? "" : fmt::format("at the end: {}", device_.failure);
  }
  int step_reached() const { return step_; }
  MemoryStats stats() const { return cache_.stats(); }
  const std::vector<std::string>& log() const { return log_; }
  bool keeps_log = false;

 private:
  static constexpr size_t kMiB = size_t{1} << 20;
  static constexpr size_t kMostLive = 48;
  using Shown = MemorySnapshot::Block::State;

  struct Live {
    Address address;
    size_t requested;
    uint64_t stream, last_stream;
    uint64_t pool;
    uint32_t tag = 0;
    std::set<uint64_t> users;  // other streams that neither were recorded nor came back
  };

  size_t below(size_t n) { return random_() % n; }
  bool chance(int percent) { return below(100) < static_cast<size_t>(percent); }
  void note(std::string line) {
    if (keeps_log) log_.push_back(fmt::format("{:5}  {}", step_, std::move(line)));
  }
  void fail(const std::string& what) { device_.fail(what); }

  void step() {
    const size_t kind = below(1000);
    if (kind < 330)
      allocate();
    else if (kind < 560)
      release();
    else if (kind < 760)
      launch();
    else if (kind < 960)
      advance();
    else if (kind < 970)
      record_and_wait();
    else if (kind < 978)
      device_.refuse_next = static_cast<int>(1 + below(2));
    else if (kind < 984)
      empty();
    else if (kind < 988)
      note(fmt::format("expandable {}", expandable_ = !expandable_)), cache_.set_expandable(expandable_);
    else
      capture();
  }

  size_t random_size() {
    static constexpr size_t kClasses[][2] = {{1, 512},
                                             {513, 64 << 10},
                                             {64 << 10, kMiB},
                                             {kMiB + 1, 4 * kMiB},
                                             {4 * kMiB, 10 * kMiB},
                                             {10 * kMiB, 24 * kMiB}};
    const auto& [least, most] = kClasses[chance(50) ? below(3) : below(6)];
    // Programs ask for the same sizes again.
    if (!sizes_.empty() && chance(40)) return sizes_[below(sizes_.size())];
    const size_t size = least + below(most - least + 1);
    if (sizes_.size() < 20) sizes_.push_back(size);
    return size;
  }

  uint64_t pool_of(uint64_t stream) const {
    return capture_pool_ && capture_stream_ == stream ? *capture_pool_ : 0;
  }

  void allocate() {
    if (live_.size() >= kMostLive) return release();
    const size_t nbytes = random_size();
    const uint64_t stream = below(SimulatedDevice::kStreams);
    device_.last_refusal_planned = false;
    Address address = 0;
    try {
      address = cache_.allocate(nbytes, SimulatedDevice::stream(stream));
    } catch (const Error& error) {
      note(fmt::format("allocate {} on {}: out of memory", nbytes, stream));
      device_.refuse_next = 0;
      if (error.kind() != ErrorKind::OutOfMemory) return fail(error.what());
      ++ooms_;
      return check_refusal(nbytes, stream);
    }
    note(fmt::format("allocate {} on {}: {:#x}", nbytes, stream, address));
    if (const std::string use = device_.unordered_use(address, nbytes, stream); !use.empty())
      fail(fmt::format("allocate: {:#x} of {} bytes was handed out to stream {}, but {}", address, nbytes,
                       stream, use));
    if (address % SimulatedDevice::kGranularity != 0)
      fail(fmt::format("allocate: {:#x} is not aligned", address));
    const uint64_t pool = pool_of(stream);
    for (const auto& [other, blocks] : device_.captured) {
      for (const auto& [at, size] : blocks) {
        if (other != pool && at < address + nbytes && address < at + size)
          fail(fmt::format("allocate: {:#x} belongs to what pool {} has captured", address, other));
      }
    }
    if (pool != 0) device_.captured[pool].emplace_back(address, nbytes);
    live_.push_back({address, nbytes, stream, stream, pool});
    allocated_ += 1, requested_ += static_cast<int64_t>(nbytes);
  }

  /// Makes what is queued next on `stream` come after the last use of the block.
  void come_after(uint64_t stream, uint64_t last) {
    if (stream == last) return;
    const uint64_t event = device_.create_event();
    device_.record(event, last);
    device_.wait(stream, event);
    device_.destroy_event(event);
  }

  void launch() {
    if (live_.empty()) return;
    Live& block = live_[below(live_.size())];
    const uint64_t stream = chance(60) ? block.stream : below(SimulatedDevice::kStreams);
    come_after(stream, block.last_stream);
    device_.use(stream, block.address, block.requested, block.tag, ++last_tag_);
    block.tag = last_tag_;
    block.last_stream = stream;
    note(fmt::format("launch on {}: {:#x}", stream, block.address));
    if (stream == block.stream) return;
    if (chance(60)) {
      cache_.record_stream(block.address, SimulatedDevice::stream(stream));
      note(fmt::format("record {:#x} on {}", block.address, stream));
      // Every use of that stream until the block is freed counts.
      block.users.erase(stream);
    } else {
      block.users.insert(stream);
    }
  }

  void release() {
    if (!live_.empty()) release(below(live_.size()));
  }
  void release(size_t index) {
    Live block = live_[index];
    live_[index] = live_.back();
    live_.pop_back();
    uint64_t freeing = block.stream;
    // Streams that were not recorded come back in one of three ways.
    while (!block.users.empty()) {
      const uint64_t user = *block.users.begin();
      block.users.erase(block.users.begin());
      if (block.users.empty() && chance(40)) {
        freeing = user;
      } else if (chance(50)) {
        come_after(block.stream, user);
      } else {
        cache_.record_stream(block.address, SimulatedDevice::stream(user));
      }
    }
    note(fmt::format("free {:#x} of {} on {}", block.address, block.stream, freeing));
    cache_.free(block.address, SimulatedDevice::stream(freeing));
    freed_ += 1, requested_freed_ += static_cast<int64_t>(block.requested);
  }

  void advance() {
    const uint64_t stream = below(SimulatedDevice::kStreams);
    for (size_t n = below(12); n > 0; --n) device_.advance(stream);
    note(fmt::format("advance {}", stream));
  }
  void record_and_wait() {
    come_after(below(SimulatedDevice::kStreams), below(SimulatedDevice::kStreams));
    note("an event");
  }

  void empty() {
    const size_t used = device_.used_bytes();
    const size_t returned = cache_.empty();
    note(fmt::format("empty: {}", returned));
    if (used - device_.used_bytes() != returned)
      fail(fmt::format("empty: said {} bytes, but returned {}", returned, used - device_.used_bytes()));
    if (!capture_pool_ && !only_needed_segments()) fail("empty: kept a segment without blocks in use");
  }

  void capture() {
    if (!capture_pool_ && chance(40)) {
      if (pools_.size() < 2) pools_.push_back(cache_.create_pool());
      capture_pool_ = pools_[below(pools_.size())];
      capture_stream_ = below(SimulatedDevice::kStreams);
      cache_.begin_capture(*capture_pool_, SimulatedDevice::stream(capture_stream_));
      device_.capturing = true;
      note(fmt::format("capture stream {} in pool {}", capture_stream_, *capture_pool_));
    } else if (capture_pool_) {
      device_.capturing = false;
      cache_.end_capture(*capture_pool_, SimulatedDevice::stream(capture_stream_));
      capture_pool_.reset();
      note("end of the capture");
    } else if (!pools_.empty()) {
      const uint64_t pool = pools_.back();
      pools_.pop_back();
      device_.captured.erase(pool);
      cache_.release_pool(pool);
      note(fmt::format("release pool {}", pool));
    }
  }

  bool is_kept(uint64_t pool) const { return std::find(pools_.begin(), pools_.end(), pool) != pools_.end(); }

  /// Whether all that the device could have back is with it.
  bool only_needed_segments() const {
    constexpr size_t kGranule = SimulatedDevice::kMapGranularity;
    for (const auto& segment : cache_.snapshot().segments) {
      if (is_kept(segment.pool)) continue;
      bool needed = false;
      for (const auto& block : segment.blocks) {
        needed = needed || block.state != Shown::Inactive;
        const Address from = (block.address + kGranule - 1) / kGranule * kGranule;
        if (segment.expandable && block.state == Shown::Inactive &&
            from + kGranule <= block.address + block.size)
          return false;
      }
      if (!needed && !segment.blocks.empty() && !segment.expandable) return false;
    }
    return true;
  }

  /// Out of memory is right only if nothing more could have been done.
  void check_refusal(size_t nbytes, uint64_t stream) {
    const size_t size = (nbytes + SimulatedDevice::kGranularity - 1) / SimulatedDevice::kGranularity *
                        SimulatedDevice::kGranularity;
    const size_t least = expandable_ ? (size + SimulatedDevice::kMapGranularity - 1) /
                                           SimulatedDevice::kMapGranularity * SimulatedDevice::kMapGranularity
                                     : size;
    const MemorySnapshot snapshot = cache_.snapshot();
    for (const auto& segment : snapshot.segments) {
      const bool serves = segment.stream.id == stream && segment.pool == pool_of(stream) &&
                          segment.small == (size <= kSmallRequest);
      for (const auto& block : segment.blocks) {
        // What is kept whole for larger requests is returned, if it can be.
        if (serves && block.state == Shown::Inactive && block.size >= size && max_split_ == SIZE_MAX)
          fail(fmt::format("out of memory: a free block of {} bytes fits {}", block.size, nbytes));
        if (!capture_pool_ && block.state == Shown::AwaitingFree)
          fail("out of memory: nobody waited for an event");
      }
    }
    if (!capture_pool_ && !only_needed_segments()) fail("out of memory: a free segment was not returned");
    if (device_.free_bytes() >= least && !device_.last_refusal_planned)
      fail(fmt::format("out of memory: the device has {} bytes, {} were asked for", device_.free_bytes(),
                       nbytes));
  }

  void check() {
    const MemorySnapshot snapshot = cache_.snapshot();
    MemoryStats want;
    size_t found = 0;
    std::map<Address, const Live*> live;
    for (const Live& block : live_) live[block.address] = &block;
    size_t held = 0;
    Address end_before = 0;
    for (const auto& segment : snapshot.segments) {
      held += segment.size;
      const auto count = [&](PooledStat MemoryStats::*stat, size_t n) {
        PooledStat& s = want.*stat;
        s.current += static_cast<int64_t>(n);
        (segment.small ? s.small_pool : s.large_pool).current += static_cast<int64_t>(n);
      };
      if (segment.size > 0) count(&MemoryStats::segment, 1);
      count(&MemoryStats::reserved_bytes, segment.size);
      if (segment.address < end_before) fail("segments overlap");
      size_t total = 0;
      Address end = segment.address;
      bool free_before = false;
      for (const auto& block : segment.blocks) {
        const bool gap = block.address != end;
        if (block.address < end || (gap && !segment.expandable))
          fail(fmt::format("block {:#x} does not follow {:#x}", block.address, end));
        const bool is_free = block.state == Shown::Inactive;
        if (is_free && free_before && !gap)
          fail(fmt::format("free block {:#x} has a free neighbour", block.address));
        free_before = is_free;
        end = block.address + block.size;
        total += block.size;
        if (block.state == Shown::Allocated) {
          ++found;
          const auto known = live.find(block.address);
          if (known == live.end() || known->second->requested != block.requested ||
              block.size < block.requested)
            fail(fmt::format("block {:#x} is not what was allocated", block.address));
          else if (known->second->stream != segment.stream.id)
            fail(fmt::format("block {:#x} is of stream {}", block.address, segment.stream.id));
          count(&MemoryStats::allocation, 1);
          count(&MemoryStats::allocated_bytes, block.size);
          count(&MemoryStats::requested_bytes, block.requested);
          if (block.size >= max_split_) ++want.oversize_allocations.current;
        }
        if (!is_free) {
          count(&MemoryStats::active, 1);
          count(&MemoryStats::active_bytes, block.size);
        } else if (!segment.expandable && segment.blocks.size() > 1) {
          count(&MemoryStats::inactive_split, 1);
          count(&MemoryStats::inactive_split_bytes, block.size);
        }
      }
      end_before = end;
      if (total != segment.size)
        fail(fmt::format("the blocks of segment {:#x} are {} bytes of {}", segment.address, total,
                         segment.size));
    }
    if (found != live_.size()) fail(fmt::format("{} blocks are live, {} are shown", live_.size(), found));
    if (held != device_.used_bytes())
      fail(fmt::format("{} bytes are held, {} are shown", device_.used_bytes(), held));
    check_stats(want);
  }

  void check_stats(const MemoryStats& want) {
    const MemoryStats stats = cache_.stats();
    const auto compare = [&](std::string_view name, const MemoryStat& is, const MemoryStat& should,
                             MemoryStat& peak) {
      peak.peak = std::max(peak.peak, should.current);
      // Several blocks that become free in one step may be more splits in between than at its end.
      const bool right_peak = name.starts_with("inactive") ? is.peak >= peak.peak : is.peak == peak.peak;
      if (is.current != should.current || !right_peak || is.allocated - is.freed != is.current)
        fail(fmt::format("{} is {} with peak {}, and should be {} with peak {} (+{} -{})", name, is.current,
                         is.peak, should.current, peak.peak, is.allocated, is.freed));
    };
    static constexpr std::pair<const char*, PooledStat MemoryStats::*> kPooled[] = {
        {"allocation", &MemoryStats::allocation},
        {"allocated_bytes", &MemoryStats::allocated_bytes},
        {"active", &MemoryStats::active},
        {"active_bytes", &MemoryStats::active_bytes},
        {"segment", &MemoryStats::segment},
        {"reserved_bytes", &MemoryStats::reserved_bytes},
        {"inactive_split", &MemoryStats::inactive_split},
        {"inactive_split_bytes", &MemoryStats::inactive_split_bytes},
        {"requested_bytes", &MemoryStats::requested_bytes}};
    for (const auto& [name, stat] : kPooled) {
      compare(name, stats.*stat, want.*stat, peaks_.*stat);
      compare(name, (stats.*stat).small_pool, (want.*stat).small_pool, (peaks_.*stat).small_pool);
      compare(name, (stats.*stat).large_pool, (want.*stat).large_pool, (peaks_.*stat).large_pool);
    }
    compare("oversize_allocations", stats.oversize_allocations, want.oversize_allocations,
            peaks_.oversize_allocations);
    const auto sums = [&](const char* name, const MemoryStat& is, int64_t in, int64_t out) {
      if (is.allocated != in || is.freed != out)
        fail(fmt::format("{}: +{} -{}, and should be +{} -{}", name, is.allocated, is.freed, in, out));
    };
    sums("allocation", stats.allocation, allocated_, freed_);
    sums("requested_bytes", stats.requested_bytes, requested_, requested_freed_);
    if (stats.num_ooms != ooms_) fail("num_ooms is wrong");
    if (stats.num_device_alloc != static_cast<int64_t>(device_.takes) ||
        stats.num_device_free != static_cast<int64_t>(device_.returns))
      fail("num_device_alloc or num_device_free is wrong");
    int64_t inactive = stats.reserved_bytes.current - stats.active_bytes.current;
    if (stats.free_bytes != inactive || stats.largest_free_block > inactive ||
        (inactive > 0) != (stats.largest_free_block > 0))
      fail(fmt::format("free bytes are {}, the largest block {}, and should be {}", stats.free_bytes,
                       stats.largest_free_block, inactive));
  }

  void finish() {
    device_.refuse_next = 0;
    if (capture_pool_) {
      device_.capturing = false;
      cache_.end_capture(*capture_pool_, SimulatedDevice::stream(capture_stream_));
      capture_pool_.reset();
    }
    while (!live_.empty()) release();
    device_.captured.clear();
    while (!pools_.empty()) {
      cache_.release_pool(pools_.back());
      pools_.pop_back();
    }
    cache_.empty();
    if (cache_.stats().reserved_bytes.current != 0 || device_.used_bytes() != 0)
      fail(fmt::format("{} bytes are reserved, {} taken, and none is in use",
                       cache_.stats().reserved_bytes.current, device_.used_bytes()));
    if (device_.has_ranges()) fail("a reserved range is left");
  }

  std::mt19937_64 random_;
  SimulatedDevice device_;
  size_t max_split_;
  bool expandable_;
  Cache cache_;
  int step_ = 0;
  std::vector<std::string> log_;
  std::vector<Live> live_;
  std::vector<size_t> sizes_;
  std::vector<uint64_t> pools_;
  std::optional<uint64_t> capture_pool_;
  uint64_t capture_stream_ = 0;
  uint32_t last_tag_ = 0;
  int64_t allocated_ = 0, freed_ = 0, requested_ = 0, requested_freed_ = 0, ooms_ = 0;
  MemoryStats peaks_;
};

}  // namespace tenon::testing
