// Distances between vectors: which row operator a norm of differences is; and what is made of them.
#include <fmt/core.h>

#include <cmath>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/distance/bodies.h"
#include "tenon/generated/distance/functions.h"
#include "tenon/generated/distance/shapes.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/norm/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/iter/geometry.h"
#include "tenon/iter/promotion.h"
#include "tenon/iter/result_shape.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/tensor_operators.h"

namespace tenon::ops {

namespace shape {
namespace {

void check_floats(HeaderRef t) {
  check_arithmetic(t, kThisCall);
  TENON_CHECK(is_floating_point(t.dtype()), Type,
              fmt::format(": expected a floating point dtype, got {}; convert it", name(t.dtype())));
}

}  // namespace

void distances(OutputSpecs& out, HeaderRef x1, HeaderRef x2, double) {
  TENON_CHECK(x1.sizes() == x2.sizes() && x1.dim() > 0 && x1.dtype() == x2.dtype(), Shape,
              fmt::format(": expected tensors of one shape and dtype, got {} and {}", to_string(x1.sizes()),
                          to_string(x2.sizes())));
  check_floats(x1);
  const IntArrayRef sizes = x1.sizes();
  out.set(0, IntArrayRef(sizes.data(), sizes.size() - 1), x1.dtype());
}

void euclidean_distances(OutputSpecs& out, HeaderRef x1, HeaderRef x2) {
  const IntArrayRef a = x1.sizes(), b = x2.sizes();
  TENON_CHECK(
      a.size() >= 2 && a.size() == b.size() && a.back() == b.back() && x1.dtype() == x2.dtype(), Shape,
      fmt::format(": expected lists of vectors of one dtype, got {} and {}", to_string(a), to_string(b)));
  check_floats(x1);
  Dims sizes(a);
  sizes.back() = b[b.size() - 2];
  out.set(0, sizes, x1.dtype());
}

}  // namespace shape

void distances(const Tensor& x1, const Tensor& x2, double p, Tensor& out) {
  const Dims last{-1};
  if (x1.sizes().back() == 0) return zero_elements(out);
  if (p == 2)
    tenon::_distance_two_out(out, x1, x2, last);
  else if (p == 1)
    tenon::_distance_one_out(out, x1, x2, last);
  else if (p == 0)
    tenon::_distance_count_out(out, x1, x2, last);
  else if (p == INFINITY)
    tenon::_distance_largest_out(out, x1, x2, last);
  else
    tenon::_distance_power_out(out, x1, x2, p, last);
}

void euclidean_distances(const Tensor& x1, const Tensor& x2, Tensor& out) {
  const Tensor a = tenon::sum(x1 * x1, IntArrayRef(-1), true), b = tenon::sum(x2 * x2, IntArrayRef(-1), true);
  tenon::_distance_of_products_out(out, tenon::matmul(x1, x2.transpose(-1, -2)), a, b.transpose(-1, -2));
}

Tensor euclidean_distances_backward(const Tensor& grad, const Tensor& x1, const Tensor& x2,
                                    const Tensor& result) {
  const Tensor weight = tenon::where(result == 0, Scalar(0), grad / result);
  return tenon::sum(weight, IntArrayRef(-1), true) * x1 - tenon::matmul(weight, x2);
}

namespace {

void check_floats(const Tensor& t, const char* op) {
  TENON_CHECK(is_floating_point(t.dtype()), Type,
              fmt::format("{}: expected a floating point dtype, got {}; convert it", op, name(t.dtype())));
}
void check_order(double p, const char* op) {
  TENON_CHECK(p >= 0, Value, fmt::format("{}: p must not be negative, got {}", op, p));
}

/// Above it a product of matrices takes less time than differences.
constexpr int64_t kFewRows = 25;

}  // namespace

Tensor cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> compute_mode) {
  check_floats(x1, "cdist");
  check_floats(x2, "cdist");
  check_order(p, "cdist");
  const int64_t mode = compute_mode.value_or(0);
  TENON_CHECK(mode >= 0 && mode <= 2, Value,
              fmt::format("cdist: compute_mode must be 0, 1 or 2, got {}", mode));
  TENON_CHECK(x1.dim() >= 2 && x2.dim() >= 2 && x1.size(-1) == x2.size(-1), Shape,
              fmt::format("cdist: expected lists of vectors of one length, got {} and {}",
                          to_string(x1.sizes()), to_string(x2.sizes())));
  const DType dtype = promote_types(x1.dtype(), x2.dtype());
  const Tensor a = x1.to(dtype), b = x2.to(dtype);
  const IntArrayRef sizes = a.sizes(), others = b.sizes();
  const Dims batch = broadcast_shapes(IntArrayRef(sizes.data(), sizes.size() - 2),
                                      IntArrayRef(others.data(), others.size() - 2), "cdist");
  const auto with = [&](std::initializer_list<int64_t> last) {
    Dims all = batch;
    for (const int64_t size : last) all.push_back(size);
    return all;
  };
  const int64_t rows = a.size(-2), columns = b.size(-2), length = a.size(-1);
  if (p == 2 && (mode == 1 || (mode == 0 && (rows > kFewRows || columns > kFewRows))))
    return tenon::_euclidean_distances(a.expand(with({rows, length})), b.expand(with({columns, length})));
  return tenon::_distances(a.unsqueeze(-2).expand(with({rows, columns, length})),
                           b.unsqueeze(-3).expand(with({rows, columns, length})), p);
}

Tensor pdist(const Tensor& self, double p) {
  check_floats(self, "pdist");
  check_order(p, "pdist");
  TENON_CHECK(self.dim() == 2, Shape,
              fmt::format("pdist: expected a matrix, got {}", to_string(self.sizes())));
  const int64_t n = self.size(0);
  const Tensor pairs = tenon::triu_indices(n, n, 1, self.options().dtype(DType::Int64));
  return tenon::_distances(self.index_select(0, pairs.select(0, 0)), self.index_select(0, pairs.select(0, 1)),
                           p);
}

Tensor dist(const Tensor& self, const Tensor& other, const Scalar& p) {
  const Tensor* both[] = {&self, &other};
  const DType dtype = result_type(both);
  return tenon::linalg_vector_norm(self.to(dtype) - other.to(dtype), p);
}

Tensor renorm(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  const int64_t d = wrap_dim(dim, self.dim(), "renorm");
  TENON_CHECK(self.dim() > 1, Shape,
              fmt::format("renorm: expected at least 2 dimensions, got shape {}", to_string(self.sizes())));
  TENON_CHECK(p.to_double() > 0, Value, fmt::format("renorm: p must be positive, got {}", p.to_double()));
  TENON_CHECK(maxnorm.to_double() >= 0, Value,
              fmt::format("renorm: maxnorm must not be negative, got {}", maxnorm.to_double()));
  Dims others;
  for (int64_t k = 0; k < self.dim(); ++k)
    if (k != d) others.push_back(k);
  const Tensor norms = tenon::linalg_vector_norm(self, p, others, true);
  const Tensor factor = tenon::where(norms > maxnorm, maxnorm / (norms + 1e-7), Scalar(1.0));
  return self * factor.to(self.dtype());
}

}  // namespace tenon::ops
