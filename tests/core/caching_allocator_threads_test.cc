// The caching allocator in several threads, on a device that is host memory: blocks are written, so that two
// owners of one byte are seen, and ThreadSanitizer sees what is not ordered.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tenon/core/caching_allocator.h"
#include "tenon/core/error.h"
#include "tests/core/immediate_runtime.h"
#include "tests/core/testing.h"

namespace tenon {
namespace {

using testing::kMiB;

class HostPieces final : public DeviceMemory {
 public:
  Address allocate(Device, size_t nbytes) override {
    if (used.fetch_add(nbytes) + nbytes > 96 * kMiB) {
      used -= nbytes;
      return 0;
    }
    return reinterpret_cast<Address>(std::aligned_alloc(512, nbytes));
  }
  void free(Device, Address address, size_t nbytes) noexcept override {
    std::free(reinterpret_cast<void*>(address));
    used -= nbytes;
  }
  void copy(Address to, Address from, size_t nbytes, Stream) override {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), nbytes);
  }
  Info info(Device) const override { return {96 * kMiB, 96 * kMiB - used}; }
  std::atomic<size_t> used{0};
};

Backend immediate() {
  static const Backend backend = [] {
    const Backend b = register_backend("immediate", "Immediate");
    set_device_runtime(b, new testing::ImmediateRuntime(1));
    return b;
  }();
  return backend;
}

struct Block {
  Address address;
  size_t nbytes;
  Stream stream;
  unsigned char mark;
};

TEST(CachingAllocator, ServesThreadsAtOnce) {
  HostPieces memory;
  CachingAllocator allocator(immediate(), memory, {});
  const Device device(immediate(), 0);
  std::mutex mutex;
  std::vector<Block> passed_on;  // freed by another thread than the one that allocated them
  std::atomic<int> wrong{0}, refused{0};

  const auto release = [&](const Block& block) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(block.address);
    if (bytes[0] != block.mark || bytes[block.nbytes - 1] != block.mark) ++wrong;
    allocator.deallocate(block.address, block.nbytes, block.stream);
  };
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Block> own;
    for (int step = 0; step < 3000; ++step) {
      const unsigned kind = random() % 100;
      if (kind < 45) {
        const size_t nbytes = 1 + random() % (random() % 4 ? 100'000 : 12 * kMiB);
        const Stream stream{device, random() % 2};
        try {
          const Block block{allocator.allocate(nbytes, stream), nbytes, stream,
                            static_cast<unsigned char>(random())};
          auto* bytes = reinterpret_cast<unsigned char*>(block.address);
          bytes[0] = bytes[nbytes - 1] = block.mark;
          own.push_back(block);
        } catch (const Error& error) {
          if (error.kind() != ErrorKind::OutOfMemory) ++wrong;
          ++refused;
        }
      } else if (kind < 85 && !own.empty()) {
        std::swap(own[random() % own.size()], own.back());
        const Block block = own.back();
        own.pop_back();
        if (random() % 3 == 0) allocator.record_stream(block.address, device, {device, 2});
        if (random() % 4 > 0) {
          release(block);
        } else {
          const std::lock_guard lock(mutex);
          passed_on.push_back(block);
        }
      } else if (kind < 95) {
        std::vector<Block> taken;
        {
          const std::lock_guard lock(mutex);
          taken.swap(passed_on);
        }
        for (const Block& block : taken) release(block);
      } else if (kind < 97) {
        const MemoryStats stats = allocator.memory_stats(device);
        if (stats.allocated_bytes.current > stats.reserved_bytes.current) ++wrong;
      } else if (kind < 98) {
        (void)allocator.memory_snapshot(device);
      } else if (kind < 99) {
        allocator.empty_cache(device);
      } else {
        allocator.record_memory_history(device, random() % 2 ? 100 : 0);
      }
    }
    for (const Block& block : own) release(block);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) threads.emplace_back(work, i + 1);
  for (std::thread& thread : threads) thread.join();
  for (const Block& block : passed_on) release(block);

  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(allocator.memory_stats(device).num_ooms, refused);
  EXPECT_EQ(allocator.memory_stats(device).allocation.current, 0);
  allocator.empty_cache(device);
  EXPECT_EQ(allocator.memory_stats(device).reserved_bytes.current, 0);
  EXPECT_EQ(memory.used, 0u);
}

}  // namespace
}  // namespace tenon
