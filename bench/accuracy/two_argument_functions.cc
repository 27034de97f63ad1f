// Functions of two arguments.
#include <algorithm>
#include <cmath>

#include "bench/accuracy/functions.h"

namespace tenon::accuracy {

namespace {

constexpr mpfr_rnd_t kNearest = MPFR_RNDN;

double log_uniform(Random& random, double low_exponent, double high_exponent) {
  return std::exp2(uniform(random, low_exponent, high_exponent)) * (random() % 2 == 0 ? 1 : -1);
}

/// Numbers of like magnitude, so that quotients are small.
std::pair<double, double> comparable(Random& random) {
  const double x = log_uniform(random, -100, 100);
  return {x, x * log_uniform(random, -12, 12)};
}

// x^y beside overflow, underflow and 1.
std::pair<double, double> pow_pair(Random& random) {
  static constexpr double kLogarithms[] = {1024, -1022, -1074, 128, -126, -149, 1, 0x1p-30};
  const double x = random() % 2 == 0 ? uniform(random, 0.5, 2) : std::exp2(uniform(random, -100, 100));
  const double logarithm =
      kLogarithms[random() % std::size(kLogarithms)] * (1 + log_uniform(random, -50, -8));
  return {x, logarithm / std::log2(x)};
}

// e^x + e^y = 1, nearly.
std::pair<double, double> sum_of_one(Random& random) {
  const double x = -std::exp2(uniform(random, -20, 5));
  const double y = std::log(-std::expm1(x)) * (1 + log_uniform(random, -52, -4));
  return random() % 2 == 0 ? std::pair{x, y} : std::pair{y, x};
}

std::pair<double, double> near_one(Random& random) {
  return {log_uniform(random, -20, 20), 1 + log_uniform(random, -50, -1)};
}

// The floor of a quotient that is known to 160 bits from below. Infinities as in Python: inf // y is NaN, and
// x // -inf is -1 for a positive x. x // 0 is x / 0.
void floor_of_quotient(mpfr_ptr out, mpfr_ptr x, mpfr_ptr y) {
  mpfr_div(out, x, y, MPFR_RNDD);
  if (mpfr_inf_p(x) && !mpfr_zero_p(y)) {
    mpfr_set_nan(out);
  } else if (mpfr_inf_p(y) && mpfr_regular_p(x) && mpfr_signbit(out)) {
    mpfr_set_si(out, -1, kNearest);
  } else if (mpfr_regular_p(out)) {
    mpfr_rint(out, out, MPFR_RNDD);
  }
}

// Python's: the sign of y, exact but for one rounding.
void python_remainder(mpfr_ptr out, mpfr_ptr x, mpfr_ptr y) {
  mpfr_fmod(out, x, y, kNearest);
  if (!mpfr_zero_p(out) && !mpfr_nan_p(out) && mpfr_signbit(out) != mpfr_signbit(y))
    mpfr_add(out, out, y, kNearest);
}

void log_add_exp(mpfr_ptr out, mpfr_ptr x, mpfr_ptr y) {
  if (mpfr_cmp(x, y) < 0) mpfr_swap(x, y);
  const bool unordered = mpfr_nan_p(x) || mpfr_nan_p(y);
  if (unordered || mpfr_inf_p(x)) {
    unordered ? mpfr_set_nan(out) : static_cast<void>(mpfr_set(out, x, kNearest));
    return;
  }
  // Close to 0 the two terms cancel.
  Exact tail(400);
  mpfr_sub(tail, y, x, kNearest);
  mpfr_exp(tail, tail, kNearest);
  mpfr_log1p(tail, tail, kNearest);
  mpfr_add(out, x, tail, kNearest);
}

void x_log_y(mpfr_ptr out, mpfr_ptr x, mpfr_ptr y) {
  if (mpfr_zero_p(x) && !mpfr_nan_p(y)) {
    mpfr_set_zero(out, 1);
  } else {
    mpfr_log(out, y, kNearest);
    mpfr_mul(out, x, out, kNearest);
  }
}

void x_log1p_y(mpfr_ptr out, mpfr_ptr x, mpfr_ptr y) {
  if (mpfr_zero_p(x) && !mpfr_nan_p(y)) {
    mpfr_set_zero(out, 1);
  } else {
    mpfr_log1p(out, y, kNearest);
    mpfr_mul(out, x, out, kNearest);
  }
}

template <auto f>
void by_mpfr(mpfr_ptr out, mpfr_ptr x, mpfr_ptr y) {
  f(out, x, y, kNearest);
}

}  // namespace

std::vector<MathFunction> two_argument_functions() {
  return {
      {.name = "pow",
       .text = "pow(x, y)",
       .arity = 2,
       .budget = 2,
       .op = "aten::pow.Tensor_Tensor",
       .exact = by_mpfr<mpfr_pow>,
       .interesting = {-10, 30},
       .hard_pair = pow_pair},
      {.name = "atan2",
       .text = "atan2(x, y)",
       .arity = 2,
       .budget = 2,
       .op = "aten::atan2",
       .exact = by_mpfr<mpfr_atan2>,
       .hard_pair = comparable},
      {.name = "hypot",
       .text = "hypot(x, y)",
       .arity = 2,
       .budget = 1,
       .op = "aten::hypot",
       .exact = by_mpfr<mpfr_hypot>,
       .hard_pair = comparable},
      {.name = "logaddexp",
       .text = "logaddexp(x, y)",
       .arity = 2,
       .budget = 2,
       .exact = log_add_exp,
       .cancels = true,
       .interesting = {-20, 20},
       .hard_pair = sum_of_one},
      {.name = "xlogy",
       .text = "xlogy(x, y)",
       .arity = 2,
       .budget = 2,
       .exact = x_log_y,
       .interesting = {-10, 10},
       .hard_pair = near_one},
      {.name = "xlog1py",
       .text = "xlog1py(x, y)",
       .arity = 2,
       .budget = 2,
       .exact = x_log1p_y,
       .interesting = {-10, 10},
       .hard_pair = comparable},
      {.name = "floor_divide",
       .text = "floor_divide(x, y)",
       .arity = 2,
       .budget = 2,
       .op = "aten::floor_divide",
       .exact = floor_of_quotient,
       .interesting = {-100, 100},
       .hard_pair = comparable},
      {.name = "remainder",
       .text = "remainder(x, y)",
       .arity = 2,
       .op = "aten::remainder.Tensor",
       .exact = python_remainder,
       .interesting = {-100, 100},
       .hard_pair = comparable},
      {.name = "fmod",
       .text = "fmod(x, y)",
       .arity = 2,
       .op = "aten::fmod.Tensor",
       .exact = by_mpfr<mpfr_fmod>,
       .interesting = {-100, 100},
       .hard_pair = comparable},
      {.name = "add", .text = "x + y", .arity = 2, .exact = by_mpfr<mpfr_add>, .hard_pair = comparable},
      {.name = "sub", .text = "x - y", .arity = 2, .exact = by_mpfr<mpfr_sub>, .hard_pair = comparable},
      {.name = "mul",
       .text = "x * y",
       .arity = 2,
       .op = "aten::mul.Tensor",
       .exact = by_mpfr<mpfr_mul>,
       .hard_pair = comparable},
      {.name = "div",
       .text = "x / y",
       .arity = 2,
       .op = "aten::div.Tensor",
       .exact = by_mpfr<mpfr_div>,
       .hard_pair = comparable},
  };
}

}  // namespace tenon::accuracy
