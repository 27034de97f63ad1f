// What references of functions of one argument are made of: a function of the C library, one of MPFR.
// Used by the tables of functions.
#pragma once

#include <mpfr.h>

#include <cstddef>

namespace tenon::accuracy {

inline constexpr mpfr_rnd_t kNearest = MPFR_RNDN;

/// `f` of each of `n` numbers.
template <auto f>
void each(const double* x, double* out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = f(x[i]);
}

/// `f` of MPFR, rounded to nearest.
template <auto f>
void by_mpfr(mpfr_ptr out, mpfr_ptr x, mpfr_ptr) {
  f(out, x, kNearest);
}

}  // namespace tenon::accuracy
