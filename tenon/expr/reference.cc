#include "tenon/expr/reference.h"

#include <fmt/format.h>

#include <cmath>

#include "tenon/core/error.h"
#include "tenon/expr/function.h"
#include "tenon/expr/reference_special.h"

namespace tenon::expr {

namespace {

double max_nan(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double min_nan(double a, double b) { return std::isnan(a) || a < b ? a : b; }

double python_mod(double a, double b) {
  const double m = std::fmod(a, b);
  return m != 0 && (b < 0) != (m < 0) ? m + b : m;
}

double softplus(double a) { return max_nan(a, 0) + std::log1p(std::exp(-std::abs(a))); }

double log_add_exp(double a, double b) {
  const double m = max_nan(a, b);
  return std::isinf(m) ? m : m + std::log1p(std::exp(-std::abs(a - b)));
}

double normal_below(double a) { return 0.5 * std::erfc(-a * M_SQRT1_2); }
double gelu_derivative(double a) {
  return normal_below(a) + a * (0.5 * M_SQRT1_2 * M_2_SQRTPI * std::exp(-0.5 * a * a));
}
// a * sigmoid(y). The exponential is finite, and no denormal number, where the product is one.
double times_sigmoid(double a, double y) {
  const long double e = std::exp(-std::abs(static_cast<long double>(y)));
  return static_cast<double>((y < 0 ? a * e : a) / (1 + e));
}
double gelu_tanh(double a) { return times_sigmoid(a, 2 * std::sqrt(2 / M_PI) * (a + 0.044715 * a * a * a)); }

struct Row {
  std::string_view name;
  double (*value)(double, double, double);
};

constexpr Row kFunctions[] = {
    {"acos", [](double a, double, double) { return std::acos(a); }},
    {"asin", [](double a, double, double) { return std::asin(a); }},
    {"atan", [](double a, double, double) { return std::atan(a); }},
    {"atan2", [](double a, double b, double) { return std::atan2(a, b); }},
    {"acosh", [](double a, double, double) { return std::acosh(a); }},
    {"asinh", [](double a, double, double) { return std::asinh(a); }},
    {"atanh", [](double a, double, double) { return std::atanh(a); }},
    {"angle", [](double a, double, double) { return a < 0           ? M_PI
                                                    : std::isnan(a) ? a
                                                                    : 0; }},
    {"conj", [](double a, double, double) { return a; }},
    {"hypot", [](double a, double b, double) { return std::hypot(a, b); }},
    {"imag", [](double, double, double) { return 0.0; }},
    {"real", [](double a, double, double) { return a; }},
    {"sgn", [](double a, double, double) { return static_cast<double>((a > 0) - (a < 0)); }},
    {"copysign", [](double a, double b, double) { return std::copysign(a, b); }},
    {"cos", [](double a, double, double) { return std::cos(a); }},
    {"cosh", [](double a, double, double) { return std::cosh(a); }},
    {"erf", [](double a, double, double) { return std::erf(a); }},
    {"erfc", [](double a, double, double) { return std::erfc(a); }},
    {"exp", [](double a, double, double) { return std::exp(a); }},
    {"exp2", [](double a, double, double) { return std::exp2(a); }},
    {"expm1", [](double a, double, double) { return std::expm1(a); }},
    {"floor_divide", [](double a, double b, double) { return std::floor(a / b); }},
    {"gelu", [](double a, double, double) { return a * normal_below(a); }},
    {"gelu_derivative", [](double a, double, double) { return gelu_derivative(a); }},
    {"gelu_tanh", [](double a, double, double) { return gelu_tanh(a); }},
    {"mish", [](double a, double, double) { return a * std::tanh(softplus(a)); }},
    {"silu", [](double a, double, double) { return times_sigmoid(a, a); }},
    {"isfinite", [](double a, double, double) { return std::isfinite(a) ? 1.0 : 0.0; }},
    {"isinf", [](double a, double, double) { return std::isinf(a) ? 1.0 : 0.0; }},
    {"isnan", [](double a, double, double) { return std::isnan(a) ? 1.0 : 0.0; }},
    {"log", [](double a, double, double) { return std::log(a); }},
    {"log_of_base", [](double a, double, double) { return std::log(a); }},
    {"log10", [](double a, double, double) { return std::log10(a); }},
    {"log1p", [](double a, double, double) { return std::log1p(a); }},
    {"log2", [](double a, double, double) { return std::log2(a); }},
    {"log_sigmoid", [](double a, double, double) { return -softplus(-a); }},
    {"logaddexp", [](double a, double b, double) { return log_add_exp(a, b); }},
    {"pow", [](double a, double b, double) { return std::pow(a, b); }},
    {"reciprocal", [](double a, double, double) { return 1 / a; }},
    {"relu", [](double a, double, double) { return a < 0 ? 0 : a; }},
    {"clamp_min", [](double a, double b, double) { return a < b || std::isnan(b) ? b : a; }},
    {"clamp_max", [](double a, double b, double) { return a > b || std::isnan(b) ? b : a; }},
    {"trunc_divide", [](double a, double b, double) { return std::trunc(a / b); }},
    {"remainder", [](double a, double b, double) { return python_mod(a, b); }},
    {"rsqrt", [](double a, double, double) { return 1 / std::sqrt(a); }},
    {"sigmoid", [](double a, double, double) { return 1 / (1 + std::exp(-a)); }},
    {"sign", [](double a, double, double) { return static_cast<double>((a > 0) - (a < 0)); }},
    {"sin", [](double a, double, double) { return std::sin(a); }},
    {"sinh", [](double a, double, double) { return std::sinh(a); }},
    {"softplus", [](double a, double, double) { return softplus(a); }},
    {"square", [](double a, double, double) { return a * a; }},
    {"tan", [](double a, double, double) { return std::tan(a); }},
    {"tanh", [](double a, double, double) { return std::tanh(a); }},
    {"digamma", [](double a, double, double) { return reference::digamma(a); }},
    {"erfcx", [](double a, double, double) { return reference::erfcx(a); }},
    {"erfinv", [](double a, double, double) { return reference::erfinv(a); }},
    {"i0", [](double a, double, double) { return reference::i0e(a) * std::exp(std::abs(a)); }},
    {"i0e", [](double a, double, double) { return reference::i0e(a); }},
    {"i1", [](double a, double, double) { return reference::i1e(a) * std::exp(std::abs(a)); }},
    {"i1e", [](double a, double, double) { return reference::i1e(a); }},
    {"bessel_j0", [](double a, double, double) { return ::j0(a); }},
    {"bessel_j1", [](double a, double, double) { return ::j1(a); }},
    {"bessel_y0", [](double a, double, double) { return a < 0 ? NAN : ::y0(a); }},
    {"bessel_y1", [](double a, double, double) { return a < 0 ? NAN : ::y1(a); }},
    {"bessel_k0", [](double a, double, double) { return reference::bessel_k(0, a); }},
    {"bessel_k1", [](double a, double, double) { return reference::bessel_k(1, a); }},
    {"scaled_bessel_k0", [](double a, double, double) { return reference::bessel_k(0, a) * std::exp(a); }},
    {"scaled_bessel_k1", [](double a, double, double) { return reference::bessel_k(1, a) * std::exp(a); }},
    {"airy_ai", [](double a, double, double) { return reference::airy_ai(a); }},
    {"airy_ai_prime", [](double a, double, double) { return reference::airy_ai_prime(a); }},
    {"gammainc", [](double a, double b, double) { return reference::gammainc(a, b); }},
    {"gammaincc", [](double a, double b, double) { return reference::gammaincc(a, b); }},
    {"sinc", [](double a, double, double) { return a == 0 ? 1 : std::sin(M_PI * a) / (M_PI * a); }},
    {"logit", [](double a, double, double) { return std::log(a / (1 - a)); }},
    {"xlog1py", [](double a, double b, double) { return a == 0 && !std::isnan(b) ? 0 : a * std::log1p(b); }},
    {"lgamma", [](double a, double, double) { return std::lgamma(a); }},
    {"log_ndtr", [](double a, double, double) { return reference::log_ndtr(a); }},
    {"ndtr", [](double a, double, double) { return reference::ndtr(a); }},
    {"ndtri", [](double a, double, double) { return reference::ndtri(a); }},
    {"zeta", [](double a, double b, double) { return reference::zeta(a, b); }},
    {"trigamma", [](double a, double, double) { return reference::zeta(2, a); }},
    {"xlogy", [](double a, double b, double) { return a == 0 && !std::isnan(b) ? 0 : a * std::log(b); }},
};

double of_function(std::string_view name, double a, double b, double c) {
  for (const Row& row : kFunctions) {
    if (row.name == name) return row.value(a, b, c);
  }
  throw_error(ErrorKind::NotImplemented, fmt::format("evaluate: no reference for `{}`", name));
}

double converted(Type to, double a) {
  if (to == Type::F32) return static_cast<float>(a);
  return to == Type::I32 || to == Type::I64 ? std::trunc(a) : a;
}

}  // namespace

double evaluate_node(const Builder& g, NodeId id, std::span<const double> args) {
  const double a = args.size() > 0 ? args[0] : 0, b = args.size() > 1 ? args[1] : 0,
               c = args.size() > 2 ? args[2] : 0;
  switch (g[id].op) {
    case Op::Literal:
      return g.literal_of(id).as_double();
    case Op::Call:
      return of_function(functions()[g[id].bits].name, a, b, c);
    case Op::Add:
      return a + b;
    case Op::Sub:
      return a - b;
    case Op::Mul:
      return a * b;
    case Op::Div:
      return a / b;
    case Op::TruncDiv:
      return b == 0 ? 0 : std::trunc(a / b);
    case Op::Fmod:
      return std::fmod(a, b);
    case Op::Neg:
      return -a;
    case Op::Abs:
      return std::abs(a);
    case Op::Sqrt:
      return std::sqrt(a);
    case Op::Fma:
      return std::fma(a, b, c);
    case Op::Min:
      return min_nan(a, b);
    case Op::Max:
      return max_nan(a, b);
    case Op::Floor:
      return std::floor(a);
    case Op::Ceil:
      return std::ceil(a);
    case Op::Trunc:
      return std::trunc(a);
    case Op::Round:
      return std::nearbyint(a);
    case Op::IntPow:
      return std::trunc(std::pow(a, b));
    case Op::Eq:
      return a == b;
    case Op::Ne:
      return a != b;
    case Op::Lt:
      return a < b;
    case Op::Le:
      return a <= b;
    case Op::Gt:
      return a > b;
    case Op::Ge:
      return a >= b;
    case Op::Where:
      return a != 0 ? b : c;
    case Op::And:
    case Op::Or:
    case Op::Xor:
    case Op::Not: {
      const auto x = static_cast<int64_t>(a), y = static_cast<int64_t>(b);
      if (g[id].op == Op::Not) return g.is_mask(id) ? x == 0 : static_cast<double>(~x);
      return static_cast<double>(g[id].op == Op::And ? x & y : g[id].op == Op::Or ? x | y : x ^ y);
    }
    case Op::Cast:
      return converted(g[id].type, a);
    case Op::RoundTo:
      return a;
    case Op::Given:
      return 1;
    default:
      throw_error(ErrorKind::NotImplemented,
                  fmt::format("evaluate: no reference for `{}`", info(g[id].op).name));
  }
}

double evaluate(const Builder& g, NodeId root, std::span<const NamedValue> values) {
  std::vector<double> value(root + 1);
  const std::vector<bool> needed = reached(g, std::span(&root, 1));
  for (NodeId id = 0; id <= root; ++id) {
    if (!needed[id]) continue;
    if (g.is_symbol(id)) {
      bool found = false;
      for (const NamedValue& v : values) {
        if (v.name == g.symbol_of(id).name) value[id] = v.value, found = true;
      }
      TENON_CHECK(found, Value, fmt::format("evaluate: no value for symbol '{}'", g.symbol_of(id).name));
      continue;
    }
    double args[3] = {};
    for (int i = 0; i < g[id].arity; ++i) args[i] = value[g[id].args[i]];
    value[id] = evaluate_node(g, id, std::span<const double>(args, g[id].arity));
  }
  return value[root];
}

}  // namespace tenon::expr
