// What operators of linear algebra check of their arguments. Used by shape functions and composites.
#pragma once

#include "tenon/core/dims.h"
#include "tenon/core/dtype.h"
#include "tenon/core/tensor_header.h"

namespace tenon::ops {

/// Throws Error{NotImplemented} unless `t` is float32, float64, complex64 or complex128.
void check_linalg_dtype(HeaderRef t, const char* argument);
/// The same, and Error{Shape} unless `t` has at least two dimensions.
void check_matrices(HeaderRef t, const char* argument);
/// The same, and Error{Shape} unless the last two are equal.
void check_square(HeaderRef t, const char* argument);
/// Throws Error{Type} unless both have one dtype.
void check_same_dtype(HeaderRef a, const char* a_name, HeaderRef b, const char* b_name);
/// Pivots as linalg_lu_factor gives them: int32, one for each row or column of each matrix, whichever are
/// fewer.
void check_pivots(HeaderRef factors, const char* factors_name, HeaderRef pivots, const char* argument);
/// Reflections as geqrf gives them: no more columns than rows, and at most as many of `tau`.
void check_reflections(HeaderRef input, HeaderRef tau);

inline int64_t rows_of(HeaderRef t) { return t.sizes()[t.sizes().size() - 2]; }
inline int64_t columns_of(HeaderRef t) { return t.sizes().back(); }
/// All sizes but the last two.
inline Dims batch_of(HeaderRef t) { return Dims(t.sizes().data(), t.sizes().size() - 2); }
/// `batch` and more sizes.
Dims joined(Dims batch, std::initializer_list<int64_t> sizes);
/// Whether the right side `B` of linalg_solve is a vector for each matrix of `A`.
bool is_vector_solve(HeaderRef A, HeaderRef B);

}  // namespace tenon::ops
