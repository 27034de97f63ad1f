// LU, triangular solution, Cholesky and QR of small matrices, one in each lane.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/linalg/factor_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include <algorithm>
#include <limits>

#include "backends/cpu/linalg/factor_kernels.h"
#include "backends/cpu/linalg/lane_matrix-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {

template <class N>
HWY_INLINE void exchange_rows(const LaneMatrix<N>& a, int64_t columns, int64_t i, int64_t j,
                              typename N::Mask mask) {
  for (int64_t c = 0; c < columns; ++c) {
    const N x = a(i, c), y = a(j, c);
    a.set(i, c, select(mask, y, x));
    a.set(j, c, select(mask, x, y));
  }
}

/// row(r) -= factor * row(k), from column `begin` on.
template <class N>
HWY_INLINE void eliminate(const LaneMatrix<N>& a, N factor, int64_t r, int64_t k, int64_t begin,
                          int64_t end) {
  for (int64_t c = begin; c < end; ++c) a.set(r, c, a(r, c) - factor * a(k, c));
}

template <class N>
void lu(const LaneCall<typename N::T>& s) {
  using R = typename N::Part;
  const LaneMatrix<N> a(s.a, s.n), b(s.b, s.k);
  const LaneMatrix<R> pivots(s.extra, 1);
  R info = R::of(0);
  N product = N::of(1);
  for (int64_t k = 0; k < std::min(s.m, s.n); ++k) {
    R best = abs1(a(k, k)), place = R::of(static_cast<double>(k));
    const R here = place;
    for (int64_t r = k + 1; s.pivot && r < s.m; ++r) {
      const R size = abs1(a(r, k));
      const auto larger = best < size;
      best = select(larger, size, best);
      place = select(larger, R::of(static_cast<double>(r)), place);
    }
    for (int64_t r = k + 1; s.pivot && r < s.m; ++r) {
      const auto hit = place == R::of(static_cast<double>(r));
      if (hn::AllFalse(typename N::Tag(), hit)) continue;
      exchange_rows(a, s.n, k, r, hit);
      exchange_rows(b, s.k, k, r, hit);
    }
    pivots.set(k, 0, place + R::of(1));
    const N pivot = a(k, k);
    product = product * pivot;
    product = select(place == here, product, N::of(0) - product);
    const auto none = is_zero(pivot);
    const auto first = hn::And(none, info == R::of(0));
    info = select(first, R::of(static_cast<double>(k + 1)), info);
    const N by = divisor(select(none, N::of(1), pivot));
    for (int64_t r = k + 1; r < s.m; ++r) {
      const N factor = divide(a(r, k), by);
      a.set(r, k, factor);
      eliminate(a, factor, r, k, k + 1, s.n);
      eliminate(b, factor, r, k, 0, s.k);
    }
  }
  info.store(s.info, 0);
  if (s.result) LaneMatrix<N>(s.result, 1).set(0, 0, product);
}

template <class N>
void triangle(const LaneCall<typename N::T>& s) {
  const LaneMatrix<N> a(s.a, s.n), b(s.b, s.k);
  for (int64_t step = 0; step < s.n; ++step) {
    const int64_t i = s.upper ? s.n - 1 - step : step;
    const int64_t begin = s.upper ? i + 1 : 0, end = s.upper ? s.n : i;
    const N by = divisor(a(i, i));
    for (int64_t c = 0; c < s.k; ++c) {
      N x = b(i, c);
      for (int64_t j = begin; j < end; ++j) x = x - a(i, j) * b(j, c);
      b.set(i, c, s.unit ? x : divide(x, by));
    }
  }
}

template <class N>
void cholesky(const LaneCall<typename N::T>& s) {
  using R = typename N::Part;
  const LaneMatrix<N> a(s.a, s.n);
  R info = R::of(0);
  for (int64_t j = 0; j < s.n; ++j) {
    R d = real(a(j, j));
    for (int64_t k = 0; k < j; ++k) d = d - square(a(j, k));
    const auto positive = R::of(0) < d;
    const auto first = hn::AndNot(positive, info == R::of(0));
    info = select(first, R::of(static_cast<double>(j + 1)), info);
    const R root = sqrt(d);
    a.set(j, j, N::of_real(root));
    const N by = divisor(N::of_real(root));
    for (int64_t i = j + 1; i < s.n; ++i) {
      N x = a(i, j);
      for (int64_t k = 0; k < j; ++k) x = x - a(i, k) * conj(a(j, k));
      a.set(i, j, divide(x, by));
      a.set(j, i, N::of(0));
    }
  }
  info.store(s.info, 0);
}

/// Column k of `a` from row k on becomes beta and a Householder vector; returns its tau (LAPACK's larfg).
template <class N>
HWY_INLINE N reflect(const LaneMatrix<N>& a, int64_t m, int64_t k) {
  using R = typename N::Part;
  using T = typename N::T;
  const N alpha = a(k, k);
  R size = abs1(alpha), below = R::of(0);
  for (int64_t r = k + 1; r < m; ++r) below = largest(below, abs1(a(r, k)));
  const auto done = hn::And(below == R::of(0), imag(alpha) == R::of(0));
  size = largest(largest(size, below), R::of(std::numeric_limits<T>::min()));
  const R scale = R::of(1) / size;
  R sum = square(scale * alpha);
  for (int64_t r = k + 1; r < m; ++r) sum = sum + square(scale * a(r, k));
  const R length = size * sqrt(sum), beta = -with_sign(length, real(alpha));
  const N by = divisor(alpha - N::of_real(beta));
  for (int64_t r = k + 1; r < m; ++r) a.set(r, k, select(done, a(r, k), divide(a(r, k), by)));
  a.set(k, k, select(done, alpha, N::of_real(beta)));
  const N tau = divide(N::of_real(beta) - alpha, divisor(N::of_real(beta)));
  return select(done, N::of(0), tau);
}

/// Column c of b -= factor * v (v^H b), where v is column k of a from row k on, with a 1 in its place.
template <class N>
HWY_INLINE void apply(const LaneMatrix<N>& a, int64_t m, int64_t k, N factor, const LaneMatrix<N>& b,
                      int64_t c) {
  N w = b(k, c);
  for (int64_t r = k + 1; r < m; ++r) w = w + conj(a(r, k)) * b(r, c);
  w = factor * w;
  b.set(k, c, b(k, c) - w);
  for (int64_t r = k + 1; r < m; ++r) b.set(r, c, b(r, c) - a(r, k) * w);
}

template <class N>
void qr(const LaneCall<typename N::T>& s) {
  const LaneMatrix<N> a(s.a, s.n), tau(s.extra, 1);
  for (int64_t k = 0; k < std::min(s.m, s.n); ++k) {
    const N t = reflect(a, s.m, k);
    tau.set(k, 0, t);
    for (int64_t c = k + 1; c < s.n; ++c) apply(a, s.m, k, conj(t), a, c);
  }
}

template <class N>
void householder(const LaneCall<typename N::T>& s) {
  const LaneMatrix<N> a(s.a, s.n), tau(s.extra, 1), q(s.b, s.k);
  for (int64_t r = 0; r < s.m; ++r) {
    for (int64_t c = 0; c < s.k; ++c) q.set(r, c, N::of(r == c));
  }
  for (int64_t k = std::min({s.m, s.n, s.k}) - 1; k >= 0; --k) {
    for (int64_t c = k; c < s.k; ++c) apply(a, s.m, k, tau(k, 0), q, c);
  }
}

template <class N>
constexpr FactorKernels<typename N::T> kOf{&lu<N>, &triangle<N>, &cholesky<N>, &qr<N>, &householder<N>};

constexpr AllFactorKernels kAll{kOf<RealLanes<float>>, kOf<ComplexLanes<float>>, kOf<RealLanes<double>>,
                                kOf<ComplexLanes<double>>, hn::MaxLanes(hn::ScalableTag<float>())};

}  // namespace

constexpr const AllFactorKernels* kFactorTable = &kAll;

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

const AllFactorKernels& factor_kernels() {
  static constexpr const AllFactorKernels* kTables[kNumCpuTargets] = TENON_CPU_TARGET_TABLES(kFactorTable);
  return *kTables[static_cast<size_t>(cpu_target())];
}

}  // namespace tenon::cpu
#endif
