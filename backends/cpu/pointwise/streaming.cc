#include "backends/cpu/pointwise/streaming.h"

#include <algorithm>
#include <cstdint>
#include <fstream>

#include "backends/cpu/copy/row_kernels.h"

namespace tenon::cpu {
namespace {

/// Of the result, which is computed in a tile that stays in the first-level cache.
constexpr size_t kTileBytes = 4096, kLineBytes = 64;
constexpr size_t kMostOperands = 16;

/// Of the cache that is shared by the processor's cores, in bytes; 0 if it is not known. The C library counts
/// all of a machine's.
size_t last_level_cache_size() {
  for (const char* index : {"3", "2"}) {
    std::ifstream file(std::string("/sys/devices/system/cpu/cpu0/cache/index") + index + "/size");
    size_t kilobytes = 0;
    if (file >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace

size_t streams_from() noexcept {
  static const size_t bytes = [] {
    constexpr size_t kUsual = size_t{32} << 20;
    try {
      const size_t size = last_level_cache_size();
      return (size == 0 ? kUsual : size) / 2;
    } catch (...) {
      return kUsual / 2;
    }
  }();
  return bytes;
}

void run_streaming(const HostKernel& kernel, void* const* ptrs, size_t count, size_t item, size_t n,
                   const void* numbers) {
  const RowKernels& kernels = row_kernels();
  alignas(kLineBytes) char tile[kTileBytes];
  auto* out = static_cast<char*>(ptrs[0]);
  // To the first whole line, then line by line.
  const size_t head = (kLineBytes - reinterpret_cast<uintptr_t>(out) % kLineBytes) % kLineBytes / item;
  for (size_t i = 0, length = 0; i < n; i += length) {
    length = std::min(i == 0 && head > 0 ? head : kTileBytes / item, n - i);
    void* at[kMostOperands];
    at[0] = tile;
    for (size_t k = 1; k < count; ++k) at[k] = static_cast<char*>(ptrs[k]) + i * item;
    kernel(at, length, numbers);
    kernels.stream(out + i * item, tile, length * item);
  }
  kernels.end_stream();
}

}  // namespace tenon::cpu
