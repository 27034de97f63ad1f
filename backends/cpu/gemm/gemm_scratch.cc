#include "backends/cpu/gemm/gemm_scratch.h"

#include <sys/mman.h>

#include <array>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>

#include "tenon/core/allocator.h"
#include "tenon/core/error.h"

namespace tenon::cpu {
namespace {

struct Free {
  void operator()(void* p) const noexcept { std::free(p); }
};

constexpr size_t kPage = 4096, kHugePage = size_t{2} << 20;

/// Whole pages: huge ones where most of one is used.
constexpr size_t page_for(size_t bytes) { return bytes >= kHugePage / 2 ? kHugePage : kPage; }
constexpr size_t whole_pages(size_t bytes) {
  return (bytes + page_for(bytes) - 1) / page_for(bytes) * page_for(bytes);
}

void* allocate(size_t rounded) noexcept {
  void* memory = std::aligned_alloc(page_for(rounded), rounded);
#ifdef MADV_HUGEPAGE
  if (memory && page_for(rounded) == kHugePage) ::madvise(memory, rounded, MADV_HUGEPAGE);
#endif
  return memory;
}

struct Slot {
  std::unique_ptr<void, Free> memory;
  size_t bytes = 0;
};

}  // namespace

void* gemm_scratch(GemmScratch slot, size_t bytes) {
  thread_local std::array<Slot, kNumGemmScratch> slots;
  Slot& s = slots[static_cast<size_t>(slot)];
  if (s.bytes < bytes) {
    const size_t rounded = whole_pages(bytes);
    s.memory.reset();
    s.bytes = 0;
    s.memory.reset(allocate(rounded));
    if (!s.memory && empty_cpu_cache() > 0) s.memory.reset(allocate(rounded));
    TENON_CHECK(s.memory, OutOfMemory,
                fmt::format("matmul: {} bytes of scratch memory could not be allocated", rounded));
    s.bytes = rounded;
  }
  return s.memory.get();
}

}  // namespace tenon::cpu
