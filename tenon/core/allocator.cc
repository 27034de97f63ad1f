#include "tenon/core/allocator.h"

#include <fmt/core.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "tenon/core/error.h"
#include "tenon/core/host_cache.h"
#include "tenon/core/host_memory.h"
#include "tenon/core/medium_alloc.h"
#include "tenon/core/memory_counter.h"
#include "tenon/core/memory_snapshot.h"
#include "tenon/core/small_alloc.h"

namespace tenon {
namespace {

constexpr size_t kAlign = 64;

// Builds for a sanitizer take every block at its exact size and keep none, so that nothing hides an overflow
// or a use after free.
#ifdef TENON_EXACT_ALLOCATIONS
constexpr bool kKeepsBlocks = false;
#else
constexpr bool kKeepsBlocks = true;
#endif

constinit detail::PlannedFailure g_planned_failure;

/// What tensors and the cache hold. Every block counts in `blocks` and `bytes`, those of the cache in
/// `cached` besides, so that blocks that are not the cache's, which are many, count no more than they must.
/// Updates come in an order in which a sum of a moment is too small rather than too large: it may become the
/// peak.
struct Counters {
  MemoryCounter blocks;
  MemoryCounter bytes;
  MemoryFlow cached;
  MemoryFlow mapped;  // by the cache, of the system
  std::atomic<int64_t> reserved_peak{0};
  std::atomic<int64_t> retries{0}, failures{0};
  // At the latest reset.
  std::atomic<int64_t> reserved_before{0}, unreserved_before{0};

  void add(size_t nbytes, bool from_cache) noexcept {
    const auto n = static_cast<int64_t>(nbytes);
    if (from_cache) cached.add(n);
    const int64_t held = bytes.add(n);
    blocks.add(1);
    detail::raise(reserved_peak, held - cached.current() + mapped.current());
  }
  void subtract(size_t nbytes, bool from_cache) noexcept {
    const auto n = static_cast<int64_t>(nbytes);
    blocks.subtract(1);
    bytes.subtract(n);
    if (from_cache) cached.subtract(n);
  }
  int64_t reserved_in() const noexcept { return bytes.in() - cached.in() + mapped.in(); }
  int64_t reserved_out() const noexcept { return bytes.out() - cached.out() + mapped.out(); }
};
constinit Counters g_counters;

// Never destroyed: tensors may outlive static destruction.
constinit std::atomic<HostCache*> g_cache{nullptr};
// Of who makes it. No static of a function: a child of a fork would wait for ever for a thread that was about
// to make it.
constinit std::mutex g_making_cache;

HostCache& make_cache() noexcept {
  const std::lock_guard lock(g_making_cache);
  if (HostCache* const made = g_cache.load(std::memory_order_acquire)) return *made;
  const HostMemory memory = host_memory();
  const uint64_t most = std::min({memory.total, memory.address_limit, uint64_t{PTRDIFF_MAX}});
  auto& made = *new HostCache(static_cast<size_t>(most / 4), g_counters.mapped,
                              []() noexcept { return static_cast<size_t>(host_memory().available); });
  g_cache.store(&made, std::memory_order_release);
  return made;
}

HostCache& cache() noexcept {
  HostCache* const made = g_cache.load(std::memory_order_acquire);
  return made ? *made : make_cache();
}

void after_fork(bool in_child) {
  if (HostCache* const made = g_cache.load(std::memory_order_relaxed)) made->after_fork(in_child);
  g_making_cache.unlock();
}

[[maybe_unused]] const int watches_forks = pthread_atfork(
    [] {
      g_making_cache.lock();
      if (HostCache* const made = g_cache.load(std::memory_order_relaxed)) made->before_fork();
    },
    [] { after_fork(false); }, [] { after_fork(true); });

bool is_kept(size_t nbytes) noexcept { return kKeepsBlocks && nbytes > kMediumBlockMax; }

// Of less than the cache keeps.
static_assert(HostCache::kMinBlock <= kMediumBlockMax);
void* take_block(size_t nbytes) noexcept {
  if (kKeepsBlocks) return medium_allocate(nbytes);
  void* p = nullptr;  // not rounded up, so that a sanitizer sees the end
  return posix_memalign(&p, kAlign, nbytes) == 0 ? p : nullptr;
}
void give_block(void* p, size_t nbytes) noexcept {
  if (kKeepsBlocks)
    medium_free(p, nbytes);
  else
    std::free(p);
}

Address allocate_on_cpu(size_t nbytes, bool zeros) {
  if (nbytes == 0) return 0;
  void* p = nullptr;
  bool zeroed = false;
  size_t emptied = 0;
  if (nbytes <= kSmallBlockMax) {
    p = small_allocate(nbytes);
  } else {
    if (g_planned_failure.comes(nbytes)) {
      emptied = empty_cpu_cache();
    } else if (is_kept(nbytes)) {
      const HostCache::Block block = cache().allocate(nbytes);
      p = block.address;
      zeroed = block.zeroed;
      emptied = block.emptied;
    } else if (p = take_block(nbytes); !p) {
      emptied = empty_cpu_cache();
      p = take_block(nbytes);
    }
    if (!p) detail::throw_cpu_out_of_memory(nbytes, emptied);
    if (emptied > 0) g_counters.retries.fetch_add(1, std::memory_order_relaxed);
    g_counters.add(nbytes, is_kept(nbytes));
  }
  if (zeros && !zeroed) std::memset(p, 0, nbytes);
  return reinterpret_cast<Address>(p);
}

class CpuAllocator final : public Allocator {
 public:
  Address allocate(size_t nbytes, Stream) override { return allocate_on_cpu(nbytes, false); }
  void deallocate(Address address, size_t nbytes, Stream) noexcept override {
    if (nbytes == 0) return;
    void* p = reinterpret_cast<void*>(address);
    if (nbytes <= kSmallBlockMax) return small_free(p, nbytes);
    g_counters.subtract(nbytes, is_kept(nbytes));
    if (is_kept(nbytes))
      cache().free(p, nbytes);
    else
      give_block(p, nbytes);
  }
  void copy(Address to, Address from, size_t nbytes, Stream) override {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), nbytes);
  }
  std::string_view name() const noexcept override { return "cpu"; }

  MemoryStats memory_stats(Device) const override { return cpu_memory_stats(); }
  void reset_peak_memory_stats(Device) noexcept override { reset_cpu_peak_memory_stats(); }
  void reset_accumulated_memory_stats(Device) noexcept override { reset_cpu_accumulated_memory_stats(); }
  size_t empty_cache(Device) override { return empty_cpu_cache(); }
};

// Shapes without bytes: any size costs nothing.
class MetaAllocator final : public Allocator {
 public:
  Address allocate(size_t, Stream) override { return 0; }
  void deallocate(Address, size_t, Stream) noexcept override {}
  void copy(Address, Address, size_t, Stream) override {}
  std::string_view name() const noexcept override { return "meta"; }
};

std::array<std::atomic<Allocator*>, 32>& allocators() {
  static auto& table = *new std::array<std::atomic<Allocator*>, 32>{};
  static const bool initialised = [] {
    table[kCpuBackend] = &cpu_allocator();
    table[kMetaBackend] = new MetaAllocator;
    return true;
  }();
  (void)initialised;
  return table;
}

}  // namespace

Allocator& cpu_allocator() noexcept {
  static Allocator& allocator = *new CpuAllocator;
  return allocator;
}

Address allocate_zeros_on_cpu(size_t nbytes) { return allocate_on_cpu(nbytes, true); }

MemoryStats cpu_memory_stats() noexcept {
  const Counters& c = g_counters;
  MemoryStats stats;
  // A block that is freed is free, and none is cut into smaller ones: what is not filled in is zero.
  const auto set = [](PooledStat& stat, const MemoryStat& value) {
    static_cast<MemoryStat&>(stat) = stat.large_pool = value;
  };
  for (PooledStat* stat : {&stats.allocation, &stats.active}) set(*stat, c.blocks.read());
  for (PooledStat* stat : {&stats.allocated_bytes, &stats.active_bytes, &stats.requested_bytes})
    set(*stat, c.bytes.read());
  const int64_t in = c.reserved_in(), out = c.reserved_out();
  set(stats.reserved_bytes, {.current = in - out,
                             .peak = std::max(in - out, c.reserved_peak.load(std::memory_order_relaxed)),
                             .allocated = in - c.reserved_before.load(std::memory_order_relaxed),
                             .freed = out - c.unreserved_before.load(std::memory_order_relaxed)});
  stats.num_alloc_retries = c.retries.load(std::memory_order_relaxed);
  stats.num_ooms = c.failures.load(std::memory_order_relaxed);
  return stats;
}

void reset_cpu_peak_memory_stats() noexcept {
  g_counters.blocks.reset_peak();
  g_counters.bytes.reset_peak();
  g_counters.reserved_peak.store(g_counters.reserved_in() - g_counters.reserved_out(),
                                 std::memory_order_relaxed);
}

void reset_cpu_accumulated_memory_stats() noexcept {
  g_counters.blocks.reset_sums();
  g_counters.bytes.reset_sums();
  g_counters.reserved_before.store(g_counters.reserved_in(), std::memory_order_relaxed);
  g_counters.unreserved_before.store(g_counters.reserved_out(), std::memory_order_relaxed);
  g_counters.retries.store(0, std::memory_order_relaxed);
  g_counters.failures.store(0, std::memory_order_relaxed);
}

size_t empty_cpu_cache() noexcept { return kKeepsBlocks ? cache().empty() : 0; }
size_t cpu_cache_limit() noexcept { return kKeepsBlocks ? cache().limit() : 0; }
void set_cpu_cache_limit(size_t nbytes) noexcept {
  if (kKeepsBlocks) cache().set_limit(nbytes);
}

std::string detail::describe_cpu_memory() {
  const HostMemory memory = host_memory();
  std::string text;
  if (memory.total != HostMemory::kUnlimited)
    text += fmt::format("of {} of memory {} are available, ", format_bytes(memory.total),
                        format_bytes(std::min(memory.available, memory.total)));
  if (memory.address_limit != HostMemory::kUnlimited)
    text += fmt::format("of {} that this process may take {} are left, ", format_bytes(memory.address_limit),
                        format_bytes(memory.obtainable()));
  const int64_t held = std::max<int64_t>(cpu_memory_stats().allocated_bytes.current, 0);
  return text + fmt::format("tensors of Tenon hold {}, ", format_bytes(static_cast<uint64_t>(held)));
}

void detail::throw_cpu_out_of_memory(size_t nbytes, size_t emptied) {
  g_counters.failures.fetch_add(1, std::memory_order_relaxed);
  std::string text =
      fmt::format("cpu allocator: {} are not to be had: {}", describe_request(nbytes), describe_cpu_memory());
  text += emptied > 0 ? fmt::format("and freeing its cache of {} did not help", format_bytes(emptied))
                      : "and its cache is empty";
  throw_error(ErrorKind::OutOfMemory, std::move(text));
}

std::string detail::describe_request(size_t nbytes) {
  return nbytes < 1024 ? fmt::format("{} bytes", nbytes)
                       : fmt::format("{} bytes ({})", nbytes, format_bytes(nbytes));
}

void fail_cpu_allocation_after(int64_t count, size_t threshold) noexcept {
  g_planned_failure.set(count, threshold);
}

constinit detail::PlannedFailure detail::planned_device_failure;
void fail_device_allocation_after(int64_t count, size_t threshold) noexcept {
  detail::planned_device_failure.set(count, threshold);
}

MemorySnapshot Allocator::memory_snapshot(Device) const { return {}; }

Allocator& allocator_for(Device device) {
  Allocator* allocator = allocators()[device.backend].load(std::memory_order_acquire);
  TENON_CHECK(allocator, Device,
              fmt::format("Device: no tensor can be made on {}: {}. Load its plug-in with load_device, or "
                          "choose another device",
                          to_string(device), no_such_device(backend_name(device.backend))));
  return *allocator;
}

void set_allocator(Backend backend, Allocator* allocator) noexcept {
  allocators()[backend].store(allocator, std::memory_order_release);
}

}  // namespace tenon
