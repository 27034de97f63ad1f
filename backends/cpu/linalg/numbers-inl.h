// Numbers of a vector's lanes, real or complex, with the arithmetic that factorizations need: one text of an
// algorithm serves both, lanes that are matrices of a batch, and lanes that are columns of one matrix.
// Nothing is fused or reassociated, so a lane has the same bits on every instruction set. Included by the
// kernel files of this folder on every pass of foreach_target.
#if defined(TENON_LINALG_NUMBERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_LINALG_NUMBERS_INL_H_
#undef TENON_LINALG_NUMBERS_INL_H_
#else
#define TENON_LINALG_NUMBERS_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {

namespace hn = ::hwy::HWY_NAMESPACE;

template <class D>
struct Real {
  using Tag = D;
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;
  using Mask = hn::Mask<D>;
  using Part = Real;
  static constexpr int kParts = 1;

  V v;

  /// Imaginary parts would be `part` elements away; real numbers have none.
  static HWY_INLINE Real load(const T* p, ptrdiff_t) { return {hn::LoadU(D(), p)}; }
  HWY_INLINE void store(T* p, ptrdiff_t) const { hn::StoreU(v, D(), p); }
  static HWY_INLINE Real broadcast(const T* p, ptrdiff_t) { return {hn::Set(D(), *p)}; }
  static HWY_INLINE Real of(double x) { return {hn::Set(D(), static_cast<T>(x))}; }
  static HWY_INLINE Real of_real(Real x) { return x; }
};

template <class D>
HWY_INLINE Real<D> operator+(Real<D> a, Real<D> b) {
  return {hn::Add(a.v, b.v)};
}
template <class D>
HWY_INLINE Real<D> operator-(Real<D> a, Real<D> b) {
  return {hn::Sub(a.v, b.v)};
}
template <class D>
HWY_INLINE Real<D> operator-(Real<D> a) {
  return {hn::Neg(a.v)};
}
template <class D>
HWY_INLINE Real<D> operator*(Real<D> a, Real<D> b) {
  return {hn::Mul(a.v, b.v)};
}
template <class D>
HWY_INLINE Real<D> operator/(Real<D> a, Real<D> b) {
  return {hn::Div(a.v, b.v)};
}
template <class D>
HWY_INLINE auto operator<(Real<D> a, Real<D> b) {
  return hn::Lt(a.v, b.v);
}
template <class D>
HWY_INLINE auto operator<=(Real<D> a, Real<D> b) {
  return hn::Le(a.v, b.v);
}
template <class D>
HWY_INLINE auto operator==(Real<D> a, Real<D> b) {
  return hn::Eq(a.v, b.v);
}
template <class M, class D>
HWY_INLINE Real<D> select(M mask, Real<D> a, Real<D> b) {
  return {hn::IfThenElse(mask, a.v, b.v)};
}
template <class D>
HWY_INLINE Real<D> sqrt(Real<D> a) {
  return {hn::Sqrt(a.v)};
}
template <class D>
HWY_INLINE Real<D> largest(Real<D> a, Real<D> b) {
  return select(a < b, b, a);
}
/// |a| with the sign of b.
template <class D>
HWY_INLINE Real<D> with_sign(Real<D> a, Real<D> b) {
  return {hn::CopySign(a.v, b.v)};
}
template <class D>
HWY_INLINE Real<D> conj(Real<D> a) {
  return a;
}
template <class D>
HWY_INLINE Real<D> real(Real<D> a) {
  return a;
}
template <class D>
HWY_INLINE Real<D> imag(Real<D>) {
  return Real<D>::of(0);
}
/// The sum of the absolute values of the parts.
template <class D>
HWY_INLINE Real<D> abs1(Real<D> a) {
  return {hn::Abs(a.v)};
}
template <class D>
HWY_INLINE Real<D> square(Real<D> a) {
  return a * a;
}
template <class D>
HWY_INLINE Real<D> size_of(Real<D> a) {
  return abs1(a);
}
/// What a division by `a` multiplies by or divides by.
template <class D>
HWY_INLINE Real<D> divisor(Real<D> a) {
  return a;
}
template <class D>
HWY_INLINE Real<D> divide(Real<D> a, Real<D> by) {
  return a / by;
}

template <class D>
struct Complex {
  using Tag = D;
  using T = hn::TFromD<D>;
  using Mask = hn::Mask<D>;
  using Part = Real<D>;
  static constexpr int kParts = 2;

  Real<D> re, im;

  static HWY_INLINE Complex load(const T* p, ptrdiff_t part) {
    return {Part::load(p, 0), Part::load(p + part, 0)};
  }
  HWY_INLINE void store(T* p, ptrdiff_t part) const {
    re.store(p, 0);
    im.store(p + part, 0);
  }
  static HWY_INLINE Complex broadcast(const T* p, ptrdiff_t part) {
    return {Part::broadcast(p, 0), Part::broadcast(p + part, 0)};
  }
  static HWY_INLINE Complex of(double x) { return {Part::of(x), Part::of(0)}; }
  static HWY_INLINE Complex of_real(Part x) { return {x, Part::of(0)}; }
};

template <class D>
HWY_INLINE Complex<D> operator+(Complex<D> a, Complex<D> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class D>
HWY_INLINE Complex<D> operator-(Complex<D> a, Complex<D> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class D>
HWY_INLINE Complex<D> operator*(Complex<D> a, Complex<D> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class D>
HWY_INLINE Complex<D> operator*(Real<D> a, Complex<D> b) {
  return {a * b.re, a * b.im};
}
template <class M, class D>
HWY_INLINE Complex<D> select(M mask, Complex<D> a, Complex<D> b) {
  return {select(mask, a.re, b.re), select(mask, a.im, b.im)};
}
template <class D>
HWY_INLINE Complex<D> conj(Complex<D> a) {
  return {a.re, -a.im};
}
template <class D>
HWY_INLINE Real<D> real(Complex<D> a) {
  return a.re;
}
template <class D>
HWY_INLINE Real<D> imag(Complex<D> a) {
  return a.im;
}
template <class D>
HWY_INLINE Real<D> abs1(Complex<D> a) {
  return abs1(a.re) + abs1(a.im);
}
template <class D>
HWY_INLINE Real<D> square(Complex<D> a) {
  return a.re * a.re + a.im * a.im;
}
/// |a|, without a square that leaves the range.
template <class D>
HWY_INLINE Real<D> size_of(Complex<D> a) {
  const Real<D> x = abs1(a.re), y = abs1(a.im), large = largest(x, y), small = select(x < y, x, y);
  const Real<D> one = Real<D>::of(1), t = small / select(large == Real<D>::of(0), one, large);
  return large * sqrt(one + t * t);
}
/// 1 / a (Smith, 1962).
template <class D>
HWY_INLINE Complex<D> divisor(Complex<D> a) {
  const auto wide = abs1(a.im) <= abs1(a.re);
  const Real<D> large = select(wide, a.re, a.im), small = select(wide, a.im, a.re), one = Real<D>::of(1);
  const Real<D> t = small / large, d = large + small * t, whole = one / d, part = t / d;
  return {select(wide, whole, part), -select(wide, part, whole)};
}
template <class D>
HWY_INLINE Complex<D> divide(Complex<D> a, Complex<D> by) {
  return a * by;
}

template <class N>
HWY_INLINE auto is_zero(N a) {
  return abs1(a) == N::Part::of(0);
}

}  // namespace
}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
