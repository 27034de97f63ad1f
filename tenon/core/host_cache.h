// HostCache: keeps large blocks of host memory after use, in bins by size, for the whole process. Had they
// been returned to the system, the next block would cost a page fault for each of its pages. Used by the host
// allocator. Independent of tensors; counts only its own blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "tenon/core/memory_counter.h"

namespace tenon {

class HostCache {
 public:
  /// From this size on. Threads keep smaller blocks (medium_alloc.h); the C library, which maps large ones
  /// separately, keeps none at the end of its heap.
  static constexpr size_t kMinBlock = size_t{64} << 10;
  /// From this size on, blocks start on a huge page, and the system is asked for huge pages.
  static constexpr size_t kHugeBlock = size_t{4} << 20;
  static constexpr size_t kHugePage = size_t{2} << 20;

  struct Block {
    void* address = nullptr;
    bool zeroed = false;  ///< Fresh from the system: every byte is zero.
    size_t emptied = 0;   ///< Kept bytes that were given back because the system refused at first.
  };

  /// Keeps at most `limit` bytes, and no more than `available`, which is called now and then, says the system
  /// has left. Counts in `mapped` what it takes from the system and returns to it.
  HostCache(size_t limit, MemoryFlow& mapped, size_t (*available)() noexcept) noexcept;
  ~HostCache();
  HostCache(const HostCache&) = delete;
  HostCache& operator=(const HostCache&) = delete;

  /// Returns a block of at least `nbytes` bytes (kMinBlock or more) that starts on a page: a kept block or a
  /// new one. If the system refuses, the cache is emptied and the system is asked again. A null address means
  /// that no memory is left.
  Block allocate(size_t nbytes) noexcept;
  /// Frees a block that `allocate(nbytes)` returned; callable from any thread.
  void free(void* address, size_t nbytes) noexcept;
  /// Returns all kept blocks to the system, and says how many bytes they had.
  size_t empty() noexcept;

  size_t kept_bytes() const noexcept;
  size_t limit() const noexcept;
  /// Sets the limit, and returns to the system what is kept beyond it.
  void set_limit(size_t limit) noexcept;
  /// The size of the block that serves a request of `nbytes`: up to 256 MiB one of eight sizes for each power
  /// of two, beyond that a multiple of 32 MiB. All requests that round to one size share their blocks.
  static size_t block_bytes(size_t nbytes) noexcept;

  /// Called around fork(), so that no other thread is halfway through changing a list. The child releases the
  /// kept blocks as soon as it needs memory: writing to one would copy it page by page.
  void before_fork() { mutex_.lock(); }
  void after_fork(bool in_child) {
    drop_first_ |= in_child;
    mutex_.unlock();
  }

 private:
  // At the start of a kept block.
  struct Kept;
  // Sizes up to 256 MiB have a bin each; the last one holds all that are larger.
  static constexpr size_t kBins = 98;
  static size_t bin_of(size_t bytes) noexcept;

  void* map(size_t bytes) noexcept;
  void unmap(void* address, size_t bytes) noexcept;
  void unlink(Kept* block) noexcept;
  Kept* take_until(size_t most) noexcept;  // unlinks the oldest; a list by `older`
  size_t give_back(Kept* blocks) noexcept;
  void trim(size_t most) noexcept;
  bool count_traffic(size_t bytes) noexcept;

  mutable std::mutex mutex_;
  Kept* bins_[kBins] = {};
  Kept* newest_ = nullptr;
  Kept* oldest_ = nullptr;
  size_t kept_ = 0;
  size_t limit_;
  size_t traffic_ = 0;  // bytes mapped or kept since `available` was last asked
  bool drop_first_ = false;
  MemoryFlow& mapped_;
  size_t (*const available_)() noexcept;
};

}  // namespace tenon
