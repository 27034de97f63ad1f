// Roots of unity for tables of transforms: exact symmetry between octants, correctly rounded in all but some
// 2^-45 of cases, from additions, products and quotients alone, so that every machine has the same tables.
// Used by plan.cc.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace tenon::cpu {

/// An unevaluated sum of two doubles, of about 100 bits.
struct DoublePair {
  double high = 0, low = 0;
};
struct ComplexPair {
  DoublePair re, im;
};
DoublePair operator+(DoublePair a, DoublePair b);
DoublePair operator*(DoublePair a, DoublePair b);
ComplexPair operator+(ComplexPair a, ComplexPair b);
ComplexPair operator*(ComplexPair a, ComplexPair b);

/// exp(2 pi i a / n) for whole a. Angles are reduced to an octant in whole numbers, and a root is the product
/// of a coarse and a fine one.
class UnitRoots {
 public:
  explicit UnitRoots(int64_t n);

  /// For a from 0 to n - 1.
  ComplexPair pair(int64_t a) const;
  /// The same, rounded.
  std::complex<double> operator()(int64_t a) const;

 private:
  ComplexPair series(int64_t eighths) const;

  int64_t n_;
  int shift_ = 0;
  std::vector<ComplexPair> fine_, coarse_;
};

/// The forward transform of x, whose length has the prime factors 2, 3 and 5 alone: slow, and exact in
/// double.
void transform_pairs(std::vector<ComplexPair>& x);

}  // namespace tenon::cpu
