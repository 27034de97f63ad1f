// The vectors of sorting by value, compiled once per instruction set: Highway's quicksort (M. Blacher, J.
// Giesen, P. Sanders, J. Wassenberg, Vectorized and performance-portable Quicksort, 2022) and keys of
// floating-point numbers.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/sort/value_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include <algorithm>

#include "backends/cpu/sort/value_kernels.h"
#include "hwy/highway.h"
// What is called below is not public, and later versions have other names for it.
#if HWY_MAJOR == 1 && HWY_MINOR == 0 && HWY_PATCH <= 3
#include "hwy/contrib/sort/traits-inl.h"
// After its traits:
#include "hwy/contrib/sort/vqsort-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void sort(void* row, size_t n) {
  auto* const keys = static_cast<T*>(row);
#if HWY_MAJOR == 1 && HWY_MINOR == 0 && HWY_PATCH <= 3
  const hn::SortTag<T> d;
  const hn::detail::SharedTraits<hn::detail::TraitsLane<hn::detail::OrderAscending<T>>> order;
  HWY_ALIGN T buffer[hwy::SortConstants::BufNum<T>(HWY_LANES(T))];
  if (hn::detail::HandleSpecialCases(d, order, keys, n)) return;
  // Where pivots are looked for. Highway's own seed reads the clock, and is in a library of its own.
  hn::detail::Generator places(0x9E3779B97F4A7C15u ^ n);
  hn::detail::Recurse(d, order, keys, keys + n, n, buffer, places, 2 * hwy::CeilLog2(n) + 4);
#else
  std::sort(keys, keys + n);
#endif
}

// The key of order.h, but for -0, which comes before 0 so that the bits can be had back.
template <class T>
UnkeyedElements to_keys(const void* row, void* keys, size_t n, int64_t infinity) {
  const auto* from = static_cast<const T*>(row);
  auto* to = static_cast<T*>(keys);
  UnkeyedElements found;
  size_t i = 0;
  const auto convert = [&](auto d) HWY_ATTR {
    const auto largest = hn::Set(d, hwy::LimitsMax<T>()), limit = hn::Set(d, static_cast<T>(infinity)),
               negative_zero = hn::Set(d, hwy::LimitsMin<T>());
    auto zeros = hn::Zero(d), nans = hn::Zero(d);
    for (const size_t lanes = hn::Lanes(d); i + lanes <= n; i += lanes) {
      const auto bits = hn::LoadU(d, from + i);
      const auto is_nan = hn::Gt(hn::And(bits, largest), limit);
      zeros = hn::Or(zeros, hn::VecFromMask(d, hn::Eq(bits, negative_zero)));
      nans = hn::Sub(nans, hn::VecFromMask(d, is_nan));
      const auto key = hn::Xor(bits, hn::And(hn::BroadcastSignBit(bits), largest));
      hn::StoreU(hn::IfThenElse(is_nan, largest, key), d, to + i);
    }
    found.negative_zero |= !hn::AllTrue(d, hn::Eq(zeros, hn::Zero(d)));
    T counts[hn::MaxLanes(d)];
    hn::StoreU(nans, d, counts);
    for (size_t k = 0; k < hn::Lanes(d); ++k) found.nans += static_cast<size_t>(counts[k]);
  };
  convert(hn::ScalableTag<T>());
  convert(hn::CappedTag<T, 1>());
  return found;
}

template <class T>
void to_elements(void* keys, size_t n) {
  auto* p = static_cast<T*>(keys);
  size_t i = 0;
  const auto convert = [&](auto d) HWY_ATTR {
    const auto largest = hn::Set(d, hwy::LimitsMax<T>());
    for (const size_t lanes = hn::Lanes(d); i + lanes <= n; i += lanes) {
      const auto key = hn::LoadU(d, p + i);
      hn::StoreU(hn::Xor(key, hn::And(hn::BroadcastSignBit(key), largest)), d, p + i);
    }
  };
  convert(hn::ScalableTag<T>());
  convert(hn::CappedTag<T, 1>());
}

constexpr ValueKernels kValueKernels{
    .sort = {&sort<int32_t>, &sort<int64_t>},
    .keys = {&to_keys<int32_t>, &to_keys<int64_t>},
    .elements = {&to_elements<int32_t>, &to_elements<int64_t>},
};

}  // namespace

constexpr const ValueKernels* kTable = &kValueKernels;

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

const ValueKernels& value_kernels(CpuTarget target) noexcept {
  static constexpr const ValueKernels* kTables[kNumCpuTargets] = TENON_CPU_TARGET_TABLES(kTable);
  return *kTables[static_cast<size_t>(target)];
}

}  // namespace tenon::cpu
#endif
