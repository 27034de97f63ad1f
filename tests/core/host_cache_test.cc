// HostCache by itself, in every build: sanitizers too, where tensors do without it.
#include "tenon/core/host_cache.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tenon/core/host_memory.h"
#include "tests/core/testing.h"

namespace tenon {
namespace {

using testing::in_child;

using testing::kMiB;

size_t plenty() noexcept { return SIZE_MAX; }
std::atomic<size_t> g_available{SIZE_MAX};
size_t pretended() noexcept { return g_available; }

bool all_zero(const void* p, size_t n) {
  const auto* c = static_cast<const char*>(p);
  return std::all_of(c, c + n, [](char byte) { return byte == 0; });
}

TEST(HostCache, KeepsAFreedBlockAndGivesItToAnEqualRequest) {
  MemoryFlow mapped;
  HostCache cache(64 * kMiB, mapped, &plenty);
  const HostCache::Block first = cache.allocate(kMiB - 5);
  ASSERT_TRUE(first.address);
  EXPECT_TRUE(first.zeroed);
  EXPECT_TRUE(all_zero(first.address, kMiB - 5));
  std::memset(first.address, 7, kMiB - 5);
  EXPECT_EQ(cache.kept_bytes(), 0u);
  cache.free(first.address, kMiB - 5);
  EXPECT_EQ(cache.kept_bytes(), kMiB);
  const HostCache::Block other = cache.allocate(2 * kMiB);
  EXPECT_NE(other.address, first.address);
  const HostCache::Block again = cache.allocate(kMiB - 10000);  // of the same eighth
  EXPECT_EQ(again.address, first.address);
  EXPECT_FALSE(again.zeroed) << "its bytes are those of its last user";
  cache.free(again.address, kMiB - 10000);
  cache.free(other.address, 2 * kMiB);
  EXPECT_EQ(mapped.in(), static_cast<int64_t>(3 * kMiB));
  EXPECT_EQ(cache.empty(), 3 * kMiB);
  EXPECT_EQ(mapped.out(), static_cast<int64_t>(3 * kMiB));
  EXPECT_EQ(cache.empty(), 0u);
}

TEST(HostCache, SizesOfBlocksRiseByAnEighthAndServeOnlyTheirOwn) {
  size_t sizes = 0;
  for (size_t n = HostCache::kMinBlock, last = 0; n <= 300 * kMiB; n += 1 + n / 64) {
    const size_t bytes = HostCache::block_bytes(n);
    EXPECT_GE(bytes, n);
    EXPECT_LE(bytes - n, n / 8);
    EXPECT_EQ(HostCache::block_bytes(bytes), bytes);
    EXPECT_EQ(bytes % 4096, 0u);
    EXPECT_GE(bytes, last);
    sizes += bytes != last;
    last = bytes;
  }
  EXPECT_EQ(sizes, 99u) << "12 doublings of 8 up to 256 MiB with both ends, then 288 and 320";
  EXPECT_EQ(HostCache::block_bytes(257 * kMiB), 288 * kMiB);
  EXPECT_EQ(HostCache::block_bytes(10240 * kMiB), 10240 * kMiB);
}

TEST(HostCache, BlocksBeyondTheLastBinAreToldApart) {
  MemoryFlow mapped;
  HostCache cache(SIZE_MAX, mapped, &plenty);
  const HostCache::Block a = cache.allocate(300 * kMiB), b = cache.allocate(400 * kMiB);
  cache.free(a.address, 300 * kMiB);
  cache.free(b.address, 400 * kMiB);
  EXPECT_EQ(cache.allocate(320 * kMiB).address, a.address);
  EXPECT_EQ(cache.allocate(400 * kMiB).address, b.address);
  cache.free(a.address, 320 * kMiB);
  cache.free(b.address, 400 * kMiB);
}

TEST(HostCache, HugeBlocksStartOnAHugePage) {
  MemoryFlow mapped;
  HostCache cache(SIZE_MAX, mapped, &plenty);
  std::vector<HostCache::Block> blocks;
  for (size_t i = 0; i < 8; ++i) {
    const size_t n = HostCache::kHugeBlock + i * 700001;
    blocks.push_back(cache.allocate(n));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks[i].address) % HostCache::kHugePage, 0u) << n;
    std::memset(blocks[i].address, 1, n);
  }
  for (size_t i = 0; i < 8; ++i) cache.free(blocks[i].address, HostCache::kHugeBlock + i * 700001);
}

TEST(HostCache, GivesTheOldestBackBeyondItsLimit) {
  MemoryFlow mapped;
  HostCache cache(4 * kMiB, mapped, &plenty);
  std::vector<void*> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(cache.allocate(kMiB).address);
  for (void* block : blocks) cache.free(block, kMiB);
  EXPECT_EQ(cache.kept_bytes(), 4 * kMiB);
  for (int i = 5; i >= 2; --i) EXPECT_EQ(cache.allocate(kMiB).address, blocks[static_cast<size_t>(i)]);
  for (int i = 5; i >= 2; --i) cache.free(blocks[static_cast<size_t>(i)], kMiB);
  cache.set_limit(2 * kMiB);
  EXPECT_EQ(cache.kept_bytes(), 2 * kMiB);
  EXPECT_EQ(cache.allocate(kMiB).address, blocks[2]) << "freed last";
  cache.free(blocks[2], kMiB);

  void* larger = cache.allocate(3 * kMiB).address;
  cache.free(larger, 3 * kMiB);
  EXPECT_EQ(cache.kept_bytes(), 2 * kMiB) << "what exceeds the limit by itself pushes nothing out";
  cache.set_limit(0);
  cache.free(cache.allocate(kMiB).address, kMiB);
  EXPECT_EQ(cache.kept_bytes(), 0u);
}

TEST(HostCache, KeepsNoMoreThanTheSystemHasLeft) {
  g_available = SIZE_MAX;
  MemoryFlow mapped;
  HostCache cache(1024 * kMiB, mapped, &pretended);
  std::vector<void*> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(cache.allocate(16 * kMiB).address);
  for (void* block : blocks) cache.free(block, 16 * kMiB);
  EXPECT_EQ(cache.kept_bytes(), 160 * kMiB);
  // Others take memory. It is looked at after some traffic, also when the cache serves every request.
  g_available = 50 * kMiB;
  for (int i = 0; i < 17; ++i) cache.free(cache.allocate(16 * kMiB).address, 16 * kMiB);
  EXPECT_EQ(cache.kept_bytes(), 48 * kMiB);
  // A large new block leaves less for the rest.
  g_available = 500 * kMiB;
  void* large = cache.allocate(480 * kMiB).address;
  EXPECT_EQ(cache.kept_bytes(), 16 * kMiB);
  cache.free(large, 480 * kMiB);
}

TEST(HostCache, BlocksMayBeFreedByAnotherThread) {
  MemoryFlow mapped;
  HostCache cache(64 * kMiB, mapped, &plenty);
  std::vector<void*> blocks;
  for (int i = 0; i < 20; ++i) blocks.push_back(cache.allocate(kMiB).address);
  std::thread([&] {
    for (void* block : blocks) cache.free(block, kMiB);
  }).join();
  EXPECT_EQ(cache.kept_bytes(), 20 * kMiB);
  EXPECT_EQ(cache.allocate(kMiB).address, blocks.back());
  cache.free(blocks.back(), kMiB);
}

TEST(HostCache, ThreadsThatShareItNeverHoldOneBlockTogether) {
  MemoryFlow mapped;
  HostCache cache(16 * kMiB, mapped, &plenty);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  std::atomic<void*> handed_over{nullptr};
  for (unsigned id = 1; id <= 4; ++id) {
    threads.emplace_back([&, id] {
      std::mt19937 random(id);
      constexpr size_t kSizes[] = {128 << 10, 200 << 10, 1 << 20, 5 << 20};
      for (int i = 0; i < 300; ++i) {
        const size_t n = kSizes[random() % 4];
        const HostCache::Block block = cache.allocate(n);
        auto* mark = static_cast<uint64_t*>(block.address);
        const uint64_t mine = uint64_t{id} << 32 | static_cast<uint64_t>(i);
        mark[0] = mark[n / 8 - 1] = mine;
        if (random() % 64 == 0) cache.empty();
        if (mark[0] != mine || mark[n / 8 - 1] != mine) ++wrong;
        if (n != kSizes[0]) {
          cache.free(block.address, n);
        } else if (void* of_another = handed_over.exchange(block.address)) {
          cache.free(of_another, n);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  cache.free(handed_over.exchange(nullptr), 128 << 10);
  EXPECT_EQ(wrong, 0);
  cache.empty();
  EXPECT_EQ(cache.kept_bytes(), 0u);
  EXPECT_EQ(mapped.in(), mapped.out());
}

TEST(HostCache, AForkedChildGivesBackWhatItsParentKept) {
  MemoryFlow mapped;
  HostCache cache(64 * kMiB, mapped, &plenty);
  void* held = cache.allocate(kMiB).address;
  std::memset(held, 3, kMiB);
  cache.free(cache.allocate(2 * kMiB).address, 2 * kMiB);
  cache.before_fork();
  const int seen = in_child([&] {
    cache.after_fork(true);
    if (cache.kept_bytes() != 2 * kMiB) return 1;  // nothing is done for a child that only calls exec
    const HostCache::Block fresh = cache.allocate(2 * kMiB);
    if (!fresh.zeroed || cache.kept_bytes() != 0) return 2;
    cache.free(held, kMiB);  // a block from before the fork
    cache.free(fresh.address, 2 * kMiB);
    return cache.kept_bytes() == 3 * kMiB && cache.allocate(2 * kMiB).address == fresh.address ? 0 : 3;
  });
  cache.after_fork(false);
  EXPECT_EQ(seen, 0);
  EXPECT_EQ(cache.kept_bytes(), 2 * kMiB) << "the parent's are as they were";
  EXPECT_EQ(static_cast<char*>(held)[kMiB - 1], 3);
  cache.free(held, kMiB);
}

TEST(HostCache, IsEmptiedAndAsksAgainWhenTheAddressSpaceIsFull) {
  const int seen = in_child([] {
    MemoryFlow mapped;
    HostCache cache(SIZE_MAX, mapped, &plenty);
    rlimit limit{RLIM_INFINITY - 1, RLIM_INFINITY};  // what is used is only said beside a limit
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
    limit.rlim_cur = host_memory().address_used + 256 * kMiB;
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
    const size_t left = host_memory().obtainable();
    if (left > 256 * kMiB) return 3;
    void* blocks[3];
    for (void*& block : blocks) block = cache.allocate(64 * kMiB).address;
    for (void* block : blocks) cache.free(block, 64 * kMiB);
    if (cache.kept_bytes() != 192 * kMiB) return 4;
    const HostCache::Block larger = cache.allocate(160 * kMiB);
    if (!larger.address || larger.emptied != 192 * kMiB || !larger.zeroed) return 5;
    cache.free(larger.address, 160 * kMiB);
    const HostCache::Block too_large = cache.allocate(512 * kMiB);
    return !too_large.address && too_large.emptied == 160 * kMiB ? 0 : 6;
  });
  EXPECT_EQ(seen, 0);
}

TEST(HostCache, RefusesSizesThatNoAddressSpaceHas) {
  MemoryFlow mapped;
  HostCache cache(SIZE_MAX, mapped, &plenty);
  EXPECT_FALSE(cache.allocate(SIZE_MAX).address);
  EXPECT_FALSE(cache.allocate(PTRDIFF_MAX).address);
  EXPECT_FALSE(cache.allocate(size_t{1} << 60).address);
}

}  // namespace
}  // namespace tenon
