// Inverse error functions and the normal distribution's: erfinv, erfcx, ndtr, ndtri, log_ndtr. float32
// computes in float64. Coefficients: Chebyshev interpolation in 70 digits, rounded.
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
constexpr std::string_view kLogNdtr = R"(
  let a = abs(x);
  let z = 0.5 * a * a;
  let t = where(a > 38, tail_farther(min(a, 0x1p60)), tail_scaled(min(a, 39)));
  let far = where(a > 0x1p60, -z, log(t) - z - fma(0.5 * a, a, -z));
  let near = log1p(-normal_above(a));
  where(x > -0.5, where(x < 0, log(ndtr(x)), near), where(x == -inf, x, where(x == x, far, x))))";

constexpr Function kRows[] = {
    {.name = "inverse_tail_near", .body_f64 = kTailNear, .internal = true, .costly = true},
    {.name = "inverse_tail_middle", .body_f64 = kTailMiddle, .internal = true, .costly = true},
    {.name = "inverse_tail_far", .body_f64 = kTailFar3, .internal = true, .costly = true},
    {.name = "inverse_tail_farther", .body_f64 = kTailFar4, .internal = true, .costly = true},
    {.name = "inverse_tail", .body_f64 = kTailOf, .internal = true},
    {.name = "erfc_inverse_tail",
     .body_f64 = kErfcInvTail,
     .internal = true,
     .costly = true,
     .doc = "erfinv(1 - x) for small x"},
    {.name = "erfinv",
     .derivative = {"0.886226925452758 * exp(result * result)"},
     .body_f64 = kErfInv,
     .doc = "the inverse of erf"},
    {.name = "ndtri",
     .derivative = {"2.5066282746310002 * exp(0.5 * (result * result))"},
     .body_f64 = kNdtri,
     .doc = "the inverse of ndtr"},
    {.name = "times_exp", .arity = 3, .body_f64 = kTimesExp, .internal = true, .doc = "(x + y) * e^z"},
    {.name = "erfcx_far", .body_f64 = kErfcxFar, .internal = true, .costly = true},
    {.name = "tail_farther", .body_f64 = kTailFarther, .internal = true, .costly = true},
    {.name = "erfcx",
     .derivative = {"2 * (x * result) - 1.1283791670955126"},
     .body_f64 = kErfcx,
     .doc = "e^(x^2) * erfc(x)"},
    {.name = "normal_above",
     .body_f64 = kUpper,
     .internal = true,
     .doc = "the probability of a normal number above x, x >= 0"},
    {.name = "ndtr",
     .derivative = {"0.3989422804014327 * exp(-0.5 * (x * x))"},
     .body_f64 = kNdtr,
     .doc = "the probability of a normal number below x"},
    {.name = "log_ndtr",
     .derivative = {"0.7978845608028654 / erfcx(-0.7071067811865476 * x)"},
     .body_f64 = kLogNdtr,
     .doc = "log(ndtr(x))"},
};

}  // namespace

std::span<const Function> normal_functions() noexcept { return kRows; }

}  // namespace tenon::expr
