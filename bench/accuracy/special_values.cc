#include "bench/accuracy/special_values.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "bench/accuracy/functions.h"
#include "bench/accuracy/kernel.h"
#include "tenon/core/error.h"

namespace tenon::accuracy {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();
// Rounded to the type at hand: pi and its parts.
constexpr double kPi = M_PI, kHalfPi = M_PI_2, kQuarterPi = M_PI_4;

struct Row {
  std::string_view function;
  double x, want;
};

struct PairRow {
  std::string_view function;
  double x, y, want;
};

// NaN gives NaN everywhere but where the pairs below say otherwise, and is not listed.
constexpr Row kRows[] = {
    {"exp", 0.0, 1},
    {"exp", -0.0, 1},
    {"exp", -kInf, 0},
    {"exp", kInf, kInf},
    {"exp", 1e4, kInf},
    {"exp", -1e4, 0},
    {"exp2", 0.0, 1},
    {"exp2", -0.0, 1},
    {"exp2", -kInf, 0},
    {"exp2", kInf, kInf},
    {"exp2", 10, 1024},
    {"exp2", -3, 0.125},
    {"exp2", 1e4, kInf},
    {"exp2", -1e4, 0},
    {"expm1", 0.0, 0.0},
    {"expm1", -0.0, -0.0},
    {"expm1", -kInf, -1},
    {"expm1", kInf, kInf},
    {"expm1", 1e4, kInf},
    {"expm1", -1e4, -1},
    {"log", 0.0, -kInf},
    {"log", -0.0, -kInf},
    {"log", 1, 0.0},
    {"log", -1, kNaN},
    {"log", -kInf, kNaN},
    {"log", kInf, kInf},
    {"log2", 0.0, -kInf},
    {"log2", -0.0, -kInf},
    {"log2", 1, 0.0},
    {"log2", -1, kNaN},
    {"log2", kInf, kInf},
    {"log2", 1024, 10},
    {"log2", 0.125, -3},
    {"log10", 0.0, -kInf},
    {"log10", -0.0, -kInf},
    {"log10", 1, 0.0},
    {"log10", -1, kNaN},
    {"log10", kInf, kInf},
    {"log10", 1000, 3},
    {"log1p", 0.0, 0.0},
    {"log1p", -0.0, -0.0},
    {"log1p", -1, -kInf},
    {"log1p", -2, kNaN},
    {"log1p", kInf, kInf},
    {"log1p", -kInf, kNaN},
    {"sin", 0.0, 0.0},
    {"sin", -0.0, -0.0},
    {"sin", kInf, kNaN},
    {"sin", -kInf, kNaN},
    {"cos", 0.0, 1},
    {"cos", -0.0, 1},
    {"cos", kInf, kNaN},
    {"cos", -kInf, kNaN},
    {"tan", 0.0, 0.0},
    {"tan", -0.0, -0.0},
    {"tan", kInf, kNaN},
    {"tan", -kInf, kNaN},
    {"atan", 0.0, 0.0},
    {"atan", -0.0, -0.0},
    {"atan", kInf, kHalfPi},
    {"atan", -kInf, -kHalfPi},
    {"atan", 1, kQuarterPi},
    {"sinh", 0.0, 0.0},
    {"sinh", -0.0, -0.0},
    {"sinh", kInf, kInf},
    {"sinh", -kInf, -kInf},
    {"sinh", -1e4, -kInf},
    {"cosh", 0.0, 1},
    {"cosh", -0.0, 1},
    {"cosh", kInf, kInf},
    {"cosh", -kInf, kInf},
    {"cosh", -1e4, kInf},
    {"tanh", 0.0, 0.0},
    {"tanh", -0.0, -0.0},
    {"tanh", kInf, 1},
    {"tanh", -kInf, -1},
    {"tanh", -1e4, -1},
    {"erf", 0.0, 0.0},
    {"erf", -0.0, -0.0},
    {"erf", kInf, 1},
    {"erf", -kInf, -1},
    {"erf", 30, 1},
    {"sqrt", 0.0, 0.0},
    {"sqrt", -0.0, -0.0},
    {"sqrt", kInf, kInf},
    {"sqrt", -1, kNaN},
    {"sqrt", -kInf, kNaN},
    {"rsqrt", 0.0, kInf},
    {"rsqrt", -0.0, -kInf},
    {"rsqrt", kInf, 0.0},
    {"rsqrt", -1, kNaN},
    {"rsqrt", 0.25, 2},
    {"sigmoid", 0.0, 0.5},
    {"sigmoid", -0.0, 0.5},
    {"sigmoid", kInf, 1},
    {"sigmoid", -kInf, 0.0},
    {"softplus", kInf, kInf},
    {"softplus", -kInf, 0.0},
    {"softplus", 1e4, 1e4},
    {"softplus", -1e4, 0.0},
    {"log_sigmoid", kInf, -0.0},
    {"log_sigmoid", -kInf, -kInf},
    {"log_sigmoid", -1e4, -1e4},
    {"reciprocal", 0.0, kInf},
    {"reciprocal", -0.0, -kInf},
    {"reciprocal", kInf, 0.0},
    {"reciprocal", -kInf, -0.0},
    {"square", -0.0, 0.0},
    {"square", -kInf, kInf},
    {"abs", -0.0, 0.0},
    {"abs", -kInf, kInf},
    {"neg", 0.0, -0.0},
    {"neg", -0.0, 0.0},
    {"neg", kInf, -kInf},
    {"floor", -0.0, -0.0},
    {"floor", 0.5, 0.0},
    {"floor", -0.5, -1},
    {"floor", -kInf, -kInf},
    {"ceil", -0.0, -0.0},
    {"ceil", -0.5, -0.0},
    {"ceil", 0.5, 1},
    {"ceil", kInf, kInf},
    {"trunc", -0.0, -0.0},
    {"trunc", -0.5, -0.0},
    {"trunc", -1.5, -1},
    {"trunc", -kInf, -kInf},
    {"round", -0.0, -0.0},
    {"round", -0.5, -0.0},
    {"round", 0.5, 0.0},
    {"round", 1.5, 2},
    {"round", 2.5, 2},
    {"round", kInf, kInf},
};

constexpr PairRow kPairRows[] = {
    // pow: F.10.4.4, in its order.
    {"pow", 0.0, -3, kInf},
    {"pow", -0.0, -3, -kInf},
    {"pow", 0.0, -2, kInf},
    {"pow", -0.0, -2, kInf},
    {"pow", -0.0, -2.5, kInf},
    {"pow", 0.0, -kInf, kInf},
    {"pow", -0.0, -kInf, kInf},
    {"pow", 0.0, 3, 0.0},
    {"pow", -0.0, 3, -0.0},
    {"pow", -0.0, 2, 0.0},
    {"pow", -0.0, 2.5, 0.0},
    {"pow", 0.0, kInf, 0.0},
    {"pow", -1, kInf, 1},
    {"pow", -1, -kInf, 1},
    {"pow", 1, kNaN, 1},
    {"pow", 1, kInf, 1},
    {"pow", kNaN, 0.0, 1},
    {"pow", kNaN, -0.0, 1},
    {"pow", kInf, 0.0, 1},
    {"pow", -2, 0.5, kNaN},
    {"pow", -2, -0.5, kNaN},
    {"pow", 0.5, -kInf, kInf},
    {"pow", -0.5, -kInf, kInf},
    {"pow", 2, -kInf, 0.0},
    {"pow", -2, -kInf, 0.0},
    {"pow", 0.5, kInf, 0.0},
    {"pow", -0.5, kInf, 0.0},
    {"pow", 2, kInf, kInf},
    {"pow", -2, kInf, kInf},
    {"pow", -kInf, -3, -0.0},
    {"pow", -kInf, -2, 0.0},
    {"pow", -kInf, -2.5, 0.0},
    {"pow", -kInf, 3, -kInf},
    {"pow", -kInf, 2, kInf},
    {"pow", -kInf, 2.5, kInf},
    {"pow", kInf, -1, 0.0},
    {"pow", kInf, 1, kInf},
    {"pow", kNaN, 1, kNaN},
    {"pow", 2, kNaN, kNaN},
    {"pow", -2, 3, -8},
    {"pow", 10, 3, 1000},
    // atan2: F.10.1.4.
    {"atan2", 0.0, -0.0, kPi},
    {"atan2", -0.0, -0.0, -kPi},
    {"atan2", 0.0, 0.0, 0.0},
    {"atan2", -0.0, 0.0, -0.0},
    {"atan2", 0.0, -1, kPi},
    {"atan2", -0.0, -1, -kPi},
    {"atan2", 0.0, 1, 0.0},
    {"atan2", -0.0, 1, -0.0},
    {"atan2", -1, 0.0, -kHalfPi},
    {"atan2", -1, -0.0, -kHalfPi},
    {"atan2", 1, 0.0, kHalfPi},
    {"atan2", 1, -0.0, kHalfPi},
    {"atan2", 1, -kInf, kPi},
    {"atan2", -1, -kInf, -kPi},
    {"atan2", 1, kInf, 0.0},
    {"atan2", -1, kInf, -0.0},
    {"atan2", kInf, 1, kHalfPi},
    {"atan2", -kInf, 1, -kHalfPi},
    {"atan2", kInf, -kInf, 3 * kQuarterPi},
    {"atan2", -kInf, -kInf, -3 * kQuarterPi},
    {"atan2", kInf, kInf, kQuarterPi},
    {"atan2", -kInf, kInf, -kQuarterPi},
    {"atan2", kNaN, 1, kNaN},
    {"atan2", 1, kNaN, kNaN},
    // hypot: F.10.4.3.
    {"hypot", kInf, kNaN, kInf},
    {"hypot", kNaN, -kInf, kInf},
    {"hypot", -3, 4, 5},
    {"hypot", -0.0, 2, 2},
    {"hypot", kNaN, 1, kNaN},
    {"hypot", -0.0, -0.0, 0.0},
    // fmod: F.10.7.1.
    {"fmod", 0.0, 1, 0.0},
    {"fmod", -0.0, 1, -0.0},
    {"fmod", kInf, 1, kNaN},
    {"fmod", 1, 0.0, kNaN},
    {"fmod", 1, kInf, 1},
    {"fmod", -1, kInf, -1},
    {"fmod", -5, 3, -2},
    {"fmod", kNaN, 1, kNaN},
    // remainder is Python's %: the sign of the divisor.
    {"remainder", -5, 3, 1},
    {"remainder", 5, -3, -1},
    {"remainder", 1, 0.0, kNaN},
    {"remainder", kInf, 1, kNaN},
    {"remainder", 1, kInf, 1},
    {"remainder", -1, kInf, kInf},
    {"floor_divide", -5, 3, -2},
    {"floor_divide", 1, 0.0, kInf},
    {"floor_divide", 0.0, 0.0, kNaN},
    {"floor_divide", kInf, 1, kNaN},
    {"floor_divide", -1, kInf, -1},
    {"floor_divide", 1, kInf, 0.0},
    {"logaddexp", kInf, kInf, kInf},
    {"logaddexp", -kInf, -kInf, -kInf},
    {"logaddexp", kInf, -kInf, kInf},
    {"logaddexp", -kInf, 2, 2},
    {"logaddexp", kNaN, 1, kNaN},
    {"logaddexp", 1e4, 0, 1e4},
    {"xlogy", 0.0, 0.0, 0.0},
    {"xlogy", 0.0, kInf, 0.0},
    {"xlogy", 0.0, -1, 0.0},
    {"xlogy", 0.0, kNaN, kNaN},
    {"xlogy", 2, 0.0, -kInf},
    {"xlogy", 2, -1, kNaN},
    {"xlogy", 2, 1, 0.0},
    {"add", kInf, -kInf, kNaN},
    {"add", -0.0, -0.0, -0.0},
    {"add", 0.0, -0.0, 0.0},
    {"sub", kInf, kInf, kNaN},
    {"sub", 0.0, 0.0, 0.0},
    {"mul", kInf, 0.0, kNaN},
    {"mul", -0.0, 1, -0.0},
    {"div", 1, -0.0, -kInf},
    {"div", 0.0, 0.0, kNaN},
    {"div", -1, kInf, -0.0},
};

// Of numbers far below 1: f(x) = x, f(x) = 1.
constexpr std::string_view kIdentities[] = {"sin", "tan", "atan", "sinh", "tanh", "expm1", "log1p", "abs"};
constexpr std::string_view kOnes[] = {"exp", "exp2", "cos", "cosh"};

const MathFunction& function(std::string_view name) {
  for (const MathFunction& f : math_functions()) {
    if (f.name == name) return f;
  }
  throw_error(ErrorKind::Value, fmt::format("no function {}", name));
}

template <class T>
void check(SpecialValues& all, std::string_view name, T x, T y, T want) {
  constexpr auto kType = sizeof(T) == 4 ? expr::Type::F32 : expr::Type::F64;
  const MathFunction& f = function(name);
  const Kernel kernel(f.text, kType);
  for (const cpu::CpuTarget target : cpu::supported_cpu_targets()) {
    T got = 0;
    kernel.run(target, &x, &y, &got, 1);
    ++all.checked;
    if (same_bits(got, want)) continue;
    const std::string arguments = f.arity == 1 ? fmt::format("{}", x) : fmt::format("{}, {}", x, y);
    all.wrong.push_back(fmt::format("{} {} {}({}) = {}, not {}", expr::name(kType), cpu::name(target), name,
                                    arguments, got, want));
  }
}

template <class T>
void check_type(SpecialValues& all) {
  using Limits = std::numeric_limits<T>;
  for (const Row& r : kRows) check<T>(all, r.function, static_cast<T>(r.x), 0, static_cast<T>(r.want));
  for (const PairRow& r : kPairRows) {
    check<T>(all, r.function, static_cast<T>(r.x), static_cast<T>(r.y), static_cast<T>(r.want));
  }
  for (const MathFunction& f : math_functions()) {
    if (f.arity == 1) check<T>(all, f.name, Limits::quiet_NaN(), 0, Limits::quiet_NaN());
  }
  const T largest_denormal = std::nextafter(Limits::min(), T(0));
  for (const T x : {Limits::denorm_min(), largest_denormal, Limits::min()}) {
    for (const T signed_x : {x, -x}) {
      for (const auto name : kIdentities) check<T>(all, name, signed_x, 0, name == "abs" ? x : signed_x);
      for (const auto name : kOnes) check<T>(all, name, signed_x, 0, 1);
      // Nothing is flushed to zero.
      check<T>(all, "add", signed_x, -2 * signed_x, -signed_x);
      check<T>(all, "mul", signed_x, 1, signed_x);
      check<T>(all, "div", 2 * signed_x, 2, signed_x);
    }
  }
}

}  // namespace

SpecialValues check_special_values() {
  SpecialValues all;
  check_type<float>(all);
  check_type<double>(all);
  return all;
}

}  // namespace tenon::accuracy
