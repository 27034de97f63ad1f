// Gradients of eigenvalues, singular values and their vectors. A pair of equal values has no derivative by
// vectors: an error says so where the loss depends on it.
#include <fmt/core.h>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/linalg/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/ops/linalg/gradients.h"
#include "tenon/ops/linalg/linalg_error.h"
#include "tenon/ops/linalg/matrices.h"

namespace tenon::ops {
namespace {

Tensor product(const Tensor& a, const Tensor& b) { return tenon::matmul(a, b); }

/// numerator / (values[j] - values[i]) in row i and column j; the diagonal is 0.
Tensor over_differences(const Tensor& numerator, const Tensor& values, const char* op, const char* what) {
  const Tensor apart = tenon::sub(values.unsqueeze(-2), values.unsqueeze(-1));
  const Tensor equal = tenon::eq(apart, Scalar(0));
  const Tensor diagonal = tenon::eye(values.size(-1), numerator.options()).to(DType::Bool);
  if (!numerator.is_meta()) {
    const Tensor wanted = tenon::logical_and(tenon::ne(numerator, Scalar(0)), tenon::logical_not(diagonal));
    const bool undefined = tenon::any(tenon::logical_and(equal, wanted)).item().to_bool();
    if (undefined) {
      throw LinAlgError(fmt::format(
          "{}: the derivative by vectors does not exist where {} are equal; differentiate the values "
          "alone, or add a small matrix that tells them apart",
          op, what));
    }
  }
  const Tensor safe = tenon::masked_fill(apart, equal, Scalar(1));
  return tenon::masked_fill(tenon::div(numerator, safe), equal, Scalar(0));
}

/// x - x^H
Tensor skew(const Tensor& x) { return tenon::sub(x, adjoint_of(x)); }

}  // namespace

Tensor eigh_gradient(const Tensor& grad_values, const Tensor& grad_vectors, const Tensor& values,
                     const Tensor& vectors) {
  if (!grad_values.defined() && !grad_vectors.defined()) return {};
  TENON_CHECK(vectors.dim() > 1, Runtime, "linalg_eigh: the derivative needs the vectors");
  const Tensor turned = adjoint_of(vectors);
  if (!grad_vectors.defined())
    return product(tenon::mul(vectors, grad_values.to(vectors.dtype()).unsqueeze(-2)), turned);
  // A changes by Hermitian matrices alone, which only the skew part moves.
  const Tensor x = tenon::mul(skew(product(turned, grad_vectors)), Scalar(0.5));
  Tensor inner = over_differences(x, values, "linalg_eigh", "eigenvalues");
  if (grad_values.defined()) inner = tenon::add(inner, tenon::diag_embed(grad_values.to(vectors.dtype())));
  return product(vectors, product(inner, turned));
}

Tensor eig_gradient(const Tensor& grad_values, const Tensor& grad_vectors, const Tensor& A,
                    const Tensor& values, const Tensor& vectors) {
  if (!grad_values.defined() && !grad_vectors.defined()) return {};
  const Tensor turned = adjoint_of(vectors);
  Tensor inner;
  if (grad_vectors.defined()) {
    const Tensor x = product(turned, grad_vectors), lengths = tenon::real(diagonal_of(x)).to(x.dtype());
    const Tensor numerator = tenon::sub(x, tenon::mul(product(turned, vectors), lengths.unsqueeze(-2)));
    inner = over_differences(numerator, tenon::conj(values), "linalg_eig", "eigenvalues");
  }
  if (grad_values.defined()) {
    const Tensor diagonal = tenon::diag_embed(grad_values);
    inner = inner.defined() ? tenon::add(inner, diagonal) : diagonal;
  }
  const Tensor result = tenon::linalg_solve(turned, product(inner, turned));
  return A.is_complex() ? result : tenon::real(result);
}

Tensor svd_gradient(const Tensor& grad_u, const Tensor& grad_s, const Tensor& grad_vh, const Tensor& A,
                    const Tensor& U_, const Tensor& S, const Tensor& Vh_, bool full_matrices,
                    bool compute_uv) {
  if (!grad_u.defined() && !grad_s.defined() && !grad_vh.defined()) return {};
  TENON_CHECK(compute_uv, Runtime, "linalg_svd: the derivative needs the singular vectors");
  const int64_t m = A.size(-2), n = A.size(-1), k = S.size(-1);
  TENON_CHECK(
      !full_matrices || m == n || !(m > n ? grad_u : grad_vh).defined(), Runtime,
      "linalg_svd: the vectors that full_matrices=True adds have no derivative; use full_matrices=False");
  const Tensor U = U_.narrow(-1, 0, k), Vh = Vh_.narrow(-2, 0, k);
  if (!grad_u.defined() && !grad_vh.defined())
    return product(tenon::mul(U, grad_s.to(A.dtype()).unsqueeze(-2)), Vh);
  Tensor gu, gv;
  if (grad_u.defined()) gu = grad_u.narrow(-1, 0, k);
  if (grad_vh.defined()) gv = adjoint_of(grad_vh.narrow(-2, 0, k));
  const Tensor s = S.to(A.dtype()), squares = tenon::mul(S, S), V = adjoint_of(Vh);
  const auto over = [&](const Tensor& x) {
    return over_differences(x, squares, "linalg_svd", "singular values");
  };
  Tensor inner;
  const auto add = [&](const Tensor& term) { inner = inner.defined() ? tenon::add(inner, term) : term; };
  const auto check_full_rank = [&] {
    if (!A.is_meta() && tenon::any(tenon::eq(S, Scalar(0))).item().to_bool()) {
      throw LinAlgError(
          "linalg_svd: the derivative by singular vectors does not exist where singular values are 0; "
          "differentiate the values alone, or add a small matrix");
    }
  };
  if (gu.defined()) {
    const Tensor x = product(adjoint_of(U), gu);
    add(tenon::mul(over(skew(x)), s.unsqueeze(-2)));
    if (A.is_complex()) {
      check_full_rank();
      // The phase of each pair of vectors is free: what moves it is half of the skew diagonal.
      const Tensor phase = tenon::imag(diagonal_of(x));
      add(tenon::diag_embed(tenon::div(tenon::complex(tenon::zeros_like(phase), phase), s)));
    }
  }
  if (gv.defined()) add(tenon::mul(s.unsqueeze(-1), over(skew(product(Vh, gv)))));
  if (grad_s.defined()) add(tenon::diag_embed(grad_s.to(A.dtype())));
  Tensor result = product(U, product(inner, Vh));
  if (gu.defined() && m > k) {
    check_full_rank();
    const Tensor outside = tenon::sub(gu, product(U, product(adjoint_of(U), gu)));
    result = tenon::add(result, product(tenon::div(outside, s.unsqueeze(-2)), Vh));
  }
  if (gv.defined() && n > k) {
    check_full_rank();
    const Tensor outside = tenon::sub(gv, product(V, product(Vh, gv)));
    result = tenon::add(result, product(U, adjoint_of(tenon::div(outside, s.unsqueeze(-2)))));
  }
  return result;
}

}  // namespace tenon::ops
