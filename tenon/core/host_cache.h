// HostCache: large blocks of host memory, kept after use in one list of bins for the process, because giving
// them back means a page fault for every page of the next block. Used by the host allocator. Knows nothing of
// tensors, and counts only its own blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "tenon/core/memory_counter.h"

namespace tenon {

class HostCache {
 public:
  /// The C library maps a block from this size on, and gives it back when it is freed.
  static constexpr size_t kMinBlock = size_t{128} << 10;
  /// From this size on blocks start on a huge page, and huge pages are asked for.
  static constexpr size_t kHugeBlock = size_t{4} << 20;
  static constexpr size_t kHugePage = size_t{2} << 20;

  struct Block {
    void* address = nullptr;
    bool zeroed = false;  ///< Fresh from the system: every byte is zero.
    size_t emptied = 0;   ///< Kept bytes that were given back because the system refused at first.
  };

  /// Keeps at most `limit` bytes, and at most what `available` says that the system has left (it is asked now
  /// and then). Counts in `mapped` what it takes from the system and gives back to it.
  HostCache(size_t limit, MemoryFlow& mapped, size_t (*available)() noexcept) noexcept;
  ~HostCache();
  HostCache(const HostCache&) = delete;
  HostCache& operator=(const HostCache&) = delete;

  /// At least `nbytes` bytes (kMinBlock or more), at the start of a page: a kept block, or a new one. When
  /// the system refuses, the cache is emptied and the system asked again. A null address means that there is
  /// no memory.
  Block allocate(size_t nbytes) noexcept;
  /// Takes back what `allocate(nbytes)` gave, from any thread.
  void free(void* address, size_t nbytes) noexcept;
  /// Gives all kept blocks back to the system; how many bytes that were.
  size_t empty() noexcept;

  size_t kept_bytes() const noexcept;
  size_t limit() const noexcept;
  /// Gives back what is kept beyond the new limit.
  void set_limit(size_t limit) noexcept;
  /// Size of the block that serves `nbytes`: up to 256 MiB one of eight sizes for each power of two, beyond
  /// that a multiple of 32 MiB. Blocks of equal size serve each other's requests.
  static size_t block_bytes(size_t nbytes) noexcept;

  /// Around fork(): no other thread may be halfway through a list then. The child gives back what was kept
  /// as soon as it needs memory: to write to a kept block it would have to copy it page by page.
  void before_fork() { mutex_.lock(); }
  void after_fork(bool in_child) {
    drop_first_ |= in_child;
    mutex_.unlock();
  }

 private:
  // Lies at the start of a kept block.
  struct Kept;
  // Sizes up to 256 MiB have a bin each; the last one holds all that are larger.
  static constexpr size_t kBins = 90;
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
