// The error of one result in units in the last place, and the tally of many. Used by the measurements of this
// folder; knows neither functions nor kernels.
#pragma once

#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tenon/core/dtype.h"

namespace tenon::accuracy {

/// A binary floating point format as <limits> describes one.
struct Format {
  int digits;        ///< Of the significand, the leading one included.
  int min_exponent;  ///< 2^(min_exponent - 1) is the smallest normal number.
  int max_exponent;  ///< 2^max_exponent is the first number that overflows.
  /// A unit in the last place of numbers in [2^(exponent - 1), 2^exponent); of denormals that of the smallest
  /// normal.
  int unit_exponent(int exponent) const noexcept {
    return (exponent < min_exponent ? min_exponent : exponent) - digits;
  }
};
inline constexpr Format kFormatFloat16{11, -13, 16}, kFormatBFloat16{8, -125, 128},
    kFormatFloat32{24, -125, 128}, kFormatFloat64{53, -1021, 1024};

/// `format` with no unit smaller than that of `x`.
inline Format no_finer_than(Format format, double x) noexcept {
  int exponent = format.min_exponent;
  if (std::isfinite(x)) std::frexp(x, &exponent);
  format.min_exponent = std::max(format.min_exponent, exponent);
  return format;
}

/// What many results add up to.
struct Tally {
  double worst = 0;  ///< In units in the last place. 0: every result is the nearest number.
  double at[2] = {};
  double got = 0;            ///< The result there.
  uint64_t inputs = 0;       ///< Compared with the reference.
  uint64_t not_nearest = 0;  ///< Results that are not the nearest number.
  uint64_t wrong_class = 0;  ///< NaN, infinity or the sign of a zero where another is right, or the reverse.
  uint64_t differences = 0;  ///< Inputs at which some instruction set gives other bits; NaNs are all alike.
  uint64_t without_fma = 0;  ///< How many of the inputs an instruction set without fma was tried at.

  void add(double ulp, double x, double y, double result) noexcept {
    ++not_nearest;
    if (std::isinf(ulp)) {
      if (wrong_class++ != 0 || worst > 0) return;
      at[0] = x, at[1] = y, got = result;
    } else if (ulp > worst) {
      worst = ulp, at[0] = x, at[1] = y, got = result;
    }
  }
  void merge(const Tally& other) noexcept {
    if (other.worst > worst || (inputs == 0)) {
      worst = other.worst, at[0] = other.at[0], at[1] = other.at[1], got = other.got;
    }
    inputs += other.inputs;
    not_nearest += other.not_nearest;
    wrong_class += other.wrong_class;
    differences += other.differences;
    without_fma += other.without_fma;
  }
};

/// |got - want| in units in the last place of `want` in `format`, where `nearest` is `want` rounded to it.
/// Infinite where only one is NaN, where an infinity stands for a number that is not at the edge of overflow
/// or the reverse, and where a zero has the wrong sign.
inline double ulp_error(const Format& format, double got, double nearest, double want) noexcept {
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  if (std::isnan(nearest) || std::isnan(got)) return std::isnan(nearest) && std::isnan(got) ? 0 : kWrong;
  if (got == 0 && nearest == 0) return std::signbit(got) == std::signbit(nearest) ? 0 : kWrong;
  if (got == nearest) return 0;
  if (std::isinf(want)) return kWrong;
  // At the edge, infinity stands for the number that would come after the largest.
  if (std::isinf(got)) got = std::copysign(std::ldexp(1.0, format.max_exponent), got);
  int exponent = 0;
  std::frexp(want, &exponent);
  return std::ldexp(std::abs(got - want), -format.unit_exponent(exponent));
}

/// The same against a number in MPFR; `scratch` is overwritten.
inline double ulp_error(const Format& format, double got, double nearest, mpfr_srcptr want,
                        mpfr_ptr scratch) {
  if (!mpfr_regular_p(want) || std::isnan(got) || (got == 0 && nearest == 0) || got == nearest) {
    return ulp_error(format, got, nearest, mpfr_get_d(want, MPFR_RNDN));
  }
  if (std::isinf(got)) {
    mpfr_set_si_2exp(scratch, got < 0 ? -1 : 1, format.max_exponent, MPFR_RNDN);
  } else {
    mpfr_set_d(scratch, got, MPFR_RNDN);
  }
  mpfr_sub(scratch, scratch, want, MPFR_RNDN);
  const long exponent = std::max<long>(mpfr_get_exp(want), format.min_exponent);
  mpfr_mul_2si(scratch, scratch, format.digits - exponent, MPFR_RNDN);
  // Beyond what a double holds it is wrong by any measure.
  return std::abs(mpfr_get_d(scratch, MPFR_RNDN));
}

/// `want` rounded once to `format`, ties to even, as a double.
inline double nearest_in(const Format& format, mpfr_srcptr want, mpfr_ptr scratch) {
  if (!mpfr_regular_p(want)) return mpfr_get_d(want, MPFR_RNDN);
  const long exponent = std::max<long>(mpfr_get_exp(want), format.min_exponent);
  // A whole number of units.
  mpfr_mul_2si(scratch, want, format.digits - exponent, MPFR_RNDN);
  mpfr_rint(scratch, scratch, MPFR_RNDN);
  mpfr_mul_2si(scratch, scratch, exponent - format.digits, MPFR_RNDN);
  if (mpfr_zero_p(scratch)) return mpfr_signbit(want) ? -0.0 : 0.0;
  if (mpfr_get_exp(scratch) > format.max_exponent) {
    return mpfr_signbit(want) ? -std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::infinity();
  }
  return mpfr_get_d(scratch, MPFR_RNDN);
}

}  // namespace tenon::accuracy
