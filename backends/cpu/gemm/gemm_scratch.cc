#include "backends/cpu/gemm/gemm_scratch.h"

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

struct Slot {
  std::unique_ptr<void, Free> memory;
  size_t bytes = 0;
};

}  // namespace

void* gemm_scratch(GemmScratch slot, size_t bytes) {
  thread_local std::array<Slot, kNumGemmScratch> slots;
  Slot& s = slots[static_cast<size_t>(slot)];
  if (s.bytes < bytes) {
    const size_t rounded = (bytes + 4095) / 4096 * 4096;
    s.memory.reset();
    s.bytes = 0;
    s.memory.reset(std::aligned_alloc(64, rounded));
    if (!s.memory && empty_cpu_cache() > 0) s.memory.reset(std::aligned_alloc(64, rounded));
    TENON_CHECK(s.memory, OutOfMemory,
                fmt::format("matmul: {} bytes of scratch memory could not be allocated", rounded));
    s.bytes = rounded;
  }
  return s.memory.get();
}

}  // namespace tenon::cpu
