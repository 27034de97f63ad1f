// MemoryBlock: a piece of a segment of device memory. BlockBins: the free blocks of a pool, by size.
// BlockTable: the blocks in use, by address. Used by DeviceCache, whose lock protects them. They know
// addresses and sizes, and never touch the memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "tenon/core/allocator.h"
#include "tenon/core/stream.h"

namespace tenon {

struct MemorySegment;

/// Blocks of a segment are a chain in the order of their addresses, without gaps.
struct MemoryBlock {
  enum class State : uint8_t {
    Live,      ///< Handed out, or about to be.
    Awaiting,  ///< Freed; streams of `awaited` events may still use it.
    Free,      ///< In a bin.
    Leaving,   ///< Free and in no bin, because its memory is being returned to the device.
    Unmapped,  ///< A part of a reserved range that has no memory.
  };

  Address address = 0;
  size_t size = 0;
  size_t requested = 0;  ///< What was asked for, of a block in use.
  State state = State::Free;
  uint32_t awaited = 0;
  MemorySegment* segment = nullptr;
  MemoryBlock *before = nullptr, *after = nullptr;  ///< Neighbours in the segment.
  std::vector<Stream> users;                        ///< Other streams than its own that use it.

 private:
  friend class BlockBins;
  // In the heap of a bin: `back` is the sibling before, or of the first child the parent.
  MemoryBlock *child = nullptr, *sibling = nullptr, *back = nullptr;
};

/// Free blocks in bins by size: a row for each power of two, 32 bins in a row, a bit for each row and bin
/// that has blocks. Sizes are counted in the granularity; below 64 of it, a bin has blocks of one size only.
/// A bin is a pairing heap (Fredman et al., 1986) whose root has the lowest address.
class BlockBins {
 public:
  explicit BlockBins(size_t granularity) noexcept;

  /// Sizes up to this have a bin.
  static constexpr size_t kMostUnits = size_t{1} << 40;

  void insert(MemoryBlock& block) noexcept;
  void erase(MemoryBlock& block) noexcept;
  /// A block of at least `least` and less than `limit` bytes; null if there is none. Prefers the bin of
  /// `least`, where it looks at a few blocks, then the next bin with blocks, and takes the lowest address.
  MemoryBlock* find(size_t least, size_t limit = SIZE_MAX) const noexcept;
  /// The size of the largest block; 0 without blocks. Looks at all blocks of a bin.
  size_t largest() const noexcept;

 private:
  static constexpr unsigned kColumnBits = 5, kColumns = 1u << kColumnBits, kRows = 37;
  struct Bin {
    unsigned row, column;
  };
  Bin bin_of(size_t size) const noexcept;
  /// Unites two heaps.
  static MemoryBlock* meld(MemoryBlock* a, MemoryBlock* b) noexcept;
  /// Unites a block and its siblings, pair by pair and then from the last pair on; null gives null.
  static MemoryBlock* meld_all(MemoryBlock* first) noexcept;
  /// Walks a heap, parents first; null at the end. `descend` false leaves out what is below the block.
  static MemoryBlock* next_in_heap(const MemoryBlock* block, bool descend) noexcept;
  MemoryBlock* lowest_fit(MemoryBlock* root, size_t least, size_t limit, size_t most_looks) const noexcept;

  unsigned shift_;
  uint64_t rows_ = 0;
  std::array<uint32_t, kRows> columns_{};
  std::array<std::array<MemoryBlock*, kColumns>, kRows> roots_{};
};

/// Blocks by address: open addressing with linear probes.
class BlockTable {
 public:
  /// Makes room for one more block; may throw std::bad_alloc, which `insert` then does not.
  void reserve_one();
  void insert(MemoryBlock& block) noexcept;
  MemoryBlock* find(Address address) const noexcept;
  /// Removes and returns a block; null if none has the address.
  MemoryBlock* take(Address address) noexcept;
  template <class F>
  void for_each(F&& visit) const {
    for (MemoryBlock* block : slots_) {
      if (block) visit(*block);
    }
  }

 private:
  size_t home(Address address) const noexcept {
    return static_cast<size_t>((address >> 6) * 0x9E3779B97F4A7C15u >> shift_);
  }
  size_t slot_of(Address address) const noexcept;

  std::vector<MemoryBlock*> slots_ = std::vector<MemoryBlock*>(64);
  unsigned shift_ = 64 - 6;
  size_t count_ = 0;
};

/// Makes MemoryBlocks and takes them back.
class BlockStore {
 public:
  /// Makes sure that the next `n` calls of `make` succeed; may throw std::bad_alloc.
  void reserve(size_t n) {
    while (spare_.size() < n) [[unlikely]] {
        // There is room for all of them, so that `give_back` needs no memory.
        if (spare_.capacity() <= all_.size()) spare_.reserve(2 * all_.size() + 64);
        spare_.push_back(&all_.emplace_back());
      }
  }
  MemoryBlock& make(MemorySegment& segment, Address address, size_t size) noexcept {
    MemoryBlock& block = *spare_.back();
    spare_.pop_back();
    block.address = address;
    block.size = size;
    block.segment = &segment;
    block.before = block.after = nullptr;
    return block;
  }
  void give_back(MemoryBlock& block) noexcept { spare_.push_back(&block); }

 private:
  std::deque<MemoryBlock> all_;
  std::vector<MemoryBlock*> spare_;
};

}  // namespace tenon
