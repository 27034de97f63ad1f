// Inverse error functions, the normal distribution's: erfinv, erfcx, ndtr, ndtri, log_ndtr, and the gamma
// distribution's: gammainc, gammaincc. float32 computes in float64, but of erfinv and ndtr; of gammainc and
// gammaincc by short forms. Coefficients of float64: Chebyshev interpolation in 70 digits, rounded; of
// float32: least squares whose weights level the largest relative errors (Lawson), rounded one after the
// other.
#include "tenon/expr/function_rows.h"

namespace tenon::expr {

namespace {

// The inverses are r less little, r = sqrt(-log(q)) of the tail's probability: x is r and y what that rounds
// off.
constexpr std::string_view kTailNear =
    R"(let s = x - 2; poly(s, -0x1.53c6712bd679p-2, 0x1.95f038be00b2ap-5, 0x1.d4e0cab7c4ffep-11, -0x1.d4f2c53965d59p-8,
       0x1.51a5a28350ccbp-8, -0x1.6b85a7735d055p-9, 0x1.52215cb51d8f6p-10, -0x1.1998a91a30fa1p-11,
       0x1.a41190cab0341p-13, -0x1.0ff78a0df7047p-14, 0x1.12269f78e6d4p-16, -0x1.b0de4c1f52dafp-20,
       -0x1.a3951f7a31299p-20, 0x1.93c1d2205d92p-20, -0x1.e24bec493c895p-21, 0x1.ca5309a7fd1fep-22,
       -0x1.7b34c0911a6b7p-23, 0x1.3d925ef81dc3fp-24, -0x1.b79939f32583dp-26, -0x1.f5be9c78451dp-30,
       0x1.d1df050a2b66p-28, -0x1.155c186bd376p-29))";
constexpr std::string_view kTailMiddle =
    R"(let s = x - 4.5; poly(s, -0x1.deabafad02e77p-3, 0x1.c96f88a5096e9p-6, -0x1.d7d02c2446f8dp-9, 0x1.bcba17b3734d4p-12,
       -0x1.1c93e50313d56p-15, -0x1.5bc6da8a551eep-19, 0x1.349a162ccb518p-19, -0x1.ae55a695c72a2p-21,
       0x1.e4a855132c61p-23, -0x1.ede33bac85f8p-25, 0x1.d9cec8054c9bep-27, -0x1.b3ba5a2b617cdp-29,
       0x1.83c0f08b9c498p-31, -0x1.4fa0237b66822p-33, 0x1.1b502ea55f2a9p-35, -0x1.d2fc43eec2e59p-38,
       0x1.77c23995d4767p-40, -0x1.264642e659983p-42, 0x1.bcde4cfe4cf64p-45, -0x1.4684582437d8ep-47,
       0x1.e09bcfa5723c8p-50, -0x1.440594e28748cp-52, 0x1.13a17162396fbp-55, -0x1.c738c91572eaep-61))";
constexpr std::string_view kTailFar3 =
    R"(let s = 1 / x - 0.12; poly(s, -0x1.4c98a7da8a565p-3, -0x1.b8fecade9ca69p-1, 0x1.02798c8ca76e4p+1, -0x1.6fcd2bd9ca61ep+2,
       0x1.8153eca8bc883p+4, -0x1.e4b680bd4263p+6, 0x1.5081a6f83ea5ep+9, -0x1.f42852dfdccddp+11,
       0x1.866b0d21bee6ap+14, -0x1.3c21f8162769bp+17, 0x1.07598955fc172p+20, -0x1.c0a7e72bfeafep+22,
       0x1.84db4df5cdef1p+25, -0x1.57f40d056a03p+28, 0x1.38e1eff25f9c8p+31, -0x1.10ac7e99c542dp+34,
       0x1.a045f40a03d3ep+36, -0x1.d03eba49b378ep+39, 0x1.729f1ca7373bbp+43, -0x1.1187cd6f87927p+46))";
constexpr std::string_view kTailFar4 =
    R"(let s = 1 / x - 0.055; poly(s, -0x1.87c85c0490498p-4, -0x1.3e1cc0af5bdddp+0, 0x1.1e775ae939914p+2, -0x1.b8fde00cfedb7p+4,
       0x1.f6513b106fef6p+7, -0x1.565454ff2bea1p+11, 0x1.03221b72f4355p+15, -0x1.a4772dcf69ca6p+18,
       0x1.663f3ea9be4dap+22, -0x1.3c93cb4409144p+26, 0x1.1fb5c978a3ad4p+30, -0x1.0b54820b33bdp+34,
       0x1.fbff2b95a5cb9p+37, -0x1.ed1983e6d60bbp+41, 0x1.cedc1bfa33a6bp+45, -0x1.9a7aa93696826p+49,
       0x1.f70cc904b5c69p+53, -0x1.7568b46519f19p+58, 0x1.0d3d82a835c31p+62))";
constexpr std::string_view kTailOf = R"(
  let less = where(x < 3, inverse_tail_near(x), inverse_tail_middle(x));
  let far = where(x < 13, inverse_tail_far(x), inverse_tail_farther(x));
  where(x < 6, less, far))";
// erfinv(1 - x) for x <= 1/4.
constexpr std::string_view kErfcInvTail = R"(
  let n = normal(x);
  let k = log_exponent(n) + where(x < smallest_normal, denormal_exponent, 0);
  let f = log_fraction(n);
  let big = k * ln_2_short;
  let hi = big + f;
  let lo = (f - (hi - big)) + fma(k, ln_2_short_low, log_tail(f));
  let l = hi + lo;
  let r = sqrt(-l);
  let r_lo = 0.5 * (fma(-r, r, -l) - (hi - l + lo)) / r;
  let t = r + r_lo;
  t + (inverse_tail(t) + (r - t + r_lo)))";
constexpr std::string_view kErfInv = R"(
  let a = abs(x);
  let z = x * x;
  let s = z - 0.28125;
  let near = x * poly(s, 0x1.ed943e7c761e6p-1, 0x1.544e505fd499fp-2, 0x1.fdd1b104b1cc5p-3, 0x1.dc350b7fd0af6p-3,
       0x1.ee25e52abe04ep-3, 0x1.10a44af0e7db1p-2, 0x1.3939ffa941ea1p-2, 0x1.723ae976a489ep-2,
       0x1.bef2ea11e19a3p-2, 0x1.12379c7ab1d74p-1, 0x1.54df3d8f5cbdbp-1, 0x1.ac39c426a8e1ep-1,
       0x1.0f588f5e353a1p+0, 0x1.5a601727e09d9p+0, 0x1.bd01d0e05391dp+0, 0x1.201889e1c3649p+1,
       0x1.75f41ca14a90ap+1, 0x1.daeedb244eefp+1, 0x1.367e65e429c6fp+2, 0x1.e4f4af7bf314cp+2,
       0x1.3fe842c46c91ap+3, 0x1.cb0479d9e325fp+1, 0x1.29049f2c27c86p+2, 0x1.929e45e3f196p+5,
       0x1.0c667a2e96241p+6);
  let far = copysign(erfc_inverse_tail(max(1 - a, 0x1p-60)), x);
  where(a <= 0.75, near, where(a < 1, far, where(a == 1, copysign(inf, x), nan))))";
// By w = -log(1 - x^2) in two numbers, as Giles has it (2010): x times a polynomial of w, its first
// coefficient sqrt(pi)/2 in two parts; from 5 on sqrt(w) and a polynomial of that. y is what w is too large
// by, and 0.27 the slope of the polynomial where that counts.
constexpr std::string_view kErfInvNearF32 = R"(
  let p = poly(x, 0x1.db2a08p-3, 0x1.7a6eb6p-7, -0x1.31ffccp-9, -0x1.0ad3d4p-13, 0x1.74cb5p-15, 0x1.0ddbecp-18,
               -0x1.0a337cp-19, 0x1.dc217ap-23, -0x1.2f0b34p-27);
  fma(x, p, fma(-0.27, y, -0x1.c96212p-26)))";
constexpr std::string_view kErfInvFarF32 = R"(
  let r = sqrt(x);
  let p = poly(r - 3.125, -0x1.5588b8p-3, 0x1.1496ap-8, 0x1.72677ep-8, -0x1.7d440ep-9, 0x1.09f612p-10,
               -0x1.ec937ap-13, -0x1.d85e64p-16, 0x1.437ad8p-15);
  r + (p + 0.5 * (fma(-r, r, x) - y) / r))";
constexpr std::string_view kErfInvF32 = R"(
  let q = fma(-x, x, 1);
  let n = log_exponent(q);
  let f = log_fraction(q);
  let big = n * ln_2_short;
  let hi = big + f;
  let tail = log_tail(f) + fma(n, ln_2_short_low, f - (hi - big));
  let l = hi + tail;
  let low = (hi - l) + tail;
  let y = fma(x, 0x1.c5bf8ap-1, x * erfinv_near(-l, low));
  let v = copysign(where(l > -5, y, erfinv_far(-l, low)), x);
  where(abs(x) < 1, v, where(abs(x) == 1, copysign(inf, x), nan)))";
constexpr std::string_view kNdtri = R"(
  let d = x - 0.5;
  let z = d * d;
  let s = z - 0.0703125;
  let near = d * poly(s, 0x1.5d035b66e70fep+1, 0x1.e143e6b0e1b9fp+1, 0x1.687f1dc4a331dp+3, 0x1.50bab65c95d42p+5,
       0x1.5d6a59111968cp+7, 0x1.8192dd219b578p+9, 0x1.baf82078a0694p+11, 0x1.05cacfb59ee52p+14,
       0x1.3c0a63e59f9bbp+16, 0x1.83cd3e074fd5dp+18, 0x1.e210dbb0deda6p+20, 0x1.2ecd1f682cad5p+23,
       0x1.7fbdb910015d7p+25, 0x1.e9d945de2f457p+27, 0x1.3aaae378f1924p+30, 0x1.976dd7211f482p+32,
       0x1.086cd351200b8p+35, 0x1.4fd40fdd3f884p+37, 0x1.b71abdf9dc1dbp+39, 0x1.56ea609c19766p+42,
       0x1.c46acd80ad727p+44, 0x1.44930a4b66959p+45, 0x1.a40c0590cb76ep+47, 0x1.1cb1b0613c37dp+53,
       0x1.7b9349f13a7e7p+55);
  let q = 2 * min(x, 1 - x);
  let t = erfc_inverse_tail(where((q > 0) & (q < 0.5), q, 0.25));
  let far = fma(0x1.6a09e667f3bcdp+0, t, -0x1.bdd3413b26456p-54 * t);
  where(abs(d) <= 0.375, near, where((x > 0) & (x < 1), copysign(far, d),
        where(x == 0, -inf, where(x == 1, inf, nan)))))";
// (x + y) * e^z.
constexpr std::string_view kTimesExp = R"(
  let h = 1 + exp_rest(z);
  let p = h * x;
  let low = fma(decay_low(-z, 0), x, fma(h, y, fma(h, x, -p)));
  scale(p + low, exp_exponent(z)))";
// erfcx beyond 27, and e^(x^2/2) times the normal tail beyond 38: the asymptotic series.
constexpr std::string_view kErfcxFar = R"(
  let z = 0.5 / (x * x);
  0.5641895835477563 / x * poly(z, 1, -1, 3, -15, 105, -945, 10395))";
constexpr std::string_view kTailFarther = R"(
  let z = 1 / (x * x);
  0.3989422804014327 / x * poly(z, 1, -1, 3, -15, 105, -945))";
constexpr std::string_view kErfcx = R"(
  let a = where(abs(x) == inf, 0, abs(x));
  let b = min(a, 27);
  let z = b * b;
  let h = 1 + exp_rest(z);
  let low = decay_low(-z, -fma(b, b, -z));
  let below = scale(2 * h + (2 * low - 0), exp_exponent(z)) - erfc_scaled(b);
  where(x == inf, 0, where(x < -26.7, inf, where(x < 0, below, where(x > 27, erfcx_far(a), erfc_scaled(b))))))";
// The probability of more than x, x >= 0.
constexpr std::string_view kUpper = R"(
  let a = min(x, normal_below);
  let z = 0.5 * a * a;
  let m = tail_scaled(a);
  let h = 1 + exp_rest(-z);
  let p = h * m;
  let low = fma(decay_low(z, fma(0.5 * a, a, -z)), m, fma(h, tail_scaled_low(a), fma(h, m, -p)));
  scale(p + low, exp_exponent(-z)))";
constexpr std::string_view kNdtr = R"(
  let z = 0.5 * x * x;
  let near = fma(0.5 * x, fma(0.7071067811865476 * z, erf_inner(z), 0.7978845608028654), 0.5);
  let q = normal_above(abs(x));
  where(abs(x) < 0.5, near, where(x < 0, q, 1 - q)))";
// Beyond 14.28 the tail rounds to 0.
constexpr std::string_view kNdtrF32 = R"(
  let a = min(abs(x), 14.28);
  let q = 0.5 * scaled_tail(a, 0.5 * a, 0x1.fadaa8p-3);
  where(x < 0, q, 1 - q))";
constexpr std::string_view kLogNdtr = R"(
  let a = abs(x);
  let z = 0.5 * a * a;
  let t = where(a > 38, tail_farther(min(a, 0x1p60)), tail_scaled(min(a, 39)));
  let l = log(where(x > -0.5, ndtr(x), t));
  let far = where(a > 0x1p60, -z, l - z - fma(0.5 * a, a, -z));
  let near = log1p(-normal_above(a));
  where(x > -0.5, where(x < 0, l, near), where(x == -inf, x, where(x == x, far, x))))";

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
// Short forms, by which float32 computes in float64: right to 2^-26.
constexpr std::string_view kGammaDensityShort = R"(
  let g = where(x < 3, lgamma_near_short(min(x, 3)), lgamma_far_short(max(x, 3) + 1));
  exp(x * log(y) - y - g))";
constexpr std::string_view kGammaSeriesShort = R"(
  let p = 1;
  let q = 1;
  for k = 32 to 1 {
    let q = (x + k) * q;
    let p = fma(y, p, q);
  }
  min(gamma_density_short(x, y) * (p / q), 1))";
// As a quotient p / q. Beyond 2^18 the density is 0.
constexpr std::string_view kGammaFractionShort = R"(
  let s = min(y, 0x1p18) - x;
  let q = 1;
  let p = s + 45;
  for k = 22 to 1 {
    let f = (s + (2 * k - 1)) * p - k * (k - x) * q;
    let q = p;
    let p = f;
  }
  gamma_density_short(x, y) * (x * q / p))";
// One less the other, as calls, which vectors that do not need them leave out.
constexpr std::string_view kUniformPShort = "let u = gamma_uniform(x, y); where(y < x, u, 1 - u)";
constexpr std::string_view kUniformQShort = "let u = gamma_uniform(x, y); where(y < x, 1 - u, u)";
constexpr std::string_view kGammaPShort = R"(
  let uniform = (x >= 20) & (y > 0.4 * x) & (y < 2.2 * x);
  let series = (y < x) | (y < 1.25);
  let some = (x > 0) & (x < 1e5) & (y > 0) & (y < inf);
  let a = where(some, x, 1);
  let b = where(some, y, 1);
  let p = where(series, gamma_series_short(a, b), gamma_fraction_rest_short(a, b));
  let q = where(some, p, where(y < x, 0, 1));
  let v = where(uniform, gammainc_uniform_short(where(uniform, x, 20), where(uniform, y, 20)), q);
  let w = where((x == 0) | (y == inf), where((y > 0) & (x < inf), 1, nan), where((y == 0) | (x == inf), 0, v));
  where((x >= 0) & (y >= 0), w, nan))";
constexpr std::string_view kGammaQShort = R"(
  let uniform = (x >= 20) & (y > 0.4 * x) & (y < 2.2 * x);
  let series = (y < x) | (y < 1.25);
  let small = (x < 1) & (y < 1.25) & (y > 0);
  let some = (x > 0) & (x < 1e5) & (y > 0) & (y < inf);
  let a = where(some, x, 1);
  let b = where(some, y, 1);
  let p = where(series, gamma_series_rest_short(a, b), gamma_fraction_short(a, b));
  let s = where(small, gamma_small(where(small, x, 0.5), where(small, y, 0.5)), p);
  let q = where(some, s, where(y < x, 1, 0));
  let v = where(uniform, gammaincc_uniform_short(where(uniform, x, 20), where(uniform, y, 20)), q);
  let w = where((x == 0) | (y == inf), where((y > 0) & (x < inf), 0, nan), where((y == 0) | (x == inf), 1, v));
  where((x >= 0) & (y >= 0), w, nan))";

constexpr Function kProbabilityFunctions[] = {
    costly_part("inverse_tail_near", 1, kTailNear),
    costly_part("inverse_tail_middle", 1, kTailMiddle),
    costly_part("inverse_tail_far", 1, kTailFar3),
    costly_part("inverse_tail_farther", 1, kTailFar4),
    part("inverse_tail", 1, kTailOf),
    {.name = "erfc_inverse_tail",
     .body_f64 = kErfcInvTail,
     .internal = true,
     .costly = true,
     .doc = "erfinv(1 - x) for small x"},
    {.name = "erfinv_near", .arity = 2, .body_f32 = kErfInvNearF32, .internal = true},
    {.name = "erfinv_far", .arity = 2, .body_f32 = kErfInvFarF32, .internal = true, .costly = true},
    {.name = "erfinv",
     .derivative = {"0.886226925452758 * exp(result * result)"},
     .body_f32 = kErfInvF32,
     .body_f64 = kErfInv,
     .narrow_f64 = true,
     .doc = "the inverse of erf"},
    {.name = "ndtri",
     .derivative = {"2.5066282746310002 * exp(0.5 * (result * result))"},
     .body_f64 = kNdtri,
     .doc = "the inverse of ndtr"},
    part("times_exp", 3, kTimesExp, "(x + y) * e^z"),
    costly_part("erfcx_far", 1, kErfcxFar),
    costly_part("tail_farther", 1, kTailFarther),
    {.name = "erfcx",
     .derivative = {"2 * (x * result) - 1.1283791670955126"},
     .body_f64 = kErfcx,
     .doc = "e^(x^2) * erfc(x)"},
    part("normal_above", 1, kUpper, "the probability of a normal number above x, x >= 0"),
    {.name = "ndtr",
     .derivative = {"0.3989422804014327 * exp(-0.5 * (x * x))"},
     .body_f32 = kNdtrF32,
     .body_f64 = kNdtr,
     .narrow_f64 = true,
     .doc = "the probability of a normal number below x"},
    {.name = "log_ndtr",
     .derivative = {"0.7978845608028654 / erfcx(-0.7071067811865476 * x)"},
     .body_f64 = kLogNdtr,
     .doc = "log(ndtr(x))"},
    called_part("gamma_density", 2, kGammaDensity),
    costly_called_part("gamma_series", 2, kGammaSeries),
    costly_called_part("gamma_fraction", 2, kGammaFraction),
    costly_called_part("gamma_small", 2, kGammaSmall),
    part("temme_sum", 2, kTemmeSum),
    costly_called_part("gamma_uniform", 2, kGammaUniform),
    {.name = "gammainc",
     .arity = 2,
     .derivative = {"nan", "exp((x - 1) * log(y) - y - lgamma(x))"},
     .body_f64 = kGammaP,
     .short_form = "gammainc_short",
     .narrow = true,
     .doc = "the lower incomplete gamma function over gamma(x)"},
    {.name = "gammaincc",
     .arity = 2,
     .derivative = {"nan", "-exp((x - 1) * log(y) - y - lgamma(x))"},
     .body_f64 = kGammaQ,
     .short_form = "gammaincc_short",
     .narrow = true,
     .doc = "the upper incomplete gamma function over gamma(x)"},
    called_part("gamma_density_short", 2, kGammaDensityShort),
    costly_called_part("gamma_series_short", 2, kGammaSeriesShort),
    costly_called_part("gamma_fraction_short", 2, kGammaFractionShort),
    costly_part("gamma_series_rest_short", 2, "1 - gamma_series_short(x, y)"),
    costly_part("gamma_fraction_rest_short", 2, "1 - gamma_fraction_short(x, y)"),
    costly_part("gammainc_uniform_short", 2, kUniformPShort),
    costly_part("gammaincc_uniform_short", 2, kUniformQShort),
    {.name = "gammainc_short",
     .arity = 2,
     .body_f64 = kGammaPShort,
     .internal = true,
     .kernel = true,
     .narrow = true},
    {.name = "gammaincc_short",
     .arity = 2,
     .body_f64 = kGammaQShort,
     .internal = true,
     .kernel = true,
     .narrow = true},
};

}  // namespace

std::span<const Function> probability_functions() noexcept { return kProbabilityFunctions; }

}  // namespace tenon::expr
