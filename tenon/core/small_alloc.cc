#include "tenon/core/small_alloc.h"

#include <cstdlib>
#include <utility>

#include "tenon/core/allocator.h"

namespace tenon::detail {

thread_local constinit SmallBlockCache small_block_cache;

namespace {

// Returns a thread's blocks to the system when it ends. Blocks freed after that (by destructors of other
// thread-locals) find `alive` false and go straight to free().
struct CacheOwner {
  CacheOwner() { small_block_cache.alive = true; }
  ~CacheOwner() {
    SmallBlockCache& cache = small_block_cache;
    cache.alive = false;
    for (FreeBlock*& list : cache.lists) {
      while (list) std::free(std::exchange(list, list->next));
    }
  }
};

/// A block of exactly `nbytes`, for which what the host's cache keeps is given up.
void* from_system(size_t nbytes) {
  void* block = nullptr;
  if (posix_memalign(&block, kSmallBlockAlign, nbytes) == 0) return block;
  const size_t emptied = empty_cpu_cache();
  if (posix_memalign(&block, kSmallBlockAlign, nbytes) == 0) return block;
  throw_cpu_out_of_memory(nbytes, emptied);
}

}  // namespace

void* small_allocate_slow(size_t size_class) {
  static thread_local CacheOwner owner;
  (void)owner;
  return from_system((size_class + 1) * kSmallBlockAlign);
}

void* exact_allocate(size_t nbytes) { return from_system(nbytes); }

void exact_free(void* block) noexcept { std::free(block); }

void small_free_slow(void* block, size_t) noexcept { std::free(block); }

}  // namespace tenon::detail
