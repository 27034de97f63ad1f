#include "bench/accuracy/functions.h"

#include <algorithm>

#include "tenon/expr/function.h"

namespace tenon::accuracy {

const std::vector<MathFunction>& math_functions() {
  static const std::vector<MathFunction> all = [] {
    std::vector<MathFunction> list = elementary_functions();
    for (const auto& family : {two_argument_functions(), exact_functions()}) {
      list.insert(list.end(), family.begin(), family.end());
    }
    return list;
  }();
  return all;
}

std::vector<std::string_view> unmeasured_functions() {
  // These choose, move bits or test; trunc_divide is trunc of a rounded quotient, angle is 0 or pi, and
  // log_of_base is log under another name.
  static constexpr std::string_view kWithoutRounding[] = {
      "sign",      "sgn",   "real",  "imag",     "conj",     "angle",        "relu",       "clamp_min",
      "clamp_max", "isnan", "isinf", "isfinite", "copysign", "trunc_divide", "log_of_base"};
  // bench/accuracy/special.py measures these, against mpmath.
  static constexpr std::string_view kSpecial[] = {"erfinv",    "ndtr",      "logit",     "i1e",
                                                  "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"};
  // Near its zero only the larger part of a sum is right to the last place, which is no number of units of
  // the result; tests/python/operators/pointwise_test.py has its bound.
  static constexpr std::string_view kByTests[] = {"gelu_derivative"};
  std::vector<std::string_view> missing;
  for (const expr::Function& f : expr::functions()) {
    if (f.internal || !f.runs_in(expr::Type::F32)) continue;
    const bool measured =
        std::ranges::any_of(math_functions(), [&](const MathFunction& m) { return m.name == f.name; });
    if (!measured && std::ranges::find(kWithoutRounding, f.name) == std::end(kWithoutRounding) &&
        std::ranges::find(kSpecial, f.name) == std::end(kSpecial) &&
        std::ranges::find(kByTests, f.name) == std::end(kByTests)) {
      missing.push_back(f.name);
    }
  }
  return missing;
}

}  // namespace tenon::accuracy
