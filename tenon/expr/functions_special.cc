// The error function, float64: |x| < 1: x times a polynomial in x^2, its first coefficient 2/sqrt(pi) in two
// parts. Above: 1 - exp(-x^2) * g(t) with g = exp(x^2) * erfc(x), smooth in t = (x - 2) / (x + 2); the
// subtrahend is below 0.16. Coefficients: Sollya's fpminimax, in the type itself. float32: 1 - exp(p(x)).
//
// erfc and the normal distribution's tail are e^(-z) * s(x), with z in two numbers, so that its rounding does
// not grow with it, and s smooth. float64: s is near 0 a polynomial of x, further out 1/x times one of 1/x.
// Coefficients: Chebyshev interpolation in 60 digits, rounded; the first ones in two numbers. float32: s is a
// polynomial of 1 / (1 + 0.35 x) at all x. Coefficients of float32 alone: least squares whose weights level
// the largest relative errors (Lawson), rounded one after the other.
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
constexpr std::string_view kOuterF64 = R"(
  poly(x, 0x1.058671b52c776p-2, -0x1.b57034efd3f73p-2, 0x1.eeea7dc8a7879p-3, -0x1.437f0b68c08e1p-4,
       0x1.e94715980173dp-9, 0x1.ca95ed51edca9p-8, -0x1.bc25a4c2118efp-11, -0x1.016b5be0484b9p-10,
       0x1.6d5f535965488p-15, 0x1.6da899da22b22p-13, 0x1.cdc84c8d9cfd3p-16, -0x1.ce50e1241dbedp-16,
       -0x1.d550a0981006fp-17, 0x1.429534ffe152cp-20, 0x1.17cd72950dde3p-18, 0x1.e1445b99a0115p-20,
       -0x1.94c959216995p-19, 0x1.1abbd794f5958p-21, 0x1.5d6338b3ed14ap-18, -0x1.0ac73cd5d535dp-17,
       0x1.e1480a4141415p-19))";

constexpr std::string_view kErfF64 = R"(
  let a = abs(x);
  let z = x * x;
  let inner = fma(x, two_over_sqrt_pi, x * fma(z, erf_inner(z), two_over_sqrt_pi_low));
  let outer = where(a >= erf_above, 1, fma(-exp(-z), erf_outer((a - 2) / (a + 2)), 1));
  copysign(where(a < 1, inner, outer), x))";
// Below 7/8 x + x * q(x^2). e^(p(a)) = 2^n * e^r is at least 2^-25, and at most 0.22, so that it needs fewer
// digits than the result has.
constexpr std::string_view kErfF32 = R"(
  let a = min(abs(x), erf_above);
  let z = x * x;
  let q = poly(z, 0x1.06eba8p-3, -0x1.81274p-2, 0x1.ce2d5cp-4, -0x1.b7ff8ap-6, 0x1.5430c6p-8,
                  -0x1.a4c29p-11, 0x1.49af3ap-14);
  let p = poly(a, -0x1.14b90ep-13, -0x1.20c0c6p+0, -0x1.46018ep-1, -0x1.ab5716p-4, 0x1.6f57dcp-6,
                  -0x1.954c04p-9, 0x1.a56ef4p-13);
  let e = exp_exponent(p);
  let r = exp_rest(p);
  let y = fma(r * r, poly(r, 0x1.fffdc2p-2, 0x1.555442p-3, 0x1.573bap-5, 0x1.12685ap-7), r) + 1;
  let outer = fma(-y, from_bits(shift_left(bits(e) - rounder_bits + bias, mantissa_bits)), 1);
  copysign(where(a < 0.875, fma(q, a, a), outer), x))";

// What x + y rounds off, by Knuth's TwoSum.
constexpr std::string_view kSumLow = R"(
  let sum = x + y;
  let back = sum - x;
  (x - (sum - back)) + (y - back))";
// x / y by 1 / y and one correction; and what that rounds off.
constexpr std::string_view kQuotient = R"(
  let q = 1 / y;
  fma(q, x, fma(-q, y, 1) * q * x))";
constexpr std::string_view kQuotientLow = R"(
  let q = 1 / y;
  let k = fma(-q, y, 1) * q * x;
  fma(q, x, -fma(q, x, k)) + k)";

// e^(x^2) * erfc(x), x >= 0; and what that rounds off.
constexpr std::string_view kErfcNearF64 = R"(
  let s = x - 1;
  fma(s, poly(s, -0x1.17c4e3f17c050p-2, 0x1.3c27283c32cc4p-3, -0x1.44837f8906fd0p-4,
                           0x1.33cad0ef5e9b8p-5, -0x1.10fcf1b5591a5p-6, 0x1.c8cb958c857fdp-8,
                           -0x1.6af2654e353b6p-9, 0x1.135262e569ed3p-10, -0x1.9082234da1d48p-12,
                           0x1.184fc35043370p-13, -0x1.7ab1d3cb6e030p-15, 0x1.ef08d0e30342ep-17,
                           -0x1.39c477570b2e0p-18, 0x1.82753f5985806p-20, -0x1.cf422d3cc2b71p-22,
                           0x1.0ea4808f62673p-23, -0x1.34a9d21f47c20p-25, 0x1.57fb2770d5e11p-27,
                           -0x1.76ad9e9f97945p-29, 0x1.900d2f5516a3ap-31, -0x1.a755cd53e02a2p-33,
                           0x1.b20dd7d2f98c4p-35, -0x1.8a44acc1fd6bcp-37, 0x1.88ffc5604ec43p-39,
                           -0x1.323cfaf9ed8e9p-40, 0x1.21aaf21ca1cf6p-42),
                        fma(s, -0x1.68ad7350585b8p-58, 0x1.825447f231a67p-58)))";
constexpr std::string_view kErfcFarF64 = R"(
  let u = 1 / x - 0.25;
  0x1.18932bf08e154p-1 + fma(u, poly(u, -0x1.e9412fa33c750p-4, -0x1.57a0492f04c7cp-3, 0x1.c1900888c9a0fp-3,
                           -0x1.cc2a32e7b045cp-6, -0x1.174f59c5aef6ap-2, 0x1.a4f7a43ef82dap-2,
                           -0x1.90fd525d5d66dp-4, -0x1.6a91811ec26cep-1, 0x1.7a932f576de13p+0,
                           -0x1.0533433e4fbfbp+0, -0x1.ec132cd5b00c9p+0, 0x1.bcb9caf0669edp+2,
                           -0x1.3189b3fd87373p+3, 0x1.8c0b3fb517539p-3, 0x1.ef44f8149caf2p+4,
                           -0x1.437e92bd5cb00p+6, 0x1.80d8d9a0b21bfp+6, 0x1.bff64f99ba251p+6,
                           -0x1.57aaccb358fd0p+9, 0x1.7afc4599fe65dp+9, 0x1.d9683aa545b61p+9,
                           -0x1.e4ccb894cc0bep+10),
                     0x1.ddead596ac142p-56))";
constexpr std::string_view kErfcScaled = "where(x < 2, erfc_middle + erfc_near(x), erfc_outer(x))";
constexpr std::string_view kErfcScaledLow =
    "where(x < 2, sum_low(erfc_middle, erfc_near(x)), erfc_outer_low(x))";

// e^(x^2/2) times the probability of more than x, x >= 0; and what that rounds off.
constexpr std::string_view kTailNearF64 = R"(
  let s = x - 1.5;
  fma(s, poly(s, -0x1.71c04c317211ep-4, 0x1.204038e2e73c1p-5, -0x1.99805968b70cbp-7,
                           0x1.0d602eb7452eap-8, -0x1.4bf38a3205168p-10, 0x1.826247b6b3712p-12,
                           -0x1.ab8f478c93271p-14, 0x1.c41919c3f408bp-16, -0x1.cab518b1044eap-18,
                           0x1.c021e736c4653p-20, -0x1.a6c65fd7120f1p-22, 0x1.821f598a373fcp-24,
                           -0x1.5620c6ab90590p-26, 0x1.26a81550e974dp-28, -0x1.ee254763da84ep-31,
                           0x1.94019ad1f0ce8p-33, -0x1.42847c79a345bp-35, 0x1.f7477da1a5042p-38,
                           -0x1.7fb6474d9151bp-40, 0x1.1f000cf799e98p-42, -0x1.ab81bdad0d95ap-45,
                           0x1.3309c630d9a2ep-47, -0x1.7b7414f1150c5p-50, 0x1.09b26abded176p-52,
                           -0x1.35f6a67dd5300p-54, 0x1.9abbf4f5f772fp-57),
                        fma(s, 0x1.d0efa885c2899p-58, -0x1.d00ba6107c90ep-59)))";
constexpr std::string_view kTailFarF64 = R"(
  let u = 1 / x - 0.1875;
  0x1.8b742d8b2b8b3p-2 + fma(u, poly(u, -0x1.fd7b09019c81cp-4, -0x1.c92cbf3f3ad10p-3, 0x1.bcd8d58d1548cp-2,
                           -0x1.125dd5779fb94p-3, -0x1.e33e6ef046602p-1, 0x1.1f25afdf572f6p+1,
                           -0x1.604d7140d5d22p+0, -0x1.76ed18686b29cp+2, 0x1.4e02ea71bb3cbp+4,
                           -0x1.c2bab73b38156p+4, -0x1.a713e3d4cc9bfp+4, 0x1.cef4bdbfa724cp+7,
                           -0x1.1d7802aa8c60ap+9, 0x1.d0ec0fc653e66p+8, 0x1.dfa8b76048698p+10,
                           -0x1.2318bbc657b2ep+13, 0x1.7b9d3a9628e38p+14, -0x1.0c49349b326b4p+15,
                           -0x1.55f4ca95f3df2p+17, 0x1.e8076d48d0a64p+19, -0x1.410709960888fp+15,
                           -0x1.42d776668a033p+22),
                     -0x1.2e43de44a68a1p-56))";
constexpr std::string_view kTailScaled = "where(x < 3, tail_middle + tail_near(x), tail_outer(x))";
constexpr std::string_view kTailScaledLow =
    "where(x < 3, sum_low(tail_middle, tail_near(x)), tail_outer_low(x))";

// e^(-x) = 2^n * (h + l): h is 1 + exp_rest(-x) as it rounds; l has what that lost, and y, small, as in
// e^(-x-y).
constexpr std::string_view kDecayLow = R"(
  let n = exp_exponent(-x) - rounder;
  let r = exp_rest(-x);
  let lost = fma(n, -ln_2_short_low, fma(n, -ln_2_short, -x) - r);
  fma(lost - y, exp_significand(-x), exp_tail(r)))";

constexpr std::string_view kErfcF64 = R"(
  let a = min(abs(x), erfc_below);
  let z = a * a;
  let m = erfc_scaled(a);
  let h = 1 + exp_rest(-z);
  let p = h * m;
  let low = fma(decay_low(z, fma(a, a, -z)), m, fma(h, erfc_scaled_low(a), fma(h, m, -p)));
  let y = scale(p + low, exp_exponent(-z));
  let inner = fma(x, two_over_sqrt_pi, x * fma(z, erf_inner(z), two_over_sqrt_pi_low));
  where(a < 0.5, 1 - inner, where(x < 0, 2 - y, y)))";

// e^(-x * y) * s, s = t * q(t) and t = 1 / (1 + z * x), where 0.35 / z * x is the argument of erfcx that s
// is. x * y is at most 103. `lost` is what the divisor and the quotient round off, relative to t, and s grows
// by `steep` as much; `low` is that and what q and the product round off. The scaling by 2^n comes last, in
// two steps, so that denormals round once.
constexpr std::string_view kTailF32 = R"(
  let d = fma(z, x, 1);
  let t = 1 / d;
  let lost = fma(-t, d, 1) - t * fma(z, x, 1 - d);
  let s = t - 0.5625;
  let w = poly(s, 0x1.6c28f6p-1, 0x1.dd1702p-1, 0x1.c96066p-1, 0x1.18c4ccp-1, 0x1.981438p-4, -0x1.2d45e4p-3,
               -0x1.8a3a98p-4, 0x1.22c22p-5, 0x1.389a6ap-5);
  let q = fma(s, w, 0x1.a93394p-2);
  let m = t * q;
  let steep = fma(2.506, t, 0.635);
  let low = fma(t, fma(s, w, 0x1.a93394p-2 - q) - 0x1.4fcb44p-26, fma(steep, lost * m, fma(t, q, -m)));
  let v = x * y;
  let e = exp_exponent(-v);
  let n = e - rounder;
  let b = fma(n, -ln_2_short, -v);
  let g = fma(n, ln_2_short_low, fma(x, y, -v));
  let r = b - g;
  let u = fma(r * r, exp_poly(r), (b - r) - g);
  let p = fma(m, r, fma(m, u, fma(low, r, low))) + m;
  p * from_bits(shift_left(bits(e) - rounder_bits + (bias + 40), mantissa_bits)) * 0x1p-40)";
// Beyond 10.1 it rounds to 0; at 10.77 the power of two is 0 itself, so that nothing denormal is computed.
constexpr std::string_view kErfcF32 = R"(
  let a = min(abs(x), 10.77);
  let y = scaled_tail(a, a, 0.35);
  where(x < 0, 2 - y, y))";

// x times the probability of less than x. Below 0 the scaling comes last, so that denormals round once.
constexpr std::string_view kGeluByTail = R"(
  let a = min(abs(x), normal_below);
  let z = 0.5 * a * a;
  let m = tail_scaled(a);
  let h = 1 + exp_rest(-z);
  let p = h * m;
  let low = fma(decay_low(z, fma(0.5 * a, a, -z)), m, fma(h, tail_scaled_low(a), fma(h, m, -p)));
  let c = -a * p;
  let below = scale(c + fma(-a, low, fma(-a, p, -c)), exp_exponent(-z));
  let more = scale(p, exp_exponent(-z));
  let v = x * more;
  let left = x - v;
  let above = left + (((x - left) - v) - fma(x, scale(low, exp_exponent(-z)), fma(x, more, -v)));
  let y = where(x < 0, copysign(below, x), where(more == 0, x, above));
  where(x == 0, x, where(x == -inf, nan, y)))";

// Near 0, which is the end of the tail's polynomial, that is not right to the last place.
constexpr std::string_view kGeluF64 = R"(
  let z = 0.5 * x * x;
  let g = fma(0.7071067811865476 * z, erf_inner(z), 0.7978845608028654);
  where(abs(x) < 0.5, copysign(fma(z, g, 0.5 * x), x), gelu_by_tail(x)))";

// e^(-a^2 / 2) = 2^n * (1 + q): rounder + n + 151, and q. 2^(n+24), which may make a result denormal, comes
// last. At 14.48 it is 0, so that nothing denormal is computed.
constexpr std::string_view kGeluExponent = "fma(0.5 * x * x, -log2_e, rounder + 151)";
constexpr std::string_view kGeluRest = R"(
  let n = gelu_exponent(x) - (rounder + 151);
  let r = fma(n, -ln_2_short_low, fma(-(0.5 * x), x, n * -ln_2_short));
  fma(r * r, poly(r, 0x1.fffff6p-2, 0x1.555474p-3, 0x1.555a68p-5, 0x1.1237eep-7, 0x1.68b6c8p-10), r))";
constexpr std::string_view kGeluPower = "from_bits(shift_left(bits(gelu_exponent(x)), mantissa_bits))";

// x where it is positive, less a times the probability of more than a, a = |x|. That is e^(-a^2 / 2) * u with
// u smooth in t. Beyond 14.4 it is 0. 0 * x makes of -inf what its product with 0 is. Coefficients: minimax,
// then those of their neighbours with the least error of the whole.
constexpr std::string_view kGeluF32 = R"(
  let a = min(abs(x), 14.48);
  let z = 0.5 * a * a;
  let t = (a - 1.5) / (a + 3);
  let u = poly(t, 0x1.3c144p-26, 0x1.44484p-26, -0x1.c52172p-26, 0x1.2fa2fep-26, -0x1.00095ap-28, -0x1.2960d4p-29,
               0x1.aff46cp-31, 0x1.5c3416p-31, -0x1.645ca4p-32);
  let far = fma(u, gelu_rest(a), u) * gelu_power(a);
  let near = fma(-z, poly(z, 0x1.988452p-1, -0x1.1057b4p-2, 0x1.46b064p-4, -0x1.340c0ap-6, 0x1.9b2690p-9), 0.5 * a);
  where(x < 0, 0 * x, x) - where(a < 0.75, near, far))";

// The probability of less than x and x times its density: of -a, with m(a) what the probability is of
// e^(-a^2 / 2), that times m(a) - a / sqrt(2 pi); of a, 1 less that. Coefficients: minimax, of the error
// relative to the whole.
constexpr std::string_view kGeluDerivativeF32 = R"(
  let a = min(abs(x), 14.48);
  let m = poly(a / (a + 3.5), 0x1p-25, -0x1.6573dp-24, 0x1.aa8d76p-24, -0x1.f24454p-25, 0x1.17d2dcp-28,
               0x1.6b2414p-27, 0x1.16d7f4p-29, -0x1.e05d74p-28, 0x1.4f2338p-29);
  let k = fma(-0x1.988454p-26, abs(x), m);
  let below = fma(k, gelu_rest(a), k) * gelu_power(a);
  where(x < 0, below, 1 - below))";
constexpr std::string_view kGeluDerivativeF64 =
    "0.5 * erfc(-0.7071067811865476 * x) + x * (0.3989422804014327 * exp(-0.5 * x * x))";

// x / (1 + e^-x); below 0 it is x * e^x / (1 + e^x), scaled last: where the sigmoid is denormal, it has few
// digits left. The dividend x * (h + l) has what the divisor rounds off.
constexpr std::string_view kSilu = R"(
  let far = -abs(x) < exp_below - 16;
  let a = where(far, exp_below - 16, -abs(x));
  let r = exp_rest(a);
  let t = exp_exponent(a);
  let w = scale(exp_significand(a), max(t, rounder - 100));
  let d = 1 + w;
  let h = where(x < 0, 1 + r, 1);
  let l = fma(-h, w - (d - 1), where(x < 0, exp_tail(r), 0));
  let q = fma(x, h, x * l) / d;
  where(far, where(x < 0, 0 * x, x), scale(q, where(x < 0, t, rounder))))";

// x * sigmoid(y + z) for small z. Below 0 it is x * e^(y+z) / (1 + e^(y+z)), scaled last: where the sigmoid
// is denormal, it has few digits left. y is far where x is infinite.
constexpr std::string_view kTimesSigmoid = R"(
  let far = -abs(y) < exp_below - 16;
  let a = where(far, 0, -abs(y));
  let s = exp_significand(a);
  let l = where(y < 0, z, -z);
  let e = fma(s, l, s);
  let t = exp_exponent(a);
  let w = scale(e, max(t, rounder - 100));
  let b = max(x, exp_below - 16);
  let c = b * s;
  let n = where(y < 0, c, x);
  let n_lo = where(y < 0, fma(c, l, fma(b, s, -c)), 0);
  let d = 1 + w;
  let lost = w - (d - 1);
  let inverse = 1 / d;
  let q = n * inverse;
  let r = fma(fma(-q, lost, fma(-q, d, n)) + n_lo, inverse, q);
  where(x == 0, x, where(far, where(x < 0, 0 * x, x), scale(r, where(y < 0, t, rounder)))))";

// x * sigmoid(2 * sqrt(2/pi) * (x + 0.044715 * x^3)), the argument in two numbers.
constexpr std::string_view kGeluTanh = R"(
  let b = where(abs(x) < 32, x, copysign(32, x));
  let t = b * b;
  let m = gelu_cubic * t;
  let m_lo = fma(gelu_cubic, t, -m) + fma(gelu_cubic, fma(b, b, -t), gelu_cubic_low * t);
  let c = 1 + m;
  let back = c - 1;
  let c_lo = ((1 - (c - back)) + (m - back)) + m_lo;
  let k = gelu_slope * b;
  let k_lo = fma(gelu_slope, b, -k) + gelu_slope_low * b;
  let y = k * c;
  times_sigmoid(x, y, fma(k, c, -y) + fma(k, c_lo, k_lo * c)))";

// tanh(log(1 + e^x)) = n / (n + 2), n = e^x * (e^x + 2). Above 1 it is
// 1 - 2 / (n + 2), where the error of e^x hardly counts. Where it is 0, nothing denormal is computed.
constexpr std::string_view kMish = R"(
  let far = x < exp_below - 16;
  let b = where(far, 0, x);
  let s = exp_significand(min(b, 1));
  let t = exp_exponent(min(b, 1));
  let e = where(x < 1, scale(s, t), exp(b));
  let n = e + 2;
  let n_lo = e - (n - 2);
  let d = fma(e, n, 2);
  let d_lo = fma(e, n, 2 - d) + e * n_lo;
  let c = b * s;
  let p = c * n;
  let p_lo = fma(c, n, -p) + fma(c, n_lo, fma(b, s, -c) * n);
  let inverse = 1 / d;
  let q = p * inverse;
  let below = scale(fma(fma(-q, d, p) + fma(-q, d_lo, p_lo), inverse, q), t);
  let y = where(x < 1, below, where(x > 20, x, fma(-2, x * inverse, x)));
  where(x == 0, x, where(far, 0 * x, y)))";

constexpr Function kSpecialFunctions[] = {
    {.name = "erf_inner", .body_f32 = kInnerF32, .body_f64 = kInnerF64, .internal = true},
    {.name = "erf_outer", .body_f64 = kOuterF64, .internal = true},
    {.name = "erf",
     .derivative = {"1.1283791670955126 * exp(-(x * x))"},
     .body_f32 = kErfF32,
     .body_f64 = kErfF64,
     .doc = "error function"},
    {.name = "sum_low", .arity = 2, .body_f64 = kSumLow, .internal = true},
    {.name = "quotient", .arity = 2, .body_f64 = kQuotient, .internal = true},
    {.name = "quotient_low", .arity = 2, .body_f64 = kQuotientLow, .internal = true},
    {.name = "erfc_near", .body_f64 = kErfcNearF64, .internal = true},
    {.name = "erfc_far", .body_f64 = kErfcFarF64, .internal = true},
    {.name = "erfc_outer", .body_f64 = "quotient(erfc_far(x), x)", .internal = true, .costly = true},
    {.name = "erfc_outer_low", .body_f64 = "quotient_low(erfc_far(x), x)", .internal = true, .costly = true},
    {.name = "erfc_scaled", .body_f64 = kErfcScaled, .internal = true},
    {.name = "erfc_scaled_low", .body_f64 = kErfcScaledLow, .internal = true},
    {.name = "tail_near", .body_f64 = kTailNearF64, .internal = true},
    {.name = "tail_far", .body_f64 = kTailFarF64, .internal = true},
    {.name = "tail_outer", .body_f64 = "quotient(tail_far(x), x)", .internal = true, .costly = true},
    {.name = "tail_outer_low", .body_f64 = "quotient_low(tail_far(x), x)", .internal = true, .costly = true},
    {.name = "tail_scaled", .body_f64 = kTailScaled, .internal = true},
    {.name = "tail_scaled_low", .body_f64 = kTailScaledLow, .internal = true},
    {.name = "decay_low", .arity = 2, .body_float = kDecayLow, .internal = true},
    {.name = "scaled_tail", .arity = 3, .body_f32 = kTailF32, .internal = true},
    {.name = "erfc",
     .derivative = {"-1.1283791670955126 * exp(-(x * x))"},
     .body_f32 = kErfcF32,
     .body_f64 = kErfcF64,
     .narrow_f64 = true,
     .doc = "1 - erf(x), accurate where that is small"},
    {.name = "gelu_by_tail", .body_f64 = kGeluByTail, .internal = true},
    {.name = "gelu_exponent", .body_f32 = kGeluExponent, .internal = true},
    {.name = "gelu_rest", .body_f32 = kGeluRest, .internal = true},
    {.name = "gelu_power", .body_f32 = kGeluPower, .internal = true},
    {.name = "gelu_derivative",
     .derivative = {"0.3989422804014327 * exp(-0.5 * x * x) * (2 - x * x)"},
     .body_f32 = kGeluDerivativeF32,
     .body_f64 = kGeluDerivativeF64,
     .narrow_f64 = true,
     .doc = "derivative of gelu"},
    {.name = "gelu",
     .derivative = {"gelu_derivative(x)"},
     .body_f32 = kGeluF32,
     .body_f64 = kGeluF64,
     .doc = "x times the probability of a normal number below x"},
    {.name = "times_sigmoid", .arity = 3, .body_float = kTimesSigmoid, .internal = true},
    {.name = "silu",
     .derivative =
         {"let s = sigmoid(where(real(x) < 0, x, -x)); where(real(x) < 0, s, 1 - s) + x * (s * (1 - s))"},
     .body_float = kSilu,
     .doc = "x * sigmoid(x)"},
    {.name = "gelu_tanh",
     .derivative =
         {"let y = 1.5957691216057308 * (x + 0.044715 * (x * x * x)); "
          "let s = sigmoid(where(y < 0, y, -y)); "
          "where(y < 0, s, 1 - s) + x * (s * (1 - s)) * (1.5957691216057308 * (1 + 0.134145 * (x * x)))"},
     .body_float = kGeluTanh,
     .doc = "gelu by a sigmoid of a cubic"},
    {.name = "mish",
     .derivative = {"let t = tanh(softplus(x)); t + x * ((1 - t * t) * sigmoid(x))"},
     .body_float = kMish,
     .doc = "x * tanh(softplus(x))"},
};

}  // namespace

std::span<const Function> special_functions() noexcept { return kSpecialFunctions; }

}  // namespace tenon::expr
