// The searches of topk, compiled once per instruction set.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/sort/select_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include "backends/cpu/sort/select_kernels.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// The key of order.h, in vectors.
template <bool kFloating, class D, class V = hn::Vec<D>>
HWY_INLINE V key_of(D d, V bits, V constant, V inverted) {
  if constexpr (kFloating) {
    const V largest = hn::Set(d, hwy::LimitsMax<hn::TFromD<D>>());
    const V magnitude = hn::And(bits, largest), sign = hn::BroadcastSignBit(bits);
    const V number = hn::Sub(hn::Xor(magnitude, sign), sign);
    return hn::Xor(hn::IfThenElse(hn::Gt(magnitude, constant), largest, number), inverted);
  } else {
    return hn::Xor(bits, hn::Xor(constant, inverted));
  }
}

template <class T, bool kFloating>
size_t search(const void* row, size_t begin, size_t end, int64_t constant, bool descending, int64_t limit) {
  const auto* p = static_cast<const T*>(row);
  size_t i = begin;
  // Vectors, four at a time; then one lane at a time.
  const auto from = [&](auto d) HWY_ATTR {
    const size_t n = hn::Lanes(d);
    const auto special = hn::Set(d, static_cast<T>(constant)), least = hn::Set(d, static_cast<T>(limit)),
               inverted = hn::Set(d, static_cast<T>(descending ? -1 : 0));
    const auto below = [&](size_t at) HWY_ATTR {
      return hn::Lt(key_of<kFloating>(d, hn::LoadU(d, p + at), special, inverted), least);
    };
    for (; i + 4 * n <= end; i += 4 * n) {
      const auto first = hn::Or(below(i), below(i + n)), second = hn::Or(below(i + 2 * n), below(i + 3 * n));
      if (HWY_UNLIKELY(!hn::AllFalse(d, hn::Or(first, second)))) break;
    }
    for (; i + n <= end; i += n) {
      const auto found = hn::FindFirstTrue(d, below(i));
      if (found >= 0) {
        i += static_cast<size_t>(found);
        return true;
      }
    }
    return false;
  };
  if (!from(hn::ScalableTag<T>())) from(hn::CappedTag<T, 1>());
  return i;
}

template <class T, bool kFloating>
void least(const void* row, size_t n, int64_t constant, bool descending, int64_t* least) {
  const hn::CappedTag<T, kSelectGroups> d;
  constexpr size_t kLanes = hn::MaxLanes(d), kVectors = kSelectGroups / kLanes;
  const auto* p = static_cast<const T*>(row);
  const auto special = hn::Set(d, static_cast<T>(constant)),
             inverted = hn::Set(d, static_cast<T>(descending ? -1 : 0));
  hn::Vec<decltype(d)> best[kVectors];
  for (auto& b : best) b = hn::Set(d, hwy::LimitsMax<T>());
  for (size_t i = 0; i < n; i += kSelectGroups) {
#pragma GCC unroll 16
    for (size_t v = 0; v < kVectors; ++v)
      best[v] = hn::Min(best[v], key_of<kFloating>(d, hn::LoadU(d, p + i + v * kLanes), special, inverted));
  }
  T lanes[kSelectGroups];
  for (size_t v = 0; v < kVectors; ++v) hn::StoreU(best[v], d, lanes + v * kLanes);
  for (size_t k = 0; k < kSelectGroups; ++k) least[k] = lanes[k];
}

constexpr SelectKernels kSelectKernels{
    .integer = {&search<int8_t, false>, &search<int16_t, false>, &search<int32_t, false>,
                &search<int64_t, false>},
    .floating = {nullptr, &search<int16_t, true>, &search<int32_t, true>, &search<int64_t, true>},
    .least_integer = {&least<int8_t, false>, &least<int16_t, false>, &least<int32_t, false>,
                      &least<int64_t, false>},
    .least_floating = {nullptr, &least<int16_t, true>, &least<int32_t, true>, &least<int64_t, true>},
};

}  // namespace

constexpr const SelectKernels* kTable = &kSelectKernels;

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

const SelectKernels& select_kernels(CpuTarget target) noexcept {
  static constexpr const SelectKernels* kTables[kNumCpuTargets] = TENON_CPU_TARGET_TABLES(kTable);
  return *kTables[static_cast<size_t>(target)];
}

}  // namespace tenon::cpu
#endif
