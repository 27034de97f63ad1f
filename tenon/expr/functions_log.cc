// log and its kind. x = 2^n * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)). log(1 + f) - f: float32 by a
// polynomial in f; float64 by log(1 + f) = 2 atanh(f / (2 + f)) and a polynomial in its square. n * ln(2)
// comes in a part short enough that n times it is exact, and the rest. Coefficients: Sollya's fpminimax, in
// the type itself.
#include "tenon/expr/function_rows.h"

namespace tenon::expr {

namespace {

constexpr std::string_view kExponentF32 =
    "from_bits(shift_right_logical(bits(x) + 0x004afb0d, 23) + 0x4b400000) - 12583039.0";
constexpr std::string_view kExponentF64 =
    "from_bits(shift_right_logical(bits(x) + 0x00095f619980c433, 52) + 0x4338000000000000) - "
    "6755399441056767.0";
constexpr std::string_view kFractionF32 = "from_bits(((bits(x) + 0x004afb0d) & 0x007fffff) + 0x3f3504f3) - 1";
constexpr std::string_view kFractionF64 =
    "from_bits(((bits(x) + 0x00095f619980c433) & 0x000fffffffffffff) + 0x3fe6a09e667f3bcd) - 1";

constexpr std::string_view kTailF32 = R"(
  let z = x * x;
  let p = poly(x, 0x1.555548p-2, -0x1.000008p-2, 0x1.99a478p-3, -0x1.555b8cp-3, 0x1.233af6p-3, -0x1.fc3e3ap-4,
               0x1.e6dd24p-4, -0x1.dd992ap-4, 0x1.13be0cp-4);
  fma(z, -0.5, x * z * p))";

constexpr std::string_view kTailF64 = R"(
  let s = x / (2 + x);
  let w = s * s;
  let r = w * poly(w, 0x1.5555555555592p-1, 0x1.999999997feeap-2, 0x1.24924941e5e2cp-2, 0x1.c71c520f53b95p-3,
                   0x1.74663e2d7fc43p-3, 0x1.39a1c359d50f2p-3, 0x1.2f05628e4f225p-3);
  let h = 0.5 * x * x;
  s * (h + r) - h)";

// The part of n * ln(2) that is exact, and f, are added without loss; the small terms come last.
constexpr std::string_view kLogCoreF32 = R"(
  let n = log_exponent(x) + y;
  let f = log_fraction(x);
  let big = n * 0x1.62ep-1;
  let hi = big + f;
  let lo = f - (hi - big);
  hi + (log_tail(f) + fma(n, 0x1.0bfbe8p-15, lo + z)))";

constexpr std::string_view kLogCoreF64 = R"(
  let n = log_exponent(x) + y;
  let f = log_fraction(x);
  let big = n * 0x1.62e42fefa38p-1;
  let hi = big + f;
  let lo = f - (hi - big);
  hi + (log_tail(f) + fma(n, 0x1.ef35793c7673p-45, lo + z)))";

constexpr std::string_view kLogF32 = R"(
  let small = x < 0x1p-126;
  let y = log_core(where(small, x * 0x1p+25, x), where(small, -25, 0), 0);
  where(x > 0, where(x < inf, y, x), where(x == 0, -inf, nan)))";

constexpr std::string_view kLogF64 = R"(
  let small = x < 0x1p-1022;
  let y = log_core(where(small, x * 0x1p+54, x), where(small, -54, 0), 0);
  where(x > 0, where(x < inf, y, x), where(x == 0, -inf, nan)))";

// 1 + x rounds to u; what the rounding lost, over u, is the correction.
constexpr std::string_view kLog1p = R"(
  let u = 1 + x;
  let lost = where(x > 1, 1 - (u - x), x - (u - 1));
  let y = log_core(u, 0, lost / u);
  where(u > 0, where(x < inf, where(x == 0, x, y), x), where(u == 0, -inf, nan)))";

// Other bases: (f + tail) / ln(base), with 1 / ln(base) and the product in two parts, and n * log_base(2).
constexpr std::string_view kLog2F32 = R"(
  let small = x < 0x1p-126;
  let v = where(small, x * 0x1p+25, x);
  let n = log_exponent(v) + where(small, -25, 0);
  let f = log_fraction(v);
  let a = f * 0x1.715476p+0;
  let b = fma(log_tail(f), 0x1.715476p+0, fma(f, 0x1.4ae0cp-26, fma(f, 0x1.715476p+0, -a)));
  let hi = n + a;
  let y = hi + (b + (a - (hi - n)));
  where(x > 0, where(x < inf, y, x), where(x == 0, -inf, nan)))";

constexpr std::string_view kLog2F64 = R"(
  let small = x < 0x1p-1022;
  let v = where(small, x * 0x1p+54, x);
  let n = log_exponent(v) + where(small, -54, 0);
  let f = log_fraction(v);
  let a = f * 0x1.71547652b82fep+0;
  let b = fma(log_tail(f), 0x1.71547652b82fep+0,
              fma(f, 0x1.777d0ffda0d24p-56, fma(f, 0x1.71547652b82fep+0, -a)));
  let hi = n + a;
  let y = hi + (b + (a - (hi - n)));
  where(x > 0, where(x < inf, y, x), where(x == 0, -inf, nan)))";

constexpr std::string_view kLog10F32 = R"(
  let small = x < 0x1p-126;
  let v = where(small, x * 0x1p+25, x);
  let n = log_exponent(v) + where(small, -25, 0);
  let f = log_fraction(v);
  let a = f * 0x1.bcb7b2p-2;
  let b = fma(log_tail(f), 0x1.bcb7b2p-2, fma(f, -0x1.5b235ep-27, fma(f, 0x1.bcb7b2p-2, -a)));
  let big = n * 0x1.344p-2;
  let hi = big + a;
  let y = hi + fma(n, 0x1.3509f8p-18, b + (a - (hi - big)));
  where(x > 0, where(x < inf, y, x), where(x == 0, -inf, nan)))";

constexpr std::string_view kLog10F64 = R"(
  let small = x < 0x1p-1022;
  let v = where(small, x * 0x1p+54, x);
  let n = log_exponent(v) + where(small, -54, 0);
  let f = log_fraction(v);
  let a = f * 0x1.bcb7b1526e50ep-2;
  let b = fma(log_tail(f), 0x1.bcb7b1526e50ep-2,
              fma(f, 0x1.95355baaafad3p-57, fma(f, 0x1.bcb7b1526e50ep-2, -a)));
  let big = n * 0x1.34413509f78p-2;
  let hi = big + a;
  let y = hi + fma(n, 0x1.fef311f12b358p-46, b + (a - (hi - big)));
  where(x > 0, where(x < inf, y, x), where(x == 0, -inf, nan)))";

constexpr Function kRows[] = {
    {.name = "log_exponent",
     .body_f32 = kExponentF32,
     .body_f64 = kExponentF64,
     .internal = true,
     .doc = "n"},
    {.name = "log_fraction",
     .body_f32 = kFractionF32,
     .body_f64 = kFractionF64,
     .internal = true,
     .doc = "f"},
    {.name = "log_tail",
     .body_f32 = kTailF32,
     .body_f64 = kTailF64,
     .internal = true,
     .doc = "log(1 + x) - x"},
    {.name = "log_core",
     .arity = 3,
     .body_f32 = kLogCoreF32,
     .body_f64 = kLogCoreF64,
     .internal = true,
     .doc = "log(2^y * x) + z for normal positive x and small z"},
    {.name = "log",
     .derivative = {"1 / x"},
     .body_f32 = kLogF32,
     .body_f64 = kLogF64,
     .doc = "natural logarithm"},
    {.name = "log1p",
     .derivative = {"1 / (1 + x)"},
     .body_float = kLog1p,
     .doc = "log(1 + x), accurate near 0"},
    {.name = "log2",
     .derivative = {"1.4426950408889634 / x"},
     .body_f32 = kLog2F32,
     .body_f64 = kLog2F64,
     .doc = "logarithm to base 2"},
    {.name = "log10",
     .derivative = {"0.4342944819032518 / x"},
     .body_f32 = kLog10F32,
     .body_f64 = kLog10F64,
     .doc = "logarithm to base 10"},
    {.name = "logaddexp",
     .arity = 2,
     .derivative = {"sigmoid(x - y)", "sigmoid(y - x)"},
     .body_float = "let m = max(x, y); where(abs(m) == inf, m, m + log1p(exp(-abs(x - y))))",
     .doc = "log(e^x + e^y)"},
    {.name = "xlogy",
     .arity = 2,
     .derivative = {"where((x == 0) & (y <= 0), 0, log(y))", "x / y"},
     .body_float = "where((x == 0) & (y == y), 0, x * log(y))",
     .doc = "x * log(y), 0 where x is 0"},
};

}  // namespace

std::span<const Function> logarithm_functions() noexcept { return kRows; }

}  // namespace tenon::expr
