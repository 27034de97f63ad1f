// Modified Bessel functions of the first kind: up to 3 a power series of x^2, up to 8 e^x times a polynomial,
// beyond e^x / sqrt(x) times a polynomial of 1 / x. float32 computes in float64. Coefficients: Chebyshev
// interpolation in 70 digits, rounded; the values in the middle in two numbers.
#include "tenon/expr/function_rows.h"

namespace tenon::expr {

namespace {

constexpr std::string_view kI0Near =
    R"(let z = x * x; fma(z, poly(z, 0x1p-2, 0x1p-6, 0x1.c71c71c71c71cp-12, 0x1.c71c71c71c71cp-18, 0x1.23456789abcdfp-24,
       0x1.02e85c0898b71p-31, 0x1.522a43f65486ap-39, 0x1.522a43f65486ap-47, 0x1.0b313289be086p-55,
       0x1.5601885e65aa3p-64, 0x1.69ca9cf2fef72p-73, 0x1.4197a82c8837fp-82, 0x1.e725413f2b106p-92,
       0x1.3e2683b6c7c9dp-101, 0x1.69385d1bb3ccdp-111, 0x1.81362b59f2295p-121), 1))";
constexpr std::string_view kI0Middle =
    R"(let s = x - 5.5; fma(s, poly(s, -0x1.12f5d8e58e29p-6, 0x1.4093294e45eb1p-9, -0x1.a4d2e01a9c66ep-12, 0x1.26095a30a7066p-14,
       -0x1.aa1e4cd613518p-17, 0x1.392f182c99613p-19, -0x1.c8fd2cc098adfp-22, 0x1.44cc64758ae68p-24,
       -0x1.bb6f4cb29e197p-27, 0x1.200bbbdd6143p-29, -0x1.623a9a80118d6p-32, 0x1.9b5e8144607f2p-35,
       -0x1.c2ea186e357dfp-38, 0x1.d2cf859fee25ep-41, -0x1.c8ea644c545c1p-44, 0x1.a7da31762c0f3p-47,
       -0x1.76b55d7003851p-50, 0x1.39683206b7dap-53, -0x1.dd8d6ec2c428p-57, 0x1.6e4563301f44cp-60,
       -0x1.66bc128e1c20cp-63, 0x1.ea6d82a5029f2p-67), -0x1.8cec44ca0fd97p-58))";
constexpr std::string_view kI0Far =
    R"(let s = 1 / x - 0.0625; fma(s, poly(s, 0x1.b87969bb93bd2p-5, 0x1.1daa72b5e22b2p-5, 0x1.75e5ee6fabb85p-5, 0x1.8e513a7ddffecp-4,
       0x1.3f49af1ca6576p-2, 0x1.7d0f0727d6a9dp+0, 0x1.51cb3832a6046p+3, 0x1.723509510cd4ap+6,
       0x1.03fa571f405c2p+9, -0x1.cfe4f8bebe7e4p+12, -0x1.ceb2c3f3c2085p+17, -0x1.72b4495699537p+20,
       0x1.09d8aa3fc68bp+25, 0x1.fcf3dd682ab36p+28, -0x1.0c5d8b2e86f47p+32, -0x1.9683a45b51615p+36,
       0x1.2159f0c508719p+39, 0x1.ee943d682b9f4p+43, -0x1.3ab3b1c19a518p+46, -0x1.b5e3e7f99d058p+50,
       0x1.1998ba2c8ef47p+53, 0x1.ec7656d43152ap+56, -0x1.4b4eae130efc2p+59, -0x1.03b4aa8a9e407p+62,
       0x1.6e48b56608f9p+64), -0x1.b7798c6c226e6p-56))";
constexpr std::string_view kI1Near =
    R"(let z = x * x; x * fma(z, poly(z, 0x1p-4, 0x1.5555555555555p-9, 0x1.c71c71c71c71cp-15, 0x1.6c16c16c16c17p-21,
       0x1.845c8a0ce5129p-28, 0x1.27e4fb7789f5cp-35, 0x1.522a43f65486ap-43, 0x1.2c9758daf5cap-51,
       0x1.ab81ea75fed2cp-60, 0x1.f17697ce33905p-69, 0x1.e2637c3e216ep-78, 0x1.8bce45b7f78b2p-87,
       0x1.1661a1b5fbc72p-96, 0x1.52a6c9cd5609ap-106, 0x1.811ea0901dd14p-116), 0.5))";
constexpr std::string_view kI1Middle =
    R"(let s = x - 5.5; fma(s, poly(s, -0x1.85a21d23f95c5p-7, 0x1.45882a8896605p-10, -0x1.fb2617a7d6de5p-14, 0x1.bb66a2aec97c6p-18,
       0x1.5d42bb67dc6acp-20, -0x1.5ab9bc0774d58p-21, 0x1.813738438d217p-23, -0x1.5c21a19c465b3p-25,
       0x1.14ae09fb4b3d7p-27, -0x1.8e09e5421a27p-30, 0x1.06d315338ae9p-32, -0x1.415aac75af5c9p-35,
       0x1.6e02a7db0c1e1p-38, -0x1.8629677b49715p-41, 0x1.86b3af4db7f5p-44, -0x1.71155780e8148p-47,
       0x1.4b34ad17d51adp-50, -0x1.1860e69c8d9a4p-53, 0x1.aef3592313561p-57, -0x1.4d7ce13568758p-60,
       0x1.4a4db56a085d4p-63, -0x1.c625f8fc349bbp-67), -0x1.d74a86aefca94p-59))";
constexpr std::string_view kI1Far =
    R"(let s = 1 / x - 0.0625; fma(s, poly(s, -0x1.3f796198ee63fp-3, -0x1.cbc54df1e894cp-5, -0x1.f89c230446f74p-5, -0x1.ec8e107bd7eaap-4,
       -0x1.7613865ea6e9ap-2, -0x1.ad8d43e5d60bep+0, -0x1.727702ec186d3p+3, -0x1.9191ff33370adp+6,
       -0x1.21f47a4eb566bp+9, 0x1.ceff3cea7c3a4p+12, 0x1.e413f0678e137p+17, 0x1.99d190fe908dap+20,
       -0x1.0c96c7afcb02cp+25, -0x1.0e2bb88351649p+29, 0x1.05656ba38c1b6p+32, 0x1.aa440cf09ce3p+36,
       -0x1.11c9f66d690fcp+39, -0x1.01ef463d9c576p+44, 0x1.268bd450a314cp+46, 0x1.c7aed1ee533f7p+50,
       -0x1.07d06c81c1d24p+53, -0x1.fff33f3b3e75ap+56, 0x1.37bea5c8dbcccp+59, 0x1.0ddc7620a9205p+62,
       -0x1.5a29b473f1663p+64), -0x1.c4e093e3b5bdfp-58))";
// (x + y) / sqrt(z), and what that rounds off.
constexpr std::string_view kOverRoot = R"(
  let r = sqrt(z);
  (x + y) / r)";
constexpr std::string_view kOverRootLow = R"(
  let r = sqrt(z);
  let r_lo = 0.5 * fma(-r, r, z) / r;
  let c = x + y;
  let c_lo = (x - c) + y;
  let m = c / r;
  (fma(-m, r, c) + (c_lo - m * r_lo)) / r)";
constexpr std::string_view kI0 = R"(
  let a = abs(x);
  let v = min(max(a, 3), 800);
  let r = i0_far(max(v, 8));
  let t = i0_middle(min(v, 8));
  let far = v > 8;
  let m = where(far, over_root(0x1.9bd428ad249a5p-2, r, v), 0x1.65577a3ee1391p-3 + t);
  let m_lo = where(far, over_root_low(0x1.9bd428ad249a5p-2, r, v), (0x1.65577a3ee1391p-3 - m) + t);
  let y = where(a < 3, i0_near(min(a, 3)), times_exp(m, m_lo, v));
  let w = where(a > 720, inf, y);
  where(x == x, w, x))";
constexpr std::string_view kI0e = R"(
  let a = abs(x);
  let v = max(a, 3);
  let n = min(a, 3);
  let y = where(v > 8, over_root(0x1.9bd428ad249a5p-2, i0_far(max(v, 8)), v), 0x1.65577a3ee1391p-3 + i0_middle(min(v, 8)));
  let w = where(a < 3, times_exp(i0_near(n), 0, -n), y);
  where(x == x, w, x))";
constexpr std::string_view kI1 = R"(
  let a = abs(x);
  let v = min(max(a, 3), 800);
  let r = i1_far(max(v, 8));
  let t = i1_middle(min(v, 8));
  let far = v > 8;
  let m = where(far, over_root(0x1.8ebe783a8403p-2, r, v), 0x1.42f8bf222f73fp-3 + t);
  let m_lo = where(far, over_root_low(0x1.8ebe783a8403p-2, r, v), (0x1.42f8bf222f73fp-3 - m) + t);
  let y = where(a < 3, i1_near(min(a, 3)), times_exp(m, m_lo, v));
  let w = where(a > 720, inf, y);
  where(x == x, copysign(w, x), x))";
constexpr std::string_view kI1e = R"(
  let a = abs(x);
  let v = max(a, 3);
  let n = min(a, 3);
  let y = where(v > 8, over_root(0x1.8ebe783a8403p-2, i1_far(max(v, 8)), v), 0x1.42f8bf222f73fp-3 + i1_middle(min(v, 8)));
  let w = where(a < 3, times_exp(i1_near(n), 0, -n), y);
  where(x == x, copysign(w, x), x))";

constexpr Function kRows[] = {
    {.name = "i0_near", .body_f64 = kI0Near, .internal = true},
    {.name = "i0_middle", .body_f64 = kI0Middle, .internal = true, .costly = true},
    {.name = "i0_far", .body_f64 = kI0Far, .internal = true, .costly = true},
    {.name = "i1_near", .body_f64 = kI1Near, .internal = true},
    {.name = "i1_middle", .body_f64 = kI1Middle, .internal = true, .costly = true},
    {.name = "i1_far", .body_f64 = kI1Far, .internal = true, .costly = true},
    {.name = "over_root", .arity = 3, .body_f64 = kOverRoot, .internal = true},
    {.name = "over_root_low", .arity = 3, .body_f64 = kOverRootLow, .internal = true},
    {.name = "i1",
     .derivative = {"where(abs(x) < 1e-300, 0.5, i0(x) - result / x)"},
     .body_f64 = kI1,
     .doc = "the modified Bessel function of order 1"},
    {.name = "i0",
     .derivative = {"i1(x)"},
     .body_f64 = kI0,
     .doc = "the modified Bessel function of order 0"},
    {.name = "i0e", .derivative = {"i1e(x) - sign(x) * result"}, .body_f64 = kI0e, .doc = "e^-|x| * i0(x)"},
    {.name = "i1e",
     .derivative = {"where(abs(x) < 1e-300, 0.5, i0e(x) - result * (sign(x) + 1 / x))"},
     .body_f64 = kI1e,
     .doc = "e^-|x| * i1(x)"},
};

}  // namespace

std::span<const Function> bessel_functions() noexcept { return kRows; }

}  // namespace tenon::expr
