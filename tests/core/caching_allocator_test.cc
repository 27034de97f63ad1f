// The caching allocator, rule by rule, on a simulated device. Its model in device_cache_model_test.cc tries
// many more orders of steps.
#include "tenon/core/caching_allocator.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "tenon/core/error.h"
#include "tenon/core/storage.h"
#include "tests/core/cached_device.h"

namespace tenon {
namespace {

using testing::Cached;
using testing::contains;
using testing::kMiB;
using testing::message_of;
using testing::SimulatedDevice;

TEST(CachingAllocator, AFreedBlockServesTheNextRequestWithoutTheDevice) {
  Cached cached;
  const Address first = cached.allocate(1000);
  EXPECT_EQ(cached.takes(), 1u);
  cached.free(first);
  EXPECT_EQ(cached.allocate(1000), first);
  EXPECT_EQ(cached.takes(), 1u);
  EXPECT_EQ(cached.stats().reserved_bytes.current, static_cast<int64_t>(kSmallSegment));
  EXPECT_EQ(cached.stats().allocated_bytes.current, 1024);
  EXPECT_EQ(cached.stats().requested_bytes.current, 1000);
  const Address large = cached.allocate(12 * kMiB);
  cached.free(large);
  EXPECT_EQ(cached.empty(), 12 * kMiB) << "the small segment is in use";
  EXPECT_EQ(cached.stats().reserved_bytes.current, static_cast<int64_t>(kSmallSegment));
  cached.free(first);
  EXPECT_EQ(cached.empty(), kSmallSegment);
  EXPECT_EQ(cached.stats().reserved_bytes.current, 0);
  EXPECT_EQ(cached.device.takes, cached.device.returns);
}

TEST(CachingAllocator, RequestsShareSegmentsBySize) {
  Cached cached;
  const auto reserved_by = [&](size_t nbytes) {
    const int64_t before = cached.stats().reserved_bytes.current;
    cached.allocate(nbytes);
    return static_cast<size_t>(cached.stats().reserved_bytes.current - before);
  };
  EXPECT_EQ(reserved_by(1), 2 * kMiB);
  EXPECT_EQ(reserved_by(kMiB), 0u);
  EXPECT_EQ(reserved_by(kMiB), 2 * kMiB);
  EXPECT_EQ(reserved_by(kMiB + 1), 20 * kMiB);
  EXPECT_EQ(reserved_by(9 * kMiB), 0u);
  EXPECT_EQ(reserved_by(10 * kMiB), 10 * kMiB);
  EXPECT_EQ(reserved_by(11 * kMiB + 1), 12 * kMiB);
  const MemoryStats stats = cached.stats();
  EXPECT_EQ(stats.segment.small_pool.current, 2);
  EXPECT_EQ(stats.segment.large_pool.current, 3);
  EXPECT_EQ(stats.allocation.small_pool.current, 3);
  EXPECT_EQ(stats.allocation.large_pool.current, 4);
}

TEST(CachingAllocator, NeighboursUniteWhenTheyAreFree) {
  Cached cached;
  const Address a = cached.allocate(kMiB / 2), b = cached.allocate(kMiB / 2), c = cached.allocate(kMiB / 2);
  EXPECT_EQ(b - a, kMiB / 2);
  EXPECT_EQ(c - b, kMiB / 2);
  EXPECT_EQ(cached.stats().inactive_split.current, 1);
  cached.free(a);
  EXPECT_EQ(cached.stats().inactive_split_bytes.current, static_cast<int64_t>(kMiB));
  cached.free(c);
  EXPECT_EQ(cached.stats().inactive_split.current, 2);
  EXPECT_EQ(cached.stats().largest_free_block, static_cast<int64_t>(kMiB));
  cached.free(b);
  EXPECT_EQ(cached.stats().inactive_split.current, 0) << "the segment is one free block";
  EXPECT_EQ(cached.stats().largest_free_block, static_cast<int64_t>(2 * kMiB));
  EXPECT_EQ(cached.stats().fragmentation(), 0);
}

TEST(CachingAllocator, EachStreamHasItsOwnBlocks) {
  Cached cached;
  const Address first = cached.allocate(1000);
  cached.free(first);
  const Address other = cached.allocate(1000, 1);
  EXPECT_NE(other, first);
  EXPECT_EQ(cached.allocate(1000), first);
}

TEST(CachingAllocator, ABlockThatAnotherStreamUsesIsFreeOnceThatHasPassed) {
  Cached cached;
  const Address a = cached.allocate(kMiB);
  cached.use(a, 1);
  cached.record(a, 1);
  cached.free(a);
  EXPECT_EQ(cached.stats().allocation.current, 0);
  EXPECT_EQ(cached.stats().active.current, 1);
  const Address b = cached.allocate(kMiB);
  EXPECT_NE(b, a);
  cached.device.advance(1);
  EXPECT_EQ(cached.allocate(kMiB), a);
  EXPECT_EQ(cached.stats().num_sync_all_streams, 0);
}

TEST(CachingAllocator, WithoutARecordedStreamTheFaultShows) {
  Cached cached;
  const Address a = cached.allocate(kMiB);
  cached.use(a, 1);
  cached.free(a);
  EXPECT_EQ(cached.allocate(kMiB), a);
  EXPECT_NE(cached.device.unordered_use(a, kMiB, 0), "");
}

TEST(CachingAllocator, ABlockFreedInTheOrderOfAnotherStreamWaitsForIt) {
  Cached cached;
  const Address a = cached.allocate(kMiB);
  cached.use(a, 2);
  cached.free(a, 2);
  EXPECT_NE(cached.allocate(kMiB), a);
  cached.device.advance(2);
  EXPECT_EQ(cached.allocate(kMiB), a);
}

TEST(CachingAllocator, TensorsKeepTheOrderOfTheirStreams) {
  Cached cached;
  // The last view goes, and the storage is resized, while work is pending.
  std::optional<Storage> storage = Storage::allocate(3 * kMiB, SimulatedDevice::device());
  const Address first = storage->address();
  cached.use(first, 0);
  {
    const StreamGuard guard(Cached::stream(1));
    storage->resize(4 * kMiB);
  }
  EXPECT_EQ((*storage)->stream(), Cached::stream(1));
  EXPECT_NE(storage->address(), first);
  EXPECT_NE(cached.allocate(3 * kMiB), first) << "the copy reads it in stream 1";
  cached.device.synchronize_stream(1);
  EXPECT_EQ(cached.allocate(3 * kMiB), first);
  const Address moved = storage->address();
  cached.use(moved, 1);
  storage.reset();
  EXPECT_EQ(cached.allocate(4 * kMiB, 1), moved) << "in its own stream nothing waits";
}

TEST(CachingAllocator, MemoryReturnsToTheDeviceWhenItsStreamHasPassed) {
  Cached cached;
  const Address a = cached.allocate(12 * kMiB), b = cached.allocate(14 * kMiB, 1);
  cached.use(a, 0);
  cached.use(b, 2);
  cached.record(b, 2);
  cached.free(a);
  cached.free(b, 1);
  EXPECT_EQ(cached.empty(), 26 * kMiB);  // the device notes what is returned too early
  EXPECT_EQ(cached.stats().num_sync_all_streams, 1);
}

TEST(CachingAllocator, AnotherSizesCacheMakesRoom) {
  Cached cached;
  const Address a = cached.allocate(30 * kMiB), b = cached.allocate(16 * kMiB),
                c = cached.allocate(12 * kMiB);
  cached.use(a, 0);
  for (const Address block : {a, b, c}) cached.free(block);
  EXPECT_EQ(cached.stats().reserved_bytes.current, static_cast<int64_t>(58 * kMiB));
  cached.allocate(14 * kMiB, 1);
  EXPECT_EQ(cached.stats().num_alloc_retries, 1);
  EXPECT_EQ(cached.stats().reserved_bytes.current, static_cast<int64_t>(56 * kMiB))
      << "the smallest segment that suffices went: 58 - 16 + 14";
  cached.allocate(40 * kMiB, 1);
  EXPECT_EQ(cached.stats().reserved_bytes.current, static_cast<int64_t>(54 * kMiB)) << "both others went";
  EXPECT_EQ(cached.stats().num_ooms, 0);
}

TEST(CachingAllocator, WaitsForAFreedBlockBeforeItSaysThereIsNoMemory) {
  Cached cached;
  const Address a = cached.allocate(60 * kMiB);
  cached.use(a, 1);
  cached.record(a, 1);
  cached.free(a);
  EXPECT_EQ(cached.allocate(60 * kMiB), a) << "a fitting block was in the pool (pytorch#189504)";
  EXPECT_EQ(cached.stats().num_sync_all_streams, 1);
  EXPECT_EQ(cached.stats().num_device_alloc, 1);
}

TEST(CachingAllocator, SaysWhatThereWasWhenNothingIsLeft) {
  Cached cached;
  const Address a = cached.allocate(40 * kMiB);
  const Address b = cached.allocate(5 * kMiB);
  cached.free(cached.allocate(2 * kMiB));
  const std::string text = message_of(ErrorKind::OutOfMemory, [&] { cached.allocate(30 * kMiB); });
  EXPECT_EQ(
      text,
      "simulated:0 allocator: 31457280 bytes (30.0 MiB) are not to be had: the device has 4.0 MiB free of "
      "64.0 "
      "MiB, of 60.0 MiB reserved tensors hold 45.0 MiB, and the largest of the free blocks has 15.0 MiB");
  EXPECT_EQ(cached.stats().num_ooms, 1);
  EXPECT_NE(cached.allocate(3 * kMiB), 0u) << "the next call works";
  cached.free(a);
  EXPECT_NE(cached.allocate(30 * kMiB), 0u);
  cached.free(b);
}

TEST(CachingAllocator, SaysWhenTheFreeMemoryIsThatOfAnotherStream) {
  Cached cached;
  const Address a = cached.allocate(kMiB * 5, 1);  // 15 of its segment are free, for stream 1
  const std::string text = message_of(ErrorKind::OutOfMemory, [&] { cached.allocate(50 * kMiB); });
  EXPECT_TRUE(contains(text, "the largest of the free blocks has 0 bytes; one that only " +
                                 to_string(Cached::stream(1)) + " may use has 15.0 MiB"))
      << text;
  cached.free(a, 1);
  cached.free(cached.allocate(50 * kMiB));
}

TEST(CachingAllocator, TakesLessThanASegmentWhenTheDeviceHasNoMore) {
  Cached cached({}, 3 * kMiB);
  const Address a = cached.allocate(kMiB + kMiB / 2);  // of the large pool, whose segments have 20 MiB
  EXPECT_EQ(cached.stats().reserved_bytes.current, static_cast<int64_t>(kMiB + kMiB / 2));
  cached.free(a);
}

TEST(CachingAllocator, SizesBeyondAllMemoryAreRefused) {
  Cached cached;
  for (const size_t nbytes : {size_t{1} << 40, size_t{1} << 62, SIZE_MAX, SIZE_MAX - 511})
    EXPECT_TRUE(contains(message_of(ErrorKind::OutOfMemory, [&] { cached.allocate(nbytes); }),
                         std::to_string(nbytes)));
  EXPECT_EQ(cached.allocate(0), 0u);
  cached.allocator.deallocate(0, 0, Cached::stream());
  EXPECT_EQ(cached.takes(), 0u);
}

TEST(CachingAllocator, APlannedFailureComesThoughABlockIsKept) {
  Cached cached;
  const Device device = SimulatedDevice::device();
  (void)Storage::allocate(2 * kMiB, device);
  fail_device_allocation_after(2, kMiB);
  {
    const Storage first = Storage::allocate(2 * kMiB, device);
    EXPECT_TRUE(
        contains(message_of(ErrorKind::OutOfMemory, [&] { (void)Storage::allocate(2 * kMiB, device); }),
                 "2097152 bytes (2.0 MiB) are not to be had"));
  }
  EXPECT_EQ(cached.stats().allocation.current, 0);
  EXPECT_EQ(Storage::allocate(2 * kMiB, device).nbytes(), 2 * kMiB);
}

TEST(CachingAllocator, ARefusalOfTheDeviceIsRetried) {
  Cached cached;
  cached.free(cached.allocate(12 * kMiB));
  cached.device.refuse_next = 1;
  cached.allocate(20 * kMiB);
  EXPECT_EQ(cached.stats().num_alloc_retries, 1);
  EXPECT_EQ(cached.stats().reserved_bytes.current, static_cast<int64_t>(20 * kMiB));
}

TEST(CachingAllocator, ACaptureHasItsOwnMemoryAndAsksNothingOfStreams) {
  Cached cached;
  const Address before = cached.allocate(20 * kMiB);
  const Address waits = cached.allocate(kMiB);
  cached.use(waits, 1);
  cached.record(waits, 1);
  cached.free(before);
  Address inside = 0;
  {
    const PrivatePool pool(cached.allocator.cache(SimulatedDevice::device()));
    {
      const CaptureScope capture(pool, Cached::stream());
      cached.device.capturing = true;  // notes every question
      cached.free(waits);
      inside = cached.allocate(20 * kMiB);
      EXPECT_NE(inside, before);
      cached.free(inside);
      EXPECT_EQ(cached.allocate(20 * kMiB), inside);
      EXPECT_NE(cached.allocate(kMiB), waits);
      EXPECT_EQ(cached.empty(), 0u);
      EXPECT_TRUE(contains(message_of(ErrorKind::OutOfMemory, [&] { cached.allocate(30 * kMiB); }),
                           "; while something is captured, nothing is waited for or returned to the device"));
      EXPECT_EQ(cached.allocate(20 * kMiB, 2), inside + 22 * kMiB) << "other streams go on";
      cached.device.capturing = false;
    }
    EXPECT_EQ(cached.allocate(20 * kMiB), before);
    cached.free(inside);
    EXPECT_EQ(cached.stats().active.current - cached.stats().allocation.current, 1)
        << "an event came afterwards";
    cached.empty();
    EXPECT_GE(cached.stats().reserved_bytes.current, static_cast<int64_t>(60 * kMiB))
        << "the graph may run again";
  }
  cached.empty();
  EXPECT_LT(cached.stats().reserved_bytes.current, static_cast<int64_t>(60 * kMiB));
}

TEST(CachingAllocator, CapturesThatCannotBeAreRefused) {
  Cached cached;
  DeviceCache& cache = cached.allocator.cache(SimulatedDevice::device());
  EXPECT_TRUE(contains(message_of(ErrorKind::Value, [&] { cache.begin_capture(7, Cached::stream()); }),
                       "begin_capture: simulated:0 allocator has no private pool 7"));
  const PrivatePool pool(cache);
  const CaptureScope scope(pool, Cached::stream());
  EXPECT_TRUE(
      contains(message_of(ErrorKind::Runtime, [&] { const CaptureScope again(pool, Cached::stream()); }),
               "begin_capture: simulated:0 is captured already"));
}

TEST(CachingAllocator, AnExpandablePoolIsOneRange) {
  Cached cached({.expandable = true});
  const Address a = cached.allocate(12 * kMiB), b = cached.allocate(20 * kMiB),
                c = cached.allocate(12 * kMiB);
  EXPECT_EQ(b, a + 12 * kMiB);
  EXPECT_EQ(c, b + 20 * kMiB);
  EXPECT_EQ(cached.stats().segment.current, 1);
  cached.free(a);
  cached.free(b);
  EXPECT_EQ(cached.allocate(32 * kMiB), a) << "pieces that were mapped apart serve one request";
  EXPECT_EQ(cached.stats().reserved_bytes.current, static_cast<int64_t>(44 * kMiB));
  cached.free(a);
  // Under pressure the hole is unmapped, for a stream that has another range; then it is mapped again.
  const Address other = cached.allocate(40 * kMiB, 1);
  EXPECT_EQ(cached.stats().reserved_bytes.current, static_cast<int64_t>(52 * kMiB));
  EXPECT_EQ(cached.stats().num_ooms, 0);
  cached.free(other, 1);
  EXPECT_EQ(cached.allocate(30 * kMiB), a);
  EXPECT_EQ(cached.stats().segment.current, 1);
  cached.free(a);
  cached.free(c);
  EXPECT_GT(cached.empty(), 0u);
  EXPECT_EQ(cached.stats().reserved_bytes.current, 0);
  EXPECT_FALSE(cached.device.has_ranges());
}

TEST(CachingAllocator, LargeBlocksStayWholeAboveTheLimitOfSplits) {
  Cached cached({.max_split_size = 16 * kMiB});
  const Address a = cached.allocate(24 * kMiB);
  EXPECT_EQ(cached.stats().oversize_allocations.current, 1);
  EXPECT_EQ(cached.stats().oversize_segments.current, 1);
  EXPECT_EQ(cached.stats().max_split_size, static_cast<int64_t>(16 * kMiB));
  cached.free(a);
  EXPECT_NE(cached.allocate(12 * kMiB), a) << "it is kept for its like";
  EXPECT_EQ(cached.allocate(22 * kMiB), a);
  EXPECT_EQ(cached.stats().allocated_bytes.current, static_cast<int64_t>(36 * kMiB)) << "and not split";
}

TEST(CachingAllocator, FreedBlocksAreFilledInStreamOrder) {
  Cached cached({.fill = 0xa5});
  const Address a = cached.allocate(1000, 1);
  cached.free(a, 1);
  EXPECT_EQ(cached.device.fills, (std::vector<std::string>{"1024 bytes of 0xa5 on simulated:0, stream 1"}));
}

TEST(CachingAllocator, ABlockWhoseEventsAreLostIsNeverReused) {
  Cached cached;
  const Address a = cached.allocate(kMiB);
  cached.record(a, 1);
  cached.device.broken = true;
  cached.free(a);
  cached.device.broken = false;
  EXPECT_NE(cached.allocate(kMiB), a);
  cached.empty();
  EXPECT_EQ(cached.stats().active.current, 2);
}

TEST(CachingAllocator, RefusesWhatItDoesNotHave) {
  Cached cached;
  EXPECT_EQ(message_of(ErrorKind::Value, [&] { cached.record(4096, 1); }),
            "record_stream: simulated:0 allocator has no block at address 0x1000");
  EXPECT_EQ(message_of(ErrorKind::Device,
                       [&] { (void)Storage::allocate(8, Device(SimulatedDevice::backend(), 5)); }),
            "simulated allocator: there is no device simulated:5; backend simulated has 1");
  struct Odd final : DeviceMemory {
    size_t granularity() const noexcept override { return 96; }
    Address allocate(Device, size_t) override { return 0; }
    void free(Device, Address, size_t) noexcept override {}
    void copy(Address, Address, size_t, Stream) override {}
  } odd;
  EXPECT_TRUE(
      contains(message_of(ErrorKind::Device, [&] { CachingAllocator("odd memory", odd, {}); }),
               "odd memory allocator: the granularity of its memory is 96, and must be a power of two"));
  setenv("TENON_MEMORY_FILL", "red", 1);
  EXPECT_EQ(message_of(ErrorKind::Value, [] { cache_options_from_environment(); }),
            "TENON_MEMORY_FILL=red: expected a number from 0 to 255");
  setenv("TENON_MEMORY_FILL", "0xff", 1);
  EXPECT_EQ(cache_options_from_environment().fill, 255);
  unsetenv("TENON_MEMORY_FILL");
}

TEST(CachingAllocator, ServesHostMemoryThatDevicesRead) {
  SimulatedDevice device(64 * kMiB);
  CachingAllocator pinned("pinned memory", device, {});
  const Stream host{kCPU, 0};
  const Address source = pinned.allocate(kMiB, host);
  device.use(1, source, kMiB, 0, 0);  // a copy that does not block
  pinned.record_stream(source, kCPU, SimulatedDevice::stream(1));
  pinned.deallocate(source, kMiB, host);
  EXPECT_NE(pinned.allocate(kMiB, host), source) << "the copy has yet to read it";
  device.advance(1);
  EXPECT_EQ(pinned.allocate(kMiB, host), source);
  EXPECT_EQ(pinned.memory_stats(kCPU).allocation.current, 2);
  EXPECT_TRUE(contains(message_of(ErrorKind::OutOfMemory, [&] { pinned.allocate(65 * kMiB, host); }),
                       "pinned memory allocator: 68157440 bytes (65.0 MiB)"));
}

}  // namespace
}  // namespace tenon
