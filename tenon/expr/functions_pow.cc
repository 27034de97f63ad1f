// pow(x, y) = 2^(y * log2|x|) with the logarithm and the product as unevaluated sums of two numbers (Dekker,
// 1971), and C's rules for signs, zeros and infinities. |x| = 2^n * (1 + f), log(1 + f) = 2 atanh(s), s = f /
// (2 + f).
#include "tenon/expr/function_rows.h"

namespace tenon::expr {

namespace {

// q(z), where log(1 + f) = s * (2 + z * (2/3 + z * q(z))), z = s^2.
constexpr std::string_view kQF32 = "poly(x, 0x1.9999d6p-2, 0x1.246204p-2, 0x1.dcee3ep-3)";
constexpr std::string_view kQF64 = R"(
  poly(x, 0x1.9999999999a07p-2, 0x1.249249247b33cp-2, 0x1.c71c71fbc8bbp-3, 0x1.745cfad09320dp-3,
       0x1.3b1be5f00488bp-3, 0x1.0fc58fb82dd87p-3, 0x1.0bc4e23bea975p-3))";

// 2^(x + y) for small y.
constexpr std::string_view kExp2SumF32 = R"(
  let t = x + 0x1.8p+23;
  let r = x - (t - 0x1.8p+23) + y;
  let p = poly(r, 1, 0x1.62e43p-1, 0x1.ebfbd8p-3, 0x1.c6af76p-5, 0x1.3b30ap-7, 0x1.5f0b82p-10, 0x1.3fa206p-13);
  let k = bits(t) - 0x4b400000;
  let half = shift_right(k, 1);
  let v = p * from_bits(shift_left(half + 127, 23)) * from_bits(shift_left(k - half + 127, 23));
  where(x > 129.0, inf, where(x < -151.0, 0, v)))";
constexpr std::string_view kExp2SumF64 = R"(
  let t = x + 0x1.8p+52;
  let r = x - (t - 0x1.8p+52) + y;
  let p = poly(r, 1, 0x1.62e42fefa39efp-1, 0x1.ebfbdff82c58dp-3, 0x1.c6b08d704a182p-5, 0x1.3b2ab6fba53b8p-7,
               0x1.5d87fe7888dffp-10, 0x1.430912f7013a2p-13, 0x1.ffcbfcdb1c5bdp-17, 0x1.62c027b683ceap-20,
               0x1.b524232262994p-24, 0x1.e4bbc00d37bp-28, 0x1.eafdc2f6d54aap-32, 0x1.de49d600a7dc3p-36);
  let k = bits(t) - 0x4338000000000000;
  let half = shift_right_logical(k + 2048, 1);
  let v = p * from_bits(shift_left(half - 1, 52)) * from_bits(shift_left(k - half + 2047, 52));
  where(x > 1025.0, inf, where(x < -1076.0, 0, v)))";

#define TENON_POW_BODY(TINY, SCALE, SHIFT, TWO_THIRDS_HI, TWO_THIRDS_LO, LOG2E_HI, LOG2E_LO) \
  "let a = abs(x);"                                                                          \
  "let small = a < " TINY                                                                    \
  ";"                                                                                        \
  "let v = where(small, a * " SCALE                                                          \
  ", a);"                                                                                    \
  "let n = log_exponent(v) + where(small, " SHIFT                                            \
  ", 0);"                                                                                    \
  "let f = log_fraction(v);"                                                                 \
  "let d = 2 + f;"                                                                           \
  "let s = f / d;"                                                                           \
  "let s_lo = (fma(-s, d, f) - s * (f - (d - 2))) / d;"                                      \
  "let z = s * s;"                                                                           \
  "let z_lo = fma(s, s, -z) + 2 * s * s_lo;"                                                 \
  "let q = pow_q(z);"                                                                        \
  "let u = fma(z, q, " TWO_THIRDS_HI                                                         \
  ");"                                                                                       \
  "let u_lo = fma(z, q, " TWO_THIRDS_HI " - u) + " TWO_THIRDS_LO                             \
  ";"                                                                                        \
  "let w = z * u;"                                                                           \
  "let w_lo = fma(z, u, -w) + fma(z, u_lo, z_lo * u);"                                       \
  "let t = 2 + w;"                                                                           \
  "let t_lo = (w - (t - 2)) + w_lo;"                                                         \
  "let l = s * t;"                                                                           \
  "let l_lo = fma(s, t, -l) + fma(s, t_lo, s_lo * t);"                                       \
  "let b = l * " LOG2E_HI                                                                    \
  ";"                                                                                        \
  "let b_lo = fma(l, " LOG2E_HI ", -b) + fma(l, " LOG2E_LO ", l_lo * " LOG2E_HI              \
  ");"                                                                                       \
  "let g = n + b;"                                                                           \
  "let g_lo = (b - (g - n)) + b_lo;"                                                         \
  "let log_hi = where(a == 0, -inf, where(a < inf, g, a));"                                  \
  "let hi = y * log_hi;"                                                                     \
  "let lo = fma(y, g, -hi) + y * g_lo;"                                                      \
  "let power = exp2_sum(hi, lo);"                                                            \
  "let whole = trunc(y) == y;"                                                               \
  "let odd = whole & (trunc(0.5 * y) != 0.5 * y);"                                           \
  "let signed = where(odd, copysign(power, x), power);"                                      \
  "let defined = where((x < 0) & !whole & (x > -inf), nan, signed);"                         \
  "where((x == 1) | (y == 0) | ((x == -1) & (abs(y) == inf)), 1, defined)"

constexpr std::string_view kPowF32 = TENON_POW_BODY("0x1p-126", "0x1p+25", "-25", "0x1.555556p-1",
                                                    "-0x1.555556p-26", "0x1.715476p+0", "0x1.4ae0cp-26");
constexpr std::string_view kPowF64 =
    TENON_POW_BODY("0x1p-1022", "0x1p+54", "-54", "0x1.5555555555555p-1", "0x1.5555555555555p-55",
                   "0x1.71547652b82fep+0", "0x1.777d0ffda0d24p-56");
#undef TENON_POW_BODY

constexpr Function kRows[] = {
    {.name = "pow_q", .body_f32 = kQF32, .body_f64 = kQF64, .internal = true, .doc = "series of atanh"},
    {.name = "exp2_sum",
     .arity = 2,
     .body_f32 = kExp2SumF32,
     .body_f64 = kExp2SumF64,
     .internal = true,
     .doc = "2^(x + y) for small y"},
    {.name = "pow",
     .arity = 2,
     .derivative = {"where(y == 0, 0, y * pow(x, y - 1))", "where((x == 0) & (y >= 0), 0, result * log(x))"},
     .body_f32 = kPowF32,
     .body_f64 = kPowF64,
     .body_int = "int_pow(x, y)",
     .doc = "x^y; C's special cases; integers wrap"},
};

}  // namespace

std::span<const Function> power_functions() noexcept { return kRows; }

}  // namespace tenon::expr
