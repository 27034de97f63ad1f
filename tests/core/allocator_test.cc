// The host's allocator: what it counts, keeps and says when there is nothing left.
#include "tenon/core/allocator.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tenon/core/error.h"
#include "tenon/core/host_memory.h"
#include "tenon/core/medium_alloc.h"
#include "tenon/core/small_alloc.h"
#include "tenon/core/storage.h"
#include "tenon/core/tensor.h"
#include "tests/core/testing.h"

namespace tenon {
namespace {

using testing::in_child;

using testing::kMiB;
#ifdef TENON_EXACT_ALLOCATIONS
constexpr bool kKeeps = false;
#else
constexpr bool kKeeps = true;
#endif

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::OutOfMemory);
    return e.what();
  }
  return "nothing was thrown";
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(CpuMemory, CountsWhatTensorsHold) {
  const MemoryStats before = cpu_memory_stats();
  reset_cpu_peak_memory_stats();
  reset_cpu_accumulated_memory_stats();
  {
    const Storage middle = Storage::allocate(5000), large = Storage::allocate(3 * kMiB + 1);
    const Storage small = Storage::allocate(100);
    const MemoryStats stats = cpu_memory_stats();
    EXPECT_EQ(stats.allocation.current - before.allocation.current, 2) << "small blocks are not counted";
    EXPECT_EQ(stats.allocated_bytes.current - before.allocated_bytes.current,
              static_cast<int64_t>(5000 + 3 * kMiB + 1));
    EXPECT_GE(stats.reserved_bytes.current, stats.allocated_bytes.current);
    EXPECT_EQ(stats.active_bytes.current, stats.allocated_bytes.current);
    EXPECT_EQ(stats.active.current, stats.allocation.current);
  }
  const MemoryStats after = cpu_memory_stats();
  EXPECT_EQ(after.allocation.current, before.allocation.current);
  EXPECT_EQ(after.allocation.allocated, 2);
  EXPECT_EQ(after.allocation.freed, 2);
  EXPECT_EQ(after.allocated_bytes.current, before.allocated_bytes.current);
  EXPECT_EQ(after.allocated_bytes.peak - before.allocated_bytes.current,
            static_cast<int64_t>(5000 + 3 * kMiB + 1));
  EXPECT_EQ(after.allocated_bytes.allocated, after.allocated_bytes.freed);
  EXPECT_GE(after.reserved_bytes.peak, after.allocated_bytes.peak);
  reset_cpu_peak_memory_stats();
  EXPECT_EQ(cpu_memory_stats().allocated_bytes.peak, after.allocated_bytes.current);
  EXPECT_EQ(cpu_memory_stats().reserved_bytes.peak, after.reserved_bytes.current);
}

TEST(CpuMemory, WhatIsKeptIsReservedUntilTheCacheIsEmptied) {
  empty_cpu_cache();
  const int64_t before = cpu_memory_stats().reserved_bytes.current;
  (void)Storage::allocate(3 * kMiB);
  (void)Storage::allocate(3 * kMiB);
  const int64_t kept = kKeeps ? static_cast<int64_t>(3 * kMiB) : 0;
  EXPECT_EQ(cpu_memory_stats().reserved_bytes.current - before, kept);
  EXPECT_EQ(empty_cpu_cache(), static_cast<size_t>(kept));
  EXPECT_EQ(cpu_memory_stats().reserved_bytes.current, before);
}

TEST(CpuMemory, TheLimitOfTheCacheMayBeSet) {
  const size_t limit = cpu_cache_limit();
  empty_cpu_cache();
  set_cpu_cache_limit(kMiB);
  (void)Storage::allocate(3 * kMiB);
  EXPECT_EQ(empty_cpu_cache(), 0u);
  set_cpu_cache_limit(limit);
  EXPECT_EQ(cpu_cache_limit(), limit);
  if (kKeeps) {
    EXPECT_LE(limit, host_memory().total / 4);
  }
}

TEST(CpuMemory, EveryBlockIsAlignedAndWritable) {
  for (size_t n = 1; n < 64 * kMiB; n = n * 3 / 2 + 1) {
    const Storage s = Storage::allocate(n);
    EXPECT_EQ(s.address() % 64, 0u) << n;
    std::memset(reinterpret_cast<void*>(s.address()), 255, n);
  }
}

#ifndef TENON_EXACT_ALLOCATIONS
TEST(CpuMemory, ABlockOfMediumSizeServesTheNextOfItsSize) {
  for (size_t n = kSmallBlockMax + 1; n <= kMediumBlockMax; n += n / 7) {
    void* const first = medium_allocate(n);
    std::memset(first, 1, n);
    medium_free(first, n);
    void* const second = medium_allocate(n);
    EXPECT_EQ(first, second) << n;
    void* const third = medium_allocate(n);
    EXPECT_NE(second, third) << n;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(third) % kSmallBlockAlign, 0u);
    std::memset(third, 2, n);
    EXPECT_EQ(static_cast<char*>(second)[n - 1], 1) << n;
    medium_free(third, n);
    medium_free(second, n);
  }
}

TEST(CpuMemory, TemporariesOfNoSizeFaultInEveryRound) {
  const auto faults = [] {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return used.ru_minflt;
  };
  for (size_t n = 16 << 10; n <= kMiB; n += n / 4) {
    const auto round = [n] {
      const Storage held[] = {Storage::allocate(n), Storage::allocate(n), Storage::allocate(n)};
      for (const Storage& s : held) std::memset(reinterpret_cast<void*>(s.address()), 1, n);
    };
    round();
    const int64_t before = faults();
    for (int i = 0; i < 100; ++i) round();
    EXPECT_LT(faults() - before, 100) << n;
  }
}
#endif

TEST(CpuMemory, ZerosAreZeroInFreshBlocksAndInKeptOnes) {
  for (const size_t n :
       {size_t{0}, size_t{1}, size_t{100}, size_t{5000}, 128 * kMiB / 1024, kMiB, 5 * kMiB}) {
    empty_cpu_cache();
    for (int round = 0; round < 3; ++round) {
      const Storage s = Storage::zeros(n);
      auto* bytes = reinterpret_cast<char*>(n ? s.address() : 0);
      EXPECT_TRUE(std::all_of(bytes, bytes + n, [](char c) { return c == 0; })) << n << " in round " << round;
      EXPECT_EQ(s.nbytes(), n);
      if (n) std::memset(bytes, 1, n);
    }
  }
  const Tensor t = make_zeros_on_cpu({3, 0, 2}, kInt64);
  EXPECT_EQ(t.numel(), 0);
  const Tensor scalar = make_zeros_on_cpu({}, kFloat64);
  EXPECT_EQ(*scalar.data_ptr<double>(), 0);
}

#if defined(__linux__) && !defined(TENON_EXACT_ALLOCATIONS)
TEST(CpuMemory, FreshZerosAreNotWritten) {
  empty_cpu_cache();
  const auto resident = [] {
    std::ifstream statm("/proc/self/statm");
    size_t all = 0, pages = 0;
    statm >> all >> pages;
    return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  };
  const size_t before = resident();
  const Storage zeros = Storage::zeros(256 * kMiB);
  EXPECT_LT(resident(), before + 16 * kMiB);
}
#endif

TEST(CpuMemory, ThreadsThatAllocateTogetherAreAllCounted) {
  const MemoryStats before = cpu_memory_stats();
  const auto work = [] {
    for (int i = 0; i < 300; ++i) {
      const Storage a = Storage::allocate(2000), b = Storage::allocate(200 << 10);
      std::memset(reinterpret_cast<void*>(b.address()), i, 200 << 10);
    }
  };
  std::thread one(work), two(work), three(work);
  one.join();
  two.join();
  three.join();
  const MemoryStats after = cpu_memory_stats();
  EXPECT_EQ(after.allocation.current, before.allocation.current);
  EXPECT_EQ(after.allocation.allocated - before.allocation.allocated, 1800);
  EXPECT_EQ(after.allocated_bytes.current, before.allocated_bytes.current);
}

TEST(CpuMemory, AStorageMayDieInAnotherThread) {
  empty_cpu_cache();
  Storage s = Storage::allocate(2 * kMiB);
  const Address address = s.address();
  std::thread([moved = std::move(s)]() mutable { moved = Storage(); }).join();
  if (kKeeps) {
    EXPECT_EQ(Storage::allocate(2 * kMiB).address(), address);
  }
}

TEST(CpuMemory, APlannedFailureComesThoughABlockIsKept) {
  (void)Storage::allocate(2 * kMiB);
  fail_cpu_allocation_after(2, kMiB);
  (void)Storage::allocate(2 * kMiB);
  const int64_t failures = cpu_memory_stats().num_ooms;
  EXPECT_TRUE(contains(message_of([] { (void)Storage::allocate(2 * kMiB); }), "2097152 bytes (2.0 MiB)"));
  EXPECT_EQ(cpu_memory_stats().num_ooms, failures + 1);
  EXPECT_EQ(Storage::allocate(2 * kMiB).nbytes(), 2 * kMiB);
}

TEST(CpuMemory, AFailureSaysWhatThereWas) {
  empty_cpu_cache();
  const Storage held = Storage::allocate(6 * kMiB);
  std::string text = message_of([] { (void)Storage::allocate(size_t{1} << 55); });
  EXPECT_TRUE(contains(text, "cpu allocator: 36028797018963968 bytes (32.0 PiB) are not to be had: of "))
      << text;
  EXPECT_TRUE(contains(text, " of memory ")) << text;
  EXPECT_TRUE(contains(text, " are available, tensors of Tenon hold ")) << text;
  EXPECT_TRUE(contains(text, "its cache is empty")) << text;
  if (!kKeeps) return;
  (void)Storage::allocate(3 * kMiB);
  text = message_of([] { (void)Storage::allocate(size_t{1} << 55); });
  EXPECT_TRUE(contains(text, "freeing its cache of 3.0 MiB did not help")) << text;
}

#ifndef TENON_EXACT_ALLOCATIONS
/// Leaves the process `room` bytes of address space.
bool limit_address_space(size_t room) {
  rlimit limit{RLIM_INFINITY - 1, RLIM_INFINITY};  // what is used is only said beside a limit
  if (setrlimit(RLIMIT_AS, &limit) != 0) return false;
  limit.rlim_cur = host_memory().address_used + room;
  return setrlimit(RLIMIT_AS, &limit) == 0;
}

TEST(CpuMemory, AFullCacheMakesRoomForBlocksOfEverySize) {
  EXPECT_EQ(in_child([] {
              set_cpu_cache_limit(1024 * kMiB);  // by itself it would be a part of the limit below
              if (!limit_address_space(300 * kMiB)) return 1;
              const auto fill_cache = [] {
                std::vector<Storage> held;
                try {
                  for (;;) held.push_back(Storage::allocate(8 * kMiB));
                } catch (const Error&) {
                }
                return held.size() > 20;
              };
              if (!fill_cache()) return 2;
              const int64_t retries = cpu_memory_stats().num_alloc_retries;
              if (Storage::allocate(200 * kMiB).nbytes() != 200 * kMiB) return 3;
              if (cpu_memory_stats().num_alloc_retries != retries + 1) return 4;
              empty_cpu_cache();
              if (!fill_cache()) return 5;
              // More than the C library has at hand, in blocks that no cache serves.
              std::vector<Storage> middle;
              for (int i = 0; i < 1500; ++i) middle.push_back(Storage::allocate(100 << 10));
              if (cpu_memory_stats().num_alloc_retries != retries + 2) return 6;
              middle.clear();
              empty_cpu_cache();
              return 0;
            }),
            0);
  EXPECT_EQ(in_child([] {
              if (!limit_address_space(100 * kMiB)) return 1;
              std::vector<Storage> held;
              held.reserve(100);
              try {
                for (;;) held.push_back(Storage::allocate(8 * kMiB));
              } catch (const Error&) {
              }
              held.clear();
              std::vector<void*> small;
              small.reserve(60000);
              for (int i = 0; i < 60000; ++i) small.push_back(small_allocate(1024));
              return 0;
            }),
            0);
  EXPECT_EQ(in_child([] {
              if (!limit_address_space(100 * kMiB)) return 1;
              const std::string text = message_of([] { (void)Storage::allocate(400 * kMiB); });
              return contains(text, "419430400 bytes (400.0 MiB)") &&
                             contains(text, " that this process may take ")
                         ? 0
                         : 2;
            }),
            0);
}

TEST(CpuMemory, AForkedChildStartsWithAnEmptyCache) {
  empty_cpu_cache();
  const Storage held = Storage::allocate(2 * kMiB);
  (void)Storage::allocate(3 * kMiB);
  EXPECT_EQ(in_child([&] {
              (void)Storage::allocate(5 * kMiB);
              return empty_cpu_cache() == 5 * kMiB && held.nbytes() == 2 * kMiB ? 0 : 1;
            }),
            0);
  EXPECT_EQ(empty_cpu_cache(), 3 * kMiB);
}

TEST(CpuMemory, ForksWhileOtherThreadsAllocateDoNotHang) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      while (!stop) (void)Storage::allocate(200 << 10);
    });
  int failed = 0;
  for (int i = 0; i < 50; ++i)
    failed += in_child([] { return Storage::allocate(200 << 10).nbytes() == 200 << 10 ? 0 : 1; }) != 0;
  stop = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
}
#endif

/// A folder with files of a pretended system.
struct PretendedSystem {
  PretendedSystem()
      : root(std::filesystem::temp_directory_path() / ("tenon_memory_" + std::to_string(getpid()))) {
    write("proc/meminfo",
          "MemTotal:       16777216 kB\nMemFree:         1000000 kB\nMemAvailable:    8388608 kB\n");
  }
  ~PretendedSystem() { std::filesystem::remove_all(root); }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  HostMemory read() const { return detail::host_memory_below(root.c_str()); }
  std::filesystem::path root;
};

constexpr uint64_t kGiB = uint64_t{1} << 30;

TEST(HostMemory, IsTheMachinesWithoutALimit) {
  const PretendedSystem system;
  EXPECT_EQ(system.read().total, 16 * kGiB);
  EXPECT_EQ(system.read().available, 8 * kGiB);
  system.write("proc/self/cgroup", "0::/\n");
  EXPECT_EQ(system.read().total, 16 * kGiB) << "the root group has no such files";
  system.write("proc/self/cgroup", "0::/user\n");
  system.write("sys/fs/cgroup/user/memory.max", "max\n");
  system.write("sys/fs/cgroup/user/memory.current", "1000\n");
  EXPECT_EQ(system.read().available, 8 * kGiB);
}

TEST(HostMemory, IsWhatTheNarrowestControlGroupLeaves) {
  const PretendedSystem system;
  system.write("proc/self/cgroup", "1:name=systemd:/elsewhere\n0::/slice/job\n");
  system.write("sys/fs/cgroup/slice/job/memory.max", "max\n");
  system.write("sys/fs/cgroup/slice/memory.max", "4294967296\n");
  system.write("sys/fs/cgroup/slice/memory.current", "3221225472\n");
  system.write("sys/fs/cgroup/slice/memory.stat", "anon 1\ninactive_file 1073741824\nactive_file 5\n");
  EXPECT_EQ(system.read().total, 4 * kGiB);
  EXPECT_EQ(system.read().available, 2 * kGiB) << "page cache makes room";
  system.write("sys/fs/cgroup/slice/memory.current", "9999999999\n");
  EXPECT_EQ(system.read().available, 0u);
}

TEST(HostMemory, KnowsTheFirstVersionOfControlGroups) {
  const PretendedSystem system;
  system.write("proc/self/cgroup", "5:cpu:/job\n4:memory:/job\n");
  system.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2147483648\n");
  system.write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1073741824\n");
  system.write("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 7\ntotal_inactive_file 0\n");
  system.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(system.read().total, 2 * kGiB);
  EXPECT_EQ(system.read().available, 1 * kGiB);
}

TEST(HostMemory, WhatIsNotSaidIsUnlimited) {
  PretendedSystem system;
  system.write("proc/meminfo", "");
  EXPECT_EQ(system.read().total, HostMemory::kUnlimited);
  EXPECT_EQ(system.read().obtainable(), HostMemory::kUnlimited);
  system.write("proc/self/cgroup", "0::/../../outside\n");
  EXPECT_EQ(system.read().total, HostMemory::kUnlimited);
  system.write("proc/self/cgroup", "0::/" + std::string(3000, 'a'));
  EXPECT_EQ(system.read().total, HostMemory::kUnlimited);
}

TEST(HostMemory, BytesAreShownInUnits) {
  EXPECT_EQ(format_bytes(0), "0 bytes");
  EXPECT_EQ(format_bytes(1023), "1023 bytes");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(uint64_t{4000000000000}), "3.6 TiB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "16.0 EiB");
}

}  // namespace
}  // namespace tenon
