// Triangular solution of rows, and LU, QR and Cholesky of panels, whose lanes are columns.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/linalg/panel_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/linalg/numbers-inl.h"
#include "backends/cpu/linalg/panel_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {

/// A vector's worth of numbers, and one number as a vector.
template <class N>
HWY_INLINE int64_t lanes_of() {
  return static_cast<int64_t>(hn::Lanes(typename N::Tag()));
}

template <class N>
void solve(const TriangleSolve<typename N::T>& s) {
  const auto factor = [&](int64_t i, int64_t j) HWY_ATTR {
    const N x = N::broadcast(s.triangle + i * s.row + j * s.column, s.triangle_part);
    return s.conj ? conj(x) : x;
  };
  for (int64_t step = 0; step < s.n; ++step) {
    const int64_t i = s.upper ? s.n - 1 - step : step;
    const int64_t begin = s.upper ? i + 1 : 0, end = s.upper ? s.n : i;
    const N by = divisor(factor(i, i));
    for (int64_t c = 0; c < s.columns; c += lanes_of<N>()) {
      N x = N::load(s.b + i * s.b_row + c, s.b_part);
      for (int64_t j = begin; j < end; ++j) x = x - factor(i, j) * N::load(s.b + j * s.b_row + c, s.b_part);
      (s.unit ? x : divide(x, by)).store(s.b + i * s.b_row + c, s.b_part);
    }
  }
}

/// row(r) -= factor * row(k)
template <class N>
HWY_INLINE void subtract_row(typename N::T* row, const typename N::T* from, ptrdiff_t part, N factor) {
  for (int64_t c = 0; c < kPanel; c += lanes_of<N>())
    (N::load(row + c, part) - factor * N::load(from + c, part)).store(row + c, part);
}

/// Parts of one number.
template <class N>
HWY_INLINE typename N::T abs1_of(const typename N::T* p, ptrdiff_t part) {
  return N::kParts == 1 ? std::abs(*p) : std::abs(*p) + std::abs(p[part]);
}

template <class N>
void lu(Panel<typename N::T>& s) {
  using T = typename N::T;
  for (int64_t k = 0; k < std::min(s.m, s.width); ++k) {
    int64_t place = k;
    T best = abs1_of<N>(s.p + k * kPanel + k, s.part);
    for (int64_t r = k + 1; s.pivot && r < s.m; ++r) {
      const T size = abs1_of<N>(s.p + r * kPanel + k, s.part);
      if (best < size) best = size, place = r;
    }
    s.pivots[k] = static_cast<int32_t>(place);
    T *const from = s.p + k * kPanel, *const other = s.p + place * kPanel;
    if (place != k) {
      for (int64_t part = 0; part < N::kParts; ++part)
        std::swap_ranges(from + part * s.part, from + part * s.part + kPanel, other + part * s.part);
    }
    if (best == T(0)) {
      if (s.info == 0) s.info = k + 1;
      continue;
    }
    // Lanes up to k keep their elements: the row that is subtracted has zeros there.
    alignas(64) T row[2 * kPanel];
    for (int64_t part = 0; part < N::kParts; ++part) {
      for (int64_t c = 0; c < kPanel; ++c) row[part * kPanel + c] = c > k ? from[part * s.part + c] : T(0);
    }
    const N by = divisor(N::broadcast(from + k, s.part));
    for (int64_t r = k + 1; r < s.m; ++r) {
      T* const to = s.p + r * kPanel;
      const N factor = divide(N::broadcast(to + k, s.part), by);
      for (int64_t c = 0; c < kPanel; c += lanes_of<N>())
        (N::load(to + c, s.part) - factor * N::load(row + c, kPanel)).store(to + c, s.part);
      alignas(64) T all[2 * HWY_MAX_BYTES / sizeof(T)];
      factor.store(all, HWY_MAX_BYTES / sizeof(T));
      to[k] = all[0];
      if (N::kParts == 2) to[k + s.part] = all[HWY_MAX_BYTES / sizeof(T)];
    }
  }
}

/// A number of the scalar unit, with the parts' arithmetic of N.
template <class N>
using ScalarOf = std::conditional_t<N::kParts == 1, Real<hn::CappedTag<typename N::T, 1>>,
                                    Complex<hn::CappedTag<typename N::T, 1>>>;

template <class T, class D>
HWY_INLINE T value_of(Real<D> x) {
  return hn::GetLane(x.v);
}

/// The sum of squares of column k from row `begin` on, of elements times `scale`, in four interleaved sums.
template <class N>
typename N::T sum_of_squares(const Panel<typename N::T>& s, int64_t k, int64_t begin, typename N::T scale) {
  using T = typename N::T;
  T sums[4] = {};
  for (int64_t r = begin; r < s.m; ++r) {
    for (int64_t part = 0; part < N::kParts; ++part) {
      const T x = scale * s.p[r * kPanel + k + part * s.part];
      sums[r & 3] += x * x;
    }
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// As reflect in factor_kernels.cc. Returns tau as a vector.
template <class N>
void reflect(const Panel<typename N::T>& s, int64_t k) {
  using T = typename N::T;
  using S = ScalarOf<N>;
  T* const diagonal = s.p + k * kPanel + k;
  T size = abs1_of<N>(diagonal, s.part), below = 0;
  for (int64_t r = k + 1; r < s.m; ++r) {
    const T x = abs1_of<N>(s.p + r * kPanel + k, s.part);
    below = below < x ? x : below;
  }
  const S alpha = S::load(diagonal, s.part);
  if (below == T(0) && value_of<T>(imag(alpha)) == T(0)) {
    S::of(0).store(s.tau + k, s.tau_part);
    return;
  }
  size = std::max({size, below, std::numeric_limits<T>::min()});
  const T length = size * std::sqrt(sum_of_squares<N>(s, k, k, T(1) / size));
  const T beta = -std::copysign(length, value_of<T>(real(alpha)));
  const S result = S::of(beta), by = divisor(alpha - result);
  for (int64_t r = k + 1; r < s.m; ++r) {
    T* const x = s.p + r * kPanel + k;
    divide(S::load(x, s.part), by).store(x, s.part);
  }
  result.store(diagonal, s.part);
  divide(result - alpha, divisor(result)).store(s.tau + k, s.tau_part);
}

/// The columns after k -= conj(tau) v (v^H columns).
template <class N>
void apply(const Panel<typename N::T>& s, int64_t k) {
  using T = typename N::T;
  const N tau = conj(N::broadcast(s.tau + k, s.tau_part));
  alignas(64) T w[2 * kPanel];
  for (int64_t c = 0; c < kPanel; c += lanes_of<N>()) {
    N sums[4] = {N::load(s.p + k * kPanel + c, s.part), N::of(0), N::of(0), N::of(0)};
    for (int64_t r = k + 1; r < s.m; ++r) {
      const T* const row = s.p + r * kPanel;
      sums[r & 3] = sums[r & 3] + conj(N::broadcast(row + k, s.part)) * N::load(row + c, s.part);
    }
    (tau * ((sums[0] + sums[1]) + (sums[2] + sums[3]))).store(w + c, kPanel);
  }
  for (int64_t part = 0; part < N::kParts; ++part)
    std::fill(w + part * kPanel, w + part * kPanel + k + 1, T(0));
  for (int64_t r = k; r < s.m; ++r) {
    T* const row = s.p + r * kPanel;
    const N v = r == k ? N::of(1) : N::broadcast(row + k, s.part);
    for (int64_t c = 0; c < kPanel; c += lanes_of<N>())
      (N::load(row + c, s.part) - v * N::load(w + c, kPanel)).store(row + c, s.part);
  }
}

template <class N>
void qr(Panel<typename N::T>& s) {
  for (int64_t k = 0; k < std::min(s.m, s.width); ++k) {
    reflect<N>(s, k);
    apply<N>(s, k);
  }
}

template <class N>
void cholesky(Panel<typename N::T>& s) {
  using T = typename N::T;
  for (int64_t k = 0; k < s.width; ++k) {
    T* const row = s.p + k * kPanel;
    if (!(row[k] > T(0)) && s.info == 0) s.info = k + 1;
    const T root = std::sqrt(row[k]);
    const N by = divisor(N::of(root));
    for (int64_t c = 0; c < kPanel; c += lanes_of<N>())
      divide(N::load(row + c, s.part), by).store(row + c, s.part);
    row[k] = root;
    if (N::kParts == 2) row[k + s.part] = T(0);
    for (int64_t r = k + 1; r < s.width; ++r)
      subtract_row<N>(s.p + r * kPanel, row, s.part, conj(N::broadcast(row + r, s.part)));
  }
}

template <class T>
constexpr PanelKernels<T> kOf{{&solve<Real<hn::ScalableTag<T>>>, &lu<Real<hn::ScalableTag<T>>>,
                               &qr<Real<hn::ScalableTag<T>>>, &cholesky<Real<hn::ScalableTag<T>>>},
                              {&solve<Complex<hn::ScalableTag<T>>>, &lu<Complex<hn::ScalableTag<T>>>,
                               &qr<Complex<hn::ScalableTag<T>>>, &cholesky<Complex<hn::ScalableTag<T>>>}};

}  // namespace

constexpr const PanelKernels<float>* kPanelsF32 = &kOf<float>;
constexpr const PanelKernels<double>* kPanelsF64 = &kOf<double>;

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

template <>
const PanelKernels<float>& panel_kernels() {
  static constexpr const PanelKernels<float>* kTables[kNumCpuTargets] = TENON_CPU_TARGET_TABLES(kPanelsF32);
  return *kTables[static_cast<size_t>(cpu_target())];
}

template <>
const PanelKernels<double>& panel_kernels() {
  static constexpr const PanelKernels<double>* kTables[kNumCpuTargets] = TENON_CPU_TARGET_TABLES(kPanelsF64);
  return *kTables[static_cast<size_t>(cpu_target())];
}

}  // namespace tenon::cpu
#endif
