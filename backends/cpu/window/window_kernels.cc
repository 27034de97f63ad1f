// The loops of sums and maxima over windows, compiled once per instruction set.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/window/window_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/window/window_kernels.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Calls step(tag, i) for what is left from `i` on: rows are often shorter than a vector, so that halves and
/// quarters of one come before single elements.
template <class T, size_t kLanes, class Step>
HWY_INLINE void for_rest(size_t i, size_t n, Step step) {
  const hn::CappedTag<T, kLanes> d;
  for (; i + kLanes <= n; i += kLanes) step(d, i);
  if constexpr (kLanes > 1) for_rest<T, kLanes / 2>(i, n, step);
}

/// Calls step(tag, i) for whole vectors, then for what is left.
template <class T, class Step>
HWY_INLINE void for_lanes(size_t n, Step step) {
  for_rest<T, hn::MaxLanes(hn::ScalableTag<T>())>(0, n, step);
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
    // Nothing is read after the last element.
    const auto pairs = [&](auto d) HWY_ATTR {
      for (; i + hn::Lanes(d) < n; i += hn::Lanes(d)) {
        hn::Vec<decltype(d)> even, odd;
        hn::LoadInterleaved2(d, x + 2 * i, even, odd);
        hn::StoreU(hn::Add(hn::LoadU(d, out + i), even), d, out + i);
      }
    };
    pairs(hn::ScalableTag<T>());
    pairs(hn::CappedTag<T, 16 / sizeof(T)>());
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
void listed_pixels(T* out, const T* x, int64_t first, const int64_t* begins, const int64_t* places,
                   const T* weights, size_t inner, size_t n, bool fresh) {
  for (size_t o = 0; o < n; ++o, out += inner) {
    const int64_t begin = begins[o], end = begins[o + 1];
    for_lanes<T>(inner, [&](auto d, size_t i) HWY_ATTR {
      auto sum = fresh ? hn::Zero(d) : hn::LoadU(d, out + i);
      for (int64_t t = begin; t < end; ++t) {
        const auto tap = hn::LoadU(d, x + (places[t] - first) * static_cast<int64_t>(inner) + i);
        sum = hn::Add(sum, weights ? hn::Mul(hn::Set(d, weights[t]), tap) : tap);
      }
      hn::StoreU(sum, d, out + i);
    });
  }
}

/// `kVecs` vectors of the sum of rows.
template <size_t kVecs, class D, class T = hn::TFromD<D>>
HWY_INLINE void sum_rows(D d, T* out, const T* const* rows, const T* weights, size_t count, size_t i) {
  hn::Vec<D> sum[kVecs];
#pragma GCC unroll 4
  for (size_t v = 0; v < kVecs; ++v) {
    sum[v] = hn::LoadU(d, rows[0] + i + v * hn::Lanes(d));
    if (weights) sum[v] = hn::Mul(sum[v], hn::Set(d, weights[0]));
  }
  for (size_t r = 1; r < count; ++r) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVecs; ++v) {
      auto x = hn::LoadU(d, rows[r] + i + v * hn::Lanes(d));
      if (weights) x = hn::Mul(x, hn::Set(d, weights[r]));
      sum[v] = hn::Add(sum[v], x);
    }
  }
#pragma GCC unroll 4
  for (size_t v = 0; v < kVecs; ++v) hn::StoreU(sum[v], d, out + i + v * hn::Lanes(d));
}

template <class T>
void rows(T* out, const T* const* rows, const T* weights, size_t count, size_t n) {
  // Several vectors at a time, whose sums need not wait for one another.
  const hn::ScalableTag<T> d;
  const size_t step = 4 * hn::Lanes(d);
  size_t i = 0;
  for (; i + step <= n; i += step) sum_rows<4>(d, out, rows, weights, count, i);
  for (; i + 2 * hn::Lanes(d) <= n; i += 2 * hn::Lanes(d)) sum_rows<2>(d, out, rows, weights, count, i);
  for_rest<T, hn::MaxLanes(hn::ScalableTag<T>())>(
      i, n, [&](auto tag, size_t at) HWY_ATTR { sum_rows<1>(tag, out, rows, weights, count, at); });
}

template <class T>
void listed_evenly(T* out, const T* x, size_t width, typename SumKernels<T>::Place first,
                   const typename SumKernels<T>::Place* places, const T* weights, size_t taps, size_t row,
                   size_t n, bool fresh) {
  using Place = typename SumKernels<T>::Place;
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<Place>(hn::Lanes(d)), last = static_cast<Place>(width) - lanes;
  const auto vector = [&](size_t i) HWY_ATTR {
    auto sum = fresh ? hn::Zero(d) : hn::LoadU(d, out + i);
    for (size_t t = 0; t < taps; ++t) {
      const Place* p = places + t * row + i;
      const auto place = hn::Sub(hn::LoadU(di, p), hn::Set(di, first));
      // Outputs are denser than inputs more often than not: then one vector has all of their taps, and a
      // permutation is faster than a gather.
      const Place low = std::min<Place>(p[0] - first, last);
      hn::Vec<decltype(d)> tap;
      if (low >= 0 && p[lanes - 1] - first - low < lanes) {
        const auto index = hn::IndicesFromVec(d, hn::Sub(place, hn::Set(di, low)));
        tap = hn::TableLookupLanes(hn::LoadU(d, x + low), index);
      } else {
        tap = hn::GatherIndex(d, x, place);
      }
      sum = hn::Add(sum, hn::Mul(hn::LoadU(d, weights + t * row + i), tap));
    }
    hn::StoreU(sum, d, out + i);
  };
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) vector(i);
  if (i < n && fresh && n >= hn::Lanes(d)) {
    vector(n - hn::Lanes(d));
    return;
  }
  for (; i < n; ++i) {
    T sum = fresh ? T(0) : out[i];
    for (size_t t = 0; t < taps; ++t) sum += weights[t * row + i] * x[places[t * row + i] - first];
    out[i] = sum;
  }
}

template <class T, class Place>
void start(T* values, Place* places, const T* x, Place place, size_t n) {
  std::copy(x, x + n, values);
  for_lanes<Place>(n, [&](auto d, size_t i) HWY_ATTR { hn::StoreU(hn::Set(d, place), d, places + i); });
}

template <class D, class DI, class V, class VI>
HWY_INLINE void later_wins(D d, DI di, V& value, VI& place, V next, VI next_place) {
  auto wins = hn::Gt(next, value);
  if constexpr (hwy::IsFloat<hn::TFromD<D>>()) wins = hn::Or(wins, hn::IsNaN(next));
  value = hn::IfThenElse(wins, next, value);
  place = hn::IfThenElse(hn::RebindMask(di, wins), next_place, place);
}

template <class T, class Place>
void start_with_two(T* values, Place* places, const T* x, Place x_place, const T* y, Place y_place,
                    size_t n) {
  for_lanes<T>(n, [&](auto d, size_t i) HWY_ATTR {
    const hn::Rebind<Place, decltype(d)> di;
    auto value = hn::LoadU(d, x + i);
    auto place = hn::Set(di, x_place);
    later_wins(d, di, value, place, hn::LoadU(d, y + i), hn::Set(di, y_place));
    hn::StoreU(value, d, values + i);
    hn::StoreU(place, di, places + i);
  });
}

template <class T, class Place>
void update(T* values, Place* places, const T* x, Place place, size_t n) {
  for_lanes<T>(n, [&](auto d, size_t i) HWY_ATTR {
    const hn::Rebind<Place, decltype(d)> di;
    auto value = hn::LoadU(d, values + i);
    auto found = hn::LoadU(di, places + i);
    later_wins(d, di, value, found, hn::LoadU(d, x + i), hn::Set(di, place));
    hn::StoreU(value, d, values + i);
    hn::StoreU(found, di, places + i);
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
  if (step == 1) {
    for_lanes<T>(n, [&](auto d, size_t i) HWY_ATTR {
      const hn::Rebind<Place, decltype(d)> di;
      combine_lanes(d, di, values + i, places + i, hn::LoadU(d, x + i),
                    hn::Add(hn::LoadU(di, x_places + i), hn::Set(di, add)));
    });
    return;
  }
  size_t i = 0;
  if (step == 2) {
    // Nothing is read after the last element.
    const auto pairs = [&](auto d) HWY_ATTR {
      const hn::Rebind<Place, decltype(d)> di;
      for (; i + hn::Lanes(d) < n; i += hn::Lanes(d)) {
        hn::Vec<decltype(d)> even, odd;
        hn::Vec<decltype(di)> even_places, odd_places;
        hn::LoadInterleaved2(d, x + 2 * i, even, odd);
        hn::LoadInterleaved2(di, x_places + 2 * i, even_places, odd_places);
        combine_lanes(d, di, values + i, places + i, even, hn::Add(even_places, hn::Set(di, add)));
      }
    };
    pairs(hn::ScalableTag<T>());
    pairs(hn::CappedTag<T, 16 / sizeof(T)>());
  }
  const hn::CappedTag<T, 1> one;
  const hn::CappedTag<Place, 1> one_place;
  x += static_cast<int64_t>(i) * step;
  x_places += static_cast<int64_t>(i) * step;
  for (; i < n; ++i, x += step, x_places += step)
    combine_lanes(one, one_place, values + i, places + i, hn::Set(one, *x),
                  hn::Set(one_place, *x_places + add));
}

template <class T, class Place>
void combine_pixels(T* values, Place* places, const T* x, const Place* x_places, Place add, int64_t step,
                    size_t inner, size_t n, bool fresh) {
  const auto row = step * static_cast<int64_t>(inner);
  for (size_t i = 0; i < n; ++i, values += inner, places += inner, x += row, x_places += row) {
    if (fresh) {
      for_lanes<T>(inner, [&](auto d, size_t c) HWY_ATTR {
        const hn::Rebind<Place, decltype(d)> di;
        hn::StoreU(hn::LoadU(d, x + c), d, values + c);
        hn::StoreU(hn::Add(hn::LoadU(di, x_places + c), hn::Set(di, add)), di, places + c);
      });
    } else {
      combine(values, places, x, x_places, add, 1, inner);
    }
    add = static_cast<Place>(add + step);
  }
}

template <class V>
HWY_INLINE auto later_is_larger(const V& value, const V& next) {
  using D = hn::DFromV<V>;
  if constexpr (hwy::IsFloat<hn::TFromD<D>>())
    return hn::Or(hn::Gt(next, value), hn::IsNaN(next));
  else
    return hn::Gt(next, value);
}
template <class V>
HWY_INLINE V later_max(const V& value, const V& next) {
  return hn::IfThenElse(later_is_larger(value, next), next, value);
}

/// The maximum of `value` and, after it, the taps of one row. Those at distances other than 1 need a step of
/// 1; otherwise kStep of them come from one load of as many vectors, the last ones from one that ends with
/// the last tap.
template <int kStep, class D, class V = hn::Vec<D>>
HWY_INLINE V max_of_taps(D d, const hn::TFromD<D>* x, int64_t taps, int64_t dilation, V value) {
  if constexpr (kStep == 1) {
    for (int64_t t = 0; t < taps; ++t) value = later_max(value, hn::LoadU(d, x + t * dilation));
  } else {
    for (int64_t t = 0; t < taps; t += kStep) {
      const int64_t from = std::max<int64_t>(std::min<int64_t>(t, taps - kStep), 0), seen = t - from;
      V v[4];
      if constexpr (kStep == 2) hn::LoadInterleaved2(d, x + from, v[0], v[1]);
      if constexpr (kStep == 3) hn::LoadInterleaved3(d, x + from, v[0], v[1], v[2]);
      if constexpr (kStep == 4) hn::LoadInterleaved4(d, x + from, v[0], v[1], v[2], v[3]);
#pragma GCC unroll 4
      for (int64_t p = 0; p < kStep; ++p) {
        if (p >= seen && from + p < taps) value = later_max(value, v[p]);
      }
    }
  }
  return value;
}

/// What every number and NaN comes after: a row may begin with it.
template <class T>
constexpr T lowest() {
  return hwy::IsFloat<T>() ? static_cast<T>(-HUGE_VAL) : std::numeric_limits<T>::lowest();
}

template <class T>
void max_windows(T* out, const T* const* rows, size_t count, int64_t first, int64_t taps, int64_t dilation,
                 int64_t step, size_t n, bool fresh) {
  const auto vector = [&]<int kStep>(auto d, size_t i) HWY_ATTR {
    auto value = fresh ? hn::Set(d, lowest<T>()) : hn::LoadU(d, out + i);
    for (size_t r = 0; r < count; ++r)
      value = max_of_taps<kStep>(d, rows[r] + first + static_cast<int64_t>(i) * kStep, taps, dilation, value);
    hn::StoreU(value, d, out + i);
  };
  size_t i = 0;
  // With vectors of this size where there are so many outputs: the last vector begins where it ends with
  // them, since to see a tap twice changes nothing. Nothing is read after the last element, which windows
  // that are shorter than the step allow only before the last output.
  const auto vectors = [&]<int kStep>(auto d) HWY_ATTR {
    const size_t lanes = hn::Lanes(d), end = n - (taps < kStep ? 1 : 0);
    if (step != kStep || i >= end || end < lanes) return;
    for (; i + lanes <= end; i += lanes) vector.template operator()<kStep>(d, i);
    if (i < end) vector.template operator()<kStep>(d, end - lanes);
    i = end;
  };
  const auto any_step = [&](auto d) HWY_ATTR {
    vectors.template operator()<1>(d);
    if (dilation != 1 && taps != 1) return;
    vectors.template operator()<2>(d);
    vectors.template operator()<3>(d);
    vectors.template operator()<4>(d);
  };
  constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  any_step(hn::ScalableTag<T>());
  if constexpr (kLanes * sizeof(T) > 32) any_step(hn::CappedTag<T, 32 / sizeof(T)>());
  if constexpr (kLanes * sizeof(T) > 16) any_step(hn::CappedTag<T, 16 / sizeof(T)>());
  for (; i < n; ++i) {
    T value = fresh ? lowest<T>() : out[i];
    for (size_t r = 0; r < count; ++r) {
      const T* x = rows[r] + first + static_cast<int64_t>(i) * step;
      for (int64_t t = 0; t < taps; ++t) {
        const T next = x[t * dilation];
        value = next > value || next != next ? next : value;
      }
    }
    out[i] = value;
  }
}

template <class T>
constexpr SumKernels<T> kSum{&add<T>,           &multiply<T>,     &multiply_add<T>, &add_strided<T>,
                             &divide<T>,        &divide_each<T>,  &rows<T>,         &listed<T>,
                             &listed_pixels<T>, &listed_evenly<T>};
template <class T, class Place>
constexpr MaxKernels<T, Place> kMax{&start<T, Place>, &start_with_two<T, Place>, &update<T, Place>,
                                    &locate<Place>,   &combine<T, Place>,        &combine_pixels<T, Place>};

constexpr WindowKernels kWindowKernels = {kSum<float>,
                                          kSum<double>,
                                          kMax<float, int32_t>,
                                          kMax<double, int64_t>,
                                          kMax<int64_t, int64_t>,
                                          {&max_windows<float>},
                                          {&max_windows<double>},
                                          {&max_windows<int64_t>}};

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

}  // namespace tenon::cpu
#endif
