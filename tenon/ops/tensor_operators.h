// The C++ operators of Tensor: + - * / and comparisons, element by element, with tensors and numbers.
// Used by C++ callers. Each is one call of the operator function of the same meaning.
#pragma once

#include "tenon/generated/functions.h"

namespace tenon {

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator+(const Tensor& a, const Scalar& b) { return add(a, b); }
inline Tensor operator+(const Scalar& a, const Tensor& b) { return add(b, a); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator-(const Tensor& a, const Scalar& b) { return sub(a, b); }
inline Tensor operator-(const Scalar& a, const Tensor& b) { return rsub(b, a); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator*(const Tensor& a, const Scalar& b) { return mul(a, b); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return mul(b, a); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator/(const Tensor& a, const Scalar& b) { return div(a, b); }
inline Tensor operator/(const Scalar& a, const Tensor& b) {
  return div(wrapped_scalar_tensor(a, b.device()), b);
}
inline Tensor operator-(const Tensor& a) { return neg(a); }
inline Tensor operator~(const Tensor& a) { return bitwise_not(a); }
inline Tensor operator!(const Tensor& a) { return logical_not(a); }

#define TENON_COMPARISON(op, name, mirrored)                                         \
  inline Tensor operator op(const Tensor& a, const Tensor& b) { return name(a, b); } \
  inline Tensor operator op(const Tensor& a, const Scalar& b) { return name(a, b); } \
  inline Tensor operator op(const Scalar& a, const Tensor& b) { return mirrored(b, a); }
TENON_COMPARISON(==, eq, eq)
TENON_COMPARISON(!=, ne, ne)
TENON_COMPARISON(<, lt, gt)
TENON_COMPARISON(<=, le, ge)
TENON_COMPARISON(>, gt, lt)
TENON_COMPARISON(>=, ge, le)
#undef TENON_COMPARISON

#define TENON_ASSIGNMENT(op, method)                                                \
  inline Tensor& operator op(Tensor& a, const Tensor& b) { return a.method(b), a; } \
  inline Tensor& operator op(Tensor& a, const Scalar& b) { return a.method(b), a; }
TENON_ASSIGNMENT(+=, add_)
TENON_ASSIGNMENT(-=, sub_)
TENON_ASSIGNMENT(*=, mul_)
TENON_ASSIGNMENT(/=, div_)
#undef TENON_ASSIGNMENT

}  // namespace tenon
