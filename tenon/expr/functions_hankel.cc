// Bessel functions of the first and second kind: near 0 power series and a logarithm or a pole, beyond by
// modulus and phase of the Hankel function, so that both of an order share their polynomials and keep their
// zeros. The Airy function, which is one of order 1/3, and its derivative: float32 computes in float64.
// Coefficients of float64: Chebyshev interpolation in 45 digits, rounded; of float32: least squares whose
// weights level the largest errors (Lawson), of values in 40 digits, rounded one after the other.
#include "tenon/expr/function_rows.h"

namespace tenon::expr {

namespace {

// The angle x - pi/4 + y less a multiple of pi/2, in two numbers, and that multiple modulo 4; |y| < 1 / 4.
constexpr std::string_view kAngle = R"(
  let r = circle_rest(x);
  let q = copysign(0.5 * half_pi, r);
  (r - q) + y)";
constexpr std::string_view kAngleLow = R"(
  let r = circle_rest(x);
  let q = copysign(0.5 * half_pi, r);
  let d = r - q;
  let d_lo = r - (d + q);
  let t = d + y;
  let back = t - d;
  let t_lo = (d - (t - back)) + (y - back);
  t_lo + (d_lo + (circle_rest_low(x) - 0.5 * half_pi_low * copysign(1, r))))";
// The sine of that angle; its cosine if z > 0.
constexpr std::string_view kWave = R"(
  let t = wave_angle(x, y);
  let low = wave_angle_low(x, y);
  let k = bits(circle_quadrant(x)) + where(circle_rest(x) < 0, 3, 0) + where(z > 0, 1, 0);
  let v = where((k & 1) == 0, t + sin_low(t, low), cos_high(t) + cos_low(t, low));
  where((k & 2) == 0, v, -v))";
// sqrt(x) times the modulus of the Hankel function, less a number near to it, and its phase less x - (2 n +
// 1) pi/4: beyond 8, from 3 on, and below.
constexpr std::string_view kModulus0Far =
    R"(let v = 1 / x; let z = v * v; fma(z, poly(z, -0x1.9884533d4342p-5, 0x1.524d94ed6d4p-4, -0x1.bb8627a3d2p-2, 0x1.2aa8bc3ffp+2,
       -0x1.55092a0bp+6, 0x1.26ba8f428p+11, -0x1.5ed8b42dp+16, 0x1.fea20185p+21, -0x1.86e491dp+27,
       0x1.1021d8fap+33, -0x1.31b23104p+38, 0x1.f10250b8p+42, -0x1.fc587aap+46, 0x1.e5af52p+49), -0x1.cd00a64ba5cd1p-55))";
constexpr std::string_view kModulus0Middle =
    R"(let s = 1 / x - 0.25; fma(s, poly(s, -0x1.5c1aef59ca72p-6, -0x1.019a811bee86p-5, 0x1.fc8597e76p-6, -0x1.66e282c7fcp-7,
       -0x1.7a62d266f8p-6, 0x1.08964f25p-4, -0x1.8785a339p-4, 0x1.313192p-4, 0x1.3da581cp-4,
       -0x1.ecbf552p-2, 0x1.41ff77p+0, -0x1.2d9e9cp+1, 0x1.7ca8ep+1, -0x1.f79p-5, -0x1.fafep+2,
       0x1.2c08p+5, -0x1.41aap+8), 0x1.43c2e640cb241p-55))";
constexpr std::string_view kModulus0Near =
    R"(let s = 1 / x - 0x1.fp-1; fma(s, poly(s, -0x1.32c9af2b3a8e3p-5, -0x1.d1c8dedc2404p-11, 0x1.0d1a268a570cp-8, -0x1.91cdae3b767ap-9,
       0x1.e1069622b64cp-10, -0x1.feca4013b8fp-11, 0x1.d99130c5dccp-12, -0x1.4e5daa5c94p-13,
       0x1.351ae1e74p-17, 0x1.ec1302add8p-15, -0x1.5510ebcbe8p-14, 0x1.52c22235cp-14,
       -0x1.25989bb11p-14, 0x1.dd62ec536p-15, -0x1.672fe866cp-15, 0x1.a35f9b49p-16, -0x1.02047a82p-16,
       0x1.c38bc71p-16, -0x1.4a32f098p-16, -0x1.ef78549cp-16, 0x1.d692458p-16, 0x1.4c8f9f78p-15,
       -0x1.12696b4p-15, -0x1.fd10eeap-16, 0x1.b6d3d9cp-16), -0x1.289af058febp-58))";
constexpr std::string_view kPhase0Far =
    R"(let v = 1 / x; let z = v * v; v * poly(z, -0x1.fffffffffffffp-4, 0x1.0aaaaaaaa7524p-4, -0x1.ad333317811p-3, 0x1.a3583232acp+0,
       -0x1.7795117d688p+4, 0x1.0b7a7a532fp+9, -0x1.12bdbebacp+14, 0x1.6df3172854p+19,
       -0x1.111214e174p+25, 0x1.845a2a9a1p+30, -0x1.c906c4863p+35, 0x1.8956e7892p+40,
       -0x1.ab0bfb7a8p+44, 0x1.b097b238p+47))";
constexpr std::string_view kPhase0Middle =
    R"(let s = 1 / x - 0.25; poly(s, -0x1.f1bbbedac163p-6, -0x1.d8cd87b4c53efp-4, 0x1.fc9b0fca9ef8bp-6, 0x1.be05fafc55c8p-7,
       -0x1.525009d6411p-5, 0x1.8f9dad80bccp-5, -0x1.6d12e15afep-6, -0x1.daf0094e18p-5,
       0x1.a7fb18d73p-3, -0x1.9ec5a4e6p-2, 0x1.0e1702fap-1, -0x1.aaba5bep-3, -0x1.618c4cp+0,
       0x1.73e9ffp+2, -0x1.dc79bdp+3, 0x1.a1b4e4p+4, -0x1.fd7358p+5, 0x1.1bc2ap+7, 0x1.0c0a6p+10))";
constexpr std::string_view kPhase0Near =
    R"(let s = 1 / x - 0x1.fp-1; poly(s, -0x1.8f3be68498cc6p-4, -0x1.3055f27745affp-4, 0x1.5e0328b35df74p-6, -0x1.aed0b3635e8eep-8,
       0x1.a49a470b97482p-10, 0x1.4ebb710da144p-14, -0x1.24d9684b5c2fp-11, 0x1.384f6f54f30cp-11,
       -0x1.0097c9c65758p-11, 0x1.758205fcd13p-12, -0x1.f35b4717c56p-13, 0x1.336170f9496p-13,
       -0x1.54076e06abp-14, 0x1.3812aa14f8p-15, -0x1.3d89d681c8p-17, -0x1.03ffe48e9p-17,
       0x1.11f438f91p-16, -0x1.f4c56e76p-17, 0x1.d9cfbe496p-17, -0x1.cc77f171cp-16, 0x1.cfe7d7b64p-16,
       0x1.f6292ffep-18, -0x1.f7052a6fp-17, -0x1.db4539a7p-16, 0x1.0dd2b42fp-15, 0x1.c06104bp-18,
       -0x1.8cea618p-17))";
constexpr std::string_view kModulus0 =
    R"(where(x > 8, modulus_0_far(max(x, 8)), where(x > 3, modulus_0_middle(min(max(x, 3), 8)), modulus_0_near(min(x, 3)))))";
constexpr std::string_view kPhase0 =
    R"(where(x > 8, phase_0_far(max(x, 8)), where(x > 3, phase_0_middle(min(max(x, 3), 8)), phase_0_near(min(x, 3)))))";
constexpr std::string_view kModulus0Centre =
    R"(where(x > 8, 0x1.9884533d43651p-1, where(x > 3, 0x1.970d1caeef718p-1, 0x1.8afa662f301afp-1)))";
constexpr std::string_view kModulus1Far =
    R"(let v = 1 / x; let z = v * v; fma(z, poly(z, 0x1.32633e6df282p-3, -0x1.3bf65860a86p-3, 0x1.48fa4e4786p-1, -0x1.8b3c2aaf9p+2,
       0x1.a79b35664p+6, -0x1.5ff3915a8p+11, 0x1.9848bcfap+16, -0x1.24441279p+22, 0x1.bb19a67fp+27,
       -0x1.32bf21f2p+33, 0x1.57734c28p+38, -0x1.16a2f8b8p+43, 0x1.1c9fda2p+47, -0x1.0fb2d1p+50), -0x1.ca5da0a93e598p-55))";
constexpr std::string_view kModulus1Middle =
    R"(let s = 1 / x - 0.25; fma(s, poly(s, 0x1.14539e00e22e6p-4, 0x1.c947fa72c1ebp-4, -0x1.20e36bc9834p-4, 0x1.828111cd9p-8,
       0x1.de6ad3c754p-5, -0x1.c416359748p-4, 0x1.026a14d3p-3, -0x1.bfdba30cp-5, -0x1.8ced26p-3,
       0x1.7ab20dap-1, -0x1.a966db4p+0, 0x1.60d258p+1, -0x1.6a33bp+1, -0x1.f60bp+0, 0x1.d15p+3,
       -0x1.b959p+5, 0x1.647cp+8), 0x1.3b7611dc4025ap-55))";
constexpr std::string_view kModulus1Near =
    R"(let s = 1 / x - 0x1.58p-1; fma(s, poly(s, 0x1.09bd8c6d35886p-3, 0x1.696b3bf757338p-5, -0x1.1d60aec89219p-5, 0x1.2bd157236538p-6,
       -0x1.d17b6aa7734p-8, 0x1.bb9a110094p-11, 0x1.29c389ffcp-9, -0x1.da2d52fce8p-9, 0x1.05ea25a79p-8,
       -0x1.f662b8f44p-9, 0x1.b61f2139p-9, -0x1.5a5623e8p-9, 0x1.dce08afp-10, -0x1.dbe46ap-11,
       -0x1.e28c34p-13, 0x1.5413ep-10, -0x1.01b548p-10, 0x1.70395p-10, -0x1.d920bp-8, 0x1.19ad3p-7), 0x1.afee0c5cc64d6p-57))";
constexpr std::string_view kPhase1Far =
    R"(let v = 1 / x; let z = v * v; v * poly(z, 0x1.8p-2, -0x1.4ffffffffe228p-3, 0x1.7bccccbd5ba8p-2, -0x1.2f4860eca78p+1, 0x1.e9f651e77fp+4,
       -0x1.49363f2cecp+9, 0x1.462760cc4p+14, -0x1.a89a00797p+19, 0x1.3883d15bp+25, -0x1.b8fd7b317p+30,
       0x1.0256bca5cp+36, -0x1.bb843ac8cp+40, 0x1.e0bcfdd4p+44, -0x1.e674f15p+47))";
constexpr std::string_view kPhase1Middle =
    R"(let s = 1 / x - 0.25; poly(s, 0x1.769f62f028282p-4, 0x1.65a3948df6102p-2, -0x1.697a9c597abe1p-4, -0x1.d7b3e60ffa48p-5,
       0x1.ad6e64675a74p-4, -0x1.452cb3febecp-4, -0x1.3970a3e588p-8, 0x1.2ca5577254p-3,
       -0x1.5c88b71788p-2, 0x1.0ef221f34p-1, -0x1.0a4b9af4p-1, -0x1.550a61ep-3, 0x1.40ccffap+1,
       -0x1.0538faap+3, 0x1.295a7e8p+4, -0x1.d19b0cp+4, 0x1.06d6e8p+6, -0x1.1034ep+7, -0x1.55388p+10))";
constexpr std::string_view kPhase1Near =
    R"(let s = 1 / x - 0x1.58p-1; poly(s, 0x1.c4efbd1c8e30ep-3, 0x1.0f4046bcdf41cp-2, -0x1.8be1279a99814p-4, 0x1.2af7a02933357p-6,
       0x1.4bfe9c27572b4p-7, -0x1.fc60fb222e4d8p-7, 0x1.9f6c0b27ea1cp-7, -0x1.0d6e4fdc8818p-7,
       0x1.201ce90dac4p-8, -0x1.9f677ab948p-10, -0x1.a8c7d3ab4p-12, 0x1.dde7da52ap-10,
       -0x1.73e1effacp-9, 0x1.ce897f2cp-9, -0x1.fe067c8p-9, 0x1.02d1acecp-8, -0x1.0858763cp-8,
       0x1.047ec7ap-8, -0x1.2c21454p-9))";
constexpr std::string_view kModulus1 =
    R"(where(x > 8, modulus_1_far(max(x, 8)), where(x > 3, modulus_1_middle(min(max(x, 3), 8)), modulus_1_near(min(x, 3)))))";
constexpr std::string_view kPhase1 =
    R"(where(x > 8, phase_1_far(max(x, 8)), where(x > 3, phase_1_middle(min(max(x, 3), 8)), phase_1_near(min(x, 3)))))";
constexpr std::string_view kModulus1Centre =
    R"(where(x > 8, 0x1.9884533d43651p-1, where(x > 3, 0x1.9d0cc6de39ad2p-1, 0x1.b3603b3a5fe81p-1)))";
// The function of the second kind of order 0, or of the first if y > 0; of order 1 the first, or less the
// second.
constexpr std::string_view kHankel0 = R"(
  let c = modulus_0_centre(x);
  let r = modulus_0(x);
  let w = wave(x, phase_0(x), y);
  fma(over_root(c, r, x), w, over_root_low(c, r, x) * w))";
constexpr std::string_view kHankel1 = R"(
  let c = modulus_1_centre(x);
  let r = modulus_1(x);
  let w = wave(x, phase_1(x), y);
  fma(over_root(c, r, x), w, over_root_low(c, r, x) * w))";
// The functions near 0.
constexpr std::string_view kJ0LessOne =
    R"(let z = x * x; z * poly(z, -0x1p-2, 0x1p-6, -0x1.c71c71c71c6p-12, 0x1.c71c71c6d4p-18, -0x1.23456704p-24, 0x1.02e764p-31,
       -0x1.506p-39))";
constexpr std::string_view kJ1Near =
    R"(let z = x * x; x * fma(z, poly(z, -0x1p-4, 0x1.5555555555555p-9, -0x1.c71c71c71c71cp-15, 0x1.6c16c16c16c2p-21,
       -0x1.845c8a0ce5p-28, 0x1.27e4fb7788p-35, -0x1.522a43f4p-43, 0x1.2c97578p-51, -0x1.ab81p-60,
       0x1.f12p-69, -0x1.dp-78), 0.5))";
constexpr std::string_view kJ0 = R"(
  let a = abs(x);
  let v = min(max(a, 0x1.4p-1), 0x1.fffffffffffffp1023);
  let far = hankel_0(v, 1);
  where(a < 0x1.4p-1, 1 + bessel_j0_less_one(min(a, 0x1.4p-1)), where(a == inf, 0, where(a == a, far, x))))";
constexpr std::string_view kJ1 = R"(
  let a = abs(x);
  let v = min(max(a, 2), 0x1.fffffffffffffp1023);
  let far = hankel_1(v, 0);
  let y = where(a < 2, bessel_j1_near(min(a, 2)), where(a == inf, 0, where(a == a, far, x)));
  where(x < 0, -y, where(x == 0, x, y)))";
constexpr std::string_view kY0Near = R"(
  let l = log_whole(x);
  let p = 0x1.45f306dc9c883p-1 * l;
  let p_lo = fma(0x1.45f306dc9c883p-1, l, -p) + fma(-0x1.6b01ec5417056p-55, l, 0x1.45f306dc9c883p-1 * log_lost(x));
  let z = x * x;
  p + (fma(p, bessel_j0_less_one(x), p_lo) + poly(z, -0x1.2e4d699cbd01fp-4, 0x1.6bbcb41034286p-3, -0x1.075b1bbf41362p-6, 0x1.1a6206b7b93ap-11,
       -0x1.3e99794172p-17, 0x1.bce4a4728p-24, -0x1.a6ec1ecp-31, 0x1.21b88p-38)))";
constexpr std::string_view kY1Near = R"(
  let n = max(x, 0x1p-500);
  let h = -0x1.45f306dc9c883p-1 / x;
  let h_lo = where(x < 0x1p-500, 0, (0x1.6b01ec5417056p-55 - fma(h, n, 0x1.45f306dc9c883p-1)) / n);
  let z = x * x;
  h + fma(0x1.45f306dc9c883p-1 * log(x), bessel_j1_near(x), fma(x, poly(z, -0x1.91866143cbc8ap-3, 0x1.bd3975c75b4a7p-5, -0x1.835b97894be5bp-9, 0x1.2c7dbffcde94p-14,
       -0x1.0a780ac771p-20, 0x1.32e5a4d6p-27, -0x1.f0ce274p-35, 0x1.2a478p-42, -0x1.11p-50), h_lo)))";
constexpr std::string_view kY0 = R"(
  let v = min(max(x, 0x1.4p-1), 0x1.fffffffffffffp1023);
  let far = hankel_0(v, 0);
  let y = where(x < 0x1.4p-1, bessel_y0_near(where((x > 0) & (x < 0x1.4p-1), x, 0x1.4p-1)), where(x == inf, 0, far));
  where(x > 0, y, where(x == 0, -inf, nan)))";
constexpr std::string_view kY1 = R"(
  let v = min(max(x, 1), 0x1.fffffffffffffp1023);
  let far = -hankel_1(v, 1);
  let y = where(x < 1, bessel_y1_near(where((x > 0) & (x < 1), x, 1)), where(x == inf, 0, far));
  where(x > 0, y, where(x == 0, -inf, nan)))";
// float32: sqrt(x) times the modulus less 0x1.988454p-1, and the phase, from 1.25 on.
constexpr std::string_view kModulus0F32 = R"(
  let v = 1 / x;
  poly(v, -0x1.857936p-26, -0x1.3659e2p-21, -0x1.9829f6p-5, -0x1.1d10acp-10, 0x1.86da0ep-4, -0x1.2d7c54p-4,
          -0x1.4b0cecp-2, 0x1.1c430ap+0, -0x1.baa51ap+0, 0x1.8b61fp+0, -0x1.86dbf6p-1, 0x1.4cbb7p-3))";
constexpr std::string_view kPhase0F32 = R"(
  let v = 1 / x;
  v * poly(v, -0x1.000032p-3, 0x1.26e886p-15, 0x1.05eb86p-4, 0x1.3987b8p-6, -0x1.917a4ap-2, 0x1.0bd6cp+0,
              -0x1.9fa7f6p+0, 0x1.a2fd7p+0, -0x1.0e08a6p+0, 0x1.947d86p-2, -0x1.0b57d6p-4))";
constexpr std::string_view kModulus1F32 = R"(
  let v = 1 / x;
  poly(v, -0x1.857936p-26, 0x1.805166p-21, 0x1.3247e4p-3, 0x1.4f47cep-10, -0x1.5978b2p-3, 0x1.2fe5bep-4,
          0x1.3dadc6p-1, -0x1.d3f7cap+0, 0x1.55fcb4p+1, -0x1.26152ep+1, 0x1.1b57acp+0, -0x1.d98bacp-3))";
constexpr std::string_view kPhase1F32 = R"(
  let v = 1 / x;
  v * poly(v, 0x1.80002cp-2, -0x1.ef56d6p-15, -0x1.4c31f4p-3, -0x1.dfeb54p-6, 0x1.468448p-1, -0x1.7601cap+0,
              0x1.f5459ap+0, -0x1.b1c192p+0, 0x1.d3fdeap-1, -0x1.159aa2p-2, 0x1.01bb5ap-5))";
// The function of the second kind at x, or of the first at -x: y and z are the two above. The wave is in two
// numbers.
constexpr std::string_view kHankelSumF32 = R"(
  let v = abs(x);
  let c = 0x1.988454p-1;
  let t = wave_angle(v, z);
  let low = wave_angle_low(v, z);
  let k = bits(circle_quadrant(v)) + where(circle_rest(v) < 0, 3, 0) + where(x < 0, 1, 0);
  let sine = (k & 1) == 0;
  let w = where(sine, t, cos_high(t));
  let w_lo = where(sine, sin_low(t, low), cos_low(t, low));
  let m = over_root(c, y, v);
  let h = fma(m, w, fma(over_root_low(c, y, v), w, m * w_lo));
  where((k & 2) == 0, h, -h))";
constexpr std::string_view kHankel0F32 = "hankel_sum(where(y > 0, -x, x), modulus_0(x), phase_0(x))";
constexpr std::string_view kHankel1F32 = "hankel_sum(where(y > 0, -x, x), modulus_1(x), phase_1(x))";
constexpr std::string_view kJ0LessOneF32 = R"(
  let z = x * x;
  z * poly(z, -0x1p-2, 0x1.fffffcp-7, -0x1.c71adep-12, 0x1.c6af1cp-18, -0x1.16e7c2p-24))";
// 1 + x^2 * p, where the product is in two numbers.
constexpr std::string_view kJ0NearF32 = R"(
  let z = x * x;
  let p = poly(z, -0x1p-2, 0x1.fffffcp-7, -0x1.c71adep-12, 0x1.c6af1cp-18, -0x1.16e7c2p-24);
  let v = x * p;
  fma(x, v, 1) + x * fma(x, p, -v))";
constexpr std::string_view kJ1NearF32 = R"(
  let z = x * x;
  x * fma(z, poly(z, -0x1p-4, 0x1.555554p-9, -0x1.c71b7p-15, 0x1.6bd3a2p-21, -0x1.75b862p-28), 0.5))";
// 2/pi times the logarithm in two numbers.
constexpr std::string_view kY0NearF32 = R"(
  let n = exponent(x);
  let f = log_fraction(normal(x));
  let big = n * ln_2_short;
  let hi = big + f;
  let lo = (big - hi + f) + fma(n, ln_2_short_low, log_tail(f));
  let l = hi + lo;
  let l_lo = hi - l + lo;
  let p = 0x1.45f306p-1 * l;
  let p_lo = fma(0x1.45f306p-1, l, -p) + fma(0x1.b9391p-26, l, 0x1.45f306p-1 * l_lo);
  let z = x * x;
  let lost = fma(fma(x, x, -z), 0x1.6bbcb8p-3, p_lo);
  let q = poly(z, -0x1.2e4d6ap-4, 0x1.6bbcb8p-3, -0x1.075b82p-6, 0x1.1a707p-11, -0x1.402bc4p-17, 0x1.d2f4d2p-24);
  p + (fma(p, bessel_j0_less_one(x), lost) + q))";
constexpr std::string_view kY1NearF32 = R"(
  let n = max(x, 0x1p-100);
  let h = -0x1.45f306p-1 / x;
  let h_lo = where(x < 0x1p-100, 0, (-0x1.b9391p-26 - fma(h, n, 0x1.45f306p-1)) / n);
  let z = x * x;
  let q = poly(z, -0x1.918662p-3, 0x1.bd399p-5, -0x1.835f9cp-9, 0x1.2cfd7cp-14, -0x1.1841f2p-20, 0x1.214248p-26);
  h + fma(0x1.45f306p-1 * log(x), bessel_j1_near(x), fma(x, q, h_lo)))";
constexpr std::string_view kJ0F32 = R"(
  let a = abs(x);
  let far = hankel_0(min(max(a, 1.25), 0x1.fffffep127), 1);
  where(a < 1.25, bessel_j0_near(min(a, 1.25)), where(a == inf, 0, where(a == a, far, x))))";
constexpr std::string_view kJ1F32 = R"(
  let a = abs(x);
  let far = hankel_1(min(max(a, 1.25), 0x1.fffffep127), 0);
  let y = where(a < 1.25, bessel_j1_near(min(a, 1.25)), where(a == inf, 0, where(a == a, far, x)));
  where(x < 0, -y, where(x == 0, x, y)))";
constexpr std::string_view kY0F32 = R"(
  let far = hankel_0(min(max(x, 1.25), 0x1.fffffep127), 0);
  let near = bessel_y0_near(where((x > 0) & (x < 1.25), x, 1.25));
  let y = where(x < 1.25, near, where(x == inf, 0, far));
  where(x > 0, y, where(x == 0, -inf, nan)))";
constexpr std::string_view kY1F32 = R"(
  let far = -hankel_1(min(max(x, 1.25), 0x1.fffffep127), 1);
  let near = bessel_y1_near(where((x > 0) & (x < 1.25), x, 1.25));
  let y = where(x < 1.25, near, where(x == inf, 0, far));
  where(x > 0, y, where(x == 0, -inf, nan)))";
// What sqrt(x) rounds off; x^(3/2) and what that does; 2/3 of it.
constexpr std::string_view kRootLow = R"(let s = sqrt(x); 0.5 * fma(-s, s, x) / s)";
constexpr std::string_view kCube = R"(x * sqrt(x))";
constexpr std::string_view kCubeLow = R"(fma(x, sqrt(x), -(x * sqrt(x))) + x * root_low(x))";
constexpr std::string_view kZeta = R"(two_thirds * airy_cube(x))";
constexpr std::string_view kZetaLow = R"(
  let p = airy_cube(x);
  fma(p, two_thirds, -(p * two_thirds)) + fma(p, two_thirds_low, airy_cube_low(x) * two_thirds))";
// Below -2 by modulus and phase, as Bessel functions of order 1/3 are, over -x; above 2 e^-zeta times a
// polynomial of x^(-3/2); between, polynomials.
constexpr std::string_view kAiryModulusFar =
    R"(let v = 1 / airy_cube(x); let z = v * v; fma(z, poly(z, -0x1.6914d2452a7ap-5, 0x1.424b156cafp-3, -0x1.d1a4178b7cp+0, 0x1.5cba9848ep+5,
       -0x1.bb6f5f7d8p+10, 0x1.a0726aep+16, -0x1.e940ce46p+22, 0x1.231dd4cp+29, -0x1.1c6291cp+35,
       0x1.727c12cp+40, -0x1.ccfacp+44), 0x1.3b7dc8ca823b3p-60))";
constexpr std::string_view kAiryModulusNear =
    R"(let s = 1 / airy_cube(x) - 0.21875; fma(s, poly(s, -0x1.f3394c4244b78p-7, -0x1.6fb242ce92fp-6, 0x1.1d905c5eafb8p-5, -0x1.d96cc6dd8a4p-6,
       -0x1.5adfb66938p-7, 0x1.cbe7affdb4p-4, -0x1.3bd7844dp-2, 0x1.2bc4362a8p-1, -0x1.6ea87b77p-1,
       -0x1.aba432ap-3, 0x1.3adb2a3cp+2, -0x1.3f2bedf8p+4, 0x1.bf5492cp+5, -0x1.168288p+7,
       0x1.98bc28p+8, -0x1.ece5c4p+8, -0x1.f8c49p+11, 0x1.9e474p+13), 0x1.5e578b4426c6ep-55))";
constexpr std::string_view kAiryPhaseFar =
    R"(let v = 1 / airy_cube(x); let z = v * v; v * poly(z, -0x1.aaaaaaaaaaaa9p-4, 0x1.eb1c71c70456cp-4, -0x1.af6154f4813p-1, 0x1.d1c44262f7ap+3,
       -0x1.d07cccad778p+8, 0x1.7146afa8p+14, -0x1.a3d8fa3dbcp+20, 0x1.2b124c722p+27,
       -0x1.c07ccd7538p+33, 0x1.28b16707bp+40, -0x1.28b0d0cfcp+46, 0x1.7bac24c3p+51, -0x1.c78b3abcp+55))";
constexpr std::string_view kAiryPhaseNear =
    R"(let s = 1 / airy_cube(x) - 0.21875; poly(s, -0x1.6506aed6e2e08p-6, -0x1.79460fe7ee3e6p-4, 0x1.50d0aaee85f17p-5, 0x1.f1a0798fa662p-8,
       -0x1.1ed6a305462p-4, 0x1.24154120d174p-3, -0x1.786018ae1dap-3, 0x1.e5b34e9d02p-5,
       0x1.20348df312p-1, -0x1.2dec5faf04p+1, 0x1.97fe4fe668p+2, -0x1.a71158a1ep+3, 0x1.2f6be0198p+4,
       -0x1.2a76904p+0, -0x1.cfc138dcp+6, 0x1.1dda0138p+9, -0x1.1e0dbe78p+11, 0x1.bb0ac7cp+12,
       -0x1.4a06dep+13))";
constexpr std::string_view kAiryDecayFar =
    R"(let s = 1 / airy_cube(x) - 0.0625; fma(s, poly(s, -0x1.b70b530a464ap-6, 0x1.2b3dfa7c16ep-6, -0x1.6c14d1fa268p-6, 0x1.344be11648p-5,
       -0x1.46d74565cp-4, 0x1.995c0fd18p-3, -0x1.24174644p-1, 0x1.cf6e3f2p+0, -0x1.919b36p+2,
       0x1.77086ep+4, -0x1.75dfe4p+6, 0x1.8fae1p+8, -0x1.bd404p+10, 0x1.b672p+12, -33022, 337264,
       -0x1.ba7p+20), 0x1.514f407b77c5dp-59))";
constexpr std::string_view kAiryDecayNear =
    R"(let s = 1 / airy_cube(x) - 0.234375; fma(s, poly(s, -0x1.67bb25e46295ep-6, 0x1.682a638fbc5cp-7, -0x1.26026d38221p-7, 0x1.378f51b765p-7,
       -0x1.86da2019a8p-7, 0x1.148efbc08p-6, -0x1.ace009b98p-6, 0x1.65898562p-5, -0x1.3c3e0508p-4,
       0x1.25e83dap-3, -0x1.1d0efep-2, 0x1.1f1926p-1, -0x1.2763dp+0, 0x1.31bf4p+1, -0x1.6dcc8p+2,
       0x1.0414p+4, -0x1.bfd8p+4), -0x1.fbb0b3d99ea14p-56))";
constexpr std::string_view kAiryLeft =
    R"(let s = x + 1; 0x1.1235093d83da5p-1 + fma(s, poly(s, -0x1.4cf103bcc6624p-7, -0x1.1235093d83da5p-2, 0x1.748bbc65f3efdp-4, 0x1.5fbcac2a278a1p-6,
       -0x1.25dff9df33debp-6, 0x1.2f95f0618205p-9, 0x1.ebe510ca2d4fp-11, -0x1.7b39f6c3d54ep-12,
       0x1.4116876fe42p-16, 0x1.e4a0beacf14p-17, -0x1.d0a22da48c8p-19, 0x1.318c50db8p-25,
       0x1.ecf3ed6bap-24, -0x1.4a2249b98p-26, -0x1.9eb094dp-32, 0x1.32f76a1p-31, -0x1.30a30acp-34,
       -0x1.b601ap-39, 0x1.02c7bp-39, -0x1.539dp-43, -0x1.de9p-47), 0x1.97f7f76116657p-55))";
constexpr std::string_view kAiryInner =
    R"(let s = x - 0.5; 0x1.da822d743844p-3 + fma(s, poly(s, -0x1.cc9de4b290e91p-3, 0x1.da822d743844p-5, 0x1.4599a423ea6a2p-6, -0x1.0b8914ad5bebp-6,
       0x1.bcba11fdc202p-9, 0x1.993e14e9098p-12, -0x1.6d517320894p-12, 0x1.0cbed42b9cp-14,
       0x1.92d0a0e6p-19, -0x1.d7c9618fp-19, 0x1.400beaap-21, 0x1.43b9f8p-27, -0x1.62609p-26,
       0x1.c5bd4p-29, 0x1.2b8p-37, -0x1.5c4p-34), 0x1.54c9a822e0b1ep-57))";
constexpr std::string_view kAiryRight =
    R"(let s = x - 1.5; 0x1.25e2ccf277dc1p-4 + fma(s, poly(s, -0x1.8ee0710605791p-4, 0x1.b8d4336bb3ca1p-5, -0x1.95e7d0c8c0777p-7, -0x1.6c06e2714e088p-10,
       0x1.cdc86e9a45c8p-10, -0x1.f9c572644328p-12, 0x1.f4cbd48334p-16, 0x1.36fe28ce4cp-16,
       -0x1.97d7694e1p-18, 0x1.57ec7858p-21, 0x1.6fd4aa5p-24, -0x1.4cf394p-25, 0x1.52c8ap-28,
       0x1.4cbcp-33, -0x1.4884p-33, 0x1.726p-36, -0x1.cp-43), -0x1.666253e74dd0cp-58))";
constexpr std::string_view kAiryWave = R"(
  let v = x;
  let q = sqrt(v);
  let far = airy_cube(v) > 12;
  let c = where(far, 0x1.20dd750429b6dp-1, 0x1.1fea3691f966dp-1);
  let r = where(far, airy_modulus_far(max(v, 5.2)), airy_modulus_near(min(v, 5.25)));
  let p = over_root(c, r, q);
  let z = airy_zeta(v);
  let y = where(far, airy_phase_far(max(v, 5.2)), airy_phase_near(min(v, 5.25))) + airy_zeta_low(v);
  let w = wave(z, y, 1);
  fma(p, w, fma(-p, root_low(v) / (2 * q), over_root_low(c, r, q)) * w))";
constexpr std::string_view kAiryDecay = R"(
  let v = x;
  let q = sqrt(v);
  let far = v > 4;
  let c = where(far, 0x1.1f121d1d4e724p-2, 0x1.1ad0fe15f7f7fp-2);
  let r = where(far, airy_decay_far(max(v, 4)), airy_decay_near(min(v, 4)));
  let p = over_root(c, r, q);
  let y = times_exp_apart(p, fma(-p, root_low(v) / (2 * q), over_root_low(c, r, q)), -airy_zeta(v));
  fma(-y, airy_zeta_low(v), y))";
// From 2^33 on, where the modulus is constant: the function if y > 0, or its derivative. The angle is the sum
// of two numbers, whose waves are multiplied. Its error passes 1 at 2^70, and it is constant beyond 2^600.
constexpr std::string_view kAiryFar = R"(
  let v = min(x, 0x1p600);
  let z = airy_zeta(v);
  let z_lo = airy_zeta_low(v);
  let s = wave(z, 0, 0);
  let c = wave(z, 0, 1);
  let s_lo = wave(z_lo, 0, 0);
  let c_lo = wave(z_lo, 0, 1);
  let r = sqrt(sqrt(x));
  let value = 0x1.9884533d43651p-2 * (c_lo * (c - s) - s_lo * (c + s)) / r;
  let slope = 0x1.9884533d43651p-2 * (c_lo * (c + s) + s_lo * (c - s)) * r;
  where(y > 0, value, where(x == inf, nan, slope)))";
constexpr std::string_view kAiry = R"(
  let b = max(min(x, 2), -2);
  let inner = where(b < 0, airy_left(min(b, 0)), where(b < 1, airy_inner(min(max(b, 0), 1)), airy_right(max(b, 1))));
  let wave = airy_wave(min(max(-x, 2), 0x1p33));
  let decay = where(x > 110, 0, airy_decay(min(max(x, 2), 110)));
  let far = airy_far(max(-x, 0x1p33), 1);
  where(x < -2, where(x < -0x1p33, far, wave), where(x > 2, decay, where(x == x, inner, x))))";
// The same of the derivative.
constexpr std::string_view kAiryPrimeModulusFar =
    R"(let v = 1 / airy_cube(x); let z = v * v; fma(z, poly(z, 0x1.f9838cc73eeep-5, -0x1.87f88063b5p-3, 0x1.08a646ba14p+1, -0x1.7e8d28ab2p+5,
       0x1.dc9875db8p+10, -0x1.ba0d15a9p+16, 0x1.01c2cfbcp+23, -0x1.31812acp+29, 0x1.29ca68c8p+35,
       -0x1.837aabp+40, 0x1.e1c77ap+44), 0x1.0c3640f654011p-56))";
constexpr std::string_view kAiryPrimeModulusNear =
    R"(let s = 1 / airy_cube(x) - 0.21875; fma(s, poly(s, 0x1.6764190b81c8cp-6, 0x1.18c27f619835p-5, -0x1.7a70feabd5ep-5, 0x1.0b3322c7db4p-5,
       0x1.5d93cb3dd6p-6, -0x1.26a2de37d8p-3, 0x1.71fe5e1378p-2, -0x1.4703adcb4p-1, 0x1.61cb9d14p-1,
       0x1.0b2cb778p-1, -0x1.7ee674b4p+2, 0x1.693e47a8p+4, -0x1.e72b7a7p+5, 0x1.24e1a7p+7,
       -0x1.a2a643p+8, 0x1.c55e64p+8, 0x1.1a2924p+12, -0x1.c2b9cp+13), -0x1.1bbc9220361adp-57))";
constexpr std::string_view kAiryPrimePhaseFar =
    R"(let v = 1 / airy_cube(x); let z = v * v; v * poly(z, 0x1.2aaaaaaaaaaaap-3, -0x1.451c71c70fec4p-3, 0x1.01f421efd69cp+0, -0x1.069dccb61b2p+4,
       0x1.fb2cc0ae98p+8, -0x1.8bac809796p+14, 0x1.bc9ea1a79cp+20, -0x1.3a74972d1p+27,
       0x1.d5a010ea7p+33, -0x1.35f906075p+40, 0x1.35930a384p+46, -0x1.8bdbca66p+51, 0x1.dabc8054p+55))";
constexpr std::string_view kAiryPrimePhaseNear =
    R"(let s = 1 / airy_cube(x) - 0.21875; poly(s, 0x1.f4a73326987adp-6, 0x1.0900f0144b84ep-3, -0x1.d6189135fad1cp-5, -0x1.0486d3d3081ep-6,
       0x1.93a9e42fae58p-4, -0x1.6e36bc259c7cp-3, 0x1.9a16727c17cp-3, -0x1.0582f60cep-8,
       -0x1.8c45d958aep-1, 0x1.69d447e45ep+1, -0x1.c7c5908048p+2, 0x1.bb362f916p+3, -0x1.1bd47072p+4,
       -0x1.bfd0ce7p+2, 0x1.219d7328p+7, -0x1.4c1689ap+9, 0x1.3958ba58p+11, -0x1.c0af0f2p+12,
       0x1.37e5b4p+13))";
constexpr std::string_view kAiryPrimeDecayFar =
    R"(let s = 1 / airy_cube(x) - 0.0625; fma(s, poly(s, -0x1.37c8473e28be8p-5, 0x1.6697feae50c4p-6, -0x1.9c6c214189p-6, 0x1.5382165962p-5,
       -0x1.61d92517dp-4, 0x1.b624e7dc8p-3, -0x1.3610ee9ap-1, 0x1.e8e5d78p+0, -0x1.a59d1d8p+2,
       0x1.882c73p+4, -0x1.85b23cp+6, 0x1.9f664p+8, -0x1.cdaep+10, 0x1.c64ap+12, -34160, 347424,
       -0x1.c73p+20), -0x1.5ded389e9ea64p-57))";
constexpr std::string_view kAiryPrimeDecayNear =
    R"(let s = 1 / airy_cube(x) - 0.234375; fma(s, poly(s, -0x1.0799415d530f8p-5, 0x1.bbfbd2c797bep-7, -0x1.55cff021214p-7, 0x1.5f7e66e0c3p-7,
       -0x1.b0dbde935cp-7, 0x1.2e6cc03a3p-6, -0x1.d0a78b98p-6, 0x1.809ce3b4p-5, -0x1.52441eep-4,
       0x1.38ebbf6p-3, -0x1.2e52ec8p-2, 0x1.2f7accp-1, -0x1.37639p+0, 0x1.4196ap+1, -0x1.7fb5p+2,
       0x1.1014p+4, -0x1.d3e8p+4), -0x1.8746fee700cb8p-56))";
constexpr std::string_view kAiryPrimeLeft =
    R"(let s = x + 1; -0x1.4cf103bcc6624p-7 + fma(s, poly(s, -0x1.1235093d83da5p-1, 0x1.1768cd4c76f3ep-2, 0x1.5fbcac2a2789bp-4, -0x1.6f57f85700d67p-4,
       0x1.c760e89243488p-7, 0x1.ae686eb0e7bbep-8, -0x1.7b39f6c3e0222p-9, 0x1.6939585dccb54p-13,
       0x1.2ee477300922p-13, -0x1.3f6f7f5fe1c5p-15, 0x1.ca525dbd6f8p-22, 0x1.90863086dbp-20,
       -0x1.20ddc47d6cp-22, -0x1.84c4fb3cp-28, 0x1.32ed20c1ep-27, -0x1.43af429fp-30, -0x1.e423037p-35,
       0x1.336d52ap-35, -0x1.e90781p-39, -0x1.3d74b8p-42, 0x1.9cce2p-44), 0x1.44d022c960325p-62))";
constexpr std::string_view kAiryPrimeInner =
    R"(let s = x - 0.5; -0x1.cc9de4b290e91p-3 + fma(s, poly(s, 0x1.da822d743844p-4, 0x1.e8667635df9efp-5, -0x1.0b8914ad5beb1p-4, 0x1.15f44b3e996f3p-6,
       0x1.32ee8faec72c8p-9, -0x1.3fa744bcaa45p-9, 0x1.0cbed42b987p-11, 0x1.c52ab6b016p-16,
       -0x1.26dddcf7e8p-15, 0x1.b81024966p-18, 0x1.e596df9p-24, -0x1.1fdabadp-22, 0x1.8d0607p-25,
       -0x1.0f0cp-34, -0x1.5c49cp-30, 0x1.bbf4p-33), -0x1.982172f63597cp-58))";
constexpr std::string_view kAiryPrimeRight =
    R"(let s = x - 1.5; -0x1.8ee0710605791p-4 + fma(s, poly(s, 0x1.b8d4336bb3ca1p-4, -0x1.306ddc9690599p-5, -0x1.6c06e2714e082p-8, 0x1.209d45206b9d6p-7,
       -0x1.7b5415cb327ap-9, 0x1.b63259f2cd6p-13, 0x1.36fe28ce7cp-13, -0x1.cad25677bp-15,
       0x1.ade796194p-18, 0x1.f9c469d1p-21, -0x1.f36d328cp-22, 0x1.134310cp-24, 0x1.22cp-29,
       -0x1.3400cp-29, 0x1.7a02p-32, -0x1.cap-39, -0x1.e8p-38), -0x1.e46fdddba1c9cp-59))";
constexpr std::string_view kAiryPrimeWave = R"(
  let v = x;
  let q = sqrt(v);
  let far = airy_cube(v) > 12;
  let c = where(far, 0x1.20dd750429b6dp-1, 0x1.2237476a9b4dp-1);
  let r = where(far, airy_prime_modulus_far(max(v, 5.2)), airy_prime_modulus_near(min(v, 5.25)));
  let p = (c + r) * sqrt(q);
  let z = airy_zeta(v);
  let y = where(far, airy_prime_phase_far(max(v, 5.2)), airy_prime_phase_near(min(v, 5.25))) + airy_zeta_low(v);
  let w = wave(z, y, 0);
  p * w)";
constexpr std::string_view kAiryPrimeDecay = R"(
  let v = x;
  let q = sqrt(v);
  let far = v > 4;
  let c = where(far, -0x1.23653c81fab57p-2, -0x1.2988fbbecce77p-2);
  let r = where(far, airy_prime_decay_far(max(v, 4)), airy_prime_decay_near(min(v, 4)));
  let p = (c + r) * sqrt(q);
  let y = times_exp_apart(p, 0, -airy_zeta(v));
  fma(-y, airy_zeta_low(v), y))";
constexpr std::string_view kAiryPrime = R"(
  let b = max(min(x, 2), -2);
  let inner = where(b < 0, airy_prime_left(min(b, 0)), where(b < 1, airy_prime_inner(min(max(b, 0), 1)), airy_prime_right(max(b, 1))));
  let wave = airy_prime_wave(min(max(-x, 2), 0x1p33));
  let decay = where(x > 110, 0, airy_prime_decay(min(max(x, 2), 110)));
  let far = airy_far(max(-x, 0x1p33), 0);
  where(x < -2, where(x < -0x1p33, far, wave), where(x > 2, decay, where(x == x, inner, x))))";

constexpr Function kHankelFunctions[] = {
    {.name = "wave_angle", .arity = 2, .body_float = kAngle, .internal = true},
    {.name = "wave_angle_low", .arity = 2, .body_float = kAngleLow, .internal = true},
    called_part("wave", 3, kWave),
    costly_part("modulus_0_far", 1, kModulus0Far),
    costly_part("modulus_0_middle", 1, kModulus0Middle),
    costly_part("modulus_0_near", 1, kModulus0Near),
    {.name = "modulus_0", .body_f32 = kModulus0F32, .body_f64 = kModulus0, .internal = true},
    costly_part("phase_0_far", 1, kPhase0Far),
    costly_part("phase_0_middle", 1, kPhase0Middle),
    costly_part("phase_0_near", 1, kPhase0Near),
    {.name = "phase_0", .body_f32 = kPhase0F32, .body_f64 = kPhase0, .internal = true},
    part("modulus_0_centre", 1, kModulus0Centre),
    costly_part("modulus_1_far", 1, kModulus1Far),
    costly_part("modulus_1_middle", 1, kModulus1Middle),
    costly_part("modulus_1_near", 1, kModulus1Near),
    {.name = "modulus_1", .body_f32 = kModulus1F32, .body_f64 = kModulus1, .internal = true},
    costly_part("phase_1_far", 1, kPhase1Far),
    costly_part("phase_1_middle", 1, kPhase1Middle),
    costly_part("phase_1_near", 1, kPhase1Near),
    {.name = "phase_1", .body_f32 = kPhase1F32, .body_f64 = kPhase1, .internal = true},
    part("modulus_1_centre", 1, kModulus1Centre),
    {.name = "hankel_sum", .arity = 3, .body_f32 = kHankelSumF32, .internal = true, .apart = true},
    {.name = "hankel_0",
     .arity = 2,
     .body_f32 = kHankel0F32,
     .body_f64 = kHankel0,
     .internal = true,
     .apart = true},
    {.name = "hankel_1",
     .arity = 2,
     .body_f32 = kHankel1F32,
     .body_f64 = kHankel1,
     .internal = true,
     .apart = true},
    {.name = "bessel_j0_less_one", .body_f32 = kJ0LessOneF32, .body_f64 = kJ0LessOne, .internal = true},
    {.name = "bessel_j0_near", .body_f32 = kJ0NearF32, .internal = true},
    {.name = "bessel_j1_near", .body_f32 = kJ1NearF32, .body_f64 = kJ1Near, .internal = true},
    {.name = "bessel_y0_near", .body_f32 = kY0NearF32, .body_f64 = kY0Near, .internal = true, .costly = true},
    {.name = "bessel_y1_near", .body_f32 = kY1NearF32, .body_f64 = kY1Near, .internal = true, .costly = true},
    {.name = "bessel_j0",
     .derivative = {"-bessel_j1(x)"},
     .body_f32 = kJ0F32,
     .body_f64 = kJ0,
     .narrow = true,
     .doc = "the Bessel function of the first kind, of order 0"},
    {.name = "bessel_j1",
     .derivative = {"where(abs(x) < 1e-300, 0.5, bessel_j0(x) - result / x)"},
     .body_f32 = kJ1F32,
     .body_f64 = kJ1,
     .narrow = true,
     .doc = "the Bessel function of the first kind, of order 1"},
    {.name = "bessel_y0",
     .derivative = {"-bessel_y1(x)"},
     .body_f32 = kY0F32,
     .body_f64 = kY0,
     .narrow = true,
     .doc = "the Bessel function of the second kind, of order 0"},
    {.name = "bessel_y1",
     .derivative = {"where(x == 0, inf, bessel_y0(x) - result / x)"},
     .body_f32 = kY1F32,
     .body_f64 = kY1,
     .narrow = true,
     .doc = "the Bessel function of the second kind, of order 1"},
    part("root_low", 1, kRootLow),
    part("airy_cube", 1, kCube),
    part("airy_cube_low", 1, kCubeLow),
    part("airy_zeta", 1, kZeta),
    part("airy_zeta_low", 1, kZetaLow),
    costly_part("airy_modulus_far", 1, kAiryModulusFar),
    costly_part("airy_modulus_near", 1, kAiryModulusNear),
    costly_part("airy_phase_far", 1, kAiryPhaseFar),
    costly_part("airy_phase_near", 1, kAiryPhaseNear),
    costly_part("airy_decay_far", 1, kAiryDecayFar),
    costly_part("airy_decay_near", 1, kAiryDecayNear),
    costly_part("airy_left", 1, kAiryLeft),
    costly_part("airy_inner", 1, kAiryInner),
    costly_part("airy_right", 1, kAiryRight),
    costly_part("airy_wave", 1, kAiryWave),
    costly_part("airy_decay", 1, kAiryDecay),
    costly_called_part("airy_far", 2, kAiryFar),
    costly_part("airy_prime_modulus_far", 1, kAiryPrimeModulusFar),
    costly_part("airy_prime_modulus_near", 1, kAiryPrimeModulusNear),
    costly_part("airy_prime_phase_far", 1, kAiryPrimePhaseFar),
    costly_part("airy_prime_phase_near", 1, kAiryPrimePhaseNear),
    costly_part("airy_prime_decay_far", 1, kAiryPrimeDecayFar),
    costly_part("airy_prime_decay_near", 1, kAiryPrimeDecayNear),
    costly_part("airy_prime_left", 1, kAiryPrimeLeft),
    costly_part("airy_prime_inner", 1, kAiryPrimeInner),
    costly_part("airy_prime_right", 1, kAiryPrimeRight),
    costly_part("airy_prime_wave", 1, kAiryPrimeWave),
    costly_part("airy_prime_decay", 1, kAiryPrimeDecay),
    {.name = "airy_ai",
     .derivative = {"airy_ai_prime(x)"},
     .body_f64 = kAiry,
     .narrow = true,
     .doc = "the Airy function"},
    {.name = "airy_ai_prime",
     .derivative = {"x * airy_ai(x)"},
     .body_f64 = kAiryPrime,
     .narrow = true,
     .doc = "the derivative of the Airy function"},
};

}  // namespace

std::span<const Function> hankel_functions() noexcept { return kHankelFunctions; }

}  // namespace tenon::expr
