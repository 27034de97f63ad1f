#include "tenon/core/medium_alloc.h"

#include <bit>
#include <cstdlib>
#include <utility>

namespace tenon {
namespace {

constexpr int kFirstDoubling = std::bit_width(kSmallBlockMax) - 1;
constexpr int kDoublings = std::bit_width(kMediumBlockMax) - 1 - kFirstDoubling;
/// Of a thread.
constexpr size_t kKeptBytes = size_t{8} << 20;

struct MediumBlockCache {
  detail::FreeBlock* lists[8 * kDoublings] = {};
  size_t kept = 0;
  bool alive = false;
};
thread_local constinit MediumBlockCache medium_block_cache TENON_FAST_TLS;

// Returns a thread's blocks to the system when it ends; those freed later go straight there.
struct CacheOwner {
  CacheOwner() { medium_block_cache.alive = true; }
  ~CacheOwner() {
    MediumBlockCache& cache = medium_block_cache;
    cache.alive = false;
    for (detail::FreeBlock*& list : cache.lists) {
      while (list) std::free(std::exchange(list, list->next));
    }
  }
};

struct MediumSize {
  size_t list, bytes;
};
MediumSize medium_size(size_t nbytes) noexcept {
  const size_t last = nbytes - 1;
  const int doubling = std::bit_width(last) - 1;
  const size_t step = last >> (doubling - 3);  // 8 to 15
  return {static_cast<size_t>(8 * (doubling - kFirstDoubling)) + step - 8, (step + 1) << (doubling - 3)};
}

}  // namespace

void* medium_allocate(size_t nbytes) noexcept {
  const auto [list, bytes] = medium_size(nbytes);
  MediumBlockCache& cache = medium_block_cache;
  if (detail::FreeBlock* block = cache.lists[list]) {
    cache.lists[list] = block->next;
    cache.kept -= bytes;
    return block;
  }
  static thread_local CacheOwner owner;
  (void)owner;
  void* block = nullptr;
  return posix_memalign(&block, kSmallBlockAlign, bytes) == 0 ? block : nullptr;
}

void medium_free(void* p, size_t nbytes) noexcept {
  const auto [list, bytes] = medium_size(nbytes);
  MediumBlockCache& cache = medium_block_cache;
  if (!cache.alive || cache.kept + bytes > kKeptBytes) return std::free(p);
  auto* block = static_cast<detail::FreeBlock*>(p);
  block->next = cache.lists[list];
  cache.lists[list] = block;
  cache.kept += bytes;
}

}  // namespace tenon
