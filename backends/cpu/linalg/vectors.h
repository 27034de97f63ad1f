// The written rule of eigenvectors and singular vectors: in the order of their values, each of such a phase
// that its largest element is real and positive. Used by linalg_spectral.cc. S is a real number or
// std::complex of one.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

namespace tenon::cpu {

template <class S>
struct RealOf {
  using type = S;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class S>
inline constexpr bool kIsComplex = !std::is_floating_point_v<S>;

/// a * b, each operation rounded; C++'s own product looks for NaN.
template <class S>
S times(S a, S b) {
  if constexpr (kIsComplex<S>)
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  else
    return a * b;
}
template <class S>
S conjugate(S a) {
  if constexpr (kIsComplex<S>)
    return std::conj(a);
  else
    return a;
}
template <class S>
typename RealOf<S>::type square_of(S a) {
  if constexpr (kIsComplex<S>)
    return a.real() * a.real() + a.imag() * a.imag();
  else
    return a * a;
}

/// The factor of absolute value 1 that makes the largest element real and positive: the first of those within
/// a thousandth of the largest, so that rounding does not choose. `place` is where it is.
template <class S>
S phase_of(const S* v, int64_t n, int64_t& place) {
  using T = typename RealOf<S>::type;
  T most = 0;
  for (int64_t i = 0; i < n; ++i) most = std::max(most, square_of(v[i]));
  place = 0;
  while (place + 1 < n && !(square_of(v[place]) >= most * T(0.998))) ++place;
  if (n == 0 || most == T(0)) return S(1);
  if constexpr (kIsComplex<S>) {
    const T size = std::sqrt(square_of(v[place]));
    return {v[place].real() / size, -v[place].imag() / size};
  } else {
    return v[place] < 0 ? S(-1) : S(1);
  }
}
template <class S>
void turn(S* v, int64_t n, S phase, int64_t place = -1) {
  for (int64_t i = 0; i < n; ++i) v[i] = times(phase, v[i]);
  if constexpr (kIsComplex<S>) {
    if (place >= 0) v[place] = {v[place].real(), 0};
  }
}

/// Places of `n` values in ascending or descending order; equal ones keep theirs.
template <class T>
std::vector<int64_t> order_of(const T* values, int64_t n, bool descending) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return descending ? values[a] > values[b] : values[a] < values[b];
  });
  return order;
}

/// Makes rows [have, total) of `rows` [total, n] orthonormal to those before them, from unit vectors.
/// Source: Giraud, Langou, Rozloznik (2005), that twice is enough.
template <class S>
void complete_rows(S* rows, int64_t have, int64_t total, int64_t n) {
  using T = typename RealOf<S>::type;
  int64_t unit = 0;
  for (int64_t r = have; r < total;) {
    S* const x = rows + r * n;
    std::fill(x, x + n, S(0));
    x[unit++ % n] = S(1);
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t q = 0; q < r; ++q) {
        const S* const y = rows + q * n;
        S sum(0);
        for (int64_t i = 0; i < n; ++i) sum += times(conjugate(y[i]), x[i]);
        for (int64_t i = 0; i < n; ++i) x[i] -= times(sum, y[i]);
      }
    }
    T square = 0;
    for (int64_t i = 0; i < n; ++i) square += square_of(x[i]);
    // One of n unit vectors is at least this far from a space of fewer dimensions.
    if (square * T(2 * n) < T(1) && unit < n) continue;
    const T by = T(1) / std::sqrt(square);
    for (int64_t i = 0; i < n; ++i) x[i] *= by;
    ++r;
  }
}

}  // namespace tenon::cpu
