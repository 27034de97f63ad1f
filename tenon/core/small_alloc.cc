#include "tenon/core/small_alloc.h"

#include <cstdlib>
#include <utility>

#include "tenon/core/error.h"

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

}  // namespace

void* small_allocate_slow(size_t size_class) {
  static thread_local CacheOwner owner;
  (void)owner;
  void* block = std::aligned_alloc(kSmallBlockAlign, (size_class + 1) * kSmallBlockAlign);
  if (!block) throw_error(ErrorKind::OutOfMemory, "small_allocate: the system has no memory left");
  return block;
}

void* exact_allocate(size_t nbytes) {
  void* block = nullptr;
  if (posix_memalign(&block, kSmallBlockAlign, nbytes) != 0)
    throw_error(ErrorKind::OutOfMemory, "small_allocate: the system has no memory left");
  return block;
}

void exact_free(void* block) noexcept { std::free(block); }

void small_free_slow(void* block, size_t) noexcept { std::free(block); }

}  // namespace tenon::detail
