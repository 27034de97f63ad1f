// Butterflies of transforms, forward: y[c] = sum over b of x[b] exp(-2 pi i b c / r), on vectors, in place.
// Per target; included by kernels-inl.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class V>
struct Parts {
  V re, im;
};
template <class V>
HWY_INLINE Parts<V> plus(Parts<V> a, Parts<V> b) {
  return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
}
template <class V>
HWY_INLINE Parts<V> minus(Parts<V> a, Parts<V> b) {
  return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
}
template <class V>
HWY_INLINE Parts<V> times(Parts<V> a, Parts<V> b) {
  return {hn::Sub(hn::Mul(a.re, b.re), hn::Mul(a.im, b.im)),
          hn::Add(hn::Mul(a.re, b.im), hn::Mul(a.im, b.re))};
}

template <class V>
HWY_INLINE void butterfly2(Parts<V>& a, Parts<V>& b) {
  const Parts<V> x = a;
  a = plus(x, b);
  b = minus(x, b);
}
template <class V>
HWY_INLINE void butterfly4(Parts<V>& a, Parts<V>& b, Parts<V>& c, Parts<V>& d) {
  const Parts<V> s = plus(a, c), t = minus(a, c), u = plus(b, d), v = minus(b, d);
  a = plus(s, u);
  c = minus(s, u);
  b = {hn::Add(t.re, v.im), hn::Sub(t.im, v.re)};
  d = {hn::Sub(t.re, v.im), hn::Add(t.im, v.re)};
}
// Times exp(-i pi / 4) and its cube; `half` is the root of a half.
template <class V>
HWY_INLINE Parts<V> turn1(Parts<V> a, V half) {
  return {hn::Mul(hn::Add(a.re, a.im), half), hn::Mul(hn::Sub(a.im, a.re), half)};
}
template <class V>
HWY_INLINE Parts<V> turn3(Parts<V> a, V half) {
  const V negative = hn::Neg(half);
  return {hn::Mul(hn::Sub(a.im, a.re), half), hn::Mul(hn::Add(a.re, a.im), negative)};
}

/// Of radix R, or for 0 of `radix`, an odd number. `roots` is for odd ones.
template <int R>
struct Butterfly;

template <>
struct Butterfly<2> {
  template <class D, class V, class T>
  static HWY_INLINE void run(D, Parts<V>* x, const T*, int64_t) {
    butterfly2(x[0], x[1]);
  }
};
template <>
struct Butterfly<4> {
  template <class D, class V, class T>
  static HWY_INLINE void run(D, Parts<V>* x, const T*, int64_t) {
    butterfly4(x[0], x[1], x[2], x[3]);
  }
};
template <>
struct Butterfly<8> {
  template <class D, class V, class T>
  static HWY_INLINE void run(D d, Parts<V>* x, const T*, int64_t) {
    const V half = hn::Set(d, static_cast<T>(0.70710678118654752440));
    butterfly4(x[0], x[2], x[4], x[6]);
    butterfly4(x[1], x[3], x[5], x[7]);
    const Parts<V> a = x[1], b = turn1(x[3], half), c = {x[5].im, hn::Neg(x[5].re)}, e = turn3(x[7], half);
    const Parts<V> p = x[0], q = x[2], r = x[4], s = x[6];
    x[0] = plus(p, a);
    x[4] = minus(p, a);
    x[1] = plus(q, b);
    x[5] = minus(q, b);
    x[2] = plus(r, c);
    x[6] = minus(r, c);
    x[3] = plus(s, e);
    x[7] = minus(s, e);
  }
};
template <>
struct Butterfly<16> {
  template <class D, class V, class T>
  static HWY_INLINE void run(D d, Parts<V>* x, const T*, int64_t) {
    const V half = hn::Set(d, static_cast<T>(0.70710678118654752440));
    const V c = hn::Set(d, static_cast<T>(0.92387953251128675613));
    const V s = hn::Set(d, static_cast<T>(0.38268343236508977173));
    const V nc = hn::Neg(c), ns = hn::Neg(s);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) butterfly4(x[j], x[j + 4], x[j + 8], x[j + 12]);
    // x[j + 4 q] times exp(-2 pi i j q / 16)
    x[5] = times(x[5], {c, ns});
    x[9] = turn1(x[9], half);
    x[13] = times(x[13], {s, nc});
    x[6] = turn1(x[6], half);
    x[10] = {x[10].im, hn::Neg(x[10].re)};
    x[14] = turn3(x[14], half);
    x[7] = times(x[7], {s, nc});
    x[11] = turn3(x[11], half);
    x[15] = times(x[15], {nc, s});
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) butterfly4(x[4 * q], x[4 * q + 1], x[4 * q + 2], x[4 * q + 3]);
    // Element 4 q + p is that of place q + 4 p.
    Parts<V> y[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) y[i / 4 + 4 * (i % 4)] = x[i];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) x[i] = y[i];
  }
};

/// Odd radices: sums and differences of elements that mirror each other, then two real sums for each pair of
/// results. `roots` has r cosines, then r sines.
template <int kMost, class D, class V, class T>
HWY_INLINE void odd_butterfly(D d, Parts<V>* x, const T* roots, int r) {
  Parts<V> t[kMost / 2 + 1], u[kMost / 2 + 1];
  const Parts<V> first = x[0];
#pragma GCC unroll 2
  for (int j = 1; j <= r / 2; ++j) {
    t[j] = plus(x[j], x[r - j]);
    u[j] = minus(x[j], x[r - j]);
    x[0] = plus(x[0], t[j]);
  }
#pragma GCC unroll 2
  for (int c = 1; c <= r / 2; ++c) {
    Parts<V> a = first, b = {hn::Zero(d), hn::Zero(d)};
#pragma GCC unroll 2
    for (int j = 1, at = c; j <= r / 2; ++j, at = at + c < r ? at + c : at + c - r) {
      const V cos = hn::Set(d, roots[at]), sin = hn::Set(d, roots[r + at]);
      a = plus(a, {hn::Mul(t[j].re, cos), hn::Mul(t[j].im, cos)});
      b = plus(b, {hn::Mul(u[j].re, sin), hn::Mul(u[j].im, sin)});
    }
    x[c] = {hn::Add(a.re, b.im), hn::Sub(a.im, b.re)};
    x[r - c] = {hn::Sub(a.re, b.im), hn::Add(a.im, b.re)};
  }
}
template <>
struct Butterfly<3> {
  template <class D, class V, class T>
  static HWY_INLINE void run(D d, Parts<V>* x, const T* roots, int64_t) {
    odd_butterfly<3>(d, x, roots, 3);
  }
};
template <>
struct Butterfly<5> {
  template <class D, class V, class T>
  static HWY_INLINE void run(D d, Parts<V>* x, const T* roots, int64_t) {
    odd_butterfly<5>(d, x, roots, 5);
  }
};
template <>
struct Butterfly<0> {
  template <class D, class V, class T>
  static HWY_NOINLINE void run(D d, Parts<V>* x, const T* roots, int64_t radix) {
    odd_butterfly<static_cast<int>(kFftLargestPrime)>(d, x, roots, static_cast<int>(radix));
  }
};

}  // namespace
}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
