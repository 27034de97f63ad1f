#include "backends/cpu/fft/roots.h"

#include <utility>

namespace tenon::cpu {

// Sums and products of pairs after Dekker, "A floating-point technique for extending the available precision"
// (1971), without fused operations.
DoublePair operator+(DoublePair a, DoublePair b) {
  const double s = a.high + b.high, t = s - a.high;
  const double error = (a.high - (s - t)) + (b.high - t) + (a.low + b.low);
  const double high = s + error;
  return {high, error - (high - s)};
}

DoublePair operator*(DoublePair a, DoublePair b) {
  constexpr double kSplit = 134217729;  // 2^27 + 1
  const auto upper = [](double x) {
    const double t = kSplit * x;
    return t - (t - x);
  };
  const double p = a.high * b.high, ah = upper(a.high), al = a.high - ah, bh = upper(b.high),
               bl = b.high - bh;
  const double error = (((ah * bh - p) + ah * bl) + al * bh) + al * bl + (a.high * b.low + a.low * b.high);
  const double high = p + error;
  return {high, error - (high - p)};
}

namespace {

DoublePair negative(DoublePair a) { return {-a.high, -a.low}; }

DoublePair quotient(DoublePair a, double b) {
  const double q = a.high / b;
  const DoublePair back = DoublePair{q, 0} * DoublePair{b, 0};
  const double rest = ((a.high - back.high) - back.low + a.low) / b, high = q + rest;
  return {high, rest - (high - q)};
}

}  // namespace

ComplexPair operator+(ComplexPair a, ComplexPair b) { return {a.re + b.re, a.im + b.im}; }
ComplexPair operator*(ComplexPair a, ComplexPair b) {
  return {a.re * b.re + negative(a.im * b.im), a.re * b.im + a.im * b.re};
}

// Of the angle pi / 4 * eighths / n, at most pi / 4, by Taylor's series.
ComplexPair UnitRoots::series(int64_t eighths) const {
  constexpr DoublePair kQuarterPi{0.78539816339744828, 3.061616997868383e-17};
  const DoublePair angle =
      quotient(kQuarterPi * DoublePair{static_cast<double>(eighths), 0}, static_cast<double>(n_));
  const DoublePair square = negative(angle * angle);
  DoublePair even{1, 0}, odd = angle;
  ComplexPair r{even, odd};
  for (int k = 1; k <= 15; ++k) {
    even = quotient(even * square, static_cast<double>((2 * k - 1) * 2 * k));
    odd = quotient(odd * square, static_cast<double>(2 * k * (2 * k + 1)));
    r = r + ComplexPair{even, odd};
  }
  return r;
}

UnitRoots::UnitRoots(int64_t n) : n_(n) {
  while ((int64_t{1} << (2 * shift_)) < n) ++shift_;
  for (int64_t i = 0; i < (int64_t{1} << shift_) && i <= n; ++i) fine_.push_back(series(i));
  for (int64_t i = 0; i <= n >> shift_; ++i) coarse_.push_back(series(i << shift_));
}

ComplexPair UnitRoots::pair(int64_t a) const {
  int64_t x = 8 * a;  // of 8 n in a turn
  const bool below = x > 4 * n_;
  if (below) x = 8 * n_ - x;
  const bool left = x > 2 * n_;
  if (left) x = 4 * n_ - x;
  const bool steep = x > n_;
  if (steep) x = 2 * n_ - x;
  ComplexPair r = coarse_[static_cast<size_t>(x >> shift_)] *
                  fine_[static_cast<size_t>(x & ((int64_t{1} << shift_) - 1))];
  if (steep) std::swap(r.re, r.im);
  if (left) r.re = negative(r.re);
  if (below) r.im = negative(r.im);
  return r;
}

std::complex<double> UnitRoots::operator()(int64_t a) const {
  const ComplexPair r = pair(a);
  return {r.re.high, r.im.high};
}

void transform_pairs(std::vector<ComplexPair>& x) {
  const auto n = static_cast<int64_t>(x.size());
  const UnitRoots unit(n);
  std::vector<ComplexPair> roots, y(x.size());
  for (int64_t a = 0; a < n; ++a) roots.push_back(unit.pair((n - a) % n));
  const auto place = [](int64_t i) { return static_cast<size_t>(i); };
  // Stockham's passes, as those of the kernels.
  for (int64_t groups = 1; groups < n;) {
    const int64_t rest = n / groups, r = rest % 2 == 0 ? 2 : rest % 3 == 0 ? 3 : 5, inner = rest / r;
    for (int64_t k = 0; k < groups; ++k) {
      for (int64_t i = 0; i < inner; ++i) {
        for (int64_t c = 0; c < r; ++c) {
          ComplexPair sum = x[place(i + inner * r * k)];
          for (int64_t b = 1; b < r; ++b) {
            const ComplexPair term = x[place(i + inner * (b + r * k))];
            sum = sum + (b * c % r == 0 ? term : term * roots[place(b * c % r * (n / r))]);
          }
          y[place(i + inner * (k + groups * c))] = c * i == 0 ? sum : sum * roots[place(c * i * groups % n)];
        }
      }
    }
    x.swap(y);
    groups *= r;
  }
}

}  // namespace tenon::cpu
