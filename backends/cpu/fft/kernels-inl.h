// The table of loops of one type (FFT_TYPE) and target: passes, and what goes before and after them. Included
// by kernels_f32.cc and kernels_f64.cc on every pass of foreach_target.
#include "backends/cpu/fft/passes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {

/// Calls f(d, i) for vectors from `begin` to `end`, then for single elements; with kOverlap, for a last
/// vector that overlaps the one before it.
template <class T, bool kOverlap = false, class F>
HWY_INLINE void along(int64_t begin, int64_t end, F f) {
  const hn::ScalableTag<T> d;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = begin;
  for (; i + n <= end; i += n) f(d, i);
  if (kOverlap && i < end && end - begin >= n) {
    f(d, end - n);
    return;
  }
  for (; i < end; ++i) f(hn::CappedTag<T, 1>(), i);
}
/// Calls f(d, l) for the vectors of one row of a panel.
template <class T, class F>
HWY_INLINE void across(F f) {
  const hn::ScalableTag<T> d;
  for (int64_t l = 0; l < kFftLanes<T>; l += static_cast<int64_t>(hn::Lanes(d))) f(d, l);
}
template <class D, class T>
HWY_INLINE auto parts(D d, const T* re, const T* im, int64_t i) {
  return Parts<hn::Vec<D>>{hn::LoadU(d, re + i), hn::LoadU(d, im + i)};
}
template <class D, class T>
HWY_INLINE auto both(D d, T re, T im) {
  return Parts<hn::Vec<D>>{hn::Set(d, re), hn::Set(d, im)};
}
template <class D, class V, class T>
HWY_INLINE void put(D d, Parts<V> x, FftPlanes<T> to, int64_t i) {
  hn::StoreU(x.re, d, to.re + i);
  hn::StoreU(x.im, d, to.im + i);
}

template <class T>
void split(const T* from, int64_t step, FftPlanes<T> to, int64_t to_step, int64_t n, int64_t rows) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rows; ++r, from += step, to = {to.re + to_step, to.im + to_step}) {
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      Parts<hn::Vec<decltype(d)>> x;
      hn::LoadInterleaved2(d, from + 2 * i, x.re, x.im);
      put(d, x, to, i);
    }
    for (; i < n; ++i) {
      to.re[i] = from[2 * i];
      to.im[i] = from[2 * i + 1];
    }
  }
}

template <class T>
void join(FftPlanes<const T> from, int64_t from_step, T* to, int64_t step, int64_t n, int64_t rows, T real,
          T imag) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto a = hn::Set(d, real), b = hn::Set(d, imag);
  for (int64_t r = 0; r < rows; ++r, to += step, from = {from.re + from_step, from.im + from_step}) {
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
      hn::StoreInterleaved2(hn::Mul(hn::LoadU(d, from.re + i), a), hn::Mul(hn::LoadU(d, from.im + i), b), d,
                            to + 2 * i);
    for (; i < n; ++i) {
      to[2 * i] = from.re[i] * real;
      to[2 * i + 1] = from.im[i] * imag;
    }
  }
}

template <class T>
void multiply(FftPlanes<const T> from, const T* table, int64_t step, FftPlanes<T> to, int64_t n,
              int64_t lanes) {
  if (lanes == 1) {
    along<T>(0, n, [&](auto d, int64_t i) HWY_ATTR {
      put(d, times(parts(d, from.re, from.im, i), parts(d, table, table + step, i)), to, i);
    });
    return;
  }
  for (int64_t k = 0; k < n; ++k) {
    across<T>([&](auto d, int64_t l) HWY_ATTR {
      const int64_t i = k * lanes + l;
      put(d, times(parts(d, from.re, from.im, i), both(d, table[k], table[step + k])), to, i);
    });
  }
}

template <class T>
void multiply_panel(FftPlanes<const T> from, const T* a, const T* b, FftPlanes<T> to) {
  across<T>([&](auto d, int64_t i) HWY_ATTR {
    const auto w = times(parts(d, a, a + kFftLanes<T>, i), both(d, b[0], b[1]));
    put(d, times(parts(d, from.re, from.im, i), w), to, i);
  });
}

template <class T>
void transpose(const T* from, T* to) {
  constexpr int64_t kSide = kFftLanes<T>;
  for (int64_t k = 0; k < kSide; k += static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>())))
    transposed<T, kSide>(from + k * kSide, to + k, kSide);
}

/// The results of two places that mirror each other.
template <class V>
struct Mirrored {
  Parts<V> here, there;
};

// X[k] = E[k] + w[k] O[k], where Z = E + i O and E, O are the transforms of even and odd elements; X[n - k]
// is the conjugate of E[k] - w[k] O[k].
struct Twist {
  template <class D, class V>
  static HWY_INLINE Mirrored<V> run(D d, Parts<V> z, Parts<V> mirrored, Parts<V> w) {
    const V half = hn::Set(d, hn::TFromD<D>(0.5));
    const Parts<V> even = {hn::Mul(hn::Add(z.re, mirrored.re), half),
                           hn::Mul(hn::Sub(z.im, mirrored.im), half)};
    const Parts<V> rest = {hn::Mul(hn::Add(z.im, mirrored.im), half),
                           hn::Mul(hn::Sub(mirrored.re, z.re), half)};
    const Parts<V> odd = times(rest, w);
    return {plus(even, odd), {hn::Sub(even.re, odd.re), hn::Sub(odd.im, even.im)}};
  }
};
// 2 Z[k] = E + i O, where E = X[k] + X'[n - k], O = (X[k] - X'[n - k]) / w[k], and ' conjugates; 2 Z[n - k] =
// E' + i O'.
struct Untwist {
  template <class D, class V>
  static HWY_INLINE Mirrored<V> run(D, Parts<V> x, Parts<V> mirrored, Parts<V> w) {
    const Parts<V> even = {hn::Add(x.re, mirrored.re), hn::Sub(x.im, mirrored.im)};
    const Parts<V> rest = {hn::Sub(x.re, mirrored.re), hn::Add(x.im, mirrored.im)};
    const Parts<V> odd = times(rest, {w.re, hn::Neg(w.im)});
    return {{hn::Sub(even.re, odd.im), hn::Add(even.im, odd.re)},
            {hn::Add(even.re, odd.im), hn::Sub(odd.re, even.im)}};
  }
};

template <class D, class V>
HWY_INLINE Parts<V> reversed(D d, Parts<V> x) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return x;
  } else {
    return {hn::Reverse(d, x.re), hn::Reverse(d, x.im)};
  }
}

/// Places k from 1 to n / 2, and n - k with each.
template <class Op, class T>
HWY_INLINE void mirrored(FftPlanes<const T> from, const T* table, FftPlanes<T> to, int64_t n, int64_t lanes) {
  const T* imaginary = table + n + 1;
  if (lanes == 1) {
    along<T, true>(1, n / 2 + 1, [&](auto d, int64_t k) HWY_ATTR {
      const int64_t back = n - k - static_cast<int64_t>(hn::Lanes(d)) + 1;
      const auto y = Op::run(d, parts(d, from.re, from.im, k), reversed(d, parts(d, from.re, from.im, back)),
                             parts(d, table, imaginary, k));
      put(d, y.here, to, k);
      put(d, reversed(d, y.there), to, back);
    });
    return;
  }
  for (int64_t k = 1; k <= n / 2; ++k) {
    across<T>([&](auto d, int64_t l) HWY_ATTR {
      const auto y =
          Op::run(d, parts(d, from.re, from.im, k * lanes + l),
                  parts(d, from.re, from.im, (n - k) * lanes + l), both(d, table[k], imaginary[k]));
      put(d, y.here, to, k * lanes + l);
      put(d, y.there, to, (n - k) * lanes + l);
    });
  }
}

template <class T>
void twist(FftPlanes<const T> from, const T* table, FftPlanes<T> to, int64_t n, int64_t lanes) {
  mirrored<Twist>(from, table, to, n, lanes);
  for (int64_t l = 0; l < lanes; ++l) {
    const T re = from.re[l], im = from.im[l];
    to.re[l] = re + im;
    to.re[n * lanes + l] = re - im;
    to.im[l] = to.im[n * lanes + l] = T(0);
  }
}

template <class T>
void untwist(FftPlanes<const T> from, const T* table, FftPlanes<T> to, int64_t n, int64_t lanes) {
  mirrored<Untwist>(from, table, to, n, lanes);
  for (int64_t l = 0; l < lanes; ++l) {
    const T first = from.re[l], last = from.re[n * lanes + l];
    to.re[l] = first + last;
    to.im[l] = first - last;
  }
}

constexpr FftKernels<FFT_TYPE> kFftKernels{
    .pass = &run_pass<FFT_TYPE>,
    .split = &split<FFT_TYPE>,
    .join = &join<FFT_TYPE>,
    .multiply = &multiply<FFT_TYPE>,
    .multiply_panel = &multiply_panel<FFT_TYPE>,
    .transpose = &transpose<FFT_TYPE>,
    .twist = &twist<FFT_TYPE>,
    .untwist = &untwist<FFT_TYPE>,
};

}  // namespace

constexpr const FftKernels<FFT_TYPE>* kTable = &kFftKernels;

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

template <>
const FftKernels<FFT_TYPE>& fft_kernels() {
  static constexpr const FftKernels<FFT_TYPE>* kTables[kNumCpuTargets] = TENON_CPU_TARGET_TABLES(kTable);
  static const FftKernels<FFT_TYPE>& kernels = *kTables[static_cast<size_t>(cpu_target())];
  return kernels;
}

}  // namespace tenon::cpu
#endif
