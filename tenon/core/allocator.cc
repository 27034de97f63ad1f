#include "tenon/core/allocator.h"

#include <fmt/core.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "tenon/core/error.h"
#include "tenon/core/small_alloc.h"

namespace tenon {
namespace {

constexpr size_t kAlign = 64;

std::atomic<int64_t> g_live_bytes{0};
std::atomic<int64_t> g_fail_countdown{0};
std::atomic<size_t> g_fail_threshold{0};

bool must_fail(size_t nbytes) {
  if (g_fail_countdown.load(std::memory_order_relaxed) == 0 || nbytes <= g_fail_threshold.load())
    return false;
  return g_fail_countdown.fetch_sub(1) == 1;
}

class CpuAllocator final : public Allocator {
 public:
  Address allocate(size_t nbytes, Device) override {
    if (nbytes == 0) return 0;
    void* p = nullptr;
    if (nbytes <= kSmallBlockMax) {
      p = small_allocate(nbytes);
    } else if (!must_fail(nbytes)) {
      // Not rounded up, so that a sanitizer sees the end.
      if (posix_memalign(&p, kAlign, nbytes) != 0) p = nullptr;
    }
    TENON_CHECK(p, OutOfMemory, fmt::format("cpu allocator: {} bytes are not to be had", nbytes));
    if (nbytes > kSmallBlockMax)
      g_live_bytes.fetch_add(static_cast<int64_t>(nbytes), std::memory_order_relaxed);
    return reinterpret_cast<Address>(p);
  }
  void deallocate(Address address, size_t nbytes, Device) noexcept override {
    if (nbytes == 0) return;
    void* p = reinterpret_cast<void*>(address);
    if (nbytes <= kSmallBlockMax) return small_free(p, nbytes);
    std::free(p);
    g_live_bytes.fetch_sub(static_cast<int64_t>(nbytes), std::memory_order_relaxed);
  }
  void copy(Address to, Address from, size_t nbytes, Device) override {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), nbytes);
  }
  std::string_view name() const noexcept override { return "cpu"; }
};

// Shapes without bytes: any size costs nothing.
class MetaAllocator final : public Allocator {
 public:
  Address allocate(size_t, Device) override { return 0; }
  void deallocate(Address, size_t, Device) noexcept override {}
  void copy(Address, Address, size_t, Device) override {}
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

int64_t cpu_live_bytes() noexcept { return g_live_bytes.load(std::memory_order_relaxed); }

void fail_cpu_allocation_after(int64_t count, size_t threshold) noexcept {
  g_fail_threshold = threshold;
  g_fail_countdown = count;
}

Allocator& allocator_for(Device device) {
  Allocator* allocator = allocators()[device.backend].load(std::memory_order_acquire);
  TENON_CHECK(
      allocator, Device,
      fmt::format("allocator_for: device {} has no allocator; is its library loaded?", to_string(device)));
  return *allocator;
}

void set_allocator(Backend backend, Allocator* allocator) noexcept {
  allocators()[backend].store(allocator, std::memory_order_release);
}

}  // namespace tenon
