// The gradients of linear algebra: solutions and products, so that they have derivatives of any order. Used
// by formulas of derivatives. Undefined gradients of results are absent terms.
#pragma once

#include <string_view>
#include <tuple>

#include "tenon/core/tensor.h"

namespace tenon::ops {

Tensor cholesky_gradient(const Tensor& grad, const Tensor& L, bool upper);
Tensor inverse_gradient(const Tensor& grad, const Tensor& inverse);
Tensor det_gradient(const Tensor& grad, const Tensor& A, const Tensor& det, const Tensor& LU,
                    const Tensor& pivots);
Tensor slogdet_gradient(const Tensor& grad_sign, const Tensor& grad_log, const Tensor& A, const Tensor& sign);
Tensor lu_factor_gradient(const Tensor& grad, const Tensor& LU, const Tensor& pivots, bool pivot);
std::tuple<Tensor, Tensor> solve_gradients(const Tensor& grad, const Tensor& A, const Tensor& B,
                                           const Tensor& X, const Tensor& LU, const Tensor& pivots,
                                           bool left);
std::tuple<Tensor, Tensor> triangular_gradients(const Tensor& grad, const Tensor& A, const Tensor& B,
                                                const Tensor& X, bool upper, bool left, bool unitriangular);
Tensor qr_gradient(const Tensor& grad_q, const Tensor& grad_r, const Tensor& Q, const Tensor& R,
                   std::string_view mode);
Tensor eigh_gradient(const Tensor& grad_values, const Tensor& grad_vectors, const Tensor& values,
                     const Tensor& vectors);
Tensor eig_gradient(const Tensor& grad_values, const Tensor& grad_vectors, const Tensor& A,
                    const Tensor& values, const Tensor& vectors);
Tensor svd_gradient(const Tensor& grad_u, const Tensor& grad_s, const Tensor& grad_vh, const Tensor& A,
                    const Tensor& U, const Tensor& S, const Tensor& Vh, bool full_matrices, bool compute_uv);
Tensor pinv_gradient(const Tensor& grad, const Tensor& pinv, const Tensor& A);
Tensor matrix_exp_gradient(const Tensor& grad, const Tensor& A);

}  // namespace tenon::ops
