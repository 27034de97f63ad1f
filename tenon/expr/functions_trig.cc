// sin, cos, tan. The argument less a multiple of pi/2, in three or four parts, is r + r_lo with |r| <= pi/4;
// polynomials of sin and cos on it; the multiple's last two bits choose and sign. Beyond kBound the reduction
// is that of Payne and Hanek (pi_reduce). Coefficients: Sollya's fpminimax, in the type itself.
#include "tenon/expr/function_rows.h"

namespace tenon::expr {

namespace {

// sin(x + y) = x + rest.
constexpr std::string_view kSinRestF32 = R"(
  let z = x * x;
  let p = z * poly(z, -0x1.555556p-3, 0x1.111164p-7, -0x1.a0485ep-13, 0x1.77dep-19);
  fma(x, p, fma(y * z, -0.5, y)))";
constexpr std::string_view kSinRestF64 = R"(
  let z = x * x;
  let p = z * poly(z, -0x1.5555555555555p-3, 0x1.111111111108bp-7, -0x1.a01a01a006db4p-13, 0x1.71de3a402093bp-19,
                   -0x1.ae643d519ac0cp-26, 0x1.6114b134bb7b4p-33, -0x1.a56360c4ad6fdp-41);
  fma(x, p, fma(y * z, -0.5, y)))";
// cos(x + y) = (1 - x * x / 2) + rest.
constexpr std::string_view kCosRestF32 = R"(
  let z = x * x;
  let h = 0.5 * z;
  let w = 1 - h;
  let q = poly(z, 0x1.555556p-5, -0x1.6c175p-10, 0x1.a06404p-16, -0x1.32cd5cp-22);
  let lost = fma(0.5 * x, x, -h);
  fma(z * z, q, fma(-x, y, (1 - w) - h) - lost))";
constexpr std::string_view kCosRestF64 = R"(
  let z = x * x;
  let h = 0.5 * z;
  let w = 1 - h;
  let q = poly(z, 0x1.5555555555555p-5, -0x1.6c16c16c16b4bp-10, 0x1.a01a01a00263ap-16, -0x1.27e4fb615b50ap-22,
               0x1.1eed78560bfc5p-29, -0x1.937ebebe5ad8bp-37, 0x1.a274633de1fe9p-45);
  let lost = fma(0.5 * x, x, -h);
  fma(z * z, q, fma(-x, y, (1 - w) - h) - lost))";

// One step of the subtraction: OUT + OUT_LO is IN - n * PART without loss (TwoSum, and the product's low half
// by fma).
#define TENON_TRIG_STEP(IN, OUT, OUT_LO, PART) \
  "let p = n * " PART                          \
  ";"                                          \
  "let p_lo = fma(n, " PART                    \
  ", -p);"                                     \
  "let " OUT " = " IN                          \
  " - p;"                                      \
  "let back = " OUT " - " IN                   \
  ";"                                          \
  "let " OUT_LO " = (" IN " - (" OUT " - back)) - (p + back) - p_lo;"
#define TENON_TRIG_REDUCTION(TWO_OVER_PI, MAGIC, P1, P2, P3, P4, BOUND)                                 \
  "let t = fma(x, " TWO_OVER_PI ", " MAGIC                                                              \
  ");"                                                                                                  \
  "let n = t - " MAGIC                                                                                  \
  ";"                                                                                                   \
  "let r1 = fma(n, -" P1 ", x);" TENON_TRIG_STEP("r1", "r2", "e2", P2)                                  \
      TENON_TRIG_STEP("r2", "r3", "e3", P3) "let large = !(abs(x) <= " BOUND                            \
                                            ");"                                                        \
                                            "let r = where(large, pi_reduce(x, 0), r3);"                \
                                            "let low = where(large, pi_reduce(x, 1), fma(n, -(" P4      \
                                            "), e3 + e2));"                                             \
                                            "let quadrant = where(large, bits(pi_reduce(x, 2) + " MAGIC \
                                            "), bits(t)) & 3;"
#define TENON_REDUCE_F32                                                                             \
  TENON_TRIG_REDUCTION("0x1.45f306p-1", "0x1.8p+23", "0x1.9218p+0", "0x1.ed5p-14", "0x1.10b462p-30", \
                       "-0x1.cb3b3ap-55", "20000.0")
#define TENON_REDUCE_F64                                                                           \
  TENON_TRIG_REDUCTION("0x1.45f306dc9c883p-1", "0x1.8p+52", "0x1.921fb544p+0", "0x1.0b4611a6p-34", \
                       "0x1.3198a2e037073p-69", "0x1.129024e088a68p-123", "131072.0")
#define TENON_SIN_COS              \
  "let s_rest = sin_rest(r, low);" \
  "let c_rest = cos_rest(r, low);" \
  "let w = 1 - 0.5 * (r * r);"     \
  "let s = r + s_rest;"            \
  "let c = w + c_rest;"
#define TENON_SIN_BODY                        \
  TENON_SIN_COS                               \
  "let v = where((quadrant & 1) == 0, s, c);" \
  "where(x == 0, x, where((quadrant & 2) == 0, v, -v))"
#define TENON_COS_BODY                        \
  TENON_SIN_COS                               \
  "let v = where((quadrant & 1) == 0, c, s);" \
  "where(((quadrant + 1) & 2) == 0, v, -v)"
// The quotient of the two sums, corrected by what they and the division rounded off.
#define TENON_TAN_BODY                             \
  TENON_SIN_COS                                    \
  "let s_low = s_rest - (s - r);"                  \
  "let c_low = c_rest - (c - w);"                  \
  "let even = (quadrant & 1) == 0;"                \
  "let a = where(even, s, -c);"                    \
  "let a_low = where(even, s_low, -c_low);"        \
  "let b = where(even, c, s);"                     \
  "let b_low = where(even, c_low, s_low);"         \
  "let inverse = 1 / b;"                           \
  "let q = a * inverse;"                           \
  "let e = fma(-q, b, a) + fma(-q, b_low, a_low);" \
  "where(x == 0, x, fma(e, inverse, q))"

constexpr std::string_view kAtanF32 = R"(
  let a = abs(x);
  let v = where(a > 1, 1 / a, a);
  let z = v * v;
  let p = poly(z, -0x1.55553ep-2, 0x1.9991ecp-3, -0x1.24211ap-3, 0x1.c0946cp-4, -0x1.5825f2p-4, 0x1.da9c2ep-5,
               -0x1.fe7d24p-6, 0x1.6551e2p-7, -0x1.d5a1aap-10);
  let r = fma(v * z, p, v);
  copysign(where(a > 1, 0x1.921fb6p+0 - (r + 0x1.777a5cp-25), r), x))";
constexpr std::string_view kAtanF64 = R"(
  let a = abs(x);
  let v = where(a > 1, 1 / a, a);
  let z = v * v;
  let p = poly(z, -0x1.5555555555526p-2, 0x1.99999999955b4p-3, -0x1.249249237f57dp-3, 0x1.c71c717fcf76cp-4,
               -0x1.745d11ae74c4fp-4, 0x1.3b13669a29d18p-4, -0x1.110e5126faca4p-4, 0x1.e1bba66bf96ccp-5,
               -0x1.ae5e72c03aba6p-5, 0x1.82dad79a8374dp-5, -0x1.59a3ff235644p-5, 0x1.2c2e5cbf76fcdp-5,
               -0x1.e9fa0d6f21606p-6, 0x1.683cc93ceceebp-6, -0x1.c78fccc766f4bp-7, 0x1.d7b926ecf5435p-8,
               -0x1.7a3999f8427d3p-9, 0x1.b3faca8e051d5p-11, -0x1.3f364c30009c4p-13, 0x1.bbed9daad02f7p-17);
  let r = fma(v * z, p, v);
  copysign(where(a > 1, 0x1.921fb54442d18p+0 - (r - 0x1.1a62633145c07p-54), r), x))";

constexpr Function kRows[] = {
    {.name = "sin_rest",
     .arity = 2,
     .body_f32 = kSinRestF32,
     .body_f64 = kSinRestF64,
     .internal = true,
     .doc = "sin(x + y) - x"},
    {.name = "cos_rest",
     .arity = 2,
     .body_f32 = kCosRestF32,
     .body_f64 = kCosRestF64,
     .internal = true,
     .doc = "cos(x + y) - (1 - x * x / 2)"},
    {.name = "sin",
     .derivative = {"cos(x)"},
     .body_f32 = TENON_REDUCE_F32 TENON_SIN_BODY,
     .body_f64 = TENON_REDUCE_F64 TENON_SIN_BODY,
     .doc = "sine of radians"},
    {.name = "cos",
     .derivative = {"-sin(x)"},
     .body_f32 = TENON_REDUCE_F32 TENON_COS_BODY,
     .body_f64 = TENON_REDUCE_F64 TENON_COS_BODY,
     .doc = "cosine of radians"},
    {.name = "tan",
     .derivative = {"1 + result * result"},
     .body_f32 = TENON_REDUCE_F32 TENON_TAN_BODY,
     .body_f64 = TENON_REDUCE_F64 TENON_TAN_BODY,
     .doc = "tangent of radians"},
    {.name = "atan",
     .derivative = {"1 / (1 + x * x)"},
     .body_f32 = kAtanF32,
     .body_f64 = kAtanF64,
     .doc = "inverse tangent, in radians"},
};

}  // namespace

std::span<const Function> trigonometric_functions() noexcept { return kRows; }

}  // namespace tenon::expr
