// The C++ operators of Tensor: + - * / and comparisons, element by element, with tensors and numbers. Used by
// C++ callers. Each calls the method of the same meaning.
#pragma once

#include "tenon/core/tensor.h"

namespace tenon {

// The operators below call methods, which core/tensor.h declares, so that code which writes a + b includes no
// family of operators. These are no methods.
Tensor rsub(const Tensor& self, const Scalar& other, const Scalar& alpha);
Tensor div(const Scalar& self, const Tensor& other);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return a.add(b); }
inline Tensor operator+(const Tensor& a, const Scalar& b) { return a.add(b); }
inline Tensor operator+(const Scalar& a, const Tensor& b) { return b.add(a); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return a.sub(b); }
inline Tensor operator-(const Tensor& a, const Scalar& b) { return a.sub(b); }
inline Tensor operator-(const Scalar& a, const Tensor& b) { return rsub(b, a, 1); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return a.mul(b); }
inline Tensor operator*(const Tensor& a, const Scalar& b) { return a.mul(b); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return b.mul(a); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return a.div(b); }
inline Tensor operator/(const Tensor& a, const Scalar& b) { return a.div(b); }
inline Tensor operator/(const Scalar& a, const Tensor& b) { return div(a, b); }
inline Tensor operator-(const Tensor& a) { return a.neg(); }
inline Tensor operator~(const Tensor& a) { return a.bitwise_not(); }
inline Tensor operator!(const Tensor& a) { return a.logical_not(); }

#define TENON_COMPARISON(op, name, mirrored)                                        \
  inline Tensor operator op(const Tensor& a, const Tensor& b) { return a.name(b); } \
  inline Tensor operator op(const Tensor& a, const Scalar& b) { return a.name(b); } \
  inline Tensor operator op(const Scalar& a, const Tensor& b) { return b.mirrored(a); }
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
