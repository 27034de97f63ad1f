// Powers, exponentials, pseudoinverses, least squares and chains of products.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/copy/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/linalg/bodies.h"
#include "tenon/generated/linalg/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/linalg/checks.h"
#include "tenon/ops/linalg/matrices.h"

namespace tenon::ops {
namespace {

double epsilon_of(DType dtype) {
  return real_dtype(dtype) == DType::Float32 ? std::numeric_limits<float>::epsilon()
                                             : std::numeric_limits<double>::epsilon();
}

Tensor sum_last(const Tensor& t) { return tenon::sum(t, OptionalIntArrayRef{-1}); }

}  // namespace

Tensor linalg_matrix_power(const Tensor& self, int64_t n) {
  TENON_CHECK(self.dim() >= 2 && self.size(-1) == self.size(-2), Shape,
              fmt::format(": `self` must be batches of square matrices, got {}", to_string(self.sizes())));
  if (n == 0) return tenon::clone(tenon::eye(self.size(-1), self.options()).expand(self.sizes()));
  Tensor power = n < 0 ? tenon::linalg_inv(self) : self, result;
  for (uint64_t rest = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);;) {
    if (rest & 1) result = result.defined() ? tenon::matmul(result, power) : power;
    rest >>= 1;
    if (rest == 0) break;
    power = tenon::matmul(power, power);
  }
  return result.is_same(self) ? tenon::clone(self) : result;
}

namespace {

/// exp of matrices of norm at most 1.09 by five products (Bader, Blanes, Casas, 2019, section 3.2).
Tensor exponential_of_degree_18(const Tensor& a) {
  const Tensor one = tenon::eye(a.size(-1), a.options()), a2 = tenon::matmul(a, a), a3 = tenon::matmul(a2, a),
               a6 = tenon::matmul(a3, a3);
  const auto combine = [&](std::initializer_list<double> weights) {
    const Tensor* const terms[] = {&one, &a, &a2, &a3, &a6};
    Tensor sum;
    size_t i = 0;
    for (const double w : weights) {
      if (w != 0)
        sum = sum.defined() ? tenon::add(sum, tenon::mul(*terms[i], Scalar(w)))
                            : tenon::mul(*terms[i], Scalar(w));
      ++i;
    }
    return sum;
  };
  const Tensor b1 =
      combine({0, -1.00365581030144618291e-01, -8.02924648241156932449e-03, -8.92138498045729985177e-04, 0});
  const Tensor b2 = combine({0, 3.97849749499645077844e-01, 1.36783778460411720168e+00,
                             4.98289622525382669416e-01, -6.37898194594723280150e-04});
  const Tensor b3 =
      combine({-1.09676396052962061844e+01, 1.68015813878906206114e+00, 5.71779846478865511061e-02,
               -6.98210122488052056106e-03, 3.34975017086070470649e-05});
  const Tensor b4 =
      combine({-9.04316832390810593223e-02, -6.76404519071381882256e-02, 6.75961301770459654925e-02,
               2.95552570429315521194e-02, -1.39180257516060693404e-05});
  const Tensor b5 =
      combine({0, 0, -9.23364619367118555360e-02, -1.69364939002081722752e-02, -1.40086798182036094347e-05});
  const Tensor a9 = tenon::add(tenon::matmul(b1, b5), b4);
  return tenon::add(b2, tenon::matmul(tenon::add(b3, a9), a9));
}

}  // namespace

void linalg_matrix_exp(const Tensor& self, Tensor& out) {
  if (self.numel() == 0) return;
  // Halved until the norm is at most 1.09: how often is each matrix's own.
  constexpr double kBound = 1.090863719290036;
  const Tensor norm =
      tenon::amax(tenon::sum(tenon::abs(self), OptionalIntArrayRef{-2}), {-1}, true).unsqueeze(-1);
  const Tensor ratio = tenon::log2(tenon::div(norm, Scalar(kBound)));
  // An infinite or undefined norm is not halved: the result is not finite.
  const Tensor finite = tenon::lt(norm, Scalar(std::numeric_limits<double>::infinity()));
  const Tensor times = tenon::where(finite, tenon::clamp_min(tenon::ceil(ratio), Scalar(0)), Scalar(0));
  const double most = self.is_meta() ? 0.0 : tenon::amax(times).item().to_double();
  Tensor power = exponential_of_degree_18(tenon::mul(self, tenon::exp2(tenon::neg(times))));
  for (double i = 0; i < most; ++i)
    power = tenon::where(tenon::gt(times, Scalar(i)), tenon::matmul(power, power), power);
  copy_elements(out, power, "linalg_matrix_exp");
}

Tensor linalg_pinv_atol_rtol_tensor(const Tensor& self, const Tensor& atol, const Tensor& rtol,
                                    bool hermitian) {
  check_matrices(self, "self");
  if (self.numel() == 0)
    return tenon::zeros(joined(batch_of(self), {self.size(-1), self.size(-2)}), self.options());
  const double eps = epsilon_of(self.dtype()) * static_cast<double>(std::max(self.size(-1), self.size(-2)));
  const auto bound_of = [&](const Tensor& largest) {
    const DType real = real_dtype(self.dtype());
    const auto given = [&](const Tensor& t) { return t.to(real).unsqueeze(-1); };
    if (!atol.defined() && !rtol.defined()) return tenon::mul(largest, Scalar(eps));
    if (!rtol.defined()) {
      // As PyTorch: a bound above 0 leaves no other one.
      const Tensor usual = tenon::mul(tenon::le(given(atol), Scalar(0)).to(real), Scalar(eps));
      return tenon::maximum(given(atol), tenon::mul(largest, usual));
    }
    const Tensor relative = tenon::mul(largest, given(rtol));
    return atol.defined() ? tenon::maximum(given(atol), relative) : relative;
  };
  const auto inverted = [&](const Tensor& values, const Tensor& sizes) {
    const Tensor kept = tenon::gt(sizes, bound_of(tenon::amax(sizes, {-1}, true)));
    return tenon::where(kept, tenon::reciprocal(values), Scalar(0)).to(self.dtype());
  };
  if (hermitian) {
    auto [L, V] = tenon::_linalg_eigh(self, "L", true);
    return tenon::matmul(tenon::mul(V, inverted(L, tenon::abs(L)).unsqueeze(-2)), adjoint_of(V));
  }
  auto [U, S, Vh] = tenon::_linalg_svd(self, false, true);
  return tenon::matmul(tenon::mul(adjoint_of(Vh), inverted(S, S).unsqueeze(-2)), adjoint_of(U));
}

Tensor linalg_pinv_atol_rtol_float(const Tensor& self, std::optional<double> atol, std::optional<double> rtol,
                                   bool hermitian) {
  check_matrices(self, "self");
  TensorOptions options = self.options();
  options.dtype_opt = real_dtype(self.dtype());
  const auto tensor = [&](std::optional<double> x) {
    return x ? tenon::full({}, Scalar(*x), options) : Tensor();
  };
  return tenon::linalg_pinv(self, tensor(atol), tensor(rtol), hermitian);
}

namespace {

Tensor least_squares_by_qr(const Tensor& A, const Tensor& B) {
  if (A.size(-2) >= A.size(-1)) {
    auto [Q, R] = tenon::linalg_qr(A);
    return tenon::linalg_solve_triangular(R, tenon::matmul(adjoint_of(Q), B), true);
  }
  auto [Q, R] = tenon::linalg_qr(adjoint_of(A));
  return tenon::matmul(Q, tenon::linalg_solve_triangular(adjoint_of(R), B, false));
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> linalg_lstsq(const Tensor& self, const Tensor& b,
                                                        std::optional<double> rcond,
                                                        std::optional<std::string_view> driver) {
  check_matrices(self, "self");
  check_same_dtype(self, "self", b, "b");
  const std::string_view by = driver.value_or("gelsy");
  TENON_CHECK(
      by == "gels" || by == "gelsy" || by == "gelsd" || by == "gelss", Runtime,
      fmt::format("linalg_lstsq: expected `driver` of 'gels', 'gelsy', 'gelsd' or 'gelss', got '{}'", by));
  const bool vector = is_vector_solve(self, b) && b.dim() + 1 == self.dim();
  const Tensor B = vector ? b.unsqueeze(-1) : b;
  const int64_t m = self.size(-2), n = self.size(-1);
  TENON_CHECK(B.dim() >= 2 && B.size(-2) == m, Shape,
              fmt::format("linalg_lstsq: `b` {} and `self` {} do not fit: expected {} rows",
                          to_string(b.sizes()), to_string(self.sizes()), m));
  TensorOptions integers = self.options(), reals = self.options();
  integers.dtype_opt = DType::Int64;
  reals.dtype_opt = real_dtype(self.dtype());
  Tensor rank = tenon::empty({0}, integers), values = tenon::empty({0}, reals), solution;
  if (by == "gels") {
    solution = least_squares_by_qr(self, B);
  } else {
    const double bound = rcond.value_or(epsilon_of(self.dtype()) * static_cast<double>(std::max(m, n)));
    const Tensor S = std::get<1>(tenon::_linalg_svd(self.detach(), false, false));
    const Tensor largest = S.size(-1) > 0 ? tenon::mul(tenon::amax(S, {-1}, true), Scalar(bound)) : S;
    rank = sum_last(tenon::gt(S, largest).to(DType::Int64));
    if (by != "gelsy") values = S;
    const Tensor inverse = tenon::linalg_pinv(self, bound, false);
    solution = tenon::matmul(inverse, B);
    // One step of refinement: the pseudoinverse's own error is that of the condition squared.
    solution = tenon::add(solution, tenon::matmul(inverse, tenon::sub(B, tenon::matmul(self, solution))));
  }
  Tensor residuals = tenon::empty({0}, reals);
  const bool full = by == "gels" || self.is_meta() || rank.numel() == 0 ||
                    tenon::all(tenon::eq(rank, Scalar(n))).item().to_bool();
  if (m > n && full && by != "gelsy") {
    const Tensor rest = tenon::abs(tenon::sub(tenon::matmul(self, solution), B));
    residuals = tenon::sum(tenon::mul(rest, rest), OptionalIntArrayRef{-2});
    if (vector) residuals = residuals.squeeze(-1);
  }
  return {vector ? solution.squeeze(-1) : solution, residuals, rank, values};
}

Tensor linalg_multi_dot(TensorList tensors) {
  const size_t n = tensors.size();
  TENON_CHECK(n >= 2, Runtime, fmt::format("linalg_multi_dot: expected at least 2 tensors, got {}", n));
  std::vector<Tensor> all(tensors.begin(), tensors.end());
  const bool first = all[0].dim() == 1, last = all[n - 1].dim() == 1;
  if (first) all[0] = all[0].unsqueeze(0);
  if (last) all[n - 1] = all[n - 1].unsqueeze(-1);
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < n; ++i) {
    TENON_CHECK(all[i].dim() == 2, Shape,
                fmt::format("linalg_multi_dot: expected `tensors[{}]` to be a matrix{}, got {}", i,
                            i == 0 || i + 1 == n ? " or a vector" : "", to_string(tensors[i].sizes())));
    TENON_CHECK(i == 0 || all[i].size(0) == all[i - 1].size(1), Shape,
                fmt::format("linalg_multi_dot: `tensors[{}]` {} and `tensors[{}]` {} cannot be multiplied",
                            i - 1, to_string(tensors[i - 1].sizes()), i, to_string(tensors[i].sizes())));
    if (i == 0) sizes.push_back(all[0].size(0));
    sizes.push_back(all[i].size(1));
  }
  // cost[i][j]: of the product of i to j; split: after which factor it is cut.
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<size_t>> split(n, std::vector<size_t>(n, 0));
  for (size_t length = 1; length < n; ++length) {
    for (size_t i = 0; i + length < n; ++i) {
      const size_t j = i + length;
      cost[i][j] = std::numeric_limits<double>::infinity();
      for (size_t k = i; k < j; ++k) {
        const double now = cost[i][k] + cost[k + 1][j] +
                           static_cast<double>(sizes[i]) * static_cast<double>(sizes[k + 1]) *
                               static_cast<double>(sizes[j + 1]);
        if (now < cost[i][j]) cost[i][j] = now, split[i][j] = k;
      }
    }
  }
  const auto product = [&](auto&& self, size_t i, size_t j) -> Tensor {
    if (i == j) return all[i];
    const size_t k = split[i][j];
    return tenon::mm(self(self, i, k), self(self, k + 1, j));
  };
  Tensor result = product(product, 0, n - 1);
  if (last) result = result.squeeze(-1);
  return first ? result.squeeze(0) : result;
}

}  // namespace tenon::ops
