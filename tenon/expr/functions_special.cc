// The error function. |x| < 1: x times a polynomial in x^2, its first coefficient 2/sqrt(pi) in two parts.
// Above: 1 - exp(-x^2) * g(t) with g = exp(x^2) * erfc(x), smooth in t = (x - 2) / (x + 2); the subtrahend is
// below 0.16. Coefficients: Sollya's fpminimax, in the type itself.
#include "tenon/expr/function_rows.h"

namespace tenon::expr {

namespace {

constexpr std::string_view kInnerF32 = R"(
  poly(x, -0x1.812746p-2, 0x1.ce2eecp-4, -0x1.b826d8p-6, 0x1.56049ap-8, -0x1.bab7f8p-11, 0x1.c7dfd6p-14,
       -0x1.fd0caap-18, -0x1.e059fep-22))";
constexpr std::string_view kInnerF64 = R"(
  poly(x, -0x1.812746b0379e7p-2, 0x1.ce2f21a042c11p-4, -0x1.b82ce3128990fp-6, 0x1.565bcd0e8bd11p-8,
       -0x1.c02db4065d0f4p-11, 0x1.f9a327b07b566p-14, -0x1.f4d26a504bae9p-17, 0x1.b9e77fd25756ap-20,
       -0x1.5f79ddf2e0f41p-23, 0x1.fcf0c36166981p-27, -0x1.5179a47bb35d4p-30, 0x1.8f9acc96bb57cp-34,
       -0x1.511bf9801fd8ap-38))";
constexpr std::string_view kOuterF32 = R"(
  poly(x, 0x1.058672p-2, -0x1.b57036p-2, 0x1.eeea34p-3, -0x1.437d14p-4, 0x1.ebaf4ap-9, 0x1.c69e2cp-8,
       -0x1.191ae4p-10, -0x1.0c6adap-12, 0x1.f83d4ep-11, -0x1.663b6cp-9))";
constexpr std::string_view kOuterF64 = R"(
  poly(x, 0x1.058671b52c776p-2, -0x1.b57034efd3f73p-2, 0x1.eeea7dc8a7879p-3, -0x1.437f0b68c08e1p-4,
       0x1.e94715980173dp-9, 0x1.ca95ed51edca9p-8, -0x1.bc25a4c2118efp-11, -0x1.016b5be0484b9p-10,
       0x1.6d5f535965488p-15, 0x1.6da899da22b22p-13, 0x1.cdc84c8d9cfd3p-16, -0x1.ce50e1241dbedp-16,
       -0x1.d550a0981006fp-17, 0x1.429534ffe152cp-20, 0x1.17cd72950dde3p-18, 0x1.e1445b99a0115p-20,
       -0x1.94c959216995p-19, 0x1.1abbd794f5958p-21, 0x1.5d6338b3ed14ap-18, -0x1.0ac73cd5d535dp-17,
       0x1.e1480a4141415p-19))";

constexpr std::string_view kErf = R"(
  let a = abs(x);
  let z = x * x;
  let inner = fma(x, two_over_sqrt_pi, x * fma(z, erf_inner(z), two_over_sqrt_pi_low));
  let outer = where(a >= erf_above, 1, fma(-exp(-z), erf_outer((a - 2) / (a + 2)), 1));
  copysign(where(a < 1, inner, outer), x))";

constexpr Function kRows[] = {
    {.name = "erf_inner", .body_f32 = kInnerF32, .body_f64 = kInnerF64, .internal = true},
    {.name = "erf_outer", .body_f32 = kOuterF32, .body_f64 = kOuterF64, .internal = true},
    {.name = "erf",
     .derivative = {"1.1283791670955126 * exp(-(x * x))"},
     .body_float = kErf,
     .doc = "error function"},
};

}  // namespace

std::span<const Function> special_functions() noexcept { return kRows; }

}  // namespace tenon::expr
