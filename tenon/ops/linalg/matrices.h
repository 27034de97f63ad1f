// Words for matrices that composites and gradients of linear algebra share; all are made of operators.
#pragma once

#include "tenon/core/tensor.h"

namespace tenon::ops {

/// The conjugate transpose of each matrix.
Tensor adjoint_of(const Tensor& t);
/// The diagonal of each matrix, a view.
Tensor diagonal_of(const Tensor& t);
/// Whether operators on `t` are recorded for differentiation.
bool wants_gradient(const Tensor& t);
/// P of the row exchanges of an LU factorization.
Tensor permutation_matrix(const Tensor& pivots, int64_t rows, DType dtype);

}  // namespace tenon::ops
