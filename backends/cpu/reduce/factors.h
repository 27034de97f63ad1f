// What a product of floating-point numbers is where the tree of reduce.h makes a NaN of them: lanes may
// overflow next to one that is zero, whereas the product in order has a value. Used by reductions and by
// accumulators of rows. Knows numbers alone.
#pragma once

#include <cmath>
#include <limits>

namespace tenon::cpu {

/// The factors of one product, in order.
template <class T>
class Factors {
 public:
  void add(T x) noexcept {
    zero_ |= x == 0;
    finite_ &= std::fabs(x) <= std::numeric_limits<T>::max();
    negative_ ^= std::signbit(x);
    others_ *= x == 0 ? T(1) : x;
  }

  /// `tree` unless it is NaN. Else the product in order, with zeros first: zero if one of finite factors is,
  /// with the sign of the product.
  T resolve(T tree) const noexcept {
    if (tree == tree) return tree;
    if (!zero_) return others_;
    return finite_ ? std::copysign(T(0), negative_ ? T(-1) : T(1)) : tree;
  }

 private:
  T others_ = 1;  ///< The product in order of the factors that are not zero.
  bool zero_ = false, finite_ = true, negative_ = false;
};

}  // namespace tenon::cpu
