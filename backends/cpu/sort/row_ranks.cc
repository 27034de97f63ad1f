#include "backends/cpu/sort/row_ranks.h"

#include <algorithm>
#include <array>
#include <limits>

#include "backends/cpu/sort/order.h"

namespace tenon::cpu {
namespace {

/// Rows below it are not worth counting digits of.
constexpr int64_t kShortRow = 512;
constexpr int kDigit = 11;

struct Candidate {
  int64_t key, position;
  bool operator<(const Candidate& o) const noexcept {
    return key < o.key || (key == o.key && position < o.position);
  }
};

template <class Order>
int64_t key(const void* row, int64_t i) noexcept {
  return Order::key(static_cast<const typename Order::Bits*>(row)[i]);
}

/// The highest bits of a key, in the order of keys.
template <class Bits>
size_t digit(int64_t key) noexcept {
  constexpr int kBits = 8 * sizeof(Bits);
  // Extended by copies of the sign, which the mask takes away.
  const uint64_t ordered =
      (static_cast<uint64_t>(key) ^ (uint64_t{1} << (kBits - 1))) & (~uint64_t{0} >> (64 - kBits));
  constexpr int kShift = kBits > kDigit ? kBits - kDigit : 0;
  return static_cast<size_t>(ordered >> kShift) & ((size_t{1} << kDigit) - 1);
}

}  // namespace

RowRanks::RowRanks(DType dtype, int64_t length)
    : length_(length), scratch_(make_empty({2 * length}, DType::Int64)) {
  with_order(dtype, [&]<class Order>(Order) {
    find_ = &RowRanks::find_as<Order>;
    numbers_ = &RowRanks::numbers_as<Order>;
  });
}

// The elements whose highest bits are those of the one that is looked for; then the usual selection among
// them.
template <class Order>
int64_t RowRanks::find_as(const void* row, int64_t k) {
  using Bits = typename Order::Bits;
  auto* const candidates = static_cast<Candidate*>(scratch_.data_ptr());
  int64_t count = 0;
  if (length_ < kShortRow) {
    for (; count < length_; ++count) candidates[count] = {key<Order>(row, count), count};
  } else {
    // Neighbours often have one digit, and a counter waits for its last sum: every other element has its own.
    constexpr int64_t kBlock = 16;
    const int64_t whole = length_ - length_ % kBlock;
    std::array<std::array<int64_t, 4>, size_t{1} << kDigit> counts{};
    for (int64_t i = 0; i < length_; ++i) ++counts[digit<Bits>(key<Order>(row, i))][i & 3];
    const auto number = [&](size_t d) { return counts[d][0] + counts[d][1] + counts[d][2] + counts[d][3]; };
    size_t wanted = 0;
    for (; k >= number(wanted); ++wanted) k -= number(wanted);
    const auto take = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t own = key<Order>(row, i);
        candidates[count] = {own, i};
        count += digit<Bits>(own) == wanted;
      }
    };
    // Most blocks have none.
    for (int64_t i = 0; i < whole; i += kBlock) {
      bool any = false;
      for (int64_t j = i; j < i + kBlock; ++j) any |= digit<Bits>(key<Order>(row, j)) == wanted;
      if (any) take(i, i + kBlock);
    }
    take(whole, length_);
  }
  std::nth_element(candidates, candidates + k, candidates + count);
  return candidates[k].position;
}

template <class Order>
int64_t RowRanks::numbers_as(const void* row) const {
  if constexpr (Order::kFloating) {
    constexpr int64_t kNan = std::numeric_limits<typename Order::Bits>::max();
    int64_t count = 0;
    for (int64_t i = 0; i < length_; ++i) count += key<Order>(row, i) != kNan;
    return count;
  } else {
    return length_;
  }
}

}  // namespace tenon::cpu
