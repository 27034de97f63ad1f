#include "tenon/core/memory_blocks.h"

#include <bit>
#include <utility>

namespace tenon {
namespace {

/// How many blocks of the request's own bin are looked at before a larger bin is taken.
constexpr size_t kLooks = 16;

}  // namespace

BlockBins::BlockBins(size_t granularity) noexcept
    : shift_(static_cast<unsigned>(std::countr_zero(granularity))) {}

BlockBins::Bin BlockBins::bin_of(size_t size) const noexcept {
  const size_t units = size >> shift_;
  if (units < kColumns) return {0, static_cast<unsigned>(units)};
  const auto row = static_cast<unsigned>(std::bit_width(units)) - kColumnBits;
  return {row, static_cast<unsigned>(units >> (row - 1)) & (kColumns - 1)};
}

MemoryBlock* BlockBins::meld(MemoryBlock* a, MemoryBlock* b) noexcept {
  if (b->address < a->address) std::swap(a, b);
  b->back = a;
  b->sibling = a->child;
  if (b->sibling) b->sibling->back = b;
  a->child = b;
  return a;
}

MemoryBlock* BlockBins::meld_all(MemoryBlock* first) noexcept {
  MemoryBlock* pairs = nullptr;  // a list by `back`, the last pair first
  while (first) {
    MemoryBlock* a = first;
    MemoryBlock* b = a->sibling;
    first = b ? b->sibling : nullptr;
    a->sibling = nullptr;
    if (b) {
      b->sibling = nullptr;
      a = meld(a, b);
    }
    a->back = pairs;
    pairs = a;
  }
  MemoryBlock* root = nullptr;
  while (pairs) {
    MemoryBlock* pair = pairs;
    pairs = pair->back;
    pair->back = nullptr;
    root = root ? meld(root, pair) : pair;
  }
  return root;
}

MemoryBlock* BlockBins::next_in_heap(const MemoryBlock* block, bool descend) noexcept {
  if (descend && block->child) return block->child;
  while (block) {
    if (block->sibling) return block->sibling;
    while (block->back && block->back->child != block) block = block->back;
    block = block->back;
  }
  return nullptr;
}

void BlockBins::insert(MemoryBlock& block) noexcept {
  const auto [row, column] = bin_of(block.size);
  block.child = block.sibling = block.back = nullptr;
  MemoryBlock*& root = roots_[row][column];
  root = root ? meld(root, &block) : &block;
  columns_[row] |= 1u << column;
  rows_ |= uint64_t{1} << row;
}

void BlockBins::erase(MemoryBlock& block) noexcept {
  const auto [row, column] = bin_of(block.size);
  MemoryBlock*& root = roots_[row][column];
  MemoryBlock* below = meld_all(block.child);
  if (root == &block) {
    root = below;
  } else {
    (block.back->child == &block ? block.back->child : block.back->sibling) = block.sibling;
    if (block.sibling) block.sibling->back = block.back;
    if (below) root = meld(root, below);
  }
  if (root) return;
  columns_[row] &= ~(1u << column);
  if (columns_[row] == 0) rows_ &= ~(uint64_t{1} << row);
}

MemoryBlock* BlockBins::find(size_t least, size_t limit) const noexcept {
  const auto [row, column] = bin_of(least);
  MemoryBlock* own = roots_[row][column];
  if (own) {
    if (MemoryBlock* block = lowest_fit(own, least, limit, kLooks)) return block;
  }
  unsigned next_row = row;
  uint32_t columns = column + 1 < kColumns ? columns_[row] & (~0u << (column + 1)) : 0;
  if (columns == 0) {
    const uint64_t rows = rows_ & (~uint64_t{1} << row);
    if (rows != 0) {
      next_row = static_cast<unsigned>(std::countr_zero(rows));
      columns = columns_[next_row];
    }
  }
  if (columns != 0) {
    MemoryBlock* root = roots_[next_row][std::countr_zero(columns)];
    if (root->size < limit) return root;
    // In bins beyond this one all blocks are larger.
    if (MemoryBlock* block = lowest_fit(root, least, limit, SIZE_MAX)) return block;
  }
  return own ? lowest_fit(own, least, limit, SIZE_MAX) : nullptr;
}

size_t BlockBins::largest() const noexcept {
  if (rows_ == 0) return 0;
  const auto row = static_cast<unsigned>(std::bit_width(rows_)) - 1;
  const auto column = static_cast<unsigned>(std::bit_width(columns_[row])) - 1;
  size_t most = 0;
  for (const MemoryBlock* b = roots_[row][column]; b; b = next_in_heap(b, true))
    most = b->size > most ? b->size : most;
  return most;
}

MemoryBlock* BlockBins::lowest_fit(MemoryBlock* root, size_t least, size_t limit,
                                   size_t most_looks) const noexcept {
  MemoryBlock* best = nullptr;
  for (MemoryBlock* block = root; block && most_looks > 0; --most_looks) {
    const bool fits = block->size >= least && block->size < limit;
    if (fits && (!best || block->address < best->address)) best = block;
    // What is below a block has higher addresses.
    block = next_in_heap(block, !best || block->address < best->address);
  }
  return best;
}

void BlockTable::reserve_one() {
  if (2 * (count_ + 1) <= slots_.size()) return;
  std::vector<MemoryBlock*> old(2 * slots_.size());
  old.swap(slots_);
  --shift_;
  for (MemoryBlock* block : old) {
    if (block) slots_[slot_of(block->address)] = block;
  }
}

size_t BlockTable::slot_of(Address address) const noexcept {
  size_t slot = home(address);
  while (slots_[slot] && slots_[slot]->address != address) slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void BlockTable::insert(MemoryBlock& block) noexcept {
  slots_[slot_of(block.address)] = &block;
  ++count_;
}

MemoryBlock* BlockTable::find(Address address) const noexcept { return slots_[slot_of(address)]; }

MemoryBlock* BlockTable::take(Address address) noexcept {
  size_t hole = slot_of(address);
  MemoryBlock* const found = slots_[hole];
  if (!found) return nullptr;
  --count_;
  // Later blocks move up, so that no probe ends too early.
  const size_t mask = slots_.size() - 1;
  for (size_t slot = (hole + 1) & mask; slots_[slot]; slot = (slot + 1) & mask) {
    if (((slot - home(slots_[slot]->address)) & mask) < ((slot - hole) & mask)) continue;
    slots_[hole] = slots_[slot];
    hole = slot;
  }
  slots_[hole] = nullptr;
  return found;
}

}  // namespace tenon
