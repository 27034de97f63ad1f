#include "backends/cpu/fft/roots.h"

namespace tenon::cpu {

// Sums and products of pairs after Dekker, "A floating-point technique for extending the available precision"
// (1971), without fused operations.
UnitRoots::Pair UnitRoots::sum(Pair a, Pair b) {
  const double s = a.high + b.high, t = s - a.high;
  const double error = (a.high - (s - t)) + (b.high - t) + (a.low + b.low);
  const double high = s + error;
  return {high, error - (high - s)};
}

UnitRoots::Pair UnitRoots::product(Pair a, Pair b) {
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

UnitRoots::Pair UnitRoots::quotient(Pair a, double b) {
  const double q = a.high / b;
  const Pair back = product({q, 0}, {b, 0});
  const double rest = ((a.high - back.high) - back.low + a.low) / b, high = q + rest;
  return {high, rest - (high - q)};
}

// Of the angle pi / 4 * eighths / n, at most pi / 4, by Taylor's series.
UnitRoots::Root UnitRoots::series(int64_t eighths) const {
  constexpr Pair kQuarterPi{0.78539816339744828, 3.061616997868383e-17};
  const Pair angle =
      quotient(product(kQuarterPi, {static_cast<double>(eighths), 0}), static_cast<double>(n_));
  const Pair square = product(angle, angle), negative{-square.high, -square.low};
  Root r{{1, 0}, angle};
  Pair even{1, 0}, odd = angle;
  for (int k = 1; k <= 15; ++k) {
    even = quotient(product(even, negative), static_cast<double>((2 * k - 1) * 2 * k));
    odd = quotient(product(odd, negative), static_cast<double>(2 * k * (2 * k + 1)));
    r.cos = sum(r.cos, even);
    r.sin = sum(r.sin, odd);
  }
  return r;
}

UnitRoots::UnitRoots(int64_t n) : n_(n) {
  while ((int64_t{1} << (2 * shift_)) < n) ++shift_;
  for (int64_t i = 0; i < (int64_t{1} << shift_) && i <= n; ++i) fine_.push_back(series(i));
  for (int64_t i = 0; i <= n >> shift_; ++i) coarse_.push_back(series(i << shift_));
}

std::complex<double> UnitRoots::octant(int64_t eighths) const {
  const Root& a = coarse_[static_cast<size_t>(eighths >> shift_)];
  const Root& b = fine_[static_cast<size_t>(eighths & ((int64_t{1} << shift_) - 1))];
  Pair crossed = product(a.sin, b.sin);
  crossed = {-crossed.high, -crossed.low};
  return {sum(product(a.cos, b.cos), crossed).high, sum(product(a.cos, b.sin), product(a.sin, b.cos)).high};
}

std::complex<double> UnitRoots::operator()(int64_t a) const {
  int64_t x = 8 * a;  // of 8 n in a turn
  const bool below = x > 4 * n_;
  if (below) x = 8 * n_ - x;
  const bool left = x > 2 * n_;
  if (left) x = 4 * n_ - x;
  const bool steep = x > n_;
  std::complex<double> r = octant(steep ? 2 * n_ - x : x);
  if (steep) r = {r.imag(), r.real()};
  return {left ? -r.real() : r.real(), below ? -r.imag() : r.imag()};
}

}  // namespace tenon::cpu
