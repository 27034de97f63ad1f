// The gamma function's kin: lgamma, digamma, Hurwitz' zeta, polygamma. float32 computes in float64, of some
// by short forms. Coefficients: Chebyshev interpolation in 70 digits, rounded. Where a value passes through
// zero between smooth ends, its zeros are factors; logarithms and their products come in two numbers, `_hi`
// and `_lo`.
#include "tenon/expr/function_rows.h"

namespace tenon::expr {

namespace {

constexpr std::string_view kLogHi = R"(
  let big = log_exponent(x) * ln_2_short;
  big + log_fraction(x))";
constexpr std::string_view kLogLo = R"(
  let n = log_exponent(x);
  let f = log_fraction(x);
  let big = n * ln_2_short;
  (f - (big + f - big)) + fma(n, ln_2_short_low, log_tail(f)))";
// |sin(pi x)| and what that rounds off, |x| <= 1/2.
constexpr std::string_view kSinPiHi = R"(
  let z = x * x;
  let p = 0x1.921fb54442d18p+1 * x;
  p + x * (z * poly(z, -0x1.4abbce625be53p+2, 0x1.466bc6775aae2p+1, -0x1.32d2cce62bd7cp-1, 0x1.50783487edb3cp-4,
       -0x1.e3074fdd8bd87p-8, 0x1.e8f43419874c7p-12, -0x1.6fad6c65af106p-16, 0x1.aac5c5a7945bcp-21,
       -0x1.7ff5f2829eb3p-26)))";
constexpr std::string_view kSinPiLo = R"(
  let z = x * x;
  let p = 0x1.921fb54442d18p+1 * x;
  let t = x * (z * poly(z, -0x1.4abbce625be53p+2, 0x1.466bc6775aae2p+1, -0x1.32d2cce62bd7cp-1, 0x1.50783487edb3cp-4,
       -0x1.e3074fdd8bd87p-8, 0x1.e8f43419874c7p-12, -0x1.6fad6c65af106p-16, 0x1.aac5c5a7945bcp-21,
       -0x1.7ff5f2829eb3p-26));
  (p - (p + t) + t) + fma(0x1.1a62633145c07p-53, x, fma(0x1.921fb54442d18p+1, x, -p)))";
// The value over (x - 1)(x - 2), less its value in the middle: on [0.5, 1.5] and [1.5, 4].
constexpr std::string_view kGammaRest1 =
    R"(fma(x, poly(x, -0x1.f6465978d46e9p-3, 0x1.3e54520481f68p-3, -0x1.d7a3e6a8f24d3p-4, 0x1.79cf9c4c45553p-4,
       -0x1.3cb1f9d3aa706p-4, 0x1.115549ee4815fp-4, -0x1.e1824701d685p-5, 0x1.ae8a96845abfap-5,
       -0x1.857929d7dcc22p-5, 0x1.639fa4485565ep-5, -0x1.4736db8af778dp-5, 0x1.2efc2e0671742p-5,
       -0x1.1a20b75adcbcap-5, 0x1.08732799711afp-5, -0x1.f0edd85f05d35p-6, 0x1.caf86092e8bbcp-6,
       -0x1.b1fb19c2ee9cep-6, 0x1.de0d296a971b3p-6, -0x1.c7e2bfe179a43p-6, 0x1.c71069b651dc8p-8,
       -0x1.a2e8cad163b76p-8, 0x1.23c3b948fe2fbp-4, -0x1.1a27e8f2eb17fp-4, -0x1.348e3ed89452ap-4,
       0x1.2bff6d32eeb1ap-4, 0x1.c4b8d24b7c8ebp-4, -0x1.b6aedc79bf1d1p-4), -0x1.20bc32355b29ep-57))";
constexpr std::string_view kGammaRest2 =
    R"(let s = x - 1.75; fma(s, poly(s, -0x1.0d3a377b6e722p-4, 0x1.06a6ddd8fb036p-6, -0x1.21a2b60f1604bp-8, 0x1.558c905fc26b4p-10,
       -0x1.a405795f32cd7p-12, 0x1.09b50a211fc03p-13, -0x1.5715463c149d1p-15, 0x1.c1c234ab24847p-17,
       -0x1.2a42bc8ccbb21p-18, 0x1.8f3fcb8acacccp-20, -0x1.0d356a5f220cap-21, 0x1.6d483ca1579b1p-23,
       -0x1.f24ddb45765acp-25, 0x1.554a8e986ceddp-26, -0x1.d3b1c64c2c66p-28, 0x1.428ddf517b181p-29,
       -0x1.cd0b5172c1bbp-31, 0x1.3fe3eaa842391p-32, -0x1.5b123f07812ddp-34, 0x1.e1d1f3888c66cp-36,
       -0x1.8301d700371dfp-36, 0x1.0fc525e7aebc6p-37, 0x1.014f666b55923p-39, -0x1.6d542a7832acap-41,
       -0x1.9ff64f5835b92p-41, 0x1.254419bbe1531p-42), 0x1.544994c4013cfp-56))";
// lgamma(1 + x) for -0.5 <= x <= 3.
constexpr std::string_view kGammaNear = R"(
  let b = x - 1;
  let p = x * b;
  let c = where(x < 0.5, 0x1.2788cfc6fb619p-1, 0x1.72c2097ce3928p-2);
  let r = where(x < 0.5, lgamma_rest_1(x), lgamma_rest_2(x));
  fma(p, c, fma(p, r, fma(x, b, -p) * c)))";
// Stirling's series, x >= 4: (x - 1/2) log(x) - x, and what that rounds off with the rest of the series.
constexpr std::string_view kGammaFarHi = R"(
  let a = x - 0.5;
  a * log_hi(x) - x)";
constexpr std::string_view kGammaFarLo = R"(
  let a = x - 0.5;
  let l = log_hi(x);
  let p = a * l;
  let d = p - x;
  let back = d - p;
  let lost = (p - (d - back)) - (x + back);
  let v = 1 / x;
  let u = v * v;
  let s = v * poly(u, 0x1.5555555555555p-4, -0x1.6c16c16c16bf5p-9, 0x1.a01a019ffc6f4p-11, -0x1.3813810e98ffp-11,
       0x1.b951c4242c1c4p-11, -0x1.f6a443d7be954p-10, 0x1.a39c02ab76a2fp-8, -0x1.ddd76bc682b6bp-6,
       0x1.53019782a56fap-3, -0x1.02d24fba5dcc4p+0, 0x1.5e788eb5ec50fp+2, -0x1.50b3d2ea1f6cbp+4,
       0x1.426fce8f53927p+5);
  lost + (fma(a, l, -p) + (fma(a, log_lo(x), -0x1.65b5a1b7ff5dfp-55) + s)) + 0x1.d67f1c864beb5p-1)";
constexpr std::string_view kGammaFar =
    R"(where(x > 0x1p1000, x * (log(x) - 1), lgamma_far_hi(x) + lgamma_far_lo(x)))";
// x < -1/2: log(pi) - log(|x sin(pi x)|) - lgamma(|x|).
constexpr std::string_view kGammaReflected = R"(
  let a = -x;
  let r = abs(a - round(a));
  let s = sin_pi_hi(r);
  let q = a * s;
  let lost = fma(a, s, -q) + a * sin_pi_lo(r);
  let far = a >= 4;
  let b = where(far, a, 4);
  let hi = where(far, lgamma_far_hi(b), lgamma_near(a - 1));
  let lo = where(far, lgamma_far_lo(b), 0);
  let l = log_hi(q);
  let c = 0x1.250d048e7a1bdp+0 - l;
  let back = c - 0x1.250d048e7a1bdp+0;
  let c_lo = (0x1.250d048e7a1bdp+0 - (c - back)) - (l + back);
  let y = c - hi;
  let y_back = y - c;
  let y_lo = (c - (y - y_back)) - (hi + y_back);
  let value = y + (y_lo + (c_lo + (0x1.7abf2ad8d5088p-57 - log_lo(q) - lost / q) - lo));
  where(r == 0, inf, value))";
constexpr std::string_view kGamma = R"(
  let small = abs(x) < 0.5;
  let n = where(small, x, min(x, 4) - 1);
  let near = lgamma_near(n) - where(small, log(abs(x)), 0);
  let above = where(x < 4, near, lgamma_far(x));
  where(abs(x) == inf, inf, where(x <= -0.5, lgamma_reflected(x), above)))";
// The sum of (x + k)^-2, x > 0: eight terms and Euler and Maclaurin's of what follows, or those alone.
constexpr std::string_view kTrigammaPositive = R"(
  let near = x < 8;
  let y = where(near, x + 8, x);
  let r = 1 / y;
  let u = r * r;
  let rest = fma(u * r, poly(u, 0x1.5555555555555p-3, -0x1.1111111111111p-5, 0x1.8618618618618p-6, -0x1.1111111111111p-5,
       0x1.364d9364d9365p-4, -0x1.0330330330330p-2, 0x1.2aaaaaaaaaaabp+0, -0x1.c5e5e5e5e5e5ep+2, 0x1.b7c4f8f13e3c5p+5,
       -0x1.088fe72cfe72dp+9, 0x1.8301f89467e25p+12), 0.5 * u);
  where(near, trigamma_terms(x) + (rest + r), rest + r))";
constexpr std::string_view kTrigammaTerms = R"(
  let a = x + 1;
  let b = x + 2;
  let c = x + 3;
  let d = x + 4;
  let e = x + 5;
  let f = x + 6;
  let g = x + 7;
  let aa = a * a;
  let bb = b * b;
  let cc = c * c;
  let dd = d * d;
  let ee = e * e;
  let ff = f * f;
  let v = 1 / x;
  fma(v, v, (aa + bb) / (aa * bb) + ((cc + dd) / (cc * dd) + ((ee + ff) / (ee * ff) + 1 / (g * g)))))";
// Below 0 by reflection.
constexpr std::string_view kTrigamma = R"(
  let p = trigamma_positive(where(x > 0, x, 1 - x));
  let y = where(x < 0, trigamma_reflected(x) - p, p);
  where((x == 0) | (x == -inf), inf, y))";
constexpr std::string_view kTrigammaReflected = R"(
  let r = x - round(x);
  let q = 0x1.921fb54442d18p+1 / sin_pi_hi(r);
  where(r == 0, inf, q * q))";
// digamma(1 + x) for x of [0, 1]: the distance from its zero times a smooth function.
constexpr std::string_view kDigammaNear = R"(
  let s = x - 0.5;
  let d = x - 0x1.d8b618d5af8fep-2;
  let r = fma(s, poly(s, -0x1.b1cb63005ee98p-2, 0x1.eca189b8e6f6dp-3, -0x1.2feeeb98a78eap-3, 0x1.8512e5903903ep-4,
       -0x1.fb44202a2306bp-5, 0x1.4de9aa1779d23p-5, -0x1.b9f8b11bfd3dp-6, 0x1.2564717896ec6p-6,
       -0x1.863563f44f303p-7, 0x1.03c0adafa529cp-7, -0x1.5a06a5d662cb4p-8, 0x1.cd2011454fd05p-9,
       -0x1.336dbe66757c8p-9, 0x1.99d3f5c0cad5ep-10, -0x1.0fb38d217b8p-10, 0x1.6a3e76070c135p-11,
       -0x1.fd8e50abf2196p-12, 0x1.53b23429da21bp-12, -0x1.2fae5cb379bf2p-13, 0x1.94e73cc9821e1p-14,
       -0x1.75c084e78a4cdp-13, 0x1.f255c4568ac4dp-14), 0x1.8f70c7a125e6ap-55 + 0);
  fma(d, 0x1.e6f0cbb873616p-1, fma(d, r, 0x1.1e563779a1f5bp-56 * (0x1.e6f0cbb873616p-1 + r))))";
// log(x) - 1 / (2x) less a series of 1 / x^2, x >= 2.
constexpr std::string_view kDigammaFar = R"(
  let v = 1 / x;
  let u = v * v;
  let s = u - 0.125;
  let l = log_hi(x);
  l + (log_lo(x) - fma(u, poly(s, 0x1.514b05a63f6d8p-4, -0x1.eb2333082c26fp-8, 0x1.7823220cd3e53p-9, -0x1.131acd1d73d7bp-9,
       0x1.2b61ab170e6c6p-9, -0x1.ac76f6671db73p-9, 0x1.77081549d2993p-8, -0x1.7f347bf729824p-7,
       0x1.ba96c622d6ac8p-6, -0x1.1a74fb9e57d39p-4, 0x1.8b4e9ecf54cd8p-3, -0x1.277420f202f2bp-1,
       0x1.9390d3ee1174fp+0, -0x1.3d28b7ad1bb71p+2, 0x1.3a357d7db546cp+5, -0x1.418c5d028a93ep+7,
       -0x1.22f3200877519p+9, 0x1.681d35f4695d7p+11, 0x1.7567e6e61d4e3p+14, -0x1.a18c44f9b0077p+16), 0.5 * v)))";
constexpr std::string_view kDigammaPositive = R"(
  let near = digamma_near(where(x < 1, x, min(x, 2) - 1));
  where(x < 2, near, digamma_far(x)))";
// pi cot(pi x), |x| <= 1/2: 1 / x and a series, or near 1/2 the tangent of what is missing.
constexpr std::string_view kPiCot = R"(
  let z = x * x;
  let w = 0.5 - abs(x);
  let t = w * w;
  let near = 1 / x - x * poly(z, 0x1.a51a6625307d3p+1, 0x1.151322ac7d848p+1, 0x1.0470984c0923bp+1, 0x1.010b36af86f09p+1,
       0x1.00412e3337b92p+1, 0x1.001020cca3396p+1, 0x1.0003fada36195p+1, 0x1.000248a6053f9p+1,
       0x1.ffc05f2b25365p+0, 0x1.020df411682eep+1, 0x1.d5db6ac40e409p+0, 0x1.77e2b68985372p+1);
  let far = copysign(w * poly(t, 0x1.3bd3cc9be45dep+3, 0x1.03c1f081b5ac4p+5, 0x1.005ed5ead8fe2p+7, 0x1.000a2b78d7c53p+9,
       0x1.00011de7b8fffp+11, 0x1.00001fb801f89p+13, 0x1.000000a7f1485p+15, 0x1.000047d1a1b48p+17,
       0x1.fff5eb37b0ab2p+18, 0x1.004347cb37436p+21, 0x1.fabea4197756cp+22, 0x1.13cb9d9b41a16p+25,
       0x1.1fb6c5c1cb62dp+26, 0x1.6c39083899204p+30, -0x1.295028076b199p+33, 0x1.9fa1b01f44be5p+36,
       -0x1.e568bebdbe885p+38, 0x1.8453cbcafed37p+40), x);
  where(abs(x) < 0.25, near, far))";
constexpr std::string_view kDigamma = R"(
  let a = abs(x);
  let p = digamma_positive(a);
  let q = 1 / a;
  let lost = where(a < 0x1p-1000, 0, fma(-q, a, 1) * q);
  let above = where(a < 1, (p - q) - lost, p);
  let r = a - round(a);
  let below = pi_cot(r) + (p + where(a < 1, 0, q));
  let y = where(x < 0, where(r == 0, nan, below), above);
  where(x == 0, copysign(inf, -x), where(x == inf, inf, where(x == -inf, nan, y))))";
// Hurwitz' zeta(x, y) for x > 1 and y > 0, by Euler and Maclaurin: 9 terms, then 12 Bernoulli numbers over
// factorials. Terms count the rounding of y + k. The rest is (y + 10)^(1 - x) times its series, which is
// normal where the sum is.
constexpr std::string_view kZetaPositive = R"(
  let sum = zeta_power(y, -x);
  for k = 1 to 9 {
    let a = y + k;
    let lost = (y - (a - k)) + 0;
    let p = zeta_power(a, -x);
    let sum = sum + fma(-p, x * lost / a, p);
  }
  let b = y + 10;
  let lost_b = y - (b - 10);
  let n = x - 1;
  let p_b = zeta_power(b, -n);
  let p = fma(-p_b, n * lost_b / b, p_b);
  let u = 1 / b;
  let v = u * u;
  let t = x * u;
  let s = t * 0x1.5555555555555p-4;
  let t = t * ((x + 1) * (x + 2)) * v;
  let s = fma(-0x1.6c16c16c16c17p-10, t, s);
  let t = t * ((x + 3) * (x + 4)) * v;
  let s = fma(0x1.1566abc011567p-15, t, s);
  let t = t * ((x + 5) * (x + 6)) * v;
  let s = fma(-0x1.bbd779334ef0bp-21, t, s);
  let t = t * ((x + 7) * (x + 8)) * v;
  let s = fma(0x1.66a8f2bf70ebep-26, t, s);
  let t = t * ((x + 9) * (x + 10)) * v;
  let s = fma(-0x1.22805d644267fp-31, t, s);
  let t = t * ((x + 11) * (x + 12)) * v;
  let s = fma(0x1.d6db2c4e09162p-37, t, s);
  let t = t * ((x + 13) * (x + 14)) * v;
  let s = fma(-0x1.7da4e1f79955cp-42, t, s);
  let t = t * ((x + 15) * (x + 16)) * v;
  let s = fma(0x1.355871d652e9ep-47, t, s);
  let t = t * ((x + 17) * (x + 18)) * v;
  let s = fma(-0x1.f57d968caacf1p-53, t, s);
  let t = t * ((x + 19) * (x + 20)) * v;
  let s = fma(0x1.967e1f09c376fp-58, t, s);
  let t = t * ((x + 21) * (x + 22)) * v;
  let s = fma(-0x1.497d9033a2b5cp-63, t, s);
  let rest = p * fma(u, 0.5 + s, 1 / n);
  where(y == inf, 0, where(p == 0, sum, sum + rest)))";
// Below 0 the sum over all integers from y on, for whole x: what the sums upward and downward from y's
// fraction have in common.
constexpr std::string_view kZetaNegative = R"(
  let f = y - floor(y);
  let even = trunc(0.5 * x) == 0.5 * x;
  let down = zeta_positive(x, 1 - f) - zeta_positive(x, 1 - y);
  let sum = zeta_positive(x, f) + where(even, down, -down);
  where(trunc(x) != x, nan, where((f == 0) | (y == -inf), inf, sum)))";
constexpr std::string_view kZeta = R"(
  let s = where(x > 1, x, 2);
  let above = zeta_positive(s, where(y > 0, y, 1));
  let v = where(y > 0, above, where(y == 0, inf, zeta_negative(s, where(y < 0, y, -0.5))));
  where((x > 1) & (y == y), where(x == inf, where(y == 1, 1, where(y > 1, 0, inf)), v), where(x == 1, inf, nan)))";

// Short forms, by which float32 computes in float64: right to 2^-27 or better. Coefficients: least squares
// whose weights level the largest relative errors (Lawson), of values in 40 digits.
constexpr std::string_view kLogShort = R"(
  let n = log_exponent(x);
  let f = log_fraction(x);
  let p = poly(f, -0x1.fffffffeec9c6p-2, 0x1.555555652777dp-2, -0x1.0000015a14abbp-2, 0x1.999988a48cb73p-3,
               -0x1.5554681ea9aep-3, 0x1.2494e10f088b6p-3, -0x1.0022be6b0df2p-3, 0x1.c6e4bf4638164p-4,
               -0x1.94b36cba31587p-4, 0x1.71da448f9ca2bp-4, -0x1.7dad3dddcbd5p-4, 0x1.77e1fc6ca258ep-4,
               -0x1.8cb636159ab09p-5);
  fma(n, 0x1.62e42fefa39efp-1, fma(f * f, p, f)))";
constexpr std::string_view kGammaRest1Short = R"(
  poly(x, 0x1.2788cfccc047cp-1, -0x1.f6465118e7565p-3, 0x1.3e54302d183dcp-3, -0x1.d7ab0de95a13ep-4,
       0x1.79dfce225790ep-4, -0x1.3bd45b9c539b7p-4, 0x1.0fe34473a7cd6p-4, -0x1.f829eb56273e7p-5,
       0x1.cd962b868193p-5, -0x1.f318bd7134628p-6, 0x1.7ade6f5b35b16p-6, -0x1.63f64ffc7b02p-4,
       0x1.634c89b39212ep-4))";
constexpr std::string_view kGammaRest2Short = R"(
  poly(x - 1.75, 0x1.72c209553f045p-2, -0x1.0d3a361c8e957p-4, 0x1.06a74dfc41f27p-6, -0x1.21a43d0310a66p-8,
       0x1.555980e23e013p-10, -0x1.a38a59b177d34p-12, 0x1.0de8df1bf91a6p-13, -0x1.5f454d4400dfdp-15,
       0x1.738aff253c931p-17, -0x1.d08519f3607cfp-19, 0x1.65c57ab0a4fd3p-19, -0x1.fcc6ebf259edep-21))";
constexpr std::string_view kGammaNearShort =
    "x * (x - 1) * where(x < 0.5, lgamma_rest_1_short(x), lgamma_rest_2_short(x))";
constexpr std::string_view kGammaFarShort = R"(
  let v = 1 / x;
  let s = v * poly(v * v, 0x1.555551ba28e79p-4, -0x1.6bdbabe60375fp-9, 0x1.8167060aa31a3p-11);
  (x - 0.5) * log_short(x) - x + (s + 0x1.d67f1c864beb5p-1))";
constexpr std::string_view kGammaReflectedShort = R"(
  let a = -x;
  let r = abs(a - round(a));
  let q = a * (r * poly(r * r, 0x1.921fb52068f3bp+1, -0x1.4abbc166da8cdp+2, 0x1.4668af4e62c7dp+1,
             -0x1.324ccabbbdd3ap-1, 0x1.3daff5959d1dap-4));
  let b = where(a < 4, lgamma_near_short(a - 1), lgamma_far_short(max(a, 4)));
  where(r == 0, inf, 0x1.250d048e7a1bdp+0 - log_short(q) - b))";
constexpr std::string_view kGammaShort = R"(
  let small = abs(x) < 0.5;
  let near = lgamma_near_short(where(small, x, min(x, 4) - 1)) + where(small, minus_log_abs(x), 0);
  let y = where(x < 4, near, lgamma_far_short(max(x, 4)));
  where(abs(x) == inf, inf, where(x <= -0.5, lgamma_reflected_short(x), y)))";
constexpr std::string_view kZetaPositiveShort = R"(
  let sum = zeta_power_short(y, -x);
  for k = 1 to 4 { let sum = sum + zeta_power_short(y + k, -x); }
  let b = y + 5;
  let n = x - 1;
  let u = 1 / b;
  let v = u * u;
  let t = x * u;
  let t3 = t * ((x + 1) * (x + 2)) * v;
  let t5 = t3 * ((x + 3) * (x + 4)) * v;
  let t7 = t5 * ((x + 5) * (x + 6)) * v;
  let s = t * 0x1.5555555555555p-4 - 0x1.6c16c16c16c17p-10 * t3;
  let s = s + (0x1.1566abc011567p-15 * t5 - 0x1.bbd779334ef0bp-21 * t7);
  let p = zeta_power_short(b, -n);
  where(y == inf, 0, where(p == 0, sum, sum + p * fma(u, 0.5 + s, 1 / n))))";
constexpr std::string_view kZetaNegativeShort = R"(
  let f = y - floor(y);
  let even = trunc(0.5 * x) == 0.5 * x;
  let down = zeta_positive_short(x, 1 - f) - zeta_positive_short(x, 1 - y);
  let sum = zeta_positive_short(x, f) + where(even, down, -down);
  where(trunc(x) != x, nan, where((f == 0) | (y == -inf), inf, sum)))";
constexpr std::string_view kZetaShort = R"(
  let s = where(x > 1, x, 2);
  let above = zeta_positive_short(s, where(y > 0, y, 1));
  let v = where(y > 0, above, where(y == 0, inf, zeta_negative_short(s, where(y < 0, y, -0.5))));
  where((x > 1) & (y == y), where(x == inf, where(y == 1, 1, where(y > 1, 0, inf)), v), where(x == 1, inf, nan)))";

constexpr Function kGammaFunctions[] = {
    part("log_hi", 1, kLogHi, "the large part of the logarithm of a normal number"),
    part("log_lo", 1, kLogLo, "the rest of it"),
    part("sin_pi_hi", 1, kSinPiHi),
    part("sin_pi_lo", 1, kSinPiLo),
    costly_part("lgamma_rest_1", 1, kGammaRest1),
    costly_part("lgamma_rest_2", 1, kGammaRest2),
    part("lgamma_near", 1, kGammaNear, "lgamma(1 + x) for -0.5 <= x <= 3"),
    part("lgamma_far_hi", 1, kGammaFarHi),
    part("lgamma_far_lo", 1, kGammaFarLo),
    costly_part("lgamma_far", 1, kGammaFar),
    costly_part("lgamma_reflected", 1, kGammaReflected),
    {.name = "lgamma",
     .derivative = {"digamma(x)"},
     .body_f64 = kGamma,
     .short_form = "lgamma_short",
     .narrow = true,
     .doc = "log(|gamma(x)|)"},
    part("digamma_near", 1, kDigammaNear),
    costly_part("digamma_far", 1, kDigammaFar),
    part("digamma_positive", 1, kDigammaPositive),
    costly_part("pi_cot", 1, kPiCot),
    {.name = "digamma",
     .derivative = {"trigamma(x)"},
     .body_f64 = kDigamma,
     .doc = "the derivative of lgamma"},
    costly_part("trigamma_terms", 1, kTrigammaTerms),
    costly_part("trigamma_reflected", 1, kTrigammaReflected),
    part("trigamma_positive", 1, kTrigammaPositive),
    {.name = "trigamma",
     .derivative = {"-2 * zeta(3, x)"},
     .body_f64 = kTrigamma,
     .doc = "the derivative of digamma"},
    called_part("zeta_power", 2, "pow_general(x, y)"),
    costly_called_part("zeta_positive", 2, kZetaPositive),
    costly_part("zeta_negative", 2, kZetaNegative),
    {.name = "zeta",
     .arity = 2,
     .derivative = {"nan", "-x * zeta(x + 1, y)"},
     .body_f64 = kZeta,
     .short_form = "zeta_short",
     .narrow = true,
     .doc = "Hurwitz' zeta function, the sum of (y + k)^-x"},
    part("log_short", 1, kLogShort, "of a normal number"),
    costly_part("minus_log_abs", 1, "-log(abs(x))"),
    costly_part("lgamma_rest_1_short", 1, kGammaRest1Short),
    costly_part("lgamma_rest_2_short", 1, kGammaRest2Short),
    called_part("lgamma_near_short", 1, kGammaNearShort),
    costly_called_part("lgamma_far_short", 1, kGammaFarShort),
    costly_part("lgamma_reflected_short", 1, kGammaReflectedShort),
    {.name = "lgamma_short", .body_f64 = kGammaShort, .internal = true, .kernel = true},
    called_part("zeta_power_short", 2, "exp(y * log_short(x))"),
    costly_called_part("zeta_positive_short", 2, kZetaPositiveShort),
    costly_part("zeta_negative_short", 2, kZetaNegativeShort),
    {.name = "zeta_short",
     .arity = 2,
     .body_f64 = kZetaShort,
     .internal = true,
     .kernel = true,
     .narrow = true},
};

}  // namespace

std::span<const Function> gamma_functions() noexcept { return kGammaFunctions; }

}  // namespace tenon::expr
