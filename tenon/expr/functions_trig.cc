// sin, cos, tan, atan. The argument less a multiple of pi/2, in three parts, is r + low with |r| <= pi/4;
// polynomials of sin and cos on it; the multiple's last two bits choose and sign. Beyond circle_bound the
// reduction is that of Payne and Hanek (pi_reduce). Coefficients: Sollya's fpminimax, in the type itself.
#include "tenon/expr/function_rows.h"

namespace tenon::expr {

namespace {

constexpr std::string_view kSinPolyF32 =
    "poly(x, -0x1.555556p-3, 0x1.111164p-7, -0x1.a0485ep-13, 0x1.77dep-19)";
constexpr std::string_view kSinPolyF64 = R"(
  poly(x, -0x1.5555555555555p-3, 0x1.111111111108bp-7, -0x1.a01a01a006db4p-13, 0x1.71de3a402093bp-19,
       -0x1.ae643d519ac0cp-26, 0x1.6114b134bb7b4p-33, -0x1.a56360c4ad6fdp-41))";
constexpr std::string_view kCosPolyF32 =
    "poly(x, 0x1.555556p-5, -0x1.6c175p-10, 0x1.a06404p-16, -0x1.32cd5cp-22)";
constexpr std::string_view kCosPolyF64 = R"(
  poly(x, 0x1.5555555555555p-5, -0x1.6c16c16c16b4bp-10, 0x1.a01a01a00263ap-16, -0x1.27e4fb615b50ap-22,
       0x1.1eed78560bfc5p-29, -0x1.937ebebe5ad8bp-37, 0x1.a274633de1fe9p-45))";
// atan(v) = v + v * z * p(z), z = v^2, 0 <= v <= 1.
constexpr std::string_view kAtanPolyF32 = R"(
  poly(x, -0x1.55553ep-2, 0x1.9991ecp-3, -0x1.24211ap-3, 0x1.c0946cp-4, -0x1.5825f2p-4, 0x1.da9c2ep-5,
       -0x1.fe7d24p-6, 0x1.6551e2p-7, -0x1.d5a1aap-10))";
constexpr std::string_view kAtanPolyF64 = R"(
  poly(x, -0x1.5555555555526p-2, 0x1.99999999955b4p-3, -0x1.249249237f57dp-3, 0x1.c71c717fcf76cp-4,
       -0x1.745d11ae74c4fp-4, 0x1.3b13669a29d18p-4, -0x1.110e5126faca4p-4, 0x1.e1bba66bf96ccp-5,
       -0x1.ae5e72c03aba6p-5, 0x1.82dad79a8374dp-5, -0x1.59a3ff235644p-5, 0x1.2c2e5cbf76fcdp-5,
       -0x1.e9fa0d6f21606p-6, 0x1.683cc93ceceebp-6, -0x1.c78fccc766f4bp-7, 0x1.d7b926ecf5435p-8,
       -0x1.7a3999f8427d3p-9, 0x1.b3faca8e051d5p-11, -0x1.3f364c30009c4p-13, 0x1.bbed9daad02f7p-17))";

// n, and the argument after two of the parts. The first subtraction is exact: both are whole numbers of units
// in the last place of pi/2, and of what is left.
constexpr std::string_view kMultiple = "fma(x, two_over_pi, rounder) - rounder";
constexpr std::string_view kLessTwo = "let n = circle_multiple(x); fma(n, -half_pi, x) - n * half_pi_low";

// What the second subtraction (TwoSum) and its product rounded off, less the third part.
constexpr std::string_view kLow = R"(
  let n = circle_multiple(x);
  let r = fma(n, -half_pi, x);
  let p = n * half_pi_low;
  let head = circle_less_two(x);
  let back = head - r;
  let lost = (r - (head - back)) - (p + back);
  fma(n, -half_pi_rest, lost - fma(n, half_pi_low, -p)))";

constexpr std::string_view kRest = "where(abs(x) <= circle_bound, circle_less_two(x), pi_reduce(x, 0))";
constexpr std::string_view kRestLow = "where(abs(x) <= circle_bound, circle_low(x), pi_reduce(x, 1))";
constexpr std::string_view kQuadrant = R"(
  let n = where(abs(x) <= circle_bound, circle_multiple(x), pi_reduce(x, 2));
  from_bits(bits(n + rounder) & 3))";

constexpr std::string_view kSinLow = R"(
  let z = x * x;
  fma(x, z * sin_poly(z), fma(y * z, -0.5, y)))";
constexpr std::string_view kCosHigh = "1 - 0.5 * (x * x)";
constexpr std::string_view kCosLow = R"(
  let z = x * x;
  let h = 0.5 * z;
  let lost = fma(0.5 * x, x, -h);
  fma(z * z, cos_poly(z), fma(-x, y, (1 - cos_high(x)) - h) - lost))";

constexpr std::string_view kSin = R"(
  let r = circle_rest(x);
  let low = circle_rest_low(x);
  let quadrant = bits(circle_quadrant(x));
  let v = where((quadrant & 1) == 0, r + sin_low(r, low), cos_high(r) + cos_low(r, low));
  where(x == 0, x, where((quadrant & 2) == 0, v, -v)))";

constexpr std::string_view kCos = R"(
  let r = circle_rest(x);
  let low = circle_rest_low(x);
  let quadrant = bits(circle_quadrant(x));
  let v = where((quadrant & 1) == 0, cos_high(r) + cos_low(r, low), r + sin_low(r, low));
  where(((quadrant + 1) & 2) == 0, v, -v))";

// The quotient of the two sums, corrected by what they and the division rounded off.
constexpr std::string_view kTan = R"(
  let r = circle_rest(x);
  let low = circle_rest_low(x);
  let even = (bits(circle_quadrant(x)) & 1) == 0;
  let s_rest = sin_low(r, low);
  let s = r + s_rest;
  let s_lo = s_rest - (s - r);
  let c_rest = cos_low(r, low);
  let c = cos_high(r) + c_rest;
  let c_lo = c_rest - (c - cos_high(r));
  let a = where(even, s, -c);
  let a_lo = where(even, s_lo, -c_lo);
  let b = where(even, c, s);
  let b_lo = where(even, c_lo, s_lo);
  let inverse = 1 / b;
  let q = a * inverse;
  where(x == 0, x, fma(fma(-q, b, a) + fma(-q, b_lo, a_lo), inverse, q)))";

// The angle of 1 is pi/4 rounded, which the polynomial misses by one unit in float32.
constexpr std::string_view kAtan = R"(
  let a = abs(x);
  let v = where(a > 1, 1 / a, a);
  let z = v * v;
  let r = where(v == 1, 0.5 * half_pi, fma(v * z, atan_poly(z), v));
  copysign(where(a > 1, half_pi - (r - half_pi_low), r), x))";

// The smaller over the larger, with what the quotient rounds off; then the octant by parts of pi/2 in two
// numbers.
constexpr std::string_view kAtan2 = R"(
  let p = abs(x);
  let q = abs(y);
  let m = max(p, q);
  let n = min(p, q);
  let k = where(m < smallest_normal * denormal_scale, denormal_scale, 1);
  let v = where(m == 0, 0, where(n == inf, 1, (n * k) / (m * k)));
  let lost = where((m > 0) & (m < inf) & (v > smallest_normal * denormal_scale), fma(-v, m * k, n * k) / (m * k), 0);
  let z = v * v;
  let r_low = fma(v * z, atan_poly(z), lost / (1 + z));
  let r = where(v == 1, 0.5 * half_pi, v + r_low);
  let steep = where(p > q, half_pi - (r - half_pi_low), r);
  let left = copysign(1, y) < 0;
  let t = where(left & (p > q), half_pi + (r + half_pi_low),
                where(left, 2 * half_pi - (r - 2 * half_pi_low), steep));
  where((x != x) | (y != y), nan, copysign(t, x)))";

// asin(v) = v + v * z * p(z), z = v^2, v <= 1/2. Chebyshev interpolation in 60 digits, rounded.
constexpr std::string_view kAsinPolyF32 =
    R"(poly(x, 0x1.555554p-3, 0x1.333430p-4, 0x1.6d5bbap-5, 0x1.fd8da2p-6, 0x1.18f91ep-6, 0x1.13fed4p-5))";
constexpr std::string_view kAsinPolyF64 = R"(
  poly(x, 0x1.5555555555556p-3, 0x1.3333333332ecap-4, 0x1.6db6db6e31f13p-5, 0x1.f1c71c1db0623p-6,
       0x1.6e8bb1c8209a2p-6, 0x1.1c4d35cf95421p-6, 0x1.c9cf07674736ap-7, 0x1.782651caa6547p-7,
       0x1.52420b04b37bep-7, 0x1.65a9c4dfcf8b2p-8, 0x1.1d189408314eep-6, -0x1.e6aaa8a0a04ccp-7,
       0x1.d72b2bc8155f8p-6))";

// Above 1/2 by the half angle: asin(a) = pi/2 - 2 asin(s), s^2 = (1 - a) / 2, with what the root rounds off.
constexpr std::string_view kHalfSquare = "where(x > 0.5, fma(-0.5, x, 0.5), x * x)";
constexpr std::string_view kHalfRest = R"(
  let z = half_square(x);
  let lost = where((x > 0.5) & (y > 0), fma(-y, y, z) / (2 * y), 0);
  fma(y * z, asin_poly(z), lost))";
constexpr std::string_view kAsin = R"(
  let a = abs(x);
  let s = where(a > 0.5, sqrt(half_square(a)), a);
  let p = half_rest(a, s);
  let hi = half_pi - 2 * s;
  let steep = hi + (((half_pi - hi) - 2 * s) - (2 * p - half_pi_low));
  copysign(where(a > 0.5, steep, s + p), x))";
constexpr std::string_view kAcos = R"(
  let a = abs(x);
  let s = where(a > 0.5, sqrt(half_square(a)), a);
  let p = half_rest(a, s);
  let hi = half_pi - x;
  let middle = hi + (((half_pi - hi) - x) - (copysign(p, x) - half_pi_low));
  let far = 2 * half_pi - 2 * s;
  let left = far + (((2 * half_pi - far) - 2 * s) - (2 * p - 2 * half_pi_low));
  where(a > 0.5, where(x > 0, 2 * (s + p), left), middle))";

// sin(pi x) / (pi x) by the distance from the nearest integer.
constexpr std::string_view kSinc = R"(
  let a = abs(x);
  let n = round(a);
  let r = a - n;
  let s = sin_pi_hi(r) / (0x1.921fb54442d18p+1 * a);
  let odd = trunc(0.5 * n) != 0.5 * n;
  let z = r * r;
  let near = fma(z, 0x1.45f306dc9c883p-2 * poly(z, -0x1.4abbce625be53p+2, 0x1.466bc6775aae2p+1, -0x1.32d2cce62bd7cp-1, 0x1.50783487edb3cp-4,
       -0x1.e3074fdd8bd87p-8, 0x1.e8f43419874c7p-12, -0x1.6fad6c65af106p-16, 0x1.aac5c5a7945bcp-21,
       -0x1.7ff5f2829eb3p-26), 1);
  where(a < 0.5, near, where(a < inf, where(odd, -s, s), where(a == inf, 0, x))))";

constexpr Function kTrigonometricFunctions[] = {
    {.name = "asin_poly", .body_f32 = kAsinPolyF32, .body_f64 = kAsinPolyF64, .internal = true},
    {.name = "half_square", .body_float = kHalfSquare, .internal = true, .doc = "s^2"},
    {.name = "half_rest", .arity = 2, .body_float = kHalfRest, .internal = true, .doc = "asin(s) - s, y = s"},
    {.name = "asin",
     .derivative = {"1 / sqrt((1 - x) * (1 + x))"},
     .body_float = kAsin,
     .doc = "inverse sine"},
    {.name = "acos",
     .derivative = {"-1 / sqrt((1 - x) * (1 + x))"},
     .body_float = kAcos,
     .doc = "inverse cosine"},
    {.name = "sin_poly", .body_f32 = kSinPolyF32, .body_f64 = kSinPolyF64, .internal = true},
    {.name = "cos_poly", .body_f32 = kCosPolyF32, .body_f64 = kCosPolyF64, .internal = true},
    {.name = "atan_poly", .body_f32 = kAtanPolyF32, .body_f64 = kAtanPolyF64, .internal = true},
    {.name = "circle_multiple", .body_float = kMultiple, .internal = true, .doc = "n = x / (pi/2), rounded"},
    {.name = "circle_less_two",
     .body_float = kLessTwo,
     .internal = true,
     .doc = "x - n * (pi/2 in two parts)"},
    {.name = "circle_low", .body_float = kLow, .internal = true, .doc = "x - n * pi/2 - circle_less_two(x)"},
    {.name = "circle_rest", .body_float = kRest, .internal = true, .doc = "x - n * pi/2, rounded"},
    {.name = "circle_rest_low", .body_float = kRestLow, .internal = true, .doc = "what that rounded off"},
    {.name = "circle_quadrant", .body_float = kQuadrant, .internal = true, .doc = "bits of n mod 4"},
    {.name = "sin_low", .arity = 2, .body_float = kSinLow, .internal = true, .doc = "sin(x + y) - x"},
    {.name = "cos_high", .body_float = kCosHigh, .internal = true, .doc = "1 - x^2 / 2"},
    {.name = "cos_low",
     .arity = 2,
     .body_float = kCosLow,
     .internal = true,
     .doc = "cos(x + y) - cos_high(x)"},
    {.name = "sin", .derivative = {"cos(x)"}, .body_float = kSin, .doc = "sine of radians"},
    {.name = "cos", .derivative = {"-sin(x)"}, .body_float = kCos, .doc = "cosine of radians"},
    {.name = "atan2",
     .arity = 2,
     .derivative = {"let h = hypot(x, y); where(h == 0, 0, y / h / h)",
                    "let h = hypot(x, y); where(h == 0, 0, -x / h / h)"},
     .body_float = kAtan2,
     .doc = "the angle of the point (y, x), from -pi to pi"},
    {.name = "tan", .derivative = {"1 + result * result"}, .body_float = kTan, .doc = "tangent of radians"},
    {.name = "sinc",
     .derivative = {"where(x == 0, 0, (cos(pi * (x - 2 * round(0.5 * real(x)))) - result) / x)"},
     .body_f64 = kSinc,
     .doc = "sin(pi x) / (pi x)"},
    {.name = "atan", .derivative = {"1 / (1 + x * x)"}, .body_float = kAtan, .doc = "inverse tangent"},
};

}  // namespace

std::span<const Function> trigonometric_functions() noexcept { return kTrigonometricFunctions; }

}  // namespace tenon::expr
