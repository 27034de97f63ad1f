// MemoryCounter: counts what an allocator gives out and takes back, from any thread.
// Used by allocators, which show it as MemoryStats.
#pragma once

#include <atomic>
#include <cstdint>

#include "tenon/core/intrusive_ptr.h"
#include "tenon/core/memory_stats.h"

namespace tenon {

namespace detail {

/// Adds `n`; needs no locked instruction while the process has one thread.
inline int64_t bump(std::atomic<int64_t>& counter, int64_t n) noexcept {
  if (!single_threaded()) return counter.fetch_add(n, std::memory_order_relaxed) + n;
  const int64_t sum = counter.load(std::memory_order_relaxed) + n;
  counter.store(sum, std::memory_order_relaxed);
  return sum;
}

inline void raise(std::atomic<int64_t>& peak, int64_t value) noexcept {
  int64_t known = peak.load(std::memory_order_relaxed);
  while (value > known && !peak.compare_exchange_weak(known, value, std::memory_order_relaxed)) {
  }
}

}  // namespace detail

/// A running sum of what was taken and of what was returned.
class MemoryFlow {
 public:
  void add(int64_t n) noexcept { detail::bump(in_, n); }
  void subtract(int64_t n) noexcept { detail::bump(out_, n); }
  int64_t in() const noexcept { return in_.load(std::memory_order_relaxed); }
  int64_t out() const noexcept { return out_.load(std::memory_order_relaxed); }
  int64_t current() const noexcept { return in() - out(); }

 protected:
  std::atomic<int64_t> in_{0}, out_{0};
};

/// A flow that also knows its peak. The peak is exact for one thread; when several add at once, it is the
/// value that one of them saw.
class MemoryCounter : public MemoryFlow {
 public:
  /// Adds `n` and returns the current value.
  int64_t add(int64_t n) noexcept {
    const int64_t current = detail::bump(in_, n) - out();
    detail::raise(peak_, current);
    return current;
  }

  MemoryStat read() const noexcept {
    // Read in this order, so that the current value is never negative.
    const int64_t taken = out(), given = in();
    return {.current = given - taken,
            .peak = peak_.load(std::memory_order_relaxed),
            .allocated = given - in_before_.load(std::memory_order_relaxed),
            .freed = taken - out_before_.load(std::memory_order_relaxed)};
  }
  /// Sets the peak to the current value.
  void reset_peak() noexcept { peak_.store(current(), std::memory_order_relaxed); }
  /// Sets both sums to zero.
  void reset_sums() noexcept {
    in_before_.store(in(), std::memory_order_relaxed);
    out_before_.store(out(), std::memory_order_relaxed);
  }

 private:
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> in_before_{0}, out_before_{0};
};

}  // namespace tenon
