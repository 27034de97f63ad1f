// SlotMap: which number a segment has given to a storage. Open addressing over addresses. Used by the
// recorder.
#pragma once

#include <cstdint>
#include <vector>

#include "tenon/record/trie.h"

namespace tenon::record {

class SlotMap {
 public:
  SlotMap() : table_(kInitial) {}

  /// kNoSlot if the storage has none.
  uint32_t find(const StorageImpl* storage) const noexcept {
    for (size_t i = place(storage);; i = (i + 1) & mask()) {
      if (table_[i].storage == storage) return table_[i].slot;
      if (!table_[i].storage) return kNoSlot;
    }
  }
  void add(const StorageImpl* storage, uint32_t slot) {
    if (2 * (count_ + 1) > table_.size()) grow();
    put({storage, slot});
    ++count_;
  }
  void clear() {
    if (count_ == 0) return;
    table_.assign(kInitial, {});
    count_ = 0;
  }

 private:
  struct Entry {
    const StorageImpl* storage = nullptr;
    uint32_t slot = kNoSlot;
  };
  static constexpr size_t kInitial = 64;

  size_t mask() const noexcept { return table_.size() - 1; }
  size_t place(const StorageImpl* storage) const noexcept {
    // Storages lie at multiples of 64.
    return static_cast<size_t>((reinterpret_cast<uintptr_t>(storage) >> 6) * 0x9E3779B97F4A7C15u >> 32) &
           mask();
  }
  void put(const Entry& entry) noexcept {
    size_t i = place(entry.storage);
    while (table_[i].storage) i = (i + 1) & mask();
    table_[i] = entry;
  }
  void grow() {
    std::vector<Entry> old(2 * table_.size());
    old.swap(table_);
    for (const Entry& entry : old) {
      if (entry.storage) put(entry);
    }
  }

  std::vector<Entry> table_;
  size_t count_ = 0;
};

}  // namespace tenon::record
