// Roots of unity for tables of transforms: exact symmetry between octants, correctly rounded in all but some
// 2^-45 of cases, from additions, products and quotients alone, so that every machine has the same tables.
// Used by plan.cc.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace tenon::cpu {

/// exp(2 pi i a / n) for whole a. Angles are reduced to an octant in whole numbers, and a root is the product
/// of a coarse and a fine one, each kept as pairs of doubles.
class UnitRoots {
 public:
  explicit UnitRoots(int64_t n);

  /// For a from 0 to n - 1.
  std::complex<double> operator()(int64_t a) const;

 private:
  /// An unevaluated sum of two doubles.
  struct Pair {
    double high, low;
  };
  struct Root {
    Pair cos, sin;
  };
  static Pair sum(Pair a, Pair b);
  static Pair product(Pair a, Pair b);
  static Pair quotient(Pair a, double b);
  Root series(int64_t eighths) const;
  std::complex<double> octant(int64_t eighths) const;

  int64_t n_;
  int shift_ = 0;
  std::vector<Root> fine_, coarse_;
};

}  // namespace tenon::cpu
