// log and its kind. x = 2^n * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)). log(1 + f) - f: float32 by a
// polynomial in f; float64 by log(1 + f) = 2 atanh(f / (2 + f)) and a polynomial in its square. n * ln(2)
// comes in a part short enough to be exact, and the rest. Coefficients: Sollya's fpminimax, in the type
// itself.
#include "tenon/expr/function_rows.h"

namespace tenon::expr {

namespace {

constexpr std::string_view kTailF32 = R"(
  let z = x * x;
  let p = poly(x, 0x1.555548p-2, -0x1.000008p-2, 0x1.99a478p-3, -0x1.555b8cp-3, 0x1.233af6p-3, -0x1.fc3e3ap-4,
               0x1.e6dd24p-4, -0x1.dd992ap-4, 0x1.13be0cp-4);
  fma(z, -0.5, x * z * p))";

constexpr std::string_view kTailSmallF64 = R"(
  let s = x / (2 + x);
  let w = s * s;
  let r = w * poly(w, 0x1.5555555555592p-1, 0x1.999999997feeap-2, 0x1.24924941e5e2cp-2, 0x1.c71c520f53b95p-3,
                   0x1.74663e2d7fc43p-3, 0x1.39a1c359d50f2p-3, 0x1.2f05628e4f225p-3);
  s * (0.5 * x * x + r))";
constexpr std::string_view kTailF64 = "log_tail_small(x) - 0.5 * x * x";

constexpr std::string_view kExponent = R"(
  let e = shift_right_logical(bits(x) + above_sqrt_half, mantissa_bits);
  from_bits(e + rounder_bits) - rounder_plus_bias)";
constexpr std::string_view kFraction =
    "from_bits(((bits(x) + above_sqrt_half) & mantissa_mask) + sqrt_half_bits) - 1";
constexpr std::string_view kNormal = "where(x < smallest_normal, x * denormal_scale, x)";
constexpr std::string_view kExponentOfAny =
    "log_exponent(normal(x)) + where(x < smallest_normal, denormal_exponent, 0)";
constexpr std::string_view kEdges = "where(x > 0, where(x < inf, y, x), where(x == 0, -inf, nan))";

// The part of n * ln(2) that is exact, and f, are added without loss; the small terms come last.
constexpr std::string_view kLogSum = R"(
  let big = x * ln_2_short;
  let hi = big + y;
  let lo = y - (hi - big);
  hi + (log_tail(y) + fma(x, ln_2_short_low, lo + z)))";

// 1 + x rounds to u; what the rounding lost, over u, is the correction.
constexpr std::string_view kLog1p = R"(
  let u = 1 + x;
  let lost = where(x > 1, 1 - (u - x), x - (u - 1));
  let y = log_sum(log_exponent(u), log_fraction(u), lost / u);
  where(x == 0, x, where(u > 0, where(x < inf, y, x), where(u == 0, -inf, nan))))";

// Other bases: (f + tail) / ln(base), with 1 / ln(base) and the product in two parts, and n * log_base(2).
constexpr std::string_view kLog2 = R"(
  let n = exponent(x);
  let f = log_fraction(normal(x));
  let a = f * log2_e;
  let b = fma(log_tail(f), log2_e, fma(f, log2_e_low, fma(f, log2_e, -a)));
  let hi = n + a;
  log_edges(x, hi + (b + (a - (hi - n)))))";

constexpr std::string_view kLog10 = R"(
  let n = exponent(x);
  let f = log_fraction(normal(x));
  let a = f * log10_e;
  let b = fma(log_tail(f), log10_e, fma(f, log10_e_low, fma(f, log10_e, -a)));
  let big = n * log10_2_short;
  let hi = big + a;
  log_edges(x, hi + fma(n, log10_2_short_low, b + (a - (hi - big)))))";

// m + log(1 + e^-d), m the larger, d the distance. What d, its reduction and e^-d round off (`lost`, `r_lo`,
// `e_lo`) goes on into the logarithm, whose large part (e^-d itself, where that is small) is added to m
// before its small one: the sum may be far smaller than either.
constexpr std::string_view kLogAddExp = R"(
  let m = max(x, y);
  let n = min(x, y);
  let d = m - n;
  let back = m - d;
  let lost = (m - (d + back)) + (back - n);
  let t = exp_exponent(-d);
  let r = exp_rest(-d);
  let r_lo = fma(t - rounder, -ln_2_short_low, fma(t - rounder, -ln_2_short, -d) - r);
  let hi = 1 + r;
  let tail = fma(r_lo - lost, exp_significand(-d), exp_tail(r));
  let a = hi + tail;
  let e = where(d > -exp_below, 0, scale(a, t));
  let e_lo = where(d > -exp_below, 0, scale(tail - (a - hi), t));
  let u = 1 + e;
  let k = log_exponent(u);
  let f = log_fraction(u);
  let beyond = e - (u - 1);
  let big = k * ln_2_short;
  let l = where(k == 0, e, big + f);
  let far = fma(k, ln_2_short_low, (f - (l - big)) + (beyond + e_lo) / u);
  let small = log_tail(f) + where(k == 0, fma(-f, beyond, e_lo) / u, far);
  let s = m + l;
  let other = s - m;
  let rest = (m - (s - other)) + (l - other);
  where(abs(m) == inf, m, s + (rest + small)))";

// log(1 + x + y) for x >= 0 and a y that is much smaller.
constexpr std::string_view kLog1pSum = R"(
  let w = 1 + x;
  let lost = where(x > 1, 1 - (w - x), x - (w - 1)) + y;
  log_sum(log_exponent(w), log_fraction(w), lost / w))";

// asinh(a) = log1p(a + a^2 / (1 + sqrt(1 + a^2))), and log(2a) where a^2 + 1 rounds to a^2. acosh likewise.
constexpr std::string_view kAsinh = R"(
  let a = abs(x);
  let far = a > 0x1p28;
  let t = where(far, 0, a);
  let q = t * t;
  let v = q / (1 + sqrt(1 + q));
  let u = t + v;
  let r = where(far, log_sum(log_exponent(a) + 1, log_fraction(a), 0), log1p_sum(u, (t - u) + v));
  copysign(where(a == inf, a, r), x))";
constexpr std::string_view kAcosh = R"(
  let far = x > 0x1p28;
  let t = where(far, 1, x) - 1;
  let p = fma(t, t, 2 * t);
  let s = sqrt(p);
  let u = t + s;
  let low = (s - u) + t + where(s > 0, fma(-s, s, p) / (2 * s), 0);
  let r = where(far, log_sum(log_exponent(x) + 1, log_fraction(x), 0), log1p_sum(u, low));
  where(x >= 1, where(x == inf, x, r), nan))";
constexpr std::string_view kAtanh = R"(
  let a = abs(x);
  let d = 1 - a;
  let q = 2 * a / d;
  let low = (fma(-q, d, 2 * a) - q * ((1 - d) - a)) / d;
  copysign(where(a < 1, 0.5 * log1p_sum(q, low), where(a == 1, inf, nan)), x))";

// By symmetry that of the part above 1/2, where it is log1p of a positive number, which is as exact as that
// is. Below the smallest normal number the quotient may be infinite.
constexpr std::string_view kLogit = R"(
  let d = 2 * x - 1;
  let y = copysign(log1p(abs(d) / min(x, 1 - x)), d);
  where((x >= 0) & (x < smallest_normal), logit_tiny(x), y))";
// x / (1 - x) is 2^n * (1 + s) / (1 - s), its logarithm n * ln(2) + 2 atanh(s), |s| < 0.21, where n comes
// from the bits: they are nearly a logarithm. `low` is what 1 - x rounds off. Coefficients: least squares
// whose weights level the largest relative errors (Lawson), rounded one after the other.
constexpr std::string_view kLogitF32 = R"(
  let c = 1 - x;
  let low = (1 - c) - x;
  let k = shift_right(bits(x) - bits(c) + 4194304, 23);
  let n = from_bits(k + rounder_bits) - rounder;
  let t = from_bits(bits(x) - shift_left(k, 23));
  let s = (t - c - low) / (t + c);
  let z = s * s;
  let big = n * ln_2_short;
  let hi = fma(2, s, big);
  let lo = fma(2, s, big - hi);
  let y = hi + fma(s * z, poly(z, 0x1.5555c6p-1, 0x1.991cd6p-2, 0x1.380e04p-2), fma(n, ln_2_short_low, lo));
  where((x >= smallest_normal) & (x < 1), y, logit_edge(x)))";

constexpr Function kLogarithmFunctions[] = {
    {.name = "log_exponent", .body_float = kExponent, .internal = true, .doc = "n of a normal x"},
    {.name = "log_fraction", .body_float = kFraction, .internal = true, .doc = "f of a normal x"},
    {.name = "normal", .body_float = kNormal, .internal = true, .doc = "x, scaled if it is denormal"},
    {.name = "exponent", .body_float = kExponentOfAny, .internal = true, .doc = "n, of denormals as well"},
    part("log_tail_small", 1, kTailSmallF64, "log(1 + x) - x + x^2 / 2"),
    {.name = "log_tail",
     .body_f32 = kTailF32,
     .body_f64 = kTailF64,
     .internal = true,
     .doc = "log(1 + x) - x"},
    {.name = "log_sum",
     .arity = 3,
     .body_float = kLogSum,
     .internal = true,
     .doc = "x * ln(2) + log(1 + y) + z for small z"},
    {.name = "log_edges",
     .arity = 2,
     .body_float = kEdges,
     .internal = true,
     .doc = "y, or the logarithm of x where that is none of a finite positive number"},
    {.name = "log",
     .derivative = {"1 / x"},
     .body_float = "log_edges(x, log_sum(exponent(x), log_fraction(normal(x)), 0))",
     .doc = "natural logarithm"},
    {.name = "log_abs", .body_float = "log(abs(x))", .internal = true, .doc = "log|x| of complex numbers"},
    {.name = "log1p",
     .derivative = {"1 / (1 + x)"},
     .body_float = kLog1p,
     .doc = "log(1 + x), accurate near 0"},
    {.name = "log1p_sum", .arity = 2, .body_float = kLog1pSum, .internal = true, .doc = "log(1 + x + y)"},
    {.name = "asinh", .derivative = {"1 / hypot(x, 1)"}, .body_float = kAsinh, .doc = "inverse of sinh"},
    {.name = "acosh",
     .derivative = {"1 / (sqrt(x - 1) * sqrt(x + 1))"},
     .body_float = kAcosh,
     .doc = "inverse of cosh"},
    {.name = "atanh",
     .derivative = {"1 / ((1 - x) * (1 + x))"},
     .body_float = kAtanh,
     .doc = "inverse of tanh"},
    {.name = "log2",
     .derivative = {"1.4426950408889634 / x"},
     .body_float = kLog2,
     .doc = "logarithm to base 2"},
    {.name = "log10",
     .derivative = {"0.4342944819032518 / x"},
     .body_float = kLog10,
     .doc = "logarithm to base 10"},
    costly_part("logit_tiny", 1, "log(x)"),
    {.name = "logit_edge",
     .body_f32 = "where(x < 1, log(x), where(x == 1, inf, nan))",
     .internal = true,
     .costly = true},
    {.name = "logit",
     .derivative = {"where((x >= 0) & (x <= 1), 1 / (x * (1 - x)), nan)"},
     .body_f32 = kLogitF32,
     .body_f64 = kLogit,
     .narrow_f64 = true,
     .doc = "log(x / (1 - x))"},
    {.name = "logaddexp",
     .arity = 2,
     .derivative = {"sigmoid(x - y)", "sigmoid(y - x)"},
     .body_float = kLogAddExp,
     .doc = "log(e^x + e^y)"},
    {.name = "xlogy",
     .arity = 2,
     .derivative = {"where((x == 0) & (y <= 0), 0, log(y))", "x / y"},
     .body_float = "where((x == 0) & (y == y), 0, x * log(y))",
     .doc = "x * log(y), 0 where x is 0"},
    {.name = "xlog1py",
     .arity = 2,
     .derivative = {"where((x == 0) & (y <= -1), 0, log1p(y))", "x / (y + 1)"},
     .body_float = "where((x == 0) & (y == y), 0, x * log1p(y))",
     .doc = "x * log(1 + y), 0 where x is 0"},
};

}  // namespace

std::span<const Function> logarithm_functions() noexcept { return kLogarithmFunctions; }

}  // namespace tenon::expr
