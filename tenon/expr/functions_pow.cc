// pow(x, y) = 2^(y * log2|x|) with the logarithm and the product as unevaluated sums of two numbers (Dekker,
// 1971), and C's rules for signs, zeros and infinities. |x| = 2^n * (1 + f), log(1 + f) = 2 atanh(s), s = f /
// (2 + f).
#include "tenon/expr/function_rows.h"

namespace tenon::expr {

namespace {

// q(z), where log(1 + f) = s * (2 + z * (2/3 + z * q(z))), z = s^2.
constexpr std::string_view kPolyF32 = "poly(x, 0x1.9999d6p-2, 0x1.246204p-2, 0x1.dcee3ep-3)";
constexpr std::string_view kPolyF64 = R"(
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

constexpr Function kRows[] = {
    {.name = "pow_root", .body_float = kPowRoot, .internal = true, .costly = true},
    {.name = "pow_inverse", .body_float = "1 / x", .internal = true, .costly = true},
    {.name = "pow_whole", .arity = 2, .body_float = kPowWhole, .internal = true, .costly = true},
    {.name = "pow_fewer", .arity = 2, .body_float = kPowFewer, .internal = true, .costly = true},
    {.name = "pow_few", .arity = 2, .body_float = kPowFew, .internal = true, .costly = true},
    {.name = "pow_general", .arity = 2, .body_float = kPow, .internal = true},
    {.name = "pow_near", .arity = 3, .body_float = kPowNear, .internal = true, .costly = true},
    {.name = "pow_poly", .body_f32 = kPolyF32, .body_f64 = kPolyF64, .internal = true},
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

std::span<const Function> power_functions() noexcept { return kRows; }

}  // namespace tenon::expr
