#include "tenon/expr/reference_special.h"

#include <cmath>
#include <limits>

namespace tenon::expr::reference {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The root of an increasing f in [low, high].
template <class F>
double root(F f, double low, double high) {
  for (int i = 0; i < 200; ++i) {
    const double middle = low + (high - low) / 2;
    (f(middle) < 0 ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

// e^-x * I_n(x) of x >= 0.
double scaled_bessel_i(double n, double x) {
  if (x < 600) return std::cyl_bessel_i(n, x) * std::exp(-x);
  const double m = 4 * n * n, z = 8 * x;
  const double series = 1 - (m - 1) / z * (1 - (m - 9) / (2 * z) * (1 - (m - 25) / (3 * z)));
  return series / std::sqrt(2 * M_PI * x);
}

struct Airy {
  double value, slope;
};

// Left of 0: Taylor's series of y'' = x y, from step to step.
Airy airy_left(double x) {
  double at = 0, y = 1 / (std::cbrt(9) * std::tgamma(2. / 3)), dy = -1 / (std::cbrt(3) * std::tgamma(1. / 3));
  while (at > x) {
    const double h = std::fmax(x - at, -0.0625);
    double a[20] = {y, dy, at * y / 2}, value = 0, slope = 0;
    for (int k = 3; k < 20; ++k) a[k] = (at * a[k - 2] + a[k - 3]) / (k * (k - 1));
    for (int k = 19; k >= 0; --k) value = value * h + a[k];
    for (int k = 19; k >= 1; --k) slope = slope * h + k * a[k];
    at += h, y = value, dy = slope;
  }
  return {y, dy};
}

}  // namespace

double digamma(double x) {
  if (x <= 0 && std::floor(x) == x) return x == 0 ? -std::copysign(kInf, x) : kNan;
  if (x < 0) return digamma(1 - x) - M_PI / std::tan(M_PI * (x - std::floor(x)));
  double sum = 0;
  for (; x < 12; ++x) sum -= 1 / x;
  const double u = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x -
         u * (1. / 12 - u * (1. / 120 - u * (1. / 252 - u * (1. / 240 - u * (1. / 132 - u * 691. / 32760)))));
}

double zeta(double s, double q) {
  if (!(s > 1) || std::isnan(q)) return s == 1 ? kInf : kNan;
  if (q <= 0 && std::floor(q) == q) return kInf;
  if (q < 0 && std::floor(s) != s) return kNan;
  double sum = 0;
  for (; q < 14; ++q) sum += std::pow(q, -s);
  const double p = std::pow(q, -s), v = 1 / (q * q);
  const double bernoulli[] = {1. / 12,       -1. / 720,     1. / 30240,
                              -1. / 1209600, 1. / 47900160, -691. / 1307674368000};
  double term = s / q, tail = q / (s - 1) + 0.5;
  for (int j = 0; j < 6; ++j) {
    tail += bernoulli[j] * term;
    term *= (s + 2 * j + 1) * (s + 2 * j + 2) * v;
  }
  return sum + (p == 0 ? 0 : p * tail);
}

double erfinv(double x) {
  if (!(std::abs(x) < 1)) return std::abs(x) == 1 ? std::copysign(kInf, x) : kNan;
  const double a = std::abs(x);
  const double y = a < 0.5 ? root([a](double t) { return std::erf(t) - a; }, 0, 1)
                           : root([a](double t) { return (1 - a) - std::erfc(t); }, 0, 7);
  return std::copysign(y, x);
}

double erfcx(double x) {
  if (x < 20) return std::exp(x * x) * std::erfc(x);
  const double z = 0.5 / (x * x);
  return (1 - z * (1 - 3 * z * (1 - 5 * z * (1 - 7 * z)))) / (x * std::sqrt(M_PI));
}

double ndtr(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }

double ndtri(double p) {
  if (!(p > 0 && p < 1)) return p == 0 ? -kInf : p == 1 ? kInf : kNan;
  if (p > 0.5) return -ndtri(1 - p);
  return root([p](double t) { return ndtr(t) - p; }, -40, 0);
}

double log_ndtr(double x) {
  if (x > 0) return std::log1p(-ndtr(-x));
  return x > -10 ? std::log(ndtr(x)) : std::log(0.5 * erfcx(-x * M_SQRT1_2)) - 0.5 * x * x;
}

double gammainc(double a, double x) {
  if (!(a > 0 && x >= 0)) return kNan;
  if (x > a + 1) return 1 - gammaincc(a, x);
  double term = 1, sum = 1;
  for (int n = 1; n < 100000 && term > 1e-17 * sum; ++n) sum += term *= x / (a + n);
  return x == 0 ? 0 : std::exp(a * std::log(x) - x - std::lgamma(a + 1)) * sum;
}

double gammaincc(double a, double x) {
  if (!(a > 0 && x >= 0)) return kNan;
  if (x <= a + 1) return 1 - gammainc(a, x);
  double f = x + 2001 - a;
  for (int k = 1000; k >= 1; --k) f = x + 2 * k - 1 - a - k * (k - a) / f;
  return std::exp(a * std::log(x) - x - std::lgamma(a)) / f;
}

double i0e(double x) { return scaled_bessel_i(0, std::abs(x)); }
double i1e(double x) { return std::copysign(scaled_bessel_i(1, std::abs(x)), x); }

// The integral of e^(-x cosh t) cosh(n t) from 0 on, by the trapezoidal rule.
double bessel_k(double n, double x) {
  if (!(x > 0)) return x == 0 ? kInf : kNan;
  constexpr double kStep = 0.03125;
  double sum = 0.5 * std::exp(-x);
  for (int k = 1; k < 1000; ++k) {
    const double t = k * kStep;
    sum += std::exp(-x * std::cosh(t)) * std::cosh(n * t);
  }
  return sum * kStep;
}

double airy_ai(double x) {
  if (x <= 0) return airy_left(x).value;
  return std::sqrt(x / 3) / M_PI * bessel_k(1. / 3, 2. / 3 * x * std::sqrt(x));
}

double airy_ai_prime(double x) {
  if (x <= 0) return airy_left(x).slope;
  return -x / (M_PI * std::sqrt(3)) * bessel_k(2. / 3, 2. / 3 * x * std::sqrt(x));
}

}  // namespace tenon::expr::reference
