#include "backends/cpu/sort/row_sorter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <type_traits>
#include <utility>

#include "backends/cpu/sort/network.h"
#include "backends/cpu/sort/order.h"
#include "backends/cpu/sort/select_kernels.h"
#include "tenon/core/parallel.h"

namespace tenon::cpu {
namespace {

/// Rows below it are sorted by comparisons: to count digits costs more.
constexpr int64_t kShortRow = 64;
/// From this length on a pass by 11 bits costs no more than one by 8, and there are three in place of four;
/// up to the other one, beyond which 2,048 places of a row are too many for the caches.
constexpr int64_t kWideDigits = 1 << 10, kTooLongForWideDigits = 1 << 17;
/// Positions of longer rows do not fit below the key in one word.
constexpr int64_t kLongestOfWords = (int64_t{1} << 32) - 1;
/// More are not searched for one by one.
constexpr int64_t kMostSelected = 64;
/// Up to here groups of the row say which elements need not be looked at.
constexpr int64_t kMostOfGroups = kSelectGroups / 2;

/// A key and its position where one word does not hold both.
struct Pair {
  int64_t key, position;
  bool operator<(const Pair& o) const noexcept {
    return key < o.key || (key == o.key && position < o.position);
  }
};

/// Sorts words by `bits` bits from bit 32 on, those with equal ones in the order they come in: a pass for
/// each digit, the lowest first. Returns which of the two buffers has the result.
template <int kDigit>
uint64_t* sort_by_digits(uint64_t* words, uint64_t* spare, size_t n, int bits) {
  constexpr size_t kPlaces = size_t{1} << kDigit;
  constexpr int kMostPasses = (32 + kDigit - 1) / kDigit;
  const int passes = (bits + kDigit - 1) / kDigit;
  const auto digit = [](uint64_t word, int pass) { return (word >> (32 + pass * kDigit)) & (kPlaces - 1); };
  std::array<std::array<uint32_t, kPlaces>, kMostPasses> counts;
  for (int pass = 0; pass < passes; ++pass) counts[static_cast<size_t>(pass)].fill(0);
  for (size_t i = 0; i < n; ++i)
    for (int pass = 0; pass < passes; ++pass) ++counts[static_cast<size_t>(pass)][digit(words[i], pass)];
  for (int pass = 0; pass < passes; ++pass) {
    auto& places = counts[static_cast<size_t>(pass)];
    if (places[digit(words[0], pass)] == n) continue;  // one digit in all
    check_stop();
    uint32_t before = 0;
    for (uint32_t& p : places) before += std::exchange(p, before);
    for (size_t i = 0; i < n; ++i) spare[places[digit(words[i], pass)]++] = words[i];
    std::swap(words, spare);
  }
  return words;
}

uint64_t* sort_by_key(uint64_t* words, uint64_t* spare, int64_t n, int bits) {
  if (bits == 32 && n >= kWideDigits && n <= kTooLongForWideDigits)
    return sort_by_digits<11>(words, spare, static_cast<size_t>(n), bits);
  return sort_by_digits<8>(words, spare, static_cast<size_t>(n), bits);
}

template <class Bits>
Bits element(const void* row, int64_t i) noexcept {
  return static_cast<const Bits*>(row)[i];
}

/// A key as an unsigned number of the same order.
template <class Bits>
uint64_t unsigned_of(Bits key) noexcept {
  using Unsigned = std::make_unsigned_t<Bits>;
  return static_cast<Unsigned>(static_cast<Unsigned>(key) ^ (Unsigned{1} << (8 * sizeof(Bits) - 1)));
}

}  // namespace

RowSorter::RowSorter(DType dtype, int64_t length, int64_t count, bool descending)
    : length_(length), count_(count), descending_(descending) {
  with_order(dtype, [&]<class Order>(Order) { set_order<Order>(); });
}

template <class Order>
void RowSorter::set_order() {
  if (count_ <= kMostSelected && count_ <= length_ / 4) {
    sort_ = &RowSorter::select<Order>;
    return;
  }
  const bool words = length_ <= kLongestOfWords && (sizeof(typename Order::Bits) < 8 || length_ >= kShortRow);
  sort_ = words ? &RowSorter::sort_words<Order> : &RowSorter::sort_pairs<Order>;
  scratch_ = make_empty({2 * length_}, DType::Int64);  // two words, or a pair, for each element
}

template <class Order>
void RowSorter::write(const void* row, const uint64_t* words, void* values, int64_t* positions) const {
  using Bits = typename Order::Bits;
  auto* out = static_cast<Bits*>(values);
  for (int64_t i = 0; i < count_; ++i) {
    const auto position = static_cast<int64_t>(words[i] & 0xFFFFFFFF);
    positions[i] = position;
    out[i] = element<Bits>(row, position);
  }
}

// The key above the position in one word of 64 bits. Keys of 64 bits are sorted by their lower half first,
// then by the upper one.
template <class Order>
void RowSorter::sort_words(const void* row, void* values, int64_t* positions) {
  using Bits = typename Order::Bits;
  auto* words = static_cast<uint64_t*>(scratch_.data_ptr());
  uint64_t* spare = words + length_;
  const Bits inverted = static_cast<Bits>(descending_ ? -1 : 0);
  const auto key = [&](int64_t i) {
    return unsigned_of(static_cast<Bits>(Order::key(element<Bits>(row, i)) ^ inverted));
  };
  if constexpr (sizeof(Bits) == 8) {
    for (int64_t i = 0; i < length_; ++i) words[i] = key(i) << 32 | static_cast<uint64_t>(i);
    uint64_t* const sorted = sort_by_key(words, spare, length_, 32);
    if (sorted != words) std::swap(words, spare);
    for (int64_t i = 0; i < length_; ++i) {
      const uint64_t position = words[i] & 0xFFFFFFFF;
      words[i] = (key(static_cast<int64_t>(position)) >> 32 << 32) | position;
    }
    words = sort_by_key(words, spare, length_, 32);
  } else {
    for (int64_t i = 0; i < length_; ++i) words[i] = key(i) << 32 | static_cast<uint64_t>(i);
    if (length_ <= kLongestNetwork)
      sort_by_network(words, length_);
    else if (length_ < kShortRow)
      std::sort(words, words + length_);
    else
      words = sort_by_key(words, spare, length_, 8 * sizeof(Bits));
  }
  write<Order>(row, words, values, positions);
}

template <class Order>
void RowSorter::sort_pairs(const void* row, void* values, int64_t* positions) {
  using Bits = typename Order::Bits;
  auto* pairs = static_cast<Pair*>(scratch_.data_ptr());
  for (int64_t i = 0; i < length_; ++i) {
    const int64_t key = Order::key(element<Bits>(row, i));
    pairs[i] = {descending_ ? ~key : key, i};
  }
  std::sort(pairs, pairs + length_);
  auto* out = static_cast<Bits*>(values);
  for (int64_t i = 0; i < count_; ++i) {
    positions[i] = pairs[i].position;
    out[i] = element<Bits>(row, pairs[i].position);
  }
}

// Keeps the first `count` of what was seen, in order. What equals the last of them comes after it.
template <class Order>
void RowSorter::select(const void* row, void* values, int64_t* positions) {
  using Bits = typename Order::Bits;
  if (count_ == 0) return;
  constexpr auto kSize = static_cast<size_t>(std::bit_width(sizeof(Bits)) - 1);
  const SelectKernels& kernels = select_kernels();
  const SelectKernels::Search search = Order::kFloating ? kernels.floating[kSize] : kernels.integer[kSize];
  std::array<Pair, kMostSelected> first;
  int64_t kept = 0;
  const auto insert = [&](int64_t position) {
    const int64_t order = Order::key(element<Bits>(row, position)), key = descending_ ? ~order : order;
    int64_t at = kept < count_ ? kept++ : count_ - 1;
    for (; at > 0 && key < first[static_cast<size_t>(at - 1)].key; --at)
      first[static_cast<size_t>(at)] = first[static_cast<size_t>(at - 1)];
    first[static_cast<size_t>(at)] = {key, position};
  };
  const auto end = static_cast<size_t>(length_);
  // As many groups of elements as are wanted, or more, have one with a key of at most this bound.
  int64_t bound = std::numeric_limits<int64_t>::max();
  if (count_ <= kMostOfGroups) {
    const SelectKernels::Least least_of =
        Order::kFloating ? kernels.least_floating[kSize] : kernels.least_integer[kSize];
    std::array<int64_t, kSelectGroups> least;
    least_of(row, end / kSelectGroups * kSelectGroups, Order::kConstant, descending_, least.data());
    std::nth_element(least.begin(), least.begin() + (count_ - 1), least.end());
    bound = least[static_cast<size_t>(count_ - 1)];
  }
  constexpr int64_t kLargestKey = std::numeric_limits<Bits>::max();
  size_t at = 0;
  for (; kept < count_; ++at) {
    if (bound < kLargestKey) at = search(row, at, end, Order::kConstant, descending_, bound + 1);
    insert(static_cast<int64_t>(at));
  }
  for (;; ++at) {
    at = search(row, at, end, Order::kConstant, descending_, first[static_cast<size_t>(count_ - 1)].key);
    if (at == end) break;
    insert(static_cast<int64_t>(at));
  }
  auto* out = static_cast<Bits*>(values);
  for (int64_t k = 0; k < count_; ++k) {
    positions[k] = first[static_cast<size_t>(k)].position;
    out[k] = element<Bits>(row, positions[k]);
  }
}

}  // namespace tenon::cpu
