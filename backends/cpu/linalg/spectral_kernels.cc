// Eigenvalues of Hermitian matrices and singular values by Jacobi's rotations, of small matrices, one in each
// lane. A lane that needs no rotation keeps its elements, so it does not depend on its neighbours.
// Sources: Golub and Van Loan, Matrix Computations, 8.5; Demmel and Veselic (1992).
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/linalg/spectral_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include <cmath>
#include <limits>

#include "backends/cpu/linalg/lane_matrix-inl.h"
#include "backends/cpu/linalg/spectral_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {

constexpr int kMaxSweeps = 40;

/// The rotation that makes an element g of a Hermitian 2 x 2 matrix 0: (x, y) becomes (c x - conj(s) y, s x +
/// c y).
template <class N>
struct Rotation {
  typename N::Part c, shift;
  N s;
  typename N::Mask on;

  /// `apart`: the second diagonal element less the first one.
  HWY_INLINE Rotation(N g, typename N::Part size, typename N::Part apart, typename N::Mask wanted)
      : on(wanted) {
    using R = typename N::Part;
    const R one = R::of(1), by = select(on, size, one);
    const R z = apart / (by + by);
    const R t = with_sign(one, z) / (with_sign(z, one) + sqrt(z * z + one));
    c = one / sqrt(t * t + one);
    shift = select(on, t * size, R::of(0));
    s = ((t * c) / by) * g;
  }
  HWY_INLINE void turn(N& x, N& y) const {
    const N a = c * x - conj(s) * y, b = s * x + c * y;
    x = select(on, a, x);
    y = select(on, b, y);
  }
};

template <class N>
HWY_INLINE void set_identity(const LaneMatrix<N>& v, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) v.set(i, j, N::of(i == j));
  }
}

template <class N>
HWY_INLINE void turn_rows(const LaneMatrix<N>& v, int64_t n, int64_t p, int64_t q, const Rotation<N>& by) {
  for (int64_t k = 0; k < n; ++k) {
    N x = v(p, k), y = v(q, k);
    by.turn(x, y);
    v.set(p, k, x);
    v.set(q, k, y);
  }
}

/// A power of 2 for each lane, by which its elements are divided so that squares stay in range, and its
/// inverse.
template <class N>
HWY_INLINE typename N::Part normalize(const LaneMatrix<N>& a, int64_t rows, int64_t columns, bool triangle) {
  using R = typename N::Part;
  using D = typename N::Tag;
  R size = R::of(0);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = triangle ? i : 0; j < columns; ++j) size = largest(size, abs1(a(i, j)));
  }
  const R infinity = R::of(std::numeric_limits<double>::infinity());
  const R power{hn::And(size.v, infinity.v)};
  const R usable = select(hn::And(R::of(0) < power, power < infinity), power, R::of(1));
  const R inverse = R::of(1) / usable;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = triangle ? i : 0; j < columns; ++j) a.set(i, j, inverse * a(i, j));
  }
  (void)D();
  return usable;
}

/// One step of eigh: makes a(p, q) 0. Returns the lanes that it turned.
template <class N>
HWY_INLINE typename N::Mask clear(const LaneMatrix<N>& a, const LaneMatrix<N>& v, int64_t n, int64_t p,
                                  int64_t q, typename N::Part least, bool vectors) {
  using R = typename N::Part;
  const N g = a(p, q);
  const R size = size_of(g);
  const auto on = least < size;
  if (hn::AllFalse(typename N::Tag(), on)) return on;
  const R dp = real(a(p, p)), dq = real(a(q, q));
  const Rotation<N> turn(g, size, dq - dp, on);
  a.set(p, p, N::of_real(dp - turn.shift));
  a.set(q, q, N::of_real(dq + turn.shift));
  a.set(p, q, select(on, N::of(0), g));
  for (int64_t k = 0; k < p; ++k) {
    N x = a(k, p), y = a(k, q);
    turn.turn(x, y);
    a.set(k, p, x);
    a.set(k, q, y);
  }
  for (int64_t k = p + 1; k < q; ++k) {
    N x = conj(a(p, k)), y = a(k, q);
    turn.turn(x, y);
    a.set(p, k, conj(x));
    a.set(k, q, y);
  }
  for (int64_t k = q + 1; k < n; ++k) {
    N x = conj(a(p, k)), y = conj(a(q, k));
    turn.turn(x, y);
    a.set(p, k, conj(x));
    a.set(q, k, conj(y));
  }
  if (vectors) turn_rows(v, n, p, q, turn);
  return on;
}

template <class N>
void eigh(const LaneCall<typename N::T>& s) {
  using R = typename N::Part;
  using T = typename N::T;
  const int64_t n = s.n;
  const LaneMatrix<N> a(s.a, n), v(s.b, n);
  const LaneMatrix<R> values(s.extra, 1);
  const R scale = normalize(a, n, n, true);
  if (s.vectors) set_identity(v, n);
  R sum = R::of(0);
  for (int64_t i = 0; i < n; ++i) {
    sum = sum + square(N::of_real(real(a(i, i))));
    for (int64_t j = i + 1; j < n; ++j) sum = sum + R::of(2) * square(a(i, j));
  }
  const R least = R::of(std::numeric_limits<T>::epsilon() / static_cast<double>(4 * n)) * sqrt(sum);
  auto moved = R::of(0) < R::of(0);
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    moved = R::of(0) < R::of(0);
    for (int64_t p = 0; p + 1 < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) moved = hn::Or(moved, clear(a, v, n, p, q, least, s.vectors));
    }
    if (hn::AllFalse(typename N::Tag(), moved)) break;
  }
  for (int64_t i = 0; i < n; ++i) values.set(i, 0, scale * real(a(i, i)));
  select(moved, R::of(1), R::of(0)).store(s.info, 0);
}

/// One step of svd: makes rows p and q of `a` orthogonal. Returns the lanes that it turned.
template <class N>
HWY_INLINE typename N::Mask orthogonalize(const LaneMatrix<N>& a, const LaneMatrix<N>& v, int64_t n,
                                          int64_t m, int64_t p, int64_t q, typename N::Part tolerance,
                                          bool vectors) {
  using R = typename N::Part;
  R xx = R::of(0), yy = R::of(0);
  N xy = N::of(0);
  for (int64_t k = 0; k < m; ++k) {
    const N x = a(p, k), y = a(q, k);
    xx = xx + square(x);
    yy = yy + square(y);
    xy = xy + conj(x) * y;
  }
  const R size = size_of(xy);
  // Rows that have all but vanished have a product that nothing may be divided by.
  const R least = R::of(4 * static_cast<double>(std::numeric_limits<typename N::T>::min()));
  const auto on = largest(tolerance * (sqrt(xx) * sqrt(yy)), least) < size;
  if (hn::AllFalse(typename N::Tag(), on)) return on;
  const Rotation<N> turn(xy, size, yy - xx, on);
  turn_rows(a, m, p, q, turn);
  if (vectors) turn_rows(v, n, p, q, turn);
  return on;
}

template <class N>
void svd(const LaneCall<typename N::T>& s) {
  using R = typename N::Part;
  using T = typename N::T;
  const int64_t n = s.n, m = s.m;
  const LaneMatrix<N> a(s.a, m), v(s.b, n);
  const LaneMatrix<R> values(s.extra, 1);
  const R scale = normalize(a, n, m, false);
  if (s.vectors) set_identity(v, n);
  const R tolerance = R::of(std::numeric_limits<T>::epsilon() * std::sqrt(static_cast<double>(m)));
  auto moved = R::of(0) < R::of(0);
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    moved = R::of(0) < R::of(0);
    for (int64_t p = 0; p + 1 < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q)
        moved = hn::Or(moved, orthogonalize(a, v, n, m, p, q, tolerance, s.vectors));
    }
    if (hn::AllFalse(typename N::Tag(), moved)) break;
  }
  for (int64_t i = 0; i < n; ++i) {
    R sum = R::of(0);
    for (int64_t k = 0; k < m; ++k) sum = sum + square(a(i, k));
    const R length = sqrt(sum);
    const R by = R::of(1) / select(length == R::of(0), R::of(1), length);
    for (int64_t k = 0; k < m; ++k) a.set(i, k, by * a(i, k));
    values.set(i, 0, scale * length);
  }
  select(moved, R::of(1), R::of(0)).store(s.info, 0);
}

template <class N>
constexpr SpectralKernels<typename N::T> kOf{&eigh<N>, &svd<N>};

constexpr AllSpectralKernels kAll{kOf<RealLanes<float>>, kOf<ComplexLanes<float>>, kOf<RealLanes<double>>,
                                  kOf<ComplexLanes<double>>};

}  // namespace

constexpr const AllSpectralKernels* kSpectralTable = &kAll;

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

const AllSpectralKernels& spectral_kernels() {
  static constexpr const AllSpectralKernels* kTables[kNumCpuTargets] =
      TENON_CPU_TARGET_TABLES(kSpectralTable);
  return *kTables[static_cast<size_t>(cpu_target())];
}

}  // namespace tenon::cpu
#endif
