// Gradients of factorizations by elimination, and of what is solved by them.
#include "tenon/ops/linalg/gradients.h"

#include <algorithm>

#include "tenon/core/thread_state.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/linalg/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/ops/linalg/checks.h"
#include "tenon/ops/linalg/matrices.h"

namespace tenon::ops {
namespace {

Tensor conjugate(const Tensor& t) { return t.is_complex() ? tenon::conj(t) : t; }
Tensor product(const Tensor& a, const Tensor& b) { return tenon::matmul(a, b); }
Tensor half(const Tensor& t) { return tenon::mul(t, Scalar(0.5)); }

/// Products of all elements of each row but one, along the last dimension.
Tensor products_of_others(const Tensor& s) {
  const int64_t n = s.size(-1);
  if (n == 1) return tenon::ones_like(s);
  const Tensor one = tenon::ones_like(s.narrow(-1, 0, 1));
  const Tensor before = tenon::cumprod(tenon::cat({one, s.narrow(-1, 0, n - 1)}, -1), -1);
  const Tensor turned = tenon::flip(s, {-1});
  const Tensor after =
      tenon::flip(tenon::cumprod(tenon::cat({one, turned.narrow(-1, 0, n - 1)}, -1), -1), {-1});
  return tenon::mul(before, after);
}

}  // namespace

Tensor cholesky_gradient(const Tensor& grad, const Tensor& L, bool upper) {
  const Tensor l = upper ? adjoint_of(L) : L, g = upper ? adjoint_of(grad) : grad;
  const Tensor x = product(adjoint_of(l), g);
  const Tensor phi = tenon::add(tenon::tril(x, -1), tenon::diag_embed(half(diagonal_of(x))));
  const Tensor middle = half(tenon::add(phi, adjoint_of(phi)));
  const Tensor left = tenon::linalg_solve_triangular(adjoint_of(l), middle, true);
  return tenon::linalg_solve_triangular(l, left, false, false);
}

Tensor inverse_gradient(const Tensor& grad, const Tensor& inverse) {
  const Tensor turned = adjoint_of(inverse);
  return tenon::neg(product(turned, product(grad, turned)));
}

Tensor det_gradient(const Tensor& grad, const Tensor& A, const Tensor& det, const Tensor& LU,
                    const Tensor& pivots) {
  if (A.size(-1) == 0) return tenon::zeros_like(A);
  const bool singular = !A.is_meta() && tenon::any(tenon::eq(det, Scalar(0))).item().to_bool();
  if (singular) {
    // The adjugate by singular values, which need no inverse.
    auto [U, S, Vh] = tenon::_linalg_svd(A, false, true);
    const Tensor phase = std::get<0>(tenon::_linalg_det(product(U, Vh)));
    const Tensor scale = tenon::mul(grad, conjugate(phase)).unsqueeze(-1);
    const Tensor others = tenon::mul(products_of_others(S).to(A.dtype()), scale);
    return product(tenon::mul(U, others.unsqueeze(-2)), Vh);
  }
  const Tensor scale = tenon::mul(grad, conjugate(det)).unsqueeze(-1).unsqueeze(-1);
  const Tensor right = tenon::mul(scale, tenon::eye(A.size(-1), A.options()));
  return thread_state.grad_enabled ? tenon::linalg_solve(adjoint_of(A), right)
                                   : tenon::_linalg_lu_solve(LU, pivots, right, true, true);
}

Tensor slogdet_gradient(const Tensor& grad_sign, const Tensor& grad_log, const Tensor& A,
                        const Tensor& sign) {
  Tensor scale;
  if (grad_log.defined()) scale = grad_log.to(A.dtype());
  if (grad_sign.defined() && A.is_complex()) {
    const Tensor turn = tenon::imag(tenon::mul(tenon::conj(grad_sign), sign));
    const Tensor term = tenon::complex(tenon::zeros_like(turn), tenon::neg(turn));
    scale = scale.defined() ? tenon::add(scale, term) : term;
  }
  if (!scale.defined()) return tenon::zeros_like(A);
  const Tensor right = tenon::mul(scale.unsqueeze(-1).unsqueeze(-1), tenon::eye(A.size(-1), A.options()));
  return tenon::linalg_solve(adjoint_of(A), right);
}

Tensor lu_factor_gradient(const Tensor& grad, const Tensor& LU, const Tensor& pivots, bool pivot) {
  const int64_t m = LU.size(-2), n = LU.size(-1), k = std::min(m, n);
  const Tensor L1 = LU.narrow(-2, 0, k).narrow(-1, 0, k), U1 = L1;  // triangles of it are read
  const Tensor unit = tenon::add(tenon::tril(L1, -1), tenon::eye(k, LU.options())), upper = tenon::triu(U1);
  const auto left = [&](const Tensor& x) {
    return tenon::linalg_solve_triangular(adjoint_of(unit), x, true, true, true);
  };
  const auto right = [&](const Tensor& x) {
    return tenon::linalg_solve_triangular(adjoint_of(upper), x, false, false);
  };
  const Tensor g = grad.narrow(-2, 0, k).narrow(-1, 0, k), gl = tenon::tril(g, -1), gu = tenon::triu(g);
  Tensor lower_part = product(adjoint_of(unit), gl), upper_part = product(gu, adjoint_of(upper)), result;
  if (n > k) {
    const Tensor u2 = LU.narrow(-2, 0, k).narrow(-1, k, n - k), gu2 = grad.narrow(-1, k, n - k);
    lower_part = tenon::sub(lower_part, product(gu2, adjoint_of(u2)));
    const Tensor middle = tenon::add(tenon::tril(lower_part, -1), tenon::triu(upper_part));
    result = tenon::cat({left(right(middle)), left(gu2)}, -1);
  } else if (m > k) {
    const Tensor l2 = LU.narrow(-2, k, m - k), gl2 = grad.narrow(-2, k, m - k);
    upper_part = tenon::sub(upper_part, product(adjoint_of(l2), gl2));
    const Tensor middle = tenon::add(tenon::tril(lower_part, -1), tenon::triu(upper_part));
    result = tenon::cat({left(right(middle)), right(gl2)}, -2);
  } else {
    result = left(right(tenon::add(tenon::tril(lower_part, -1), tenon::triu(upper_part))));
  }
  return pivot ? product(permutation_matrix(pivots, m, LU.dtype()), result) : result;
}

std::tuple<Tensor, Tensor> solve_gradients(const Tensor& grad, const Tensor& A, const Tensor& B,
                                           const Tensor& X, const Tensor& LU, const Tensor& pivots,
                                           bool left) {
  const bool vector = is_vector_solve(A, B);
  const auto matrix = [&](const Tensor& t) { return vector ? t.unsqueeze(-1) : t; };
  // What differentiates this again needs A; otherwise its factors are at hand.
  const Tensor g = matrix(grad);
  const Tensor gb = thread_state.grad_enabled ? tenon::linalg_solve(adjoint_of(A), g, left)
                                              : tenon::_linalg_lu_solve(LU, pivots, g, left, true);
  const Tensor x = matrix(X);
  const Tensor ga = tenon::neg(left ? product(gb, adjoint_of(x)) : product(adjoint_of(x), gb));
  const Tensor b = vector ? gb.squeeze(-1) : gb;
  return {tenon::sum_to_size(ga, A.sizes()), tenon::sum_to_size(b, B.sizes())};
}

std::tuple<Tensor, Tensor> triangular_gradients(const Tensor& grad, const Tensor& A, const Tensor& B,
                                                const Tensor& X, bool upper, bool left, bool unitriangular) {
  const Tensor gb = tenon::linalg_solve_triangular(adjoint_of(A), grad, !upper, left, unitriangular);
  const Tensor full = tenon::neg(left ? product(gb, adjoint_of(X)) : product(adjoint_of(X), gb));
  const int64_t off = unitriangular ? 1 : 0;
  const Tensor ga = upper ? tenon::triu(full, off) : tenon::tril(full, -off);
  return {tenon::sum_to_size(ga, A.sizes()), tenon::sum_to_size(gb, B.sizes())};
}

namespace {

/// Of square or tall A = Q R, with as many rows of R as columns.
Tensor tall_qr_gradient(const Tensor& gq, const Tensor& gr, const Tensor& Q, const Tensor& R) {
  Tensor m;
  if (gr.defined()) m = product(gr, adjoint_of(R));
  if (gq.defined()) {
    const Tensor x = product(adjoint_of(Q), gq);
    m = m.defined() ? tenon::sub(m, x) : tenon::neg(x);
  }
  const Tensor u = tenon::triu(m);
  // u + u^H, the diagonal once.
  const Tensor diagonal = half(diagonal_of(tenon::add(u, adjoint_of(u))));
  const Tensor both = tenon::sub(tenon::add(u, adjoint_of(u)), tenon::diag_embed(diagonal));
  Tensor inner = product(Q, both);
  if (gq.defined()) inner = tenon::add(inner, gq);
  return tenon::linalg_solve_triangular(adjoint_of(R), inner, false, false);
}

}  // namespace

Tensor qr_gradient(const Tensor& grad_q, const Tensor& grad_r, const Tensor& Q, const Tensor& R,
                   std::string_view mode) {
  TENON_CHECK(mode != "r", Runtime, "linalg_qr: the derivative needs Q; use mode='reduced' in place of 'r'");
  const int64_t m = Q.size(-2), n = R.size(-1);
  TENON_CHECK(mode == "reduced" || m <= n, Runtime,
              "linalg_qr: mode 'complete' of more rows than columns has no derivative; use mode='reduced'");
  if (!grad_q.defined() && !grad_r.defined()) return {};
  if (m >= n) return tall_qr_gradient(grad_q, grad_r, Q, R);
  // [X Y] = Q [U V]: V = Q^H Y.
  const Tensor U = R.narrow(-1, 0, m), V = R.narrow(-1, m, n - m);
  if (!grad_r.defined()) {
    const Tensor gx = tall_qr_gradient(grad_q, {}, Q, U);
    return tenon::cat({gx, tenon::zeros_like(V)}, -1);
  }
  const Tensor gu = grad_r.narrow(-1, 0, m), gv = grad_r.narrow(-1, m, n - m), Y = product(Q, V);
  Tensor gq = product(Y, adjoint_of(gv));
  if (grad_q.defined()) gq = tenon::add(gq, grad_q);
  return tenon::cat({tall_qr_gradient(gq, gu, Q, U), product(Q, gv)}, -1);
}

Tensor pinv_gradient(const Tensor& grad, const Tensor& pinv, const Tensor& A) {
  // Golub and Pereyra (1973), at constant rank.
  const Tensor ph = adjoint_of(pinv), gh = adjoint_of(grad);
  if (A.size(-2) <= A.size(-1)) {
    const Tensor k = product(gh, pinv), kp = product(k, ph);
    const Tensor first = tenon::sub(kp, adjoint_of(product(pinv, k)));
    const Tensor second =
        tenon::sub(product(ph, product(pinv, tenon::sub(gh, product(k, A)))), product(A, product(pinv, kp)));
    return tenon::add(first, second);
  }
  const Tensor k = product(pinv, gh), pk = product(ph, k);
  const Tensor first = tenon::sub(pk, adjoint_of(product(k, pinv)));
  const Tensor second =
      tenon::sub(product(product(tenon::sub(gh, product(A, k)), pinv), ph), product(product(pk, pinv), A));
  return tenon::add(first, second);
}

Tensor matrix_exp_gradient(const Tensor& grad, const Tensor& A) {
  // The upper right block of the exponential of [A^H grad; 0 A^H] (Van Loan, 1978).
  const int64_t n = A.size(-1);
  const Tensor turned = adjoint_of(A);
  const Tensor above = tenon::cat({turned, grad}, -1),
               below = tenon::cat({tenon::zeros_like(turned), turned}, -1);
  const Tensor both = tenon::linalg_matrix_exp(tenon::cat({above, below}, -2));
  return both.narrow(-2, 0, n).narrow(-1, n, n);
}

}  // namespace tenon::ops
