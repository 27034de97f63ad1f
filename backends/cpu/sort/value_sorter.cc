#include "backends/cpu/sort/value_sorter.h"

#include <algorithm>
#include <array>
#include <limits>

#include "backends/cpu/sort/order.h"
#include "backends/cpu/sort/value_kernels.h"

namespace tenon::cpu {
namespace {

/// Sorts bytes by counting them.
template <class Order>
void count_bytes(const int8_t* row, int8_t* values, int64_t n) {
  std::array<int64_t, 256> counts{};
  for (int64_t i = 0; i < n; ++i) ++counts[static_cast<size_t>(Order::key(row[i]) + 128)];
  for (int k = 0; k < 256; ++k)
    values = std::fill_n(values, counts[static_cast<size_t>(k)], Order::key(static_cast<int8_t>(k - 128)));
}

/// Puts the elements of `row` that `is_one` picks at `to`, in the order they come in.
template <class Bits, class Pick>
void put_in_order(const Bits* row, int64_t n, Bits* to, Pick&& is_one) {
  for (int64_t i = 0; i < n; ++i)
    if (is_one(row[i])) *to++ = row[i];
}

/// Equal elements whose bits differ, zeros and NaNs, as they come in `row`: a sort by keys has lost which was
/// where.
template <class Order, class Bits>
void put_back_equals(const Bits* row, Bits* values, int64_t n, const UnkeyedElements& found,
                     bool descending) {
  const auto nans = static_cast<int64_t>(found.nans);
  constexpr Bits kLargest = std::numeric_limits<Bits>::max();
  if (nans > 0)
    put_in_order(row, n, descending ? values : values + (n - nans),
                 [](Bits bits) { return Order::key(bits) == kLargest; });
  if (!found.negative_zero) return;
  // NaNs, which are at one end, have been put back.
  Bits* const numbers = descending ? values + nans : values;
  const auto before = [descending](Bits a, Bits b) {
    return descending ? Order::key(b) < Order::key(a) : Order::key(a) < Order::key(b);
  };
  Bits* const zeros = std::lower_bound(numbers, numbers + (n - nans), Bits{0}, before);
  put_in_order(row, n, zeros, [](Bits bits) { return Order::key(bits) == 0; });
}

}  // namespace

ValueSorter::ValueSorter(DType dtype, int64_t length, bool descending)
    : length_(length), descending_(descending) {
  with_order(dtype, [&]<class Order>(Order) {
    sort_ = &ValueSorter::sort_as<Order>;
    if (sizeof(typename Order::Bits) == 2) scratch_ = make_empty({length}, DType::Int32);
  });
}

template <class Order>
void ValueSorter::sort_as(const void* row, void* values) {
  using Bits = typename Order::Bits;
  const auto* const from = static_cast<const Bits*>(row);
  auto* const to = static_cast<Bits*>(values);
  const auto n = static_cast<size_t>(length_);
  const ValueKernels& kernels = value_kernels();
  UnkeyedElements found;
  if constexpr (sizeof(Bits) == 1) {
    count_bytes<Order>(from, to, length_);
  } else if constexpr (sizeof(Bits) == 2) {
    auto* const keys = static_cast<int32_t*>(scratch_.data_ptr());
    for (size_t i = 0; i < n; ++i) {
      const Bits key = Order::key(from[i]);
      keys[i] = key;
      if (Order::kFloating) {
        found.nans += key == std::numeric_limits<Bits>::max();
        found.negative_zero |= from[i] == std::numeric_limits<Bits>::min();
      }
    }
    kernels.sort[0](keys, n);
    for (size_t i = 0; i < n; ++i)
      to[i] = Order::kFloating
                  ? static_cast<Bits>(keys[i] < 0 ? -keys[i] | std::numeric_limits<Bits>::min() : keys[i])
                  : Order::key(static_cast<Bits>(keys[i]));
  } else {
    constexpr size_t kSize = sizeof(Bits) == 8;
    if constexpr (Order::kFloating) {
      found = kernels.keys[kSize](from, to, n, Order::kConstant);
      kernels.sort[kSize](to, n);
      kernels.elements[kSize](to, n);
    } else {
      // A key of an integer's key is the integer.
      std::transform(from, from + n, to, &Order::key);
      kernels.sort[kSize](to, n);
      if constexpr (Order::kConstant != 0) std::transform(to, to + n, to, &Order::key);
    }
  }
  if (descending_) std::reverse(to, to + n);
  if constexpr (Order::kFloating) put_back_equals<Order>(from, to, length_, found, descending_);
}

}  // namespace tenon::cpu
