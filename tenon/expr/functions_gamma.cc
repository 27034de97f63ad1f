// The gamma function's kin: lgamma, digamma, Hurwitz' zeta, polygamma. float32 computes in float64.
// Coefficients: Chebyshev interpolation in 70 digits, rounded. Where a value passes through zero between
// smooth ends, its zeros are factors; logarithms and their products come in two numbers, `_hi` and `_lo`.
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
// By symmetry that of the part above 1/2, where it is log1p of a positive number, which is as exact as that
// is. Below the smallest normal number the quotient may be infinite.
constexpr std::string_view kLogit = R"(
  let d = 2 * x - 1;
  let y = copysign(log1p(abs(d) / min(x, 1 - x)), d);
  where((x >= 0) & (x < smallest_normal), logit_tiny(x), y))";
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
// x^a e^-a / Gamma(a + 1) of a = x and x = y, its logarithm in two numbers.
constexpr std::string_view kGammaDensity = R"(
  let far = x >= 3;
  let b = where(far, x, 3) + 1;
  let g = where(far, lgamma_far_hi(b), lgamma_near(min(x, 3)));
  let g_lo = where(far, lgamma_far_lo(b) + (x - (b - 1)) * log_hi(b), 0);
  let tiny = y < 0x1p-1000;
  let n = max(y, 0x1p-1000);
  let l = where(tiny, log(y), log_hi(n));
  let p = x * l;
  let p_lo = fma(x, l, -p) + where(tiny, 0, x * log_lo(n));
  let d = p - y;
  let d_back = d - p;
  let d_lo = (p - (d - d_back)) - (y + d_back);
  let e = d - g;
  let e_back = e - d;
  let e_lo = (d - (e - e_back)) - (g + e_back);
  let low = (p_lo + d_lo) + (e_lo - g_lo);
  let v = exp(e + low);
  fma(v, sum_low(e, low), v))";
// P by its power series, as a quotient.
constexpr std::string_view kGammaSeries = R"(
  let p = 1;
  let q = 1;
  for k = 56 to 1 {
    let q = (x + k) * q;
    let p = fma(y, p, q);
  }
  gamma_density(x, y) * (p / q))";
// Q by Legendre's continued fraction.
constexpr std::string_view kGammaFraction = R"(
  let s = y - x;
  let f = s + 153;
  for k = 76 to 1 { let f = (s + (2 * k - 1)) - k * (k - x) / f; }
  gamma_density(x, y) * (x / f))";
// Q for x < 1 and y < 1.25, where P is nearly 1: what is left of its series without the first term.
constexpr std::string_view kGammaSmall = R"(
  let t = x * log(y) - lgamma_near(x);
  let s = 0;
  let p = 1;
  for k = 22 to 1 { let s = (1 / (x + k) - y * s * (1 / (k + 1))) * 1; }
  let e = expm1(t);
  (1 + e) * (x * y * s) - e)";
// The smaller of P and Q by Temme's expansion (1979), uniform in y, for x >= 20 and y / x from 0.4 to 2.2.
constexpr std::string_view kTemmeSum =
    R"(let n = x; poly(y, poly(n, -0x1.5555555555555p-2, 0x1.5555555555555p-4, -0x1.e573ac901e574p-7, 0x1.2f684bda12f68p-10,
       0x1.71de3a556c734p-12, -0x1.76e06fec7273bp-13, 0x1.48c5892f7cd83p-15, -0x1.255370652afc1p-19,
       -0x1.f1b22f594c6b5p-20, 0x1.bd6d21e4b4109p-21, -0x1.7b5f9a2d0465cp-23, 0x1.ccf5ceb7f0d9fp-28,
       0x1.6097d55c37c1cp-27, -0x1.2d2197c7a2faap-28, 0x1.f6e66d24d5c8ap-31, -0x1.c0d9b6edf2b0bp-36,
       -0x1.0070a87340428p-34, 0x1.ac9475c463659p-36, -0x1.61ca701fd754ap-38, 0x1.ef98008f5eec2p-44,
       0x1.7ba0759769d7cp-42, -0x1.3989bebb193cp-43, 0x1.0104fc4369a3cp-45, -0x1.283fe7950ad7bp-51,
       -0x1.1ca914d71a27cp-49, 0x1.d2e7d5ca48b9p-51, -0x1.7cfbcf3db9bfcp-53, 0x1.75713641cd216p-59,
       0x1.af2c06678a063p-57, -0x1.5ff773ccd8f52p-58), poly(n, -0x1.e573ac901e574p-10, -0x1.c71c71c71c71cp-9, 0x1.5ac056b015acp-9, -0x1.0394f6f09e723p-10,
       0x1.af83440e53dbcp-13, -0x1.af83440e53dbcp-22, -0x1.2fa4ae89e5afp-16, 0x1.00a9cabd6b83ep-17,
       -0x1.b0bdfcc629cbap-20, 0x1.3f59230a8357cp-28, 0x1.280f2cde3f847p-23, -0x1.ee23d0cba8aeep-25,
       0x1.9aa7a30de114cp-27, -0x1.349fbca3a377bp-36, -0x1.1564ecff73d58p-30, 0x1.c9b434bf3c34ep-32,
       -0x1.78a5056f8ce45p-34, 0x1.113e3a466db9ep-44, 0x1.f8041c5540ea2p-38, -0x1.9ccf2fab4608bp-39,
       0x1.519580a10cd82p-41, -0x1.f3b7a5dcd1851p-53, -0x1.c068b448455eap-45, 0x1.6d8a9ef5c1827p-46,
       -0x1.29b03783db2a2p-48, 0x1.e9264affa1c17p-61, 0x1.892658e7d5d81p-52, -0x1.3f74bc03ba8d3p-53), poly(n, 0x1.0ee643b990ee6p-8, -0x1.5f7268edab4c8p-9, 0x1.948b0fcd6e9ep-11, 0x1.0db20a88f4696p-19,
       -0x1.c253efaa1a932p-14, 0x1.bbf43daf4fe53p-15, -0x1.ac2d05890f2c3p-17, 0x1.26154ae39151dp-25,
       0x1.7058929663937p-20, -0x1.522cb05171911p-21, 0x1.32ac81c15d3d7p-23, -0x1.c24bd0e740a6cp-33,
       -0x1.e437343a46f5dp-27, 0x1.ac0d455e2536p-28, -0x1.77c5829460139p-30, 0x1.0962774f638bbp-40,
       0x1.1b1056c188672p-33, -0x1.e9778dbc61371p-35, 0x1.a55da34225759p-37, -0x1.2c681309d6007p-48,
       -0x1.33f39f65c6eeep-40, 0x1.0675f56b95f3bp-41, -0x1.be16182b001e8p-44, 0x1.5d3b42a398b8fp-56,
       0x1.3f2fe637bc2b8p-47, -0x1.0d569dc447d0dp-48), poly(n, 0x1.547d93b34e2b6p-11, 0x1.e13ce465fa859p-13, -0x1.ebfb188b7cap-12, 0x1.18b9b5bf2d984p-12,
       -0x1.3d2a3a29b5d9dp-14, -0x1.0152a1871f27ap-22, 0x1.73df462204ef4p-17, -0x1.7cd6f27b3f02p-18,
       0x1.7e0201539310ep-20, -0x1.ea23269c140a7p-36, -0x1.6c2dcffbefeefp-23, 0x1.5bde8ef4c4dc7p-24,
       -0x1.4853ced169327p-26, 0x1.50c3f0dd501ebp-39, 0x1.1b66a39794ba9p-29, -0x1.040c53b2491fp-30,
       0x1.d9b15465daec1p-33, -0x1.f46057e1c9d1fp-47, -0x1.812d3d94d533bp-36, 0x1.587d7a7c1a668p-37,
       -0x1.328e9df2eb8b6p-39, 0x1.1e54cdbaa3443p-54, 0x1.def3f46a086e5p-43, -0x1.a4d8ed36b49dcp-44), poly(n, -0x1.c3e0b02da7bf9p-11, 0x1.9b0ff6874f2c4p-11, -0x1.3999a85a4237ap-12, -0x1.88f2ae1def9dp-20,
       0x1.16908b48ce058p-14, -0x1.4ce3fd902bcadp-15, 0x1.7db4c02846e81p-17, 0x1.13b3c5b7cb45ep-32,
       -0x1.c71c074985d3fp-20, 0x1.de37d9f09164cp-21, -0x1.ec676cf33153cp-23, 0x1.041515bab6adap-35,
       0x1.efe94304ac16bp-26, -0x1.e78e449f4e3bep-27, 0x1.d9a9f1a8b7696p-29, -0x1.033ba70791e5ep-42,
       -0x1.b14f212618752p-32, 0x1.9911dbca7ce93p-33, -0x1.7f2fac5e22aaep-35, 0x1.7088090f49aabp-50,
       0x1.49465337812c4p-38, -0x1.2e7ac3cc20208p-39), poly(n, -0x1.6128ac5a4fa71p-12, -0x1.247604839c038p-14, 0x1.22be87360ef1fp-12,
       -0x1.a2042c5148e27p-13, 0x1.1d1e9cb24760bp-14, 0x1.30bdcf208080ep-23, -0x1.c823fc1b3cc36p-17,
       0x1.0d0e229150428p-17, -0x1.338eb19652fd9p-19, -0x1.659cfde0bb2ebp-32, 0x1.741504e5c87c2p-22,
       -0x1.8c267becd0c0fp-23, 0x1.9e630225a095bp-25, -0x1.4411c5ac40e35p-46, -0x1.b15bbf334c8c3p-28,
       0x1.b2a3adb58623dp-29, -0x1.af0f32d677057p-31, 0x1.762c060bd9bdap-48, 0x1.9b9c5831849dcp-34,
       -0x1.8d0152b8692bap-35, 0x1.7bf5ea6674b5fp-37), poly(n, 0x1.168ef1b0931c8p-11, -0x1.36773bdb97b48p-11, 0x1.1c0950d3ecb9dp-12, 0x1.a8411da6cab49p-21,
       -0x1.5600945495b37p-14, 0x1.d6bdf83130dc1p-15, -0x1.3382f4cf48618p-16, -0x1.a74243fa27729p-29,
       0x1.d115d4f5dcc68p-19, -0x1.10587854fcb37p-19, 0x1.36c8903447d35p-21, 0x1.074e709bf4b8bp-42,
       -0x1.7b2f7de505322p-24, 0x1.9778c6d79bcc1p-25, -0x1.af0ea334cc20ep-27, 0x1.858ba968e7d04p-44,
       0x1.cf0f99fa070bcp-30, -0x1.d77155071f99bp-31, 0x1.daf3327a51b54p-33), poly(n, 0x1.691879c01efb4p-12, 0x1.b1d75d3346711p-15, -0x1.5f3385098cebfp-12, 0x1.26eeb5ece1d9fp-12,
       -0x1.cc642787368cep-14, -0x1.119c70312e0a2p-23, 0x1.d179830b113abp-16, -0x1.3269164e3e304p-16,
       0x1.8467d794bd7f2p-18, 0x1.0f82da50cdaeep-31, -0x1.1c6acec59f442p-20, 0x1.4b12ad51452d5p-21,
       -0x1.7929779607d63p-23, -0x1.6d32eed259534p-40, 0x1.cf11fbdf49e99p-26, -0x1.f4e88c5d1cae1p-27), poly(n, -0x1.5629b3187b744p-11, 0x1.b8239c670e69p-11, -0x1.cb967b4446107p-12, -0x1.762676b30cfd6p-21,
       0x1.5d1157082916dp-13, -0x1.0c16fcea7ddb2p-13, 0x1.84637d3f583cdp-15, 0x1.3937992ec9b02p-28,
       -0x1.6384af9ac219dp-17, 0x1.c738f198ab55p-18, -0x1.1adec9530a7adp-19, -0x1.2ed3c124b7492p-36,
       0x1.952f970ac9b03p-22, -0x1.d599e3b2187a2p-23), poly(n, -0x1.38dff1cc96982p-11, -0x1.2e31f9b7913eap-14, 0x1.63969bb825829p-11,
       -0x1.4f9f2582dd0a5p-11, 0x1.22fb20c28e8ap-12, 0x1.86c71c8cebf16p-23, -0x1.63a803aebc9b7p-14,
       0x1.00120036172bp-14, -0x1.618fcc48d37bcp-16, -0x1.e7018e8be333p-31, 0x1.2fe63d892e1a9p-18,
       -0x1.7d8d3a891d8bap-19), poly(n, 0x1.5d4ae684527bfp-10, -0x1.f5dbcaf756cdep-10, 0x1.22b37f1b46951p-10, 0x1.0a9ef61e90004p-20,
       -0x1.0aba998a532bfp-11, 0x1.c01c0b52c3345p-12, -0x1.618e482f9d229p-13, -0x1.1759e6f571329p-27,
       0x1.7bdf837b4e13p-15)))";
constexpr std::string_view kGammaUniform = R"(
  let d = y - x;
  let back = d - y;
  let d_lo = (y - (d - back)) - (x + back);
  let m = d / x;
  let m_lo = (fma(-m, x, d) + d_lo) / x;
  let left = m < -0.2928;
  let right = m > 0.4142;
  let n = where(left, 2 * m + 1, where(right, 0.5 * m - 0.5, m));
  let lost = where(right, sum_low(0.5 * m, -0.5), 0);
  let k = where(left, 0x1.62e42fefa39efp-1, where(right, -0x1.62e42fefa39efp-1, 0));
  let k_lo = where(left, 0x1.abc9e3b39803fp-56, where(right, -0x1.abc9e3b39803fp-56, 0));
  let p = m - n;
  let q = p + k;
  let h = 0.5 * n * n;
  let g = q + h;
  let c = log_tail_small(n);
  let f_hi = g - c;
  let g_lo = sum_low(q, h) + (fma(0.5 * n, n, -h) + (sum_low(p, k) + (sum_low(m, -n) + k_lo)));
  let low = (sum_low(g, -c) + (g_lo - lost / (1 + n))) + m_lo * m / (1 + m);
  let f = f_hi + low;
  let f_lo = sum_low(f_hi, low);
  let z = x * f;
  let z_lo = fma(x, f, -z) + x * f_lo;
  let e = exp(-z);
  let w = copysign(sqrt(2 * (f + f_lo)), m);
  let s = temme_sum(w, 1 / x) * (0.3989422804014327 / sqrt(x));
  let r = sqrt(z);
  let t = fma(e, -z_lo, e) * (0.5 * erfcx(r) + where(m < 0, -s, s));
  where(x == inf, 0, t))";
constexpr std::string_view kGammaP = R"(
  let uniform = (x >= 20) & (y > 0.4 * x) & (y < 2.2 * x);
  let series = (y < x) | (y < 1.25);
  let small = (x < 1) & (y < 1.25) & (y > 0);
  let some = (x > 0) & (x < 1e5) & (y > 0) & (y < inf);
  let a = where(some, x, 1);
  let b = where(some, y, 1);
  let u = gamma_uniform(where(uniform, x, 20), where(uniform, y, 20));
  let p = where(series, min(gamma_series(a, b), 1), 1 - gamma_fraction(a, b));
  let q = where(some, p, where(y < x, 0, 1));
  let v = where(uniform, where(y < x, u, 1 - u), q);
  let w = where((x == 0) | (y == inf), where((y > 0) & (x < inf), 1, nan), where((y == 0) | (x == inf), 0, v));
  where((x >= 0) & (y >= 0), w, nan))";
constexpr std::string_view kGammaQ = R"(
  let uniform = (x >= 20) & (y > 0.4 * x) & (y < 2.2 * x);
  let series = (y < x) | (y < 1.25);
  let small = (x < 1) & (y < 1.25) & (y > 0);
  let some = (x > 0) & (x < 1e5) & (y > 0) & (y < inf);
  let a = where(some, x, 1);
  let b = where(some, y, 1);
  let u = gamma_uniform(where(uniform, x, 20), where(uniform, y, 20));
  let p = where(series, 1 - min(gamma_series(a, b), 1), gamma_fraction(a, b));
  let s = where(small, gamma_small(where(small, x, 0.5), where(small, y, 0.5)), p);
  let q = where(some, s, where(y < x, 1, 0));
  let v = where(uniform, where(y < x, 1 - u, u), q);
  let w = where((x == 0) | (y == inf), where((y > 0) & (x < inf), 0, nan), where((y == 0) | (x == inf), 1, v));
  where((x >= 0) & (y >= 0), w, nan))";
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

constexpr Function kRows[] = {
    {.name = "log_hi",
     .body_f64 = kLogHi,
     .internal = true,
     .doc = "the large part of the logarithm of a normal number"},
    {.name = "log_lo", .body_f64 = kLogLo, .internal = true, .doc = "the rest of it"},
    {.name = "sin_pi_hi", .body_f64 = kSinPiHi, .internal = true},
    {.name = "sin_pi_lo", .body_f64 = kSinPiLo, .internal = true},
    {.name = "lgamma_rest_1", .body_f64 = kGammaRest1, .internal = true, .costly = true},
    {.name = "lgamma_rest_2", .body_f64 = kGammaRest2, .internal = true, .costly = true},
    {.name = "lgamma_near",
     .body_f64 = kGammaNear,
     .internal = true,
     .doc = "lgamma(1 + x) for -0.5 <= x <= 3"},
    {.name = "lgamma_far_hi", .body_f64 = kGammaFarHi, .internal = true},
    {.name = "lgamma_far_lo", .body_f64 = kGammaFarLo, .internal = true},
    {.name = "lgamma_far", .body_f64 = kGammaFar, .internal = true, .costly = true},
    {.name = "lgamma_reflected", .body_f64 = kGammaReflected, .internal = true, .costly = true},
    {.name = "lgamma", .derivative = {"digamma(x)"}, .body_f64 = kGamma, .doc = "log(|gamma(x)|)"},
    {.name = "sinc",
     .derivative = {"where(x == 0, 0, (cos(pi * (x - 2 * round(0.5 * real(x)))) - result) / x)"},
     .body_f64 = kSinc,
     .doc = "sin(pi x) / (pi x)"},
    {.name = "logit_tiny", .body_f64 = "log(x)", .internal = true, .costly = true},
    {.name = "logit",
     .derivative = {"where((x >= 0) & (x <= 1), 1 / (x * (1 - x)), nan)"},
     .body_f64 = kLogit,
     .doc = "log(x / (1 - x))"},
    {.name = "digamma_near", .body_f64 = kDigammaNear, .internal = true},
    {.name = "digamma_far", .body_f64 = kDigammaFar, .internal = true, .costly = true},
    {.name = "digamma_positive", .body_f64 = kDigammaPositive, .internal = true},
    {.name = "pi_cot", .body_f64 = kPiCot, .internal = true, .costly = true},
    {.name = "digamma",
     .derivative = {"trigamma(x)"},
     .body_f64 = kDigamma,
     .doc = "the derivative of lgamma"},
    {.name = "trigamma_terms", .body_f64 = kTrigammaTerms, .internal = true, .costly = true},
    {.name = "trigamma_reflected", .body_f64 = kTrigammaReflected, .internal = true, .costly = true},
    {.name = "trigamma_positive", .body_f64 = kTrigammaPositive, .internal = true},
    {.name = "trigamma",
     .derivative = {"-2 * zeta(3, x)"},
     .body_f64 = kTrigamma,
     .doc = "the derivative of digamma"},
    {.name = "zeta_power", .arity = 2, .body_f64 = "pow_general(x, y)", .internal = true, .apart = true},
    {.name = "zeta_positive",
     .arity = 2,
     .body_f64 = kZetaPositive,
     .internal = true,
     .costly = true,
     .apart = true},
    {.name = "zeta_negative", .arity = 2, .body_f64 = kZetaNegative, .internal = true, .costly = true},
    {.name = "zeta",
     .arity = 2,
     .derivative = {"nan", "-x * zeta(x + 1, y)"},
     .body_f64 = kZeta,
     .doc = "Hurwitz' zeta function, the sum of (y + k)^-x"},
    {.name = "gamma_density", .arity = 2, .body_f64 = kGammaDensity, .internal = true, .apart = true},
    {.name = "gamma_series",
     .arity = 2,
     .body_f64 = kGammaSeries,
     .internal = true,
     .costly = true,
     .apart = true},
    {.name = "gamma_fraction",
     .arity = 2,
     .body_f64 = kGammaFraction,
     .internal = true,
     .costly = true,
     .apart = true},
    {.name = "gamma_small",
     .arity = 2,
     .body_f64 = kGammaSmall,
     .internal = true,
     .costly = true,
     .apart = true},
    {.name = "temme_sum", .arity = 2, .body_f64 = kTemmeSum, .internal = true},
    {.name = "gamma_uniform",
     .arity = 2,
     .body_f64 = kGammaUniform,
     .internal = true,
     .costly = true,
     .apart = true},
    {.name = "gammainc",
     .arity = 2,
     .derivative = {"nan", "exp((x - 1) * log(y) - y - lgamma(x))"},
     .body_f64 = kGammaP,
     .doc = "the lower incomplete gamma function over gamma(x)"},
    {.name = "gammaincc",
     .arity = 2,
     .derivative = {"nan", "-exp((x - 1) * log(y) - y - lgamma(x))"},
     .body_f64 = kGammaQ,
     .doc = "the upper incomplete gamma function over gamma(x)"},
};

}  // namespace

std::span<const Function> gamma_functions() noexcept { return kRows; }

}  // namespace tenon::expr
