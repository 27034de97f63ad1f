// exp and its kind, and pow. The argument is reduced to |r| <= ln(2)/2 by adding `rounder`, which rounds to
// an integer and leaves it in the low bits; then a polynomial, then a scaling by two powers of two, so that
// only the last multiplication rounds when the result is denormal. Coefficients: Sollya's fpminimax on
// [-0.3472, 0.3472], in the type itself.
#include "tenon/expr/function_rows.h"

namespace tenon::expr {

namespace {

// e^x = 1 + x + x^2 * q(x).
constexpr std::string_view kExpPolyF32 =
    "poly(x, 0x1.fffffcp-2, 0x1.55549p-3, 0x1.5558a4p-5, 0x1.123ae4p-7, 0x1.6a5c5ep-10)";
constexpr std::string_view kExpPolyF64 = R"(
  poly(x, 0x1.000000000000ap-1, 0x1.55555555554fbp-3, 0x1.555555555065bp-5, 0x1.11111111275ebp-7,
       0x1.6c16c184989bep-10, 0x1.a01a012cc6e2ap-13, 0x1.a01998ecc4e99p-16, 0x1.71df1ee64e6bfp-19,
       0x1.28ae76944cbecp-22, 0x1.ad8b36ce565b6p-26))";
// The same, for e^x - 1 with a small relative error around 0.
constexpr std::string_view kExpm1PolyF32 =
    "poly(x, 0x1p-1, 0x1.555554p-3, 0x1.5554fp-5, 0x1.111306p-7, 0x1.6d43a4p-10, 0x1.9e0d3ep-13)";
constexpr std::string_view kExpm1PolyF64 = R"(
  poly(x, 0x1p-1, 0x1.5555555555559p-3, 0x1.555555555554dp-5, 0x1.111111110f63ep-7, 0x1.6c16c16c1ab08p-10,
       0x1.a01a01b01359dp-13, 0x1.a01a018e12782p-16, 0x1.71ddf7d9666c3p-19, 0x1.27e51315f041ap-22,
       0x1.af5f9f9ac57cdp-26, 0x1.1f1aa85287485p-29))";
// 2^x, |x| <= 1/2.
constexpr std::string_view kExp2PolyF32 =
    "poly(x, 1, 0x1.62e43p-1, 0x1.ebfbd8p-3, 0x1.c6af76p-5, 0x1.3b30ap-7, 0x1.5f0b82p-10, 0x1.3fa206p-13)";
constexpr std::string_view kExp2PolyF64 = R"(
  poly(x, 1, 0x1.62e42fefa39efp-1, 0x1.ebfbdff82c58dp-3, 0x1.c6b08d704a182p-5, 0x1.3b2ab6fba53b8p-7,
       0x1.5d87fe7888dffp-10, 0x1.430912f7013a2p-13, 0x1.ffcbfcdb1c5bdp-17, 0x1.62c027b683ceap-20,
       0x1.b524232262994p-24, 0x1.e4bbc00d37bp-28, 0x1.eafdc2f6d54aap-32, 0x1.de49d600a7dc3p-36))";
// tanh(x) = x + x * z * p(z), z = x^2, |x| <= 0.56.
constexpr std::string_view kTanhPolyF32 =
    "poly(x, -0x1.555548p-2, 0x1.110c7p-3, -0x1.b90a76p-5, 0x1.584238p-6, -0x1.958c74p-8)";
constexpr std::string_view kTanhPolyF64 = R"(
  poly(x, -0x1.555555555554cp-2, 0x1.11111111103a8p-3, -0x1.ba1ba1b944192p-5, 0x1.664f484c90e02p-6,
       -0x1.226e2d6cd3a6ap-7, 0x1.d6d2586245a1ep-9, -0x1.7d8c6d809cd7fp-10, 0x1.34678f31bf749p-11,
       -0x1.e85009e5f4d81p-13, 0x1.5a3766e49a6ep-14, -0x1.3f08862b4e9d9p-16))";

// A 64-bit arithmetic shift is slow on AVX2: this halves k + 2048, which is positive, with a logical one.
constexpr std::string_view kScale = R"(
  let k = bits(y) - rounder_bits;
  let half = shift_right_logical(k + 2048, 1);
  let first = from_bits(shift_left(half + (bias - 1024), mantissa_bits));
  let second = from_bits(shift_left(k - half + (bias + 1024), mantissa_bits));
  x * first * second)";

// e^x = exp_significand(x) * 2^n, exp_exponent(x) = rounder + n.
constexpr std::string_view kExpExponent = "fma(x, log2_e, rounder)";
constexpr std::string_view kExpRest = R"(
  let n = exp_exponent(x) - rounder;
  fma(n, -ln_2_short_low, fma(n, -ln_2_short, x)))";
constexpr std::string_view kExpTail = R"(
  let hi = 1 + x;
  fma(x * x, exp_poly(x), x - (hi - 1)))";
constexpr std::string_view kExpSignificand = "let r = exp_rest(x); 1 + r + exp_tail(r)";
// Where the result is 0, as of masked elements, nothing denormal is computed: that takes ten times as long.
constexpr std::string_view kExp = R"(
  let c = where(x < exp_below, 0, x);
  let y = scale(exp_significand(c), exp_exponent(c));
  where(x > exp_above, inf, where(x < exp_below, 0, y)))";
// e^x / 2, which is finite a little further than e^x. For x >= 0.
constexpr std::string_view kHalfExp =
    "where(x > exp_above + 1, inf, scale(exp_significand(x), exp_exponent(x) - 1))";

constexpr std::string_view kExp2Sum = R"(
  let t = x + rounder;
  let p = exp2_poly(x - (t - rounder) + y);
  where(x > exp2_above + 1, inf, where(x < exp2_below, 0, scale(p, t))))";

// 2^n * p + (2^n - 1) in units of two, so that 2^(n-1) is still finite where the result is.
constexpr std::string_view kExpm1 = R"(
  let c = where(x < expm1_below, expm1_below, x);
  let t = fma(c, log2_e, rounder);
  let n = t - rounder;
  let r = fma(n, -ln_2_short_low, fma(n, -ln_2_short, c));
  let u = r * r * expm1_poly(r);
  let s = from_bits(shift_left(bits(t) - rounder_bits + (bias - 1), mantissa_bits));
  let y = 2 * (fma(s, r, s - 0.5) + s * u);
  where(n == 0, where(x == 0, x, r + u), where(x > exp_above, inf, y)))";

// n / (1 + z) with the rounding of 1 + z repaired: it would weigh up to a unit in the last place where z is
// small. Where z is tiny, its square would be denormal, and repairs nothing.
constexpr std::string_view kSigmoid = R"(
  let z = exp(-abs(x));
  let n = where(x < 0, z, 1);
  let d = 1 + z;
  let lost = where(z < 0x1p-60, 0, z - (d - 1));
  let inverse = 1 / d;
  let q = n * inverse;
  fma(fma(-q, lost, fma(-q, d, n)), inverse, q))";

// Below atanh(1/2) a polynomial; above, 1 - 2 / (e^2x + 1), where the quotient is at most half of the result.
// From 20 on that is 1, and e^-2x would be denormal in the end.
constexpr std::string_view kTanh = R"(
  let a = abs(x);
  let z = a * a;
  let e = exp(-2 * where(a > 20, 20, a));
  copysign(where(a < 0.55, fma(a * z, tanh_poly(z), a), 1 - 2 * e / (1 + e)), x))";
// The same where e^-2x, which is at most 1/3 there, may be a little less exact. From 9.1 on the result is 1.
constexpr std::string_view kTanhF32 = R"(
  let a = min(abs(x), 9.1);
  let z = a * a;
  let r = exp_rest(-2 * a);
  let s = from_bits(shift_left(bits(exp_exponent(-2 * a)) - rounder_bits + bias, mantissa_bits));
  let e = fma(s, fma(r * r, exp_poly(r), r), s);
  copysign(where(a < 0.55, fma(a * z, tanh_poly(z), a), 1 - 2 * e / (1 + e)), x))";

// Below 1 the Taylor series, whose tail is far below a unit in the last place.
constexpr std::string_view kSinh = R"(
  let a = abs(x);
  let z = x * x;
  let p = poly(z, 0.16666666666666666, 0.008333333333333333, 0.0001984126984126984, 2.7557319223985893e-06,
               2.505210838544172e-08, 1.6059043836821613e-10, 7.647163731819816e-13, 2.8114572543455206e-15,
               8.22063524662433e-18);
  let h = half_exp(a);
  where(a < 1, fma(x * z, p, x), copysign(h - 0.25 / h, x)))";
constexpr std::string_view kCosh = R"(
  let h = half_exp(abs(x));
  h + 0.25 / h)";

constexpr Function kExponentialFunctions[] = {
    {.name = "exp_poly", .body_f32 = kExpPolyF32, .body_f64 = kExpPolyF64, .internal = true},
    {.name = "expm1_poly", .body_f32 = kExpm1PolyF32, .body_f64 = kExpm1PolyF64, .internal = true},
    {.name = "exp2_poly", .body_f32 = kExp2PolyF32, .body_f64 = kExp2PolyF64, .internal = true},
    {.name = "tanh_poly", .body_f32 = kTanhPolyF32, .body_f64 = kTanhPolyF64, .internal = true},
    {.name = "scale", .arity = 2, .body_float = kScale, .internal = true, .doc = "x * 2^n, y = rounder + n"},
    {.name = "exp2_sum",
     .arity = 2,
     .body_float = kExp2Sum,
     .internal = true,
     .doc = "2^(x + y) for small y"},
    {.name = "exp_exponent", .body_float = kExpExponent, .internal = true, .doc = "rounder + n of e^x"},
    {.name = "exp_rest", .body_float = kExpRest, .internal = true, .doc = "x - n * ln(2), for e^x"},
    {.name = "exp_tail", .body_float = kExpTail, .internal = true, .doc = "e^x less 1 + x as it rounds"},
    {.name = "exp_significand", .body_float = kExpSignificand, .internal = true, .doc = "e^x / 2^n"},
    {.name = "half_exp", .body_float = kHalfExp, .internal = true, .doc = "e^x / 2 for x >= 0"},
    {.name = "exp", .derivative = {"result"}, .body_float = kExp, .doc = "e^x"},
    {.name = "exp2",
     .derivative = {"result * 0.6931471805599453"},
     .body_float = "exp2_sum(x, 0)",
     .doc = "2^x"},
    {.name = "expm1", .derivative = {"exp(x)"}, .body_float = kExpm1, .doc = "e^x - 1, accurate near 0"},
    {.name = "sigmoid",
     .derivative = {"result * (1 - result)"},
     .body_float = kSigmoid,
     .doc = "1 / (1 + e^-x)"},
    {.name = "tanh",
     .derivative = {"1 - result * result"},
     .body_f32 = kTanhF32,
     .body_f64 = kTanh,
     .doc = "hyperbolic tangent"},
    {.name = "sinh", .derivative = {"cosh(x)"}, .body_float = kSinh, .doc = "hyperbolic sine"},
    {.name = "cosh", .derivative = {"sinh(x)"}, .body_float = kCosh, .doc = "hyperbolic cosine"},
    {.name = "softplus",
     .derivative = {"sigmoid(x)"},
     .body_float = "max(x, 0) + log1p(exp(-abs(x)))",
     .doc = "log(1 + e^x)"},
    {.name = "log_sigmoid",
     .derivative = {"sigmoid(-x)"},
     .body_float = "-(log1p(exp(-abs(x))) - min(x, 0))",
     .doc = "log(sigmoid(x))"},
};

// pow(x, y) = 2^(y * log2|x|) with the logarithm and the product as unevaluated sums of two numbers (Dekker,
// 1971), and C's rules for signs, zeros and infinities. |x| = 2^n * (1 + f), log(1 + f) = 2 atanh(s), s = f /
// (2 + f).

// q(z), where log(1 + f) = s * (2 + z * (2/3 + z * q(z))), z = s^2.
constexpr std::string_view kPowPolyF32 = "poly(x, 0x1.9999d6p-2, 0x1.246204p-2, 0x1.dcee3ep-3)";
constexpr std::string_view kPowPolyF64 = R"(
  poly(x, 0x1.9999999999a07p-2, 0x1.249249247b33cp-2, 0x1.c71c71fbc8bbp-3, 0x1.745cfad09320dp-3,
       0x1.3b1be5f00488bp-3, 0x1.0fc58fb82dd87p-3, 0x1.0bc4e23bea975p-3))";

// Each value v has a v_lo: together they are twice as precise as the type.
constexpr std::string_view kPow = R"(
  let a = abs(x);
  let n = exponent(a);
  let f = log_fraction(normal(a));
  let d = 2 + f;
  let s = f / d;
  let s_lo = (fma(-s, d, f) - s * (f - (d - 2))) / d;
  let z = s * s;
  let z_lo = fma(s, s, -z) + 2 * s * s_lo;
  let q = pow_poly(z);
  let u = fma(z, q, two_thirds);
  let u_lo = fma(z, q, two_thirds - u) + two_thirds_low;
  let w = z * u;
  let w_lo = fma(z, u, -w) + fma(z, u_lo, z_lo * u);
  let t = 2 + w;
  let t_lo = (w - (t - 2)) + w_lo;
  let l = s * t;
  let l_lo = fma(s, t, -l) + fma(s, t_lo, s_lo * t);
  let b = l * log2_e;
  let b_lo = fma(l, log2_e, -b) + fma(l, log2_e_low, l_lo * log2_e);
  let g = n + b;
  let g_lo = (b - (g - n)) + b_lo;
  let hi = y * where(a == 0, -inf, where(a < inf, g, a));
  let power = exp2_sum(hi, fma(y, g, -hi) + y * g_lo);
  let whole = trunc(y) == y;
  let odd = whole & (trunc(0.5 * y) != 0.5 * y);
  let signed = where(odd, copysign(power, x), power);
  let defined = where((x < 0) & !whole & (x > -inf), nan, signed);
  where(x == 1, 1, defined))";

// Exponents whose powers are few operations, so that a number and a tensor of it give the same bits, and 0
// and the infinities. Their distance from 1 is a power of two, zero or infinity; most others' is not, and one
// test of the bits that they lack spares those the comparisons. The general power is outside of the
// choice, where its constants stay in registers.
constexpr std::string_view kPowAny = R"(
  let general = pow_general(x, y);
  where((bits(y - 1) & mantissa_mask) == 0, pow_near(x, y, general), general))";
constexpr std::string_view kPowNear = R"(
  let one = (y == 0) | ((x == -1) & (abs(y) == inf));
  let few = (y == 2) | (y == 1) | (y == 3) | (y == 0.5) | (y == -1);
  where(few, pow_few(x, y), where(one, 1, z)))";
constexpr std::string_view kPowFew = "where(y == 2, x * x, pow_fewer(x, y))";
constexpr std::string_view kPowFewer = "where(abs(y) >= 1, pow_whole(x, y), pow_root(x))";
constexpr std::string_view kPowWhole = "where(y < 0, pow_inverse(x), where(y == 1, x, x * x * x))";
// C's: of -0 it is 0, of -inf it is inf.
constexpr std::string_view kPowRoot = "where(x == -inf, inf, sqrt(x) + 0)";

constexpr Function kPowRows[] = {
    {.name = "pow_root", .body_float = kPowRoot, .internal = true, .costly = true},
    {.name = "pow_inverse", .body_float = "1 / x", .internal = true, .costly = true},
    {.name = "pow_whole", .arity = 2, .body_float = kPowWhole, .internal = true, .costly = true},
    {.name = "pow_fewer", .arity = 2, .body_float = kPowFewer, .internal = true, .costly = true},
    {.name = "pow_few", .arity = 2, .body_float = kPowFew, .internal = true, .costly = true},
    {.name = "pow_general", .arity = 2, .body_float = kPow, .internal = true},
    {.name = "pow_near", .arity = 3, .body_float = kPowNear, .internal = true, .costly = true},
    {.name = "pow_poly", .body_f32 = kPowPolyF32, .body_f64 = kPowPolyF64, .internal = true},
    {.name = "log_of_base",
     .derivative = {"1 / x"},
     .body_float = "log(x)",
     .doc = "log(x); beside complex numbers that of a negative number too"},
    {.name = "pow",
     .arity = 2,
     .derivative = {"where(y == 0, 0, y * pow(x, y - 1))",
                    "where((x == 0) & (y == abs(y)), 0, result * log_of_base(x))"},
     .body_float = kPowAny,
     .body_int = "int_pow(x, y)",
     .doc = "x^y; C's special cases; integers wrap"},
};

}  // namespace

std::span<const Function> exponential_functions() noexcept { return kExponentialFunctions; }
std::span<const Function> power_functions() noexcept { return kPowRows; }

}  // namespace tenon::expr
