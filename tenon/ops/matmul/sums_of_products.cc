// Products with something added, and sums of products over named or numbered dimensions: all made of mm and
// bmm.
#include <fmt/core.h>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/matmul/bodies.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/iter/geometry.h"
#include "tenon/ops/matmul/factors.h"

namespace tenon::ops {
namespace {

bool is_zero(const Scalar& s) { return !s.is_complex() && s.to_double() == 0; }

void check_rank(const Tensor& t, int64_t rank, const char* op, const char* argument) {
  TENON_CHECK(t.dim() == rank, Shape,
              fmt::format("{}: expected `{}` of {} dimension{}, got shape {}", op, argument, rank,
                          rank == 1 ? "" : "s", to_string(t.sizes())));
}

void check_dtype(const Tensor& self, const Tensor& other, const char* op, const char* argument) {
  TENON_CHECK(self.dtype() == other.dtype(), Type,
              fmt::format("{}: `{}` is {}, `self` is {}; expected both to have the same dtype", op, argument,
                          name(other.dtype()), name(self.dtype())));
}

/// Of float16, whose products may leave its range until alpha or `self` bring them back: rounded once, as by
/// addmm.
Tensor wide(const Tensor& t) { return t.to(DType::Float32); }

/// beta * self + alpha * product, where `self` must broadcast to the product.
Tensor added(const Tensor& self, const Tensor& product, const Scalar& beta, const Scalar& alpha,
             const char* op) {
  TENON_CHECK(broadcasts(self.sizes(), product.sizes()), Shape,
              fmt::format("{}: `self` {} does not broadcast to the product {}", op, to_string(self.sizes()),
                          to_string(product.sizes())));
  const Scalar b = factor_of(beta, self.dtype(), op, "beta"), a = factor_of(alpha, self.dtype(), op, "alpha");
  if (is_zero(b)) return tenon::scaled(product, a);
  return tenon::add(tenon::scaled(self, b), product, a);
}

Tensor& put(Tensor& self, const Tensor& result, const char* op) {
  TENON_CHECK(self.sizes() == result.sizes(), Shape,
              fmt::format("{}: the result has shape {}, and `self` {}", op, to_string(result.sizes()),
                          to_string(self.sizes())));
  return self.copy_(result);
}

void check_batches(const Tensor& self, const Tensor& a, const Tensor& b, const char* op) {
  check_rank(a, 3, op, "batch1");
  check_rank(b, 3, op, "batch2");
  check_dtype(self, a, op, "batch1");
  check_dtype(self, b, op, "batch2");
  TENON_CHECK(a.size(0) == b.size(0) && a.size(2) == b.size(1), Shape,
              fmt::format("{}: `batch1` {} and `batch2` {} do not fit: expected [b, m, k] and [b, k, n]", op,
                          to_string(a.sizes()), to_string(b.sizes())));
}

}  // namespace

Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
               const Scalar& alpha) {
  check_batches(self, batch1, batch2, "baddbmm");
  if (self.dtype() == DType::Float16)
    return tenon::baddbmm(wide(self), wide(batch1), wide(batch2), beta, alpha).to(DType::Float16);
  return added(self, tenon::bmm(batch1, batch2), beta, alpha, "baddbmm");
}

Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
              const Scalar& alpha) {
  check_batches(self, batch1, batch2, "addbmm");
  const int64_t b = batch1.size(0), m = batch1.size(1), k = batch1.size(2), n = batch2.size(2);
  // One product whose inner dimension runs through the batch.
  const Tensor rows = batch1.transpose(0, 1).reshape({m, b * k}), columns = batch2.reshape({b * k, n});
  return tenon::addmm(self, rows, columns, beta, alpha);
}

Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
             const Scalar& alpha) {
  check_rank(mat, 2, "addmv", "mat");
  check_rank(vec, 1, "addmv", "vec");
  check_dtype(self, mat, "addmv", "mat");
  check_dtype(self, vec, "addmv", "vec");
  if (self.dtype() == DType::Float16)
    return tenon::addmv(wide(self), wide(mat), wide(vec), beta, alpha).to(DType::Float16);
  return added(self, tenon::mv(mat, vec), beta, alpha, "addmv");
}

Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
            const Scalar& alpha) {
  check_rank(vec1, 1, "addr", "vec1");
  check_rank(vec2, 1, "addr", "vec2");
  check_dtype(self, vec1, "addr", "vec1");
  check_dtype(self, vec2, "addr", "vec2");
  TENON_CHECK(self.dtype() != DType::Bool, Type,
              "addr: not implemented for bool; convert it to another dtype");
  // Of addr alone, PyTorch requires integer factors for integers.
  check_integral_factor(beta, self.dtype(), "addr", "beta");
  check_integral_factor(alpha, self.dtype(), "addr", "alpha");
  return added(self, tenon::outer(vec1, vec2), beta, alpha, "addr");
}

Tensor& baddbmm_(Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                 const Scalar& alpha) {
  return put(self, tenon::baddbmm(self, batch1, batch2, beta, alpha), "baddbmm_");
}
Tensor& addbmm_(Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                const Scalar& alpha) {
  return put(self, tenon::addbmm(self, batch1, batch2, beta, alpha), "addbmm_");
}
Tensor& addmv_(Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar& alpha) {
  return put(self, tenon::addmv(self, mat, vec, beta, alpha), "addmv_");
}
Tensor& addr_(Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta, const Scalar& alpha) {
  return put(self, tenon::addr(self, vec1, vec2, beta, alpha), "addr_");
}

Tensor tensordot(const Tensor& self, const Tensor& other, IntArrayRef dims_self, IntArrayRef dims_other) {
  TENON_CHECK(dims_self.size() == dims_other.size(), Value,
              fmt::format("tensordot: `dims_self` {} and `dims_other` {} must have as many dimensions",
                          to_string(dims_self), to_string(dims_other)));
  const Dims mine = wrap_dims(dims_self, self.dim(), "tensordot"),
             theirs = wrap_dims(dims_other, other.dim(), "tensordot");
  Tensor a = self, b = other;
  int64_t inner = 1;
  for (size_t i = 0; i < mine.size(); ++i) {
    const int64_t x = self.size(mine[i]), y = other.size(theirs[i]);
    // A size of 1 is broadcast to all elements of the other's dimension.
    if (y == 1 && x != 1) a = tenon::sum(a, mine[i], true, a.dtype());
    if (x == 1 && y != 1) b = tenon::sum(b, theirs[i], true, b.dtype());
    TENON_CHECK(x == y || x == 1 || y == 1, Shape,
                fmt::format("tensordot: dimension {} of `self` has size {}, and dimension {} of `other` {}",
                            mine[i], x, theirs[i], y));
    inner *= x == y ? x : 1;
  }
  Dims order, other_order, sizes;
  int64_t rows = 1, columns = 1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (std::find(mine.begin(), mine.end(), d) != mine.end()) continue;
    order.push_back(d);
    sizes.push_back(self.size(d));
    rows *= self.size(d);
  }
  for (const int64_t d : mine) order.push_back(d);
  for (const int64_t d : theirs) other_order.push_back(d);
  for (int64_t d = 0; d < other.dim(); ++d) {
    if (std::find(theirs.begin(), theirs.end(), d) != theirs.end()) continue;
    other_order.push_back(d);
    sizes.push_back(other.size(d));
    columns *= other.size(d);
  }
  return tenon::mm(a.permute(order).reshape({rows, inner}), b.permute(other_order).reshape({inner, columns}))
      .reshape(sizes);
}

}  // namespace tenon::ops
