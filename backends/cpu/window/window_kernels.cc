// The loops of sums and maxima over windows, compiled once per instruction set.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/window/window_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include <algorithm>
#include <type_traits>

#include "backends/cpu/window/window_kernels.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Calls step(tag, i) for whole vectors from `i` on, then for single elements.
template <class T, class Step>
HWY_INLINE void for_lanes(size_t n, Step step) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) step(d, i);
  for (; i < n; ++i) step(one, i);
}

template <class T>
void add(T* out, const T* a, const T* b, size_t n) {
  for_lanes<T>(n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
  });
}

template <class T>
void multiply(T* out, const T* x, T w, size_t n) {
  for_lanes<T>(n, [&](auto d, size_t i)
                      HWY_ATTR { hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, w)), d, out + i); });
}

template <class T>
void multiply_add(T* out, const T* x, T w, size_t n) {
  for_lanes<T>(n, [&](auto d, size_t i) HWY_ATTR {
    const auto product = hn::Mul(hn::LoadU(d, x + i), hn::Set(d, w));
    hn::StoreU(hn::Add(hn::LoadU(d, out + i), product), d, out + i);
  });
}

template <class T>
void divide(T* out, const T* x, T by, size_t n) {
  for_lanes<T>(n, [&](auto d, size_t i)
                      HWY_ATTR { hn::StoreU(hn::Div(hn::LoadU(d, x + i), hn::Set(d, by)), d, out + i); });
}

template <class T>
void divide_each(T* out, const T* x, T by, const T* bys, size_t n) {
  for_lanes<T>(n, [&](auto d, size_t i) HWY_ATTR {
    const auto divisor = hn::Mul(hn::Set(d, by), hn::LoadU(d, bys + i));
    hn::StoreU(hn::Div(hn::LoadU(d, x + i), divisor), d, out + i);
  });
}

template <class T>
void add_strided(T* out, const T* x, int64_t step, size_t n) {
  if (step == 1) return add(out, out, x, n);
  size_t i = 0;
  if (step == 2) {
    // Nothing is read behind the last element.
    const hn::ScalableTag<T> d;
    for (; i + hn::Lanes(d) < n; i += hn::Lanes(d)) {
      hn::Vec<decltype(d)> even, odd;
      hn::LoadInterleaved2(d, x + 2 * i, even, odd);
      hn::StoreU(hn::Add(hn::LoadU(d, out + i), even), d, out + i);
    }
  }
  x += static_cast<int64_t>(i) * step;
  for (; i < n; ++i, x += step) out[i] += *x;
}

template <class T>
void listed(T* out, const T* x, int64_t first, const int64_t* begins, const int64_t* places, const T* weights,
            size_t n) {
  for (size_t o = 0; o < n; ++o) {
    T sum = out[o];
    if (weights) {
      for (int64_t i = begins[o]; i < begins[o + 1]; ++i) sum += weights[i] * x[places[i] - first];
    } else {
      for (int64_t i = begins[o]; i < begins[o + 1]; ++i) sum += x[places[i] - first];
    }
    out[o] = sum;
  }
}

template <class T>
void rows(T* out, const T* const* rows, const T* weights, size_t count, size_t n) {
  for_lanes<T>(n, [&](auto d, size_t i) HWY_ATTR {
    auto sum = hn::LoadU(d, rows[0] + i);
    if (weights) {
      sum = hn::Mul(sum, hn::Set(d, weights[0]));
      for (size_t r = 1; r < count; ++r)
        sum = hn::Add(sum, hn::Mul(hn::LoadU(d, rows[r] + i), hn::Set(d, weights[r])));
    } else {
      for (size_t r = 1; r < count; ++r) sum = hn::Add(sum, hn::LoadU(d, rows[r] + i));
    }
    hn::StoreU(sum, d, out + i);
  });
}

template <class T>
void listed_evenly(T* out, const T* x, typename SumKernels<T>::Place first,
                   const typename SumKernels<T>::Place* places, const T* weights, size_t taps, size_t row,
                   size_t n) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    auto sum = hn::LoadU(d, out + i);
    for (size_t t = 0; t < taps; ++t) {
      const auto place = hn::Sub(hn::LoadU(di, places + t * row + i), hn::Set(di, first));
      sum = hn::Add(sum, hn::Mul(hn::LoadU(d, weights + t * row + i), hn::GatherIndex(d, x, place)));
    }
    hn::StoreU(sum, d, out + i);
  }
  for (; i < n; ++i) {
    for (size_t t = 0; t < taps; ++t) out[i] += weights[t * row + i] * x[places[t * row + i] - first];
  }
}

template <class T, class Place>
void start(T* values, Place* places, const T* x, Place place, size_t n) {
  std::copy(x, x + n, values);
  for_lanes<Place>(n, [&](auto d, size_t i) HWY_ATTR { hn::StoreU(hn::Set(d, place), d, places + i); });
}

template <class T, class Place>
void update(T* values, Place* places, const T* x, Place place, size_t n) {
  for_lanes<T>(n, [&](auto d, size_t i) HWY_ATTR {
    const hn::Rebind<Place, decltype(d)> di;
    const auto v = hn::LoadU(d, values + i), next = hn::LoadU(d, x + i);
    auto wins = hn::Gt(next, v);
    if constexpr (hwy::IsFloat<T>()) wins = hn::Or(wins, hn::IsNaN(next));
    hn::StoreU(hn::IfThenElse(wins, next, v), d, values + i);
    hn::StoreU(hn::IfThenElse(hn::RebindMask(di, wins), hn::Set(di, place), hn::LoadU(di, places + i)), di,
               places + i);
  });
}

template <class Place>
void locate(Place* places, Place add, size_t n) {
  for_lanes<Place>(n, [&](auto d, size_t i) HWY_ATTR {
    const auto moved = hn::Iota(d, add + static_cast<Place>(i));
    hn::StoreU(hn::Add(hn::LoadU(d, places + i), moved), d, places + i);
  });
}

template <class D, class V, class DI, class VI>
HWY_INLINE void combine_lanes(D d, DI di, hn::TFromD<D>* values, hn::TFromD<DI>* places, V next,
                              VI next_place) {
  const auto v = hn::LoadU(d, values);
  const auto place = hn::LoadU(di, places);
  const auto before = hn::RebindMask(d, hn::Lt(next_place, place));
  auto wins = hn::Or(hn::Gt(next, v), hn::And(hn::Eq(next, v), before));
  if constexpr (hwy::IsFloat<hn::TFromD<D>>())
    wins = hn::Or(wins, hn::And(hn::IsNaN(next), hn::Not(hn::And(hn::IsNaN(v), before))));
  hn::StoreU(hn::IfThenElse(wins, next, v), d, values);
  hn::StoreU(hn::IfThenElse(hn::RebindMask(di, wins), next_place, place), di, places);
}

template <class T, class Place>
void combine(T* values, Place* places, const T* x, const Place* x_places, Place add, int64_t step, size_t n) {
  const hn::ScalableTag<T> d;
  const hn::ScalableTag<Place> di;
  size_t i = 0;
  if (step == 1) {
    for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
      combine_lanes(d, di, values + i, places + i, hn::LoadU(d, x + i),
                    hn::Add(hn::LoadU(di, x_places + i), hn::Set(di, add)));
  } else if (step == 2) {
    // Nothing is read behind the last element.
    for (; i + hn::Lanes(d) < n; i += hn::Lanes(d)) {
      hn::Vec<decltype(d)> even, odd;
      hn::Vec<decltype(di)> even_places, odd_places;
      hn::LoadInterleaved2(d, x + 2 * i, even, odd);
      hn::LoadInterleaved2(di, x_places + 2 * i, even_places, odd_places);
      combine_lanes(d, di, values + i, places + i, even, hn::Add(even_places, hn::Set(di, add)));
    }
  }
  const hn::CappedTag<T, 1> one;
  const hn::CappedTag<Place, 1> one_place;
  x += static_cast<int64_t>(i) * step;
  x_places += static_cast<int64_t>(i) * step;
  for (; i < n; ++i, x += step, x_places += step)
    combine_lanes(one, one_place, values + i, places + i, hn::Set(one, *x),
                  hn::Set(one_place, *x_places + add));
}

template <class T>
constexpr SumKernels<T> kSum{&add<T>,         &multiply<T>, &multiply_add<T>, &add_strided<T>,  &divide<T>,
                             &divide_each<T>, &rows<T>,     &listed<T>,       &listed_evenly<T>};
template <class T, class Place>
constexpr MaxKernels<T, Place> kMax{&start<T, Place>, &update<T, Place>, &locate<Place>, &combine<T, Place>};

constexpr WindowKernels kWindowKernels = {kSum<float>, kSum<double>, kMax<float, int32_t>,
                                          kMax<double, int64_t>, kMax<int64_t, int64_t>};

}  // namespace

constexpr const WindowKernels* kTable = &kWindowKernels;

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

const WindowKernels& window_kernels(CpuTarget target) noexcept {
  static constexpr const WindowKernels* kTables[kNumCpuTargets] = TENON_CPU_TARGET_TABLES(kTable);
  return *kTables[static_cast<size_t>(target)];
}

const WindowKernels& window_kernels() {
  static const WindowKernels& kernels = window_kernels(cpu_target());
  return kernels;
}

}  // namespace tenon::cpu
#endif
