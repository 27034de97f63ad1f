// Modified Bessel functions. Of the first kind: up to 3 a power series of x^2, up to 8 e^x times a
// polynomial, beyond e^x / sqrt(x) times a polynomial of 1 / x. Of the second: up to 1 a logarithm or a pole
// and a power series, beyond e^-x / sqrt(x) times polynomials of 1 / x. float32 computes in float64, but for
// i1e. Coefficients: Chebyshev interpolation in 45 digits or more, rounded; the values in the middle in two
// numbers. Of i1e in float32: least squares whose weights level the largest relative errors (Lawson), rounded
// one after the other.
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
constexpr std::string_view kOverRootLowF32 = R"(
  let r = sqrt(z);
  let i = 1 / r;
  let c = x + y;
  let m = c / r;
  fma(-m, r, c) * i + ((x - c) + y - m * (0.5 * fma(-r, r, z) * i)) * i)";
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
// float32: up to 2 a power series times e^-x, up to 5 a polynomial, beyond one of 1 / x over sqrt(x).
constexpr std::string_view kI1eNearF32 = R"(
  let z = x * x;
  let v = x * (z * poly(z, 0x1p-4, 0x1.55554ap-9, 0x1.c7219ap-15, 0x1.6b4a8p-21, 0x1.9e6938p-28));
  let i = fma(x, 0.5, v);
  let r = exp_rest(-abs(x));
  let y = fma(i, fma(r * r, exp_poly(r), r), v - fma(x, -0.5, i)) + i;
  y * from_bits(shift_left(bits(exp_exponent(-abs(x))) - rounder_bits + bias, mantissa_bits)))";
constexpr std::string_view kI1eMiddleF32 = R"(
  let s = x - 3.5;
  let p = poly(s, -0x1.293646p-6, 0x1.a5e696p-10, 0x1.f03d68p-13, -0x1.b92fa6p-13, 0x1.60171ep-14, -0x1.af926p-16,
                  0x1.b561cap-18, -0x1.91ff5p-20, 0x1.98bf32p-22, -0x1.29765p-24);
  0x1.7fcb9p-3 + fma(s, p, -0x1.cd5ee2p-28))";
constexpr std::string_view kI1eFarF32 = R"(
  let s = 1 / x - 0.09375;
  let p = poly(s, -0x1.470fe4p-3, -0x1.00f556p-4, -0x1.4eedaep-4, -0x1.d8d8c2p-3, -0x1.050156p+0, -0x1.24e59ap+0,
                  0x1.967662p+4, 0x1.73c534p+6);
  let r = fma(s, p, -0x1.92f238p-28);
  over_root(0x1.89b1aep-2, r, x) + over_root_low(0x1.89b1aep-2, r, x))";
constexpr std::string_view kI1eF32 = R"(
  let a = abs(x);
  let far = where(a < 5, i1e_middle(a), i1e_far(min(max(a, 5), 0x1.fffffep127)));
  let w = where(a < 2, i1e_near(min(a, 2)), where(a == inf, 0, far));
  where(x == x, copysign(w, x), x))";
// What log_hi(x) + log_lo(x) rounds off.
constexpr std::string_view kLogRest = R"(
  let n = max(x, 0x1p-1000);
  let l = log_hi(n);
  where(x < 0x1p-1000, 0, log_lo(n) - ((l + log_lo(n)) - l)))";
constexpr std::string_view kLogSum = R"(
  let n = max(x, 0x1p-1000);
  where(x < 0x1p-1000, log(x), log_hi(n) + log_lo(n)))";
// The modified function up to 1 in two numbers that are to be added.
constexpr std::string_view kK0Near = R"(0x1.0c2047108e956p-2 - log_whole(x))";
constexpr std::string_view kK0NearLow = R"(
  let l = -log_whole(x);
  let h = bessel_k0_sum(x);
  let back = h - l;
  let lost = (l - (h - back)) + (0x1.0c2047108e956p-2 - back);
  let z = x * x;
  let s = z - 0.5;
  fma(l, i0_near(x) - 1, fma(s, poly(s, 0x1.3830d94ea686dp-2, 0x1.b2d72c6a79dedp-6, 0x1.cb6b8d18ee4cp-11, 0x1.0120e8a9568p-16,
       0x1.6546fbacp-23, 0x1.527ba08p-30, 0x1.d18dp-38, 0x1.e6p-46, 0x1.8p-54, 0x1p-62), -0x1.2d1750df3b4fcp-56)) + (lost - log_lost(x)))";
constexpr std::string_view kK1Near = R"(1 / x)";
constexpr std::string_view kK1NearLow = R"(
  let n = max(x, 0x1p-500);
  let h = 1 / n;
  let z = x * x;
  fma(log(x), i1_near(x), x * poly(z, -0x1.3b5b6028a83d6p-2, -0x1.5dadb014541ebp-4, -0x1.303ae729ff30ep-8, -0x1.d802af7a5dbcp-14,
       -0x1.a291822474p-20, -0x1.e212a0018p-27, -0x1.8630abcp-34, -0x1.d493cp-42, -0x1.b24p-50,
       -0x1.4p-58)) + where(x < 0x1p-500, 0, fma(-h, n, 1) / n))";
// e^x sqrt(x) times the modified function, less a number near to it: from 1 to 3, and beyond.
constexpr std::string_view kK0Middle =
    R"(let s = 1 / x - 0x1.5555555555555p-1; fma(s, poly(s, -0x1.84d15e8b95eddp-4, 0x1.a87d7900b4bep-6, -0x1.5ae910d6bd6cp-7, 0x1.5fd90a762e4p-8,
       -0x1.99da18384e8p-9, 0x1.0747f224dap-9, -0x1.6c295d8238p-10, 0x1.0ae7036ep-10,
       -0x1.9a20218ap-11, 0x1.47b64a56p-11, -0x1.0ebeea48p-11, 0x1.cc5a8fap-12, -0x1.9079e7p-12,
       0x1.64ceeap-12, -0x1.4dd5a8p-12, 0x1.3598p-12, -0x1.be13p-13, 0x1.a2d4p-13, -0x1.da17p-12,
       0x1.d61cp-12), 0x1.fe70c7d65038cp-56))";
constexpr std::string_view kK0Far =
    R"(let s = 1 / x - 0x1.5555555555555p-3; fma(s, poly(s, -0x1.108bcc8d9b85dp-3, 0x1.d682de6dfb24p-5, -0x1.52dea7e094bp-5, 0x1.4765ea21bp-5,
       -0x1.8179fd7cf9p-5, 0x1.065ad441a4p-4, -0x1.8f95ce53fp-4, 0x1.4d158efacp-3, -0x1.2b3521fap-2,
       0x1.1e4d218ap-1, -0x1.2112c92p+0, 0x1.321d894p+1, -0x1.55d50a8p+2, 0x1.8912ebp+3,
       -0x1.97b396p+4, 0x1.e2c3e4p+5, -0x1.28c29p+8, 0x1.98e89p+9, 0x1.7661ap+10, -0x1.31c74p+12,
       -38902, 114667), -0x1.24e1d10eeb97dp-56))";
// The modified function times e^y up to 1, and times e^(x + y) beyond.
constexpr std::string_view kK0Small = R"(
  let s = bessel_k0_sum(x) + bessel_k0_rest(x);
  where(x < 0x1p-60, s, times_exp_apart(s, bessel_k0_rest(x) - (s - bessel_k0_sum(x)), y)))";
constexpr std::string_view kK0Large = R"(
  let far = x > 3;
  let c = where(far, 0x1.3ab3f7c471ebdp+0, 0x1.2c6e9d660f581p+0);
  let r = where(far, bessel_k0_far(max(x, 3)), bessel_k0_middle(min(x, 3)));
  times_exp_apart(over_root(c, r, x), over_root_low(c, r, x), y))";
constexpr std::string_view kK0 = R"(
  let v = min(max(x, 1), 800);
  let n = where((x > 0) & (x < 1), x, 1);
  let y = where(x < 1, bessel_k0_small(n, 0), where(x > 760, 0, bessel_k0_large(v, -v)));
  where(x > 0, y, where(x == 0, inf, nan)))";
constexpr std::string_view kK0e = R"(
  let v = min(max(x, 1), 0x1.fffffffffffffp1023);
  let n = where((x > 0) & (x < 1), x, 1);
  let y = where(x < 1, bessel_k0_small(n, n), where(x == inf, 0, bessel_k0_large(v, 0)));
  where(x > 0, y, where(x == 0, inf, nan)))";
constexpr std::string_view kK1Middle =
    R"(let s = 1 / x - 0x1.5555555555555p-1; fma(s, poly(s, 0x1.6d3c2d27fdaa6p-2, -0x1.b11c2f3e4207p-5, 0x1.2481f807dfd8p-6, -0x1.0d0e5030025p-7,
       0x1.26f2e6615f8p-8, -0x1.6b5e97325ap-9, 0x1.e73fe893b8p-10, -0x1.5ca2bb766p-10,
       0x1.06bedd228p-10, -0x1.9d48c954p-11, 0x1.50ea84f8p-11, -0x1.1b2f0e4p-11, 0x1.e7e801p-12,
       -0x1.aef413p-12, 0x1.8fb26p-12, -0x1.7023ap-12, 0x1.0977cp-12, -0x1.efb4p-13, 0x1.13efp-11,
       -0x1.106cp-11), 0x1.668c7bacaa187p-54))";
constexpr std::string_view kK1Far =
    R"(let s = 1 / x - 0x1.5555555555555p-3; fma(s, poly(s, 0x1.b79eb5855933dp-2, -0x1.a40f7f5c9d15p-4, 0x1.faad4be65b58p-5, -0x1.c05ed566778p-5,
       0x1.f4aec0a912p-5, -0x1.48d48ca8e8p-4, 0x1.e8180fa38p-4, -0x1.8efadf5ecp-3, 0x1.60eb512ep-2,
       -0x1.4d8132acp-1, 0x1.4d4761f8p+0, -0x1.5ddcad7p+1, 0x1.83911dp+2, -0x1.babd3p+3, 0x1.caeb9cp+4,
       -0x1.0e8df4p+6, 0x1.45f3bcp+8, -0x1.bf3dcp+9, -0x1.8f382p+10, 0x1.4674cp+12, 0x1.49ef8p+15,
       -124176), -0x1.a03b71acae42cp-55))";
constexpr std::string_view kK1Small = R"(
  let s = bessel_k1_sum(x) + bessel_k1_rest(x);
  where(x < 0x1p-60, s, times_exp_apart(s, bessel_k1_rest(x) - (s - bessel_k1_sum(x)), y)))";
constexpr std::string_view kK1Large = R"(
  let far = x > 3;
  let c = where(far, 0x1.53fb5e5efd8a9p+0, 0x1.85c68f3d1767bp+0);
  let r = where(far, bessel_k1_far(max(x, 3)), bessel_k1_middle(min(x, 3)));
  times_exp_apart(over_root(c, r, x), over_root_low(c, r, x), y))";
constexpr std::string_view kK1 = R"(
  let v = min(max(x, 1), 800);
  let n = where((x > 0) & (x < 1), x, 1);
  let y = where(x < 1, bessel_k1_small(n, 0), where(x > 760, 0, bessel_k1_large(v, -v)));
  where(x > 0, y, where(x == 0, inf, nan)))";
constexpr std::string_view kK1e = R"(
  let v = min(max(x, 1), 0x1.fffffffffffffp1023);
  let n = where((x > 0) & (x < 1), x, 1);
  let y = where(x < 1, bessel_k1_small(n, n), where(x == inf, 0, bessel_k1_large(v, 0)));
  where(x > 0, y, where(x == 0, inf, nan)))";

constexpr Function kBesselFunctions[] = {
    part("i0_near", 1, kI0Near),
    costly_part("i0_middle", 1, kI0Middle),
    costly_part("i0_far", 1, kI0Far),
    part("i1_near", 1, kI1Near),
    costly_part("i1_middle", 1, kI1Middle),
    costly_part("i1_far", 1, kI1Far),
    {.name = "over_root", .arity = 3, .body_float = kOverRoot, .internal = true},
    {.name = "over_root_low",
     .arity = 3,
     .body_f32 = kOverRootLowF32,
     .body_f64 = kOverRootLow,
     .internal = true},
    {.name = "i1",
     .derivative = {"where(abs(x) < 1e-300, 0.5, i0(x) - result / x)"},
     .body_f64 = kI1,
     .narrow = true,
     .doc = "the modified Bessel function of order 1"},
    {.name = "i0",
     .derivative = {"i1(x)"},
     .body_f64 = kI0,
     .narrow = true,
     .doc = "the modified Bessel function of order 0"},
    {.name = "i0e",
     .derivative = {"i1e(x) - sign(x) * result"},
     .body_f64 = kI0e,
     .narrow = true,
     .doc = "e^-|x| * i0(x)"},
    {.name = "i1e_near", .body_f32 = kI1eNearF32, .internal = true},
    {.name = "i1e_middle", .body_f32 = kI1eMiddleF32, .internal = true},
    {.name = "i1e_far", .body_f32 = kI1eFarF32, .internal = true, .costly = true},
    {.name = "i1e",
     .derivative = {"where(abs(x) < 1e-300, 0.5, i0e(x) - result * (sign(x) + 1 / x))"},
     .body_f32 = kI1eF32,
     .body_f64 = kI1e,
     .narrow_f64 = true,
     .doc = "e^-|x| * i1(x)"},
    called_part("log_whole", 1, kLogSum),
    called_part("log_lost", 1, kLogRest),
    called_part("times_exp_apart", 3, "times_exp(x, y, z)"),
    part("bessel_k0_sum", 1, kK0Near),
    part("bessel_k0_rest", 1, kK0NearLow),
    costly_part("bessel_k0_middle", 1, kK0Middle),
    costly_part("bessel_k0_far", 1, kK0Far),
    costly_called_part("bessel_k0_small", 2, kK0Small),
    costly_called_part("bessel_k0_large", 2, kK0Large),
    part("bessel_k1_sum", 1, kK1Near),
    part("bessel_k1_rest", 1, kK1NearLow),
    costly_part("bessel_k1_middle", 1, kK1Middle),
    costly_part("bessel_k1_far", 1, kK1Far),
    costly_called_part("bessel_k1_small", 2, kK1Small),
    costly_called_part("bessel_k1_large", 2, kK1Large),
    {.name = "bessel_k0",
     .derivative = {"-bessel_k1(x)"},
     .body_f64 = kK0,
     .narrow = true,
     .doc = "the modified Bessel function of the second kind, of order 0"},
    {.name = "bessel_k1",
     .derivative = {"-bessel_k0(x) - result / x"},
     .body_f64 = kK1,
     .narrow = true,
     .doc = "the modified Bessel function of the second kind, of order 1"},
    {.name = "scaled_bessel_k0",
     .derivative = {"result - scaled_bessel_k1(x)"},
     .body_f64 = kK0e,
     .narrow = true,
     .doc = "e^x * bessel_k0(x)"},
    {.name = "scaled_bessel_k1",
     .derivative = {"result - scaled_bessel_k0(x) - result / x"},
     .body_f64 = kK1e,
     .narrow = true,
     .doc = "e^x * bessel_k1(x)"},
};

}  // namespace

std::span<const Function> bessel_functions() noexcept { return kBesselFunctions; }

}  // namespace tenon::expr
