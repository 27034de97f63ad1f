// What allocators say of themselves: statistics, their table, snapshots and the history.
#include "tenon/core/memory_stats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include "tenon/core/memory_history.h"
#include "tenon/core/memory_snapshot.h"
#include "tenon/core/source_mark.h"
#include "tenon/core/storage.h"
#include "tests/core/cached_device.h"

namespace tenon {
namespace {

using testing::Cached;
using testing::contains;
using testing::kMiB;
using testing::message_of;
using testing::SimulatedDevice;

TEST(MemoryStats, HaveThe122NamesOfPyTorchAndThreeOfTenon) {
  std::set<std::string> want;
  for (const char* name : {"allocation", "segment", "active", "inactive_split", "allocated_bytes",
                           "reserved_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes"}) {
    for (const char* pool : {"all", "small_pool", "large_pool"}) {
      for (const char* what : {"current", "peak", "allocated", "freed"})
        want.insert(fmt::format("{}.{}.{}", name, pool, what));
    }
  }
  for (const char* name : {"oversize_allocations", "oversize_segments"}) {
    for (const char* what : {"current", "peak", "allocated", "freed"})
      want.insert(fmt::format("{}.{}", name, what));
  }
  want.insert({"num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free",
               "max_split_size"});
  EXPECT_EQ(want.size(), 122u);
  want.insert({"fragmentation.current", "fragmentation.peak", "waste.peak"});
  const auto named = named_memory_stats({});
  EXPECT_TRUE(std::is_sorted(named.begin(), named.end(), [](auto& a, auto& b) { return a.first < b.first; }));
  std::set<std::string> have;
  for (const auto& [name, value] : named) have.insert(name);
  EXPECT_EQ(have, want);
  EXPECT_EQ(named.size(), want.size());
}

TEST(MemoryStats, CountFragmentationAndWaste) {
  Cached cached;
  const Address a = cached.allocate(8 * kMiB), b = cached.allocate(4 * kMiB);
  cached.free(a);  // 8 and 8 MiB are free around b
  MemoryStats stats = cached.stats();
  EXPECT_DOUBLE_EQ(stats.fragmentation(), 0.5);
  EXPECT_DOUBLE_EQ(stats.waste_peak(), 1 - 12.0 / 20.0);
  cached.free(b);
  stats = cached.stats();
  EXPECT_EQ(stats.fragmentation(), 0);
  const Address c = cached.allocate(8 * kMiB), d = cached.allocate(4 * kMiB);
  cached.free(c);
  cached.allocate(12 * kMiB);  // no free block fits, though 16 MiB are free
  cached.free(d);
  EXPECT_DOUBLE_EQ(cached.stats().fragmentation_peak, 0.5);
  cached.allocator.reset_peak_memory_stats(SimulatedDevice::device());
  EXPECT_EQ(cached.stats().fragmentation_peak, 0);
  EXPECT_EQ(cached.stats().allocated_bytes.peak, static_cast<int64_t>(12 * kMiB));
  cached.allocator.reset_accumulated_memory_stats(SimulatedDevice::device());
  EXPECT_EQ(cached.stats().allocated_bytes.allocated, 0);
  EXPECT_EQ(cached.stats().num_device_alloc, 0);
}

TEST(MemoryStats, AreSummedUpInATable) {
  Cached cached;
  cached.allocate(3 * kMiB);
  const std::string text = memory_summary("simulated:0", cached.stats());
  EXPECT_TRUE(contains(text, "Memory of simulated:0")) << text;
  EXPECT_TRUE(contains(text, "| Allocated memory      |   3072 KiB |   3072 KiB |   3072 KiB |      0 B   |"))
      << text;
  EXPECT_TRUE(contains(text, "| Reserved memory       |  20480 KiB |")) << text;
  EXPECT_TRUE(contains(text, "small pool")) << text;
  EXPECT_FALSE(contains(memory_summary("simulated:0", cached.stats(), true), "small pool"));
  // Every line has the same width.
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    EXPECT_EQ(end - at, 77u) << text.substr(at, end - at);
}

TEST(MemoryStats, OfTheHostHaveTheSameNames) {
  Allocator& host = cpu_allocator();
  const int64_t before = host.memory_stats(kCPU).allocated_bytes.current;
  const Storage held = Storage::allocate(5000);
  const MemoryStats stats = host.memory_stats(kCPU);
  EXPECT_EQ(stats.allocated_bytes.current - before, 5000);
  EXPECT_EQ(stats.allocated_bytes.large_pool.current, stats.allocated_bytes.current);
  EXPECT_EQ(stats.requested_bytes.current, stats.allocated_bytes.current);
  EXPECT_EQ(stats.inactive_split.current, 0);
}

/// A language whose program always runs one line.
const SourceLanguage kOneLine{
    [](SourceMark& mark) noexcept {
      mark = {12, 7};
      return true;
    },
    [](const SourceMark& mark) { return "train.py:" + std::to_string(mark.place); }};

TEST(MemoryHistory, NamesTheLinesInSnapshotsAndErrors) {
  Cached cached;
  const Device device = SimulatedDevice::device();
  const Address before = cached.allocate(kMiB);
  set_source_language(&kOneLine);
  cached.allocator.record_memory_history(device, 3);
  const Address a = cached.allocate(30 * kMiB);
  cached.free(cached.allocate(12 * kMiB));
  const std::string text = message_of(ErrorKind::OutOfMemory, [&] { cached.allocate(60 * kMiB); });
  set_source_language(nullptr);
  EXPECT_TRUE(contains(text, "; largest: 30.0 MiB from train.py:12, 1.0 MiB from before the history began"))
      << text;
  const MemorySnapshot snapshot = cached.allocator.memory_snapshot(device);
  ASSERT_EQ(snapshot.events.size(), 3u) << "the latest three";
  EXPECT_STREQ(name(snapshot.events[2].action), "oom");
  EXPECT_STREQ(name(snapshot.events[1].action), "segment_free");
  EXPECT_EQ(snapshot.events[1].size, 12 * kMiB);
  ASSERT_EQ(snapshot.segments.size(), 2u);
  EXPECT_EQ(snapshot.segments[0].blocks[0].address, before);
  EXPECT_EQ(snapshot.segments[0].blocks[0].stack, nullptr);
  EXPECT_EQ(snapshot.segments[1].blocks[0].address, a);
  ASSERT_TRUE(snapshot.segments[1].blocks[0].stack);
  EXPECT_GT(snapshot.segments[1].blocks[0].stack->marks.size(), 1u) << "and its callers in C++";
  cached.allocator.record_memory_history(device, 0);
  EXPECT_TRUE(cached.allocator.memory_snapshot(device).events.empty());
}

TEST(MemorySnapshot, IsJsonWithTheNamesOfPyTorch) {
  MemorySnapshot snapshot;
  auto stack = std::make_shared<MemoryStack>();
  stack->marks.push_back({12, 7});
  snapshot.segments.push_back({.address = 4096,
                               .size = 2048,
                               .stream = {SimulatedDevice::device(), 3},
                               .small = true,
                               .blocks = {{4096, 512, 500, MemorySnapshot::Block::State::Allocated, stack},
                                          {4608, 512, 0, MemorySnapshot::Block::State::AwaitingFree, nullptr},
                                          {5120, 1024, 0, MemorySnapshot::Block::State::Inactive, nullptr}}});
  snapshot.events.push_back(
      {MemoryEvent::Action::Alloc, 4096, 500, {SimulatedDevice::device(), 3}, 99, stack});
  set_source_language(&kOneLine);
  EXPECT_EQ(
      segments_as_json(snapshot),
      R"([{"device": 0, "address": 4096, "total_size": 2048, "allocated_size": 512, "active_size": 1024, )"
      R"("requested_size": 500, "stream": 3, "segment_type": "small", "segment_pool_id": [0, 0], )"
      R"("is_expandable": false, "blocks": [)"
      R"({"address": 4096, "size": 512, "requested_size": 500, "state": "active_allocated", )"
      R"("frames": ["train.py:12"]}, )"
      R"({"address": 4608, "size": 512, "requested_size": 0, "state": "active_awaiting_free", "frames": []}, )"
      R"({"address": 5120, "size": 1024, "requested_size": 0, "state": "inactive", "frames": []}]}])");
  EXPECT_EQ(events_as_json(snapshot),
            R"([{"action": "alloc", "addr": 4096, "size": 500, "stream": 3, "time_us": 99, )"
            R"("frames": ["train.py:12"]}])");
  set_source_language(nullptr);
}

}  // namespace
}  // namespace tenon
