// The loops of sampling at the places of a grid, compiled once per instruction set.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/window/grid_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include "backends/cpu/window/grid_kernels.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::CappedTag<T, kGridTile>;
template <class T>
using Offset = typename GridKernels<T>::Offset;

/// The elements along an axis that a place is made of: offsets and weights, and which are in the image.
template <class D, size_t kTaps>
struct Taps {
  using T = hn::TFromD<D>;
  hn::Vec<hn::RebindToSigned<D>> offset[kTaps];
  hn::Mask<D> inside[kTaps];
  hn::Vec<D> weight[kTaps];
  hn::Vec<D> slope;  // of the place by the coordinate
};

template <class D, class V = hn::Vec<D>>
HWY_INLINE V clip(D d, V x, V last) {
  return hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), hn::IfThenElse(hn::Lt(x, last), x, last));
}

/// The cubic convolution of Keys (1981) with a = -0.75, at a distance of up to 1, or from 1 to 2.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V cubic(D d, V x, bool far) {
  constexpr double a = -0.75;
  const auto c = [d](double value) HWY_ATTR { return hn::Set(d, static_cast<hn::TFromD<D>>(value)); };
  const auto slope = far ? hn::Add(hn::Mul(hn::Sub(hn::Mul(c(a), x), c(5 * a)), x), c(8 * a))
                         : hn::Mul(hn::Sub(hn::Mul(c(a + 2), x), c(a + 3)), x);
  return hn::Sub(hn::Mul(slope, x), c(far ? 4 * a : -1));
}

template <size_t kTaps, class D, class T = hn::TFromD<D>>
HWY_INLINE Taps<D, kTaps> taps_of(D d, hn::Vec<D> coordinate, const GridExtent<T>& a, bool clips) {
  const hn::RebindToSigned<D> di;
  const auto zero = hn::Zero(d), one = hn::Set(d, T(1)), last = hn::Set(d, a.last);
  auto x = hn::Sub(hn::Mul(hn::Add(coordinate, one), hn::Set(d, a.half)), hn::Set(d, a.shift));
  const auto within = hn::And(hn::Gt(x, zero), hn::Lt(x, last));
  if (clips && kTaps < 4) x = clip(d, x, last);
  const auto below = kTaps == 1 ? hn::Round(x) : hn::Floor(x), part = hn::Sub(x, below);
  const auto rest = hn::Sub(one, part);
  Taps<D, kTaps> taps;
  taps.slope = hn::Set(d, a.half);
  if (clips) taps.slope = hn::IfThenElseZero(within, taps.slope);
  taps.weight[0] = kTaps == 1 ? one : rest;
  if constexpr (kTaps == 2) taps.weight[1] = part;
  if constexpr (kTaps == 4) {
    taps.weight[0] = cubic(d, hn::Add(part, one), true);
    taps.weight[1] = cubic(d, part, false);
    taps.weight[2] = cubic(d, rest, false);
    taps.weight[3] = cubic(d, hn::Sub(hn::Set(d, T(2)), part), true);
  }
  for (size_t i = 0; i < kTaps; ++i) {
    auto place = hn::Add(below, hn::Set(d, static_cast<T>(i) - (kTaps == 4 ? T(1) : T(0))));
    if (clips && kTaps == 4) place = clip(d, place, last);
    taps.inside[i] = hn::And(hn::Ge(place, zero), hn::Le(place, last));
    const auto whole = hn::ConvertTo(di, hn::IfThenElseZero(taps.inside[i], place));
    taps.offset[i] = hn::Mul(whole, hn::Set(di, static_cast<hn::TFromD<decltype(di)>>(a.stride)));
  }
  return taps;
}

/// By the coordinate, of a weight of two neighbours: the first falls and the second rises.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V slope_of(D d, V slope, size_t i) {
  return i == 0 ? hn::Neg(slope) : slope;
}

template <class T, size_t kTaps>
void read_plane(const T* grid, const GridExtent<T>& x, const GridExtent<T>& y, bool clips, Offset<T>* offsets,
                T* weights, T* slopes) {
  const Tag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto outside = hn::Set(di, GridKernels<T>::kOutside);
  for (size_t p = 0; p < kGridTile; p += hn::Lanes(d)) {
    hn::Vec<decltype(d)> first, second;
    hn::LoadInterleaved2(d, grid + 2 * p, first, second);
    const auto columns = taps_of<kTaps>(d, first, x, clips), rows = taps_of<kTaps>(d, second, y, clips);
    for (size_t j = 0; j < kTaps; ++j) {
      for (size_t i = 0; i < kTaps; ++i) {
        const size_t at = (j * kTaps + i) * kGridTile + p;
        const auto inside = hn::RebindMask(di, hn::And(rows.inside[j], columns.inside[i]));
        const auto offset = hn::Add(rows.offset[j], columns.offset[i]);
        hn::StoreU(hn::IfThenElse(inside, offset, outside), di, offsets + at);
        hn::StoreU(hn::Mul(rows.weight[j], columns.weight[i]), d, weights + at);
        if (kTaps != 2 || !slopes) continue;
        hn::StoreU(hn::Mul(rows.weight[j], slope_of(d, columns.slope, i)), d, slopes + at);
        hn::StoreU(hn::Mul(slope_of(d, rows.slope, j), columns.weight[i]), d, slopes + 4 * kGridTile + at);
      }
    }
  }
}

/// Elements of a channel, and 0 for those outside.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> elements_at(D d, const T* channel, const Offset<T>* offsets) {
  const hn::RebindToSigned<D> di;
  const auto offset = hn::LoadU(di, offsets);
  const auto inside = hn::Ne(offset, hn::Set(di, GridKernels<T>::kOutside));
  const auto x = hn::GatherIndex(d, channel, hn::IfThenElseZero(inside, offset));
  return hn::IfThenElseZero(hn::RebindMask(d, inside), x);
}

template <class T>
void sum(T* out, const T* channel, const Offset<T>* offsets, const T* weights, size_t elements) {
  const Tag<T> d;
  for (size_t p = 0; p < kGridTile; p += hn::Lanes(d)) {
    auto total = hn::Mul(elements_at(d, channel, offsets + p), hn::LoadU(d, weights + p));
    for (size_t i = kGridTile; i < elements * kGridTile; i += kGridTile) {
      const auto x = elements_at(d, channel, offsets + i + p);
      total = hn::Add(total, hn::Mul(x, hn::LoadU(d, weights + i + p)));
    }
    hn::StoreU(total, d, out + p);
  }
}

template <class T>
void share(T* shares, const T* channel, const T* grad, const Offset<T>* offsets, size_t elements) {
  const Tag<T> d;
  for (size_t p = 0; p < kGridTile; p += hn::Lanes(d)) {
    const auto by = hn::LoadU(d, grad + p);
    for (size_t i = p; i < elements * kGridTile; i += kGridTile) {
      const auto product = hn::Mul(elements_at(d, channel, offsets + i), by);
      hn::StoreU(hn::Add(hn::LoadU(d, shares + i), product), d, shares + i);
    }
  }
}

constexpr AllGridKernels kKernels = {
    {{&read_plane<float, 2>, &read_plane<float, 1>, &read_plane<float, 4>}, &sum<float>, &share<float>},
    {{}, &sum<double>, &share<double>}};

}  // namespace

constexpr const AllGridKernels* kGridTable = &kKernels;

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

const AllGridKernels& grid_kernels() {
  static constexpr const AllGridKernels* kTables[kNumCpuTargets] = TENON_CPU_TARGET_TABLES(kGridTable);
  static const AllGridKernels& kernels = *kTables[static_cast<size_t>(cpu_target())];
  return kernels;
}

}  // namespace tenon::cpu
#endif
