// Slots: numbers for a driver's handles, so that the host holds numbers alone. Handles are found without a
// lock, also while others are added. Used by Backend.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace opencl {

/// Numbers from 0 to below 2^22; those of what was taken out are given again.
template <class Handle>
class Slots {
 public:
  /// The number of a handle; -1 if there are no more.
  int64_t put(Handle handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    uint64_t slot = end_;
    if (!free_.empty()) {
      slot = free_.back();
      free_.pop_back();
    } else {
      if (slot == kChunks * kChunk) return -1;
      if (slot % kChunk == 0) {
        own_.push_back(std::make_unique<Chunk>());
        chunks_[slot / kChunk].store(own_.back().get(), std::memory_order_release);
      }
      ++end_;
    }
    at(slot).store(handle, std::memory_order_release);
    return static_cast<int64_t>(slot);
  }
  /// Null for a number that was never given, or whose handle was taken out.
  Handle get(uint64_t slot) const noexcept {
    if (slot >= kChunks * kChunk) return nullptr;
    const Chunk* const chunk = chunks_[slot / kChunk].load(std::memory_order_acquire);
    return chunk ? (*chunk)[slot % kChunk].load(std::memory_order_acquire) : nullptr;
  }
  /// Takes a handle out, and gives it to the caller.
  Handle take(uint64_t slot) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Handle handle = get(slot);
    if (!handle) return nullptr;
    at(slot).store(nullptr, std::memory_order_release);
    free_.push_back(slot);
    return handle;
  }
  /// Calls `f` with each handle that is there.
  template <class F>
  void each(F&& f) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (uint64_t slot = 0; slot < end_; ++slot) {
      if (const Handle handle = get(slot)) f(handle);
    }
  }

 private:
  static constexpr uint64_t kChunk = 1024, kChunks = 4096;
  using Chunk = std::array<std::atomic<Handle>, kChunk>;

  std::atomic<Handle>& at(uint64_t slot) { return (*own_[slot / kChunk])[slot % kChunk]; }

  mutable std::mutex mutex_;
  std::array<std::atomic<Chunk*>, kChunks> chunks_ = {};
  std::vector<std::unique_ptr<Chunk>> own_;
  std::vector<uint64_t> free_;
  uint64_t end_ = 0;
};

}  // namespace opencl
