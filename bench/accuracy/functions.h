// The functions whose accuracy is measured: what each promises, and its value by two references that know
// nothing of Tenon: the C library in double, and MPFR. Used by the files of this folder.
#pragma once

#include <mpfr.h>

#include <cstddef>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::accuracy {

/// A number in MPFR, freed with its scope. 160 bits hold 107 beyond a double's.
class Exact {
 public:
  explicit Exact(mpfr_prec_t bits = 160) { mpfr_init2(value_, bits); }
  Exact(const Exact&) = delete;
  Exact& operator=(const Exact&) = delete;
  ~Exact() { mpfr_clear(value_); }
  operator mpfr_ptr() { return value_; }

 private:
  mpfr_t value_;
};

enum class Symmetry { None, Odd, Even };

using Random = std::mt19937_64;
/// From 0 to 1.
inline double uniform(Random& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }
inline double uniform(Random& random, double low, double high) {
  return low + (high - low) * uniform(random);
}

struct Interval {
  double low, high;
};

/// One function of one or two arguments.
struct MathFunction {
  std::string_view name;
  /// An expression over `x` and `y`.
  std::string_view text;
  int arity = 1;
  /// The largest error allowed, in units in the last place. 0.5: every result is the nearest number.
  /// Infinite: nothing is promised.
  double budget = 0.5;
  /// The operator that users call, by its full name; empty where there is only the function of expressions.
  std::string_view op = {};
  /// Whether f(-x) is -f(x) or f(x), so that one reference serves two inputs.
  Symmetry symmetry = Symmetry::None;
  /// By the C library in double, n elements. Of one argument only.
  void (*in_double)(const double* x, double* out, size_t n) = nullptr;
  /// By MPFR, within a few units in the last place of `out`; special values as in annex F of C. The arguments
  /// may be used as scratch.
  void (*exact)(mpfr_ptr out, mpfr_ptr x, mpfr_ptr y) = nullptr;
  /// Whether the result comes near zero by cancellation of its arguments: the error is then measured in units
  /// of the larger argument, where that is larger than the result.
  bool cancels = false;
  /// Where the function bends: many samples of float64 lie there.
  Interval interesting = {-4, 4};
  /// Thresholds and zeros: samples lie within a few units in the last place of each, and further off.
  std::vector<double> points = {};
  /// Whether multiples of pi/2 are such points.
  bool circular = false;
  /// A pair where the function is hard. Of two arguments only.
  std::pair<double, double> (*hard_pair)(Random& random) = nullptr;
};

/// All of them, in the order of the page.
const std::vector<MathFunction>& math_functions();

/// Functions of the expression language that are neither here nor free of rounding (sign, isnan, ...): a new
/// one whose accuracy nobody measures.
std::vector<std::string_view> unmeasured_functions();

// The families that it is made of.
std::vector<MathFunction> elementary_functions();
std::vector<MathFunction> two_argument_functions();
std::vector<MathFunction> exact_functions();

}  // namespace tenon::accuracy
