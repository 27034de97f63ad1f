// What is made of the factorizations: names of PyTorch's for them, and solutions by their results.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "tenon/core/thread_state.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/linalg/bodies.h"
#include "tenon/generated/linalg/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/ops/linalg/checks.h"
#include "tenon/ops/linalg/matrices.h"

namespace tenon::ops {

Tensor adjoint_of(const Tensor& t) {
  const Tensor turned = t.transpose(-2, -1);
  return t.is_complex() ? tenon::conj(turned) : turned;
}

Tensor diagonal_of(const Tensor& t) { return tenon::diagonal(t, 0, -2, -1); }

bool wants_gradient(const Tensor& t) { return thread_state.grad_enabled && t.requires_grad(); }

namespace {

Tensor no_elements(const Tensor& like) { return tenon::empty({0}, like.options()); }

Tensor identity_like(const Tensor& square) {
  return tenon::eye(square.size(-1), square.options()).expand(square.sizes());
}

}  // namespace

Tensor cholesky_solve(const Tensor& self, const Tensor& input2, bool upper) {
  const Tensor first = upper ? adjoint_of(input2) : input2, second = upper ? input2 : adjoint_of(input2);
  const Tensor half = tenon::linalg_solve_triangular(first, self, false);
  return tenon::linalg_solve_triangular(second, half, true);
}

Tensor cholesky_inverse(const Tensor& self, bool upper) {
  check_square(self, "self");
  return tenon::cholesky_solve(identity_like(self), upper ? tenon::triu(self) : tenon::tril(self), upper);
}

std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& A, const Tensor& B, bool left, bool check_errors) {
  auto [result, LU, pivots, info] = tenon::_linalg_solve_ex(A, B, left, check_errors);
  return {result, info};
}

std::tuple<Tensor, Tensor> triangular_solve(const Tensor& self, const Tensor& A, bool upper, bool transpose,
                                            bool unitriangular) {
  const Tensor used = transpose ? A.transpose(-2, -1) : A;
  const Tensor solution = tenon::linalg_solve_triangular(used, self, upper != transpose, true, unitriangular);
  return {solution, A.clone()};
}

std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& A, bool pivot) {
  auto [LU, pivots, info] = tenon::linalg_lu_factor_ex(A, pivot, true);
  return {LU, pivots};
}

namespace {

Tensor lower_of(const Tensor& LU) {
  const int64_t k = std::min(LU.size(-2), LU.size(-1));
  const Tensor square = tenon::eye(LU.size(-2), k, LU.options());
  return tenon::add(tenon::tril(LU.narrow(-1, 0, k), -1), square);
}
Tensor upper_of(const Tensor& LU) {
  return tenon::triu(LU.narrow(-2, 0, std::min(LU.size(-2), LU.size(-1))));
}

}  // namespace

Tensor permutation_matrix(const Tensor& pivots, int64_t rows, DType dtype) {
  const Tensor places = tenon::_pivots_to_permutation(pivots, rows);
  TensorOptions options = places.options();
  const Tensor numbers = tenon::arange(rows, options).unsqueeze(-1);
  return tenon::eq(numbers, places.unsqueeze(-2)).to(dtype);
}

std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& LU_data, const Tensor& LU_pivots, bool unpack_data,
                                             bool unpack_pivots) {
  check_matrices(LU_data, "LU_data");
  TENON_CHECK(LU_pivots.device() == LU_data.device(), Device,
              fmt::format(": `LU_pivots` is on {}, `LU_data` on {}; expected both on one device",
                          to_string(LU_pivots.device()), to_string(LU_data.device())));
  if (unpack_pivots) check_pivots(LU_data, "LU_data", LU_pivots, "LU_pivots");
  const Tensor P =
      unpack_pivots ? permutation_matrix(LU_pivots, LU_data.size(-2), LU_data.dtype()) : no_elements(LU_data);
  if (!unpack_data) return {P, no_elements(LU_data), no_elements(LU_data)};
  return {P, lower_of(LU_data), upper_of(LU_data)};
}

std::tuple<Tensor, Tensor, Tensor> linalg_lu(const Tensor& A, bool pivot) {
  auto [LU, pivots, info] = tenon::linalg_lu_factor_ex(A, pivot, false);
  return tenon::lu_unpack(LU, pivots, true, pivot);
}

Tensor linalg_lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left, bool adjoint) {
  if (!wants_gradient(LU)) return tenon::_linalg_lu_solve(LU, pivots, B, left, adjoint);
  check_square(LU, "LU");
  check_pivots(LU, "LU", pivots, "pivots");
  // By products and triangles, which have derivatives.
  const Tensor P = permutation_matrix(pivots, LU.size(-1), LU.dtype()), L = lower_of(LU), U = upper_of(LU);
  if (!left) return adjoint_of(tenon::linalg_lu_solve(LU, pivots, adjoint_of(B), true, !adjoint));
  if (adjoint) {
    const Tensor half = tenon::linalg_solve_triangular(adjoint_of(U), B, false);
    return tenon::matmul(P, tenon::linalg_solve_triangular(adjoint_of(L), half, true, true, true));
  }
  const Tensor half =
      tenon::linalg_solve_triangular(L, tenon::matmul(P.transpose(-2, -1), B), false, true, true);
  return tenon::linalg_solve_triangular(U, half, true);
}

std::tuple<Tensor, Tensor> linalg_ldl_factor(const Tensor& self, bool hermitian) {
  auto [LD, pivots, info] = tenon::linalg_ldl_factor_ex(self, hermitian, true);
  return {LD, pivots};
}

std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& A) {
  check_square(A, "A");
  auto [LU, pivots, info] = tenon::linalg_lu_factor_ex(A);
  const Tensor diagonal = diagonal_of(LU);
  TensorOptions options = pivots.options();
  const Tensor in_place = tenon::arange(1, A.size(-1) + 1, options);
  // -1 for each exchange.
  const Tensor signs =
      tenon::add(tenon::mul(tenon::ne(pivots, in_place).to(LU.dtype()), Scalar(-2)), Scalar(1));
  const Tensor sign = tenon::prod(tenon::mul(tenon::sgn(diagonal), signs), -1);
  return {sign, tenon::sum(tenon::log(tenon::abs(diagonal)), OptionalIntArrayRef{-1})};
}

Tensor logdet(const Tensor& self) {
  auto [sign, logabsdet] = tenon::linalg_slogdet(self);
  if (self.is_complex()) return tenon::add(tenon::log(sign), logabsdet);
  return tenon::where(tenon::lt(sign, Scalar(0)), Scalar(static_cast<double>(NAN)), logabsdet);
}

Tensor linalg_householder_product(const Tensor& input, const Tensor& tau) {
  if (!wants_gradient(input) && !wants_gradient(tau)) return tenon::_householder_product(input, tau);
  check_reflections(input, tau);
  // (I - tau v v^H) for the last reflection first.
  const int64_t m = input.size(-2), n = input.size(-1), k = tau.size(-1);
  Tensor q = tenon::eye(m, n, input.options());
  const Tensor vectors = tenon::add(tenon::tril(input, -1), q);
  q = q.expand(input.sizes());
  for (int64_t i = k - 1; i >= 0; --i) {
    const Tensor v = vectors.narrow(-1, i, 1), t = tau.narrow(-1, i, 1).unsqueeze(-1);
    q = tenon::sub(q, tenon::matmul(tenon::mul(t, v), tenon::matmul(adjoint_of(v), q)));
  }
  return q;
}

Tensor ormqr(const Tensor& self, const Tensor& input2, const Tensor& input3, bool left, bool transpose) {
  check_matrices(self, "self");
  check_matrices(input3, "input3");
  const int64_t m = self.size(-2), n = self.size(-1);
  TENON_CHECK(input3.size(left ? -2 : -1) == m, Shape,
              fmt::format("ormqr: expected `input3` with {} {} for `self` {}, got {}", m,
                          left ? "rows" : "columns", to_string(self.sizes()), to_string(input3.sizes())));
  Tensor vectors = self.narrow(-1, 0, std::min(m, n));
  if (n < m) {
    const Tensor rest = tenon::zeros(joined(batch_of(self), {m, m - n}), self.options());
    vectors = tenon::cat({vectors, rest}, -1);
  }
  const Tensor q = tenon::linalg_householder_product(vectors, input2), used = transpose ? adjoint_of(q) : q;
  return left ? tenon::matmul(used, input3) : tenon::matmul(input3, used);
}

std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& self, bool some, bool compute_uv) {
  if (compute_uv) {
    auto [U, S, Vh] = tenon::_linalg_svd(self, !some, true);
    return {U, S, adjoint_of(Vh)};
  }
  check_matrices(self, "self");
  const int64_t m = self.size(-2), n = self.size(-1);
  return {tenon::zeros(joined(batch_of(self), {m, m}), self.options()), tenon::linalg_svdvals(self),
          tenon::zeros(joined(batch_of(self), {n, n}), self.options())};
}

}  // namespace tenon::ops
