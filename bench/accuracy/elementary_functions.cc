// Functions of one argument that have to be approximated.
#include <cmath>
#include <limits>

#include "bench/accuracy/functions.h"
#include "bench/accuracy/references.h"

namespace tenon::accuracy {

namespace {

double softplus(double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::abs(x))); }

// 1 / (1 + e^-x).
void sigmoid(mpfr_ptr out, mpfr_ptr x) {
  mpfr_neg(x, x, kNearest);
  mpfr_exp(out, x, kNearest);
  mpfr_add_ui(out, out, 1, kNearest);
  mpfr_ui_div(out, 1, out, kNearest);
}

// log(1 + e^x); of large x the exponential would leave even MPFR's range, and is what counts.
void softplus(mpfr_ptr out, mpfr_ptr x) {
  if (mpfr_cmp_ui(x, 2000) > 0) {
    mpfr_set(out, x, kNearest);
  } else {
    mpfr_exp(out, x, kNearest);
    mpfr_log1p(out, out, kNearest);
  }
}

// x times the probability of a normal number below x.
void gelu(mpfr_ptr out, mpfr_ptr x) {
  Exact root;
  mpfr_sqrt_ui(root, 2, kNearest);
  mpfr_div(root, x, root, kNearest);
  mpfr_neg(root, root, kNearest);
  mpfr_erfc(root, root, kNearest);
  mpfr_mul(out, x, root, kNearest);
  mpfr_div_ui(out, out, 2, kNearest);
}

// x * sigmoid(2 * sqrt(2/pi) * (x + 0.044715 * x^3)).
void gelu_tanh(mpfr_ptr out, mpfr_ptr x) {
  Exact cubic, slope;
  mpfr_set_str(cubic, "0.044715", 10, kNearest);
  mpfr_mul(cubic, cubic, x, kNearest);
  mpfr_mul(cubic, cubic, x, kNearest);
  mpfr_add_ui(cubic, cubic, 1, kNearest);
  mpfr_const_pi(slope, kNearest);
  mpfr_ui_div(slope, 8, slope, kNearest);
  mpfr_sqrt(slope, slope, kNearest);
  mpfr_mul(cubic, cubic, slope, kNearest);
  mpfr_mul(cubic, cubic, x, kNearest);
  sigmoid(cubic, cubic);
  mpfr_mul(out, x, cubic, kNearest);
}

// x * tanh(softplus(x)).
void mish(mpfr_ptr out, mpfr_ptr x) {
  Exact t;
  softplus(t, x);
  mpfr_tanh(t, t, kNearest);
  mpfr_mul(out, x, t, kNearest);
}

// Thresholds of the exponential in float64 and float32: overflow, the smallest normal, the smallest number.
const std::vector<double> kExpPoints = {709.782712893384,
                                        -708.3964185322641,
                                        -745.1332191019412,
                                        88.72283905206835,
                                        -87.33654475055310,
                                        -103.9720770839918,
                                        0};

}  // namespace

std::vector<MathFunction> elementary_functions() {
  return {
      {.name = "exp",
       .text = "exp(x)",
       .budget = 1,
       .op = "aten::exp",
       .in_double = each<[](double x) { return std::exp(x); }>,
       .exact = by_mpfr<mpfr_exp>,
       .interesting = {-745.2, 709.8},
       .points = kExpPoints},
      {.name = "log",
       .text = "log(x)",
       .budget = 1,
       .op = "aten::log",
       .in_double = each<[](double x) { return std::log(x); }>,
       .exact = by_mpfr<mpfr_log>,
       .interesting = {0.4, 2.5},
       .points = {1, M_SQRT1_2, M_SQRT2, 0x1p-1022}},
      {.name = "sin",
       .text = "sin(x)",
       .budget = 1,
       .op = "aten::sin",
       .symmetry = Symmetry::Odd,
       .in_double = each<[](double x) { return std::sin(x); }>,
       .exact = by_mpfr<mpfr_sin>,
       .interesting = {-20, 20},
       .points = {131072, 0x1.6ac5b262ca1ffp+849},
       .circular = true},
      {.name = "cos",
       .text = "cos(x)",
       .budget = 1,
       .op = "aten::cos",
       .symmetry = Symmetry::Even,
       .in_double = each<[](double x) { return std::cos(x); }>,
       .exact = by_mpfr<mpfr_cos>,
       .interesting = {-20, 20},
       .points = {131072, 0x1.6ac5b262ca1ffp+849},
       .circular = true},
      {.name = "rsqrt",
       .text = "rsqrt(x)",
       .budget = 1,
       .op = "aten::rsqrt",
       .in_double = each<[](double x) { return 1 / std::sqrt(x); }>,
       .exact =
           [](mpfr_ptr out, mpfr_ptr x, mpfr_ptr) {
             // Not mpfr_rec_sqrt, which has no negative infinity for -0.
             mpfr_sqrt(out, x, kNearest);
             mpfr_ui_div(out, 1, out, kNearest);
           },
       .interesting = {0.25, 4},
       .points = {1, 0x1p-1022}},
      {.name = "exp2",
       .text = "exp2(x)",
       .budget = 2,
       .op = "aten::exp2",
       .in_double = each<[](double x) { return std::exp2(x); }>,
       .exact = by_mpfr<mpfr_exp2>,
       .interesting = {-1075, 1024},
       .points = {1024, -1022, -1075, 128, -126, -150, 0}},
      {.name = "expm1",
       .text = "expm1(x)",
       .budget = 2,
       .op = "aten::expm1",
       .in_double = each<[](double x) { return std::expm1(x); }>,
       .exact = by_mpfr<mpfr_expm1>,
       .interesting = {-40, 40},
       .points = {709.782712893384, 0.34657359027997264, -0.34657359027997264, -37.4, 0}},
      {.name = "sigmoid",
       .text = "sigmoid(x)",
       .budget = 2,
       .op = "aten::sigmoid",
       .in_double = each<[](double x) { return 1 / (1 + std::exp(-x)); }>,
       .exact = [](mpfr_ptr out, mpfr_ptr x, mpfr_ptr) { sigmoid(out, x); },
       .interesting = {-40, 40},
       .points = kExpPoints},
      {.name = "silu",
       .text = "silu(x)",
       .budget = 2,
       .op = "aten::silu",
       .in_double = each<[](double x) { return std::isinf(x) && x < 0 ? NAN : x / (1 + std::exp(-x)); }>,
       .exact =
           [](mpfr_ptr out, mpfr_ptr x, mpfr_ptr y) {
             mpfr_set(y, x, kNearest);
             sigmoid(out, x);
             mpfr_mul(out, out, y, kNearest);
           },
       .interesting = {-40, 40},
       .points = kExpPoints},
      {.name = "tanh",
       .text = "tanh(x)",
       .budget = 2,
       .op = "aten::tanh",
       .symmetry = Symmetry::Odd,
       .in_double = each<[](double x) { return std::tanh(x); }>,
       .exact = by_mpfr<mpfr_tanh>,
       .interesting = {-20, 20},
       .points = {0.55, 0}},
      {.name = "sinh",
       .text = "sinh(x)",
       .budget = 2,
       .op = "aten::sinh",
       .symmetry = Symmetry::Odd,
       .in_double = each<[](double x) { return std::sinh(x); }>,
       .exact = by_mpfr<mpfr_sinh>,
       .interesting = {-711, 711},
       .points = {1, 708.782712893384, 709.782712893384, 710.4758600739439, 0}},
      {.name = "cosh",
       .text = "cosh(x)",
       .budget = 2,
       .op = "aten::cosh",
       .symmetry = Symmetry::Even,
       .in_double = each<[](double x) { return std::cosh(x); }>,
       .exact = by_mpfr<mpfr_cosh>,
       .interesting = {-711, 711},
       .points = {1, 708.782712893384, 709.782712893384, 710.4758600739439, 0}},
      {.name = "softplus",
       .text = "softplus(x)",
       .budget = 2,
       .in_double = each<[](double x) { return softplus(x); }>,
       .exact = [](mpfr_ptr out, mpfr_ptr x, mpfr_ptr) { softplus(out, x); },
       .interesting = {-40, 40},
       .points = kExpPoints},
      {.name = "log_sigmoid",
       .text = "log_sigmoid(x)",
       .budget = 2,
       .op = "aten::log_sigmoid",
       .in_double = each<[](double x) { return -softplus(-x); }>,
       .exact =
           [](mpfr_ptr out, mpfr_ptr x, mpfr_ptr) {
             mpfr_neg(x, x, kNearest);
             softplus(out, x);
             mpfr_neg(out, out, kNearest);
           },
       .interesting = {-40, 40},
       .points = {709.782712893384, 745.1332191019412, 88.72283905206835, 103.9720770839918, 0}},
      {.name = "log1p",
       .text = "log1p(x)",
       .budget = 2,
       .op = "aten::log1p",
       .in_double = each<[](double x) { return std::log1p(x); }>,
       .exact = by_mpfr<mpfr_log1p>,
       .interesting = {-1, 3},
       .points = {-1, 0, M_SQRT1_2 - 1, M_SQRT2 - 1, 0x1p53}},
      {.name = "log2",
       .text = "log2(x)",
       .budget = 2,
       .op = "aten::log2",
       .in_double = each<[](double x) { return std::log2(x); }>,
       .exact = by_mpfr<mpfr_log2>,
       .interesting = {0.4, 2.5},
       .points = {1, M_SQRT1_2, M_SQRT2, 0x1p-1022}},
      {.name = "log10",
       .text = "log10(x)",
       .budget = 2,
       .op = "aten::log10",
       .in_double = each<[](double x) { return std::log10(x); }>,
       .exact = by_mpfr<mpfr_log10>,
       .interesting = {0.4, 2.5},
       .points = {1, M_SQRT1_2, M_SQRT2, 0x1p-1022}},
      {.name = "tan",
       .text = "tan(x)",
       .budget = 2,
       .op = "aten::tan",
       .symmetry = Symmetry::Odd,
       .in_double = each<[](double x) { return std::tan(x); }>,
       .exact = by_mpfr<mpfr_tan>,
       .interesting = {-20, 20},
       .points = {131072, 0x1.6ac5b262ca1ffp+849},
       .circular = true},
      {.name = "atan",
       .text = "atan(x)",
       .budget = 2,
       .op = "aten::atan",
       .symmetry = Symmetry::Odd,
       .in_double = each<[](double x) { return std::atan(x); }>,
       .exact = by_mpfr<mpfr_atan>,
       .interesting = {-3, 3},
       .points = {1, -1}},
      {.name = "erf",
       .text = "erf(x)",
       .budget = 2,
       .op = "aten::erf",
       .symmetry = Symmetry::Odd,
       .in_double = each<[](double x) { return std::erf(x); }>,
       .exact = by_mpfr<mpfr_erf>,
       .interesting = {-6, 6},
       .points = {1, -1, 5.93, 3.92}},
      {.name = "erfc",
       .text = "erfc(x)",
       .budget = 2,
       .op = "aten::erfc",
       .in_double = each<[](double x) { return std::erfc(x); }>,
       .exact = by_mpfr<mpfr_erfc>,
       .interesting = {-6, 28},
       .points = {0, 2, -2, 10.05, 27.2, 9.19, 26.5}},
      {.name = "gelu",
       .text = "gelu(x)",
       .budget = 2,
       .op = "aten::_gelu_erf",
       .in_double = each<[](double x) { return 0.5 * x * std::erfc(-x * M_SQRT1_2); }>,
       .exact = [](mpfr_ptr out, mpfr_ptr x, mpfr_ptr) { gelu(out, x); },
       .interesting = {-40, 6},
       .points = {0, 3, -3, -13, -14.2, -37.5, -38.5}},
      {.name = "gelu_tanh",
       .text = "gelu_tanh(x)",
       .budget = 2,
       .op = "aten::_gelu_tanh",
       .in_double = each<[](double x) {
         return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
       }>,
       .exact = [](mpfr_ptr out, mpfr_ptr x, mpfr_ptr) { gelu_tanh(out, x); },
       .interesting = {-24, 6},
       .points = {0, -9.5, -10, -21}},
      {.name = "mish",
       .text = "mish(x)",
       .budget = 2,
       .op = "aten::mish",
       .in_double = each<[](double x) {
         const double e = std::exp(std::fmin(x, 40));
         return x * (e * (e + 2) / (e * (e + 2) + 2));
       }>,
       .exact = [](mpfr_ptr out, mpfr_ptr x, mpfr_ptr) { mish(out, x); },
       .interesting = {-40, 40},
       .points = kExpPoints},
      {.name = "asin",
       .text = "asin(x)",
       .budget = 2,
       .op = "aten::asin",
       .symmetry = Symmetry::Odd,
       .in_double = each<[](double x) { return std::asin(x); }>,
       .exact = by_mpfr<mpfr_asin>,
       .interesting = {-1, 1},
       .points = {1, -1, 0.5, -0.5}},
      {.name = "acos",
       .text = "acos(x)",
       .budget = 2,
       .op = "aten::acos",
       .in_double = each<[](double x) { return std::acos(x); }>,
       .exact = by_mpfr<mpfr_acos>,
       .interesting = {-1, 1},
       .points = {1, -1, 0.5, -0.5}},
      {.name = "asinh",
       .text = "asinh(x)",
       .budget = 2,
       .op = "aten::asinh",
       .symmetry = Symmetry::Odd,
       .in_double = each<[](double x) { return std::asinh(x); }>,
       .exact = by_mpfr<mpfr_asinh>,
       .interesting = {-3, 3},
       .points = {0x1p28, 1, 0.75}},
      {.name = "acosh",
       .text = "acosh(x)",
       .budget = 2,
       .op = "aten::acosh",
       .in_double = each<[](double x) { return std::acosh(x); }>,
       .exact = by_mpfr<mpfr_acosh>,
       .interesting = {1, 4},
       .points = {0x1p28, 1, 1.25}},
      {.name = "atanh",
       .text = "atanh(x)",
       .budget = 2,
       .op = "aten::atanh",
       .symmetry = Symmetry::Odd,
       .in_double = each<[](double x) { return std::atanh(x); }>,
       .exact = by_mpfr<mpfr_atanh>,
       .interesting = {-1, 1},
       .points = {1, -1, 0.5}},
  };
}

}  // namespace tenon::accuracy
