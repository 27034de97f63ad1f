// Small blocks of memory from per-thread free lists: a few nanoseconds where malloc takes tens.
// Used for tensors, storages, small data and graph nodes. Independent of the blocks' contents. Builds
// for a sanitizer (TENON_EXACT_ALLOCATIONS) take every block from the system at its exact size and never
// reuse one, so that nothing hides an overflow or a use after free.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon {

inline constexpr size_t kSmallBlockAlign = 64;
inline constexpr size_t kSmallBlockMax = 1024;

namespace detail {

struct FreeBlock {
  FreeBlock* next;
};

/// One thread's free blocks, a list for each multiple of 64 bytes.
struct SmallBlockCache {
  FreeBlock* lists[kSmallBlockMax / kSmallBlockAlign] = {};
  uint32_t lengths[kSmallBlockMax / kSmallBlockAlign] = {};
  bool alive = false;
};

#if defined(__GNUC__)
#define TENON_FAST_TLS __attribute__((tls_model("initial-exec")))
#else
#define TENON_FAST_TLS
#endif
extern thread_local constinit SmallBlockCache small_block_cache TENON_FAST_TLS;

void* small_allocate_slow(size_t size_class);
void* exact_allocate(size_t nbytes);
void exact_free(void* block) noexcept;
void small_free_slow(void* block, size_t size_class) noexcept;
inline constexpr uint32_t kMaxFreeBlocks = 4096;

}  // namespace detail

/// At least `nbytes` (1 to kSmallBlockMax) bytes at a 64-byte boundary, uninitialised. Throws
/// Error{OutOfMemory}.
inline void* small_allocate(size_t nbytes) {
#ifdef TENON_EXACT_ALLOCATIONS
  return detail::exact_allocate(nbytes);
#endif
  const size_t size_class = (nbytes - 1) / kSmallBlockAlign;
  auto& cache = detail::small_block_cache;
  detail::FreeBlock* block = cache.lists[size_class];
  if (!block) [[unlikely]]
    return detail::small_allocate_slow(size_class);
  cache.lists[size_class] = block->next;
  --cache.lengths[size_class];
  return block;
}

/// Gives back a block of `small_allocate(nbytes)`, from any thread.
inline void small_free(void* p, size_t nbytes) noexcept {
#ifdef TENON_EXACT_ALLOCATIONS
  return detail::exact_free(p);
#endif
  const size_t size_class = (nbytes - 1) / kSmallBlockAlign;
  auto& cache = detail::small_block_cache;
  if (!cache.alive || cache.lengths[size_class] >= detail::kMaxFreeBlocks) [[unlikely]] {
    return detail::small_free_slow(p, size_class);
  }
  auto* block = static_cast<detail::FreeBlock*>(p);
  block->next = cache.lists[size_class];
  cache.lists[size_class] = block;
  ++cache.lengths[size_class];
}

}  // namespace tenon
