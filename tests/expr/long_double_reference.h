// References for maths functions from the C library's long double, and errors against them in units in the
// last place.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>

namespace tenon::expr::testing {

using Long = long double;

struct LongDoubleRow {
  std::string_view name;
  int arity;
  Long (*value)(Long, Long);
  /// What the function promises, in float32 and in float64.
  double bound;
};

inline Long log1p_exp(Long x) { return x > 100 ? x : std::log1p(std::exp(x)); }

inline std::span<const LongDoubleRow> long_double_rows() {
  static constexpr LongDoubleRow kRows[] = {
      {"exp", 1, [](Long x, Long) -> Long { return std::exp(x); }, 1},
      {"exp2", 1, [](Long x, Long) -> Long { return std::exp2(x); }, 2},
      {"expm1", 1, [](Long x, Long) -> Long { return std::expm1(x); }, 2},
      {"sigmoid", 1, [](Long x, Long) -> Long { return 1 / (1 + std::exp(-x)); }, 2},
      {"tanh", 1, [](Long x, Long) -> Long { return std::tanh(x); }, 2},
      {"softplus", 1, [](Long x, Long) -> Long { return log1p_exp(x); }, 2},
      {"log_sigmoid", 1, [](Long x, Long) -> Long { return -log1p_exp(-x); }, 2},
      {"log", 1, [](Long x, Long) -> Long { return std::log(x); }, 1},
      {"log1p", 1, [](Long x, Long) -> Long { return std::log1p(x); }, 2},
      {"log2", 1, [](Long x, Long) -> Long { return std::log2(x); }, 2},
      {"log10", 1, [](Long x, Long) -> Long { return std::log10(x); }, 2},
      {"pow", 2, [](Long x, Long y) -> Long { return std::pow(x, y); }, 2},
      {"sin", 1, [](Long x, Long) -> Long { return std::sin(x); }, 1},
      {"cos", 1, [](Long x, Long) -> Long { return std::cos(x); }, 1},
      {"tan", 1, [](Long x, Long) -> Long { return std::tan(x); }, 2},
      {"atan2", 2, [](Long x, Long y) -> Long { return std::atan2(x, y); }, 2},
      {"cosh", 1, [](Long x, Long) -> Long { return std::cosh(x); }, 2},
      {"hypot", 2, [](Long x, Long y) -> Long { return std::hypot(x, y); }, 1},
      {"sinh", 1, [](Long x, Long) -> Long { return std::sinh(x); }, 2},
      {"atan", 1, [](Long x, Long) -> Long { return std::atan(x); }, 2},
      {"erf", 1, [](Long x, Long) -> Long { return std::erf(x); }, 2},
      {"rsqrt", 1, [](Long x, Long) -> Long { return 1 / std::sqrt(x); }, 1},
  };
  return kRows;
}

/// |got - want| in units in the last place of T around `want` (below the smallest normal, that of denormals).
/// Infinite if exactly one is NaN, or an infinity or the sign of a zero differs.
template <class T>
double ulp_error(T got, Long want) {
  const T rounded = static_cast<T>(want);
  if (std::isnan(rounded) || std::isnan(got)) return std::isnan(rounded) && std::isnan(got) ? 0 : HUGE_VAL;
  if (std::isinf(rounded) && std::isinf(got)) return rounded == got ? 0 : HUGE_VAL;
  if (std::isinf(want)) return HUGE_VAL;
  // At the edge of overflow: infinity stands for the number that would come after the largest.
  Long value = got;
  if (std::isinf(got))
    value = std::copysign(std::ldexp(Long{1}, std::numeric_limits<T>::max_exponent), Long{got});
  if (got == 0 && want == 0) return std::signbit(got) == std::signbit(want) ? 0 : HUGE_VAL;
  int exponent = 0;
  std::frexp(want, &exponent);
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
  const Long unit = std::ldexp(Long{1}, exponent - std::numeric_limits<T>::digits);
  return static_cast<double>(std::abs(value - want) / unit);
}

}  // namespace tenon::expr::testing
