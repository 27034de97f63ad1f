// Shapes of matrix products.
#include <fmt/core.h>

#include "tenon/generated/matmul/shapes.h"
#include "tenon/iter/geometry.h"
#include "tenon/ops/matmul/factors.h"

namespace tenon::ops::shape {
namespace {

void check_ndim(HeaderRef t, int64_t ndim, const char* op, const char* argument) {
  TENON_CHECK(t.dim() == ndim, Shape,
              fmt::format("{}: `{}` must be a {}D tensor, got {}", op, argument, ndim, to_string(t.sizes())));
}

void check_dtypes(HeaderRef a, HeaderRef b, const char* op, const char* a_name, const char* b_name) {
  TENON_CHECK(a.dtype() == b.dtype(), Type,
              fmt::format("{}: `{}` is {}, `{}` is {}; expected both to have the same dtype", op, b_name,
                          name(b.dtype()), a_name, name(a.dtype())));
  TENON_CHECK(a.dtype() != DType::Bool && !is_quantized(a.dtype()), NotImplemented,
              fmt::format("{}: not implemented for {}", op, name(a.dtype())));
}

void check_product(HeaderRef a, HeaderRef b, const char* op, const char* a_name, const char* b_name) {
  check_ndim(a, 2, op, a_name);
  check_ndim(b, 2, op, b_name);
  TENON_CHECK(a.sizes()[1] == b.sizes()[0], Shape,
              fmt::format("{}: `{}` {} and `{}` {} shapes cannot be multiplied ({}x{} and {}x{})", op, a_name,
                          to_string(a.sizes()), b_name, to_string(b.sizes()), a.sizes()[0], a.sizes()[1],
                          b.sizes()[0], b.sizes()[1]));
  check_dtypes(a, b, op, a_name, b_name);
}

}  // namespace

void mm(OutputSpecs& out, HeaderRef self, HeaderRef mat2) {
  check_product(self, mat2, "mm", "self", "mat2");
  out.set(0, {self.sizes()[0], mat2.sizes()[1]}, self.dtype());
}

void addmm(OutputSpecs& out, HeaderRef self, HeaderRef mat1, HeaderRef mat2, const Scalar& beta,
           const Scalar& alpha) {
  check_product(mat1, mat2, "addmm", "mat1", "mat2");
  check_dtypes(mat1, self, "addmm", "mat1", "self");
  const Dims sizes{mat1.sizes()[0], mat2.sizes()[1]};
  for (const auto& [factor, argument] : {std::pair(&beta, "beta"), std::pair(&alpha, "alpha")})
    (void)factor_of(*factor, self.dtype(), "addmm", argument);
  bool fits = self.dim() <= 2;
  for (int64_t d = 1; fits && d <= self.dim(); ++d) {
    const int64_t size = self.sizes()[static_cast<size_t>(self.dim() - d)];
    fits = size == 1 || size == sizes[static_cast<size_t>(2 - d)];
  }
  TENON_CHECK(fits, Shape,
              fmt::format("addmm: `self` {} does not broadcast to the product's shape {}",
                          to_string(self.sizes()), to_string(sizes)));
  out.set(0, sizes, mat1.dtype());
}

void bmm(OutputSpecs& out, HeaderRef self, HeaderRef mat2) {
  check_ndim(self, 3, "bmm", "self");
  check_ndim(mat2, 3, "bmm", "mat2");
  TENON_CHECK(self.sizes()[0] == mat2.sizes()[0] && self.sizes()[2] == mat2.sizes()[1], Shape,
              fmt::format("bmm: expected `mat2` of shape [{}, {}, *] for `self` {}, got {}", self.sizes()[0],
                          self.sizes()[2], to_string(self.sizes()), to_string(mat2.sizes())));
  check_dtypes(self, mat2, "bmm", "self", "mat2");
  out.set(0, {self.sizes()[0], self.sizes()[1], mat2.sizes()[2]}, self.dtype());
}

void mv(OutputSpecs& out, HeaderRef self, HeaderRef vec) {
  check_ndim(self, 2, "mv", "self");
  check_ndim(vec, 1, "mv", "vec");
  TENON_CHECK(self.sizes()[1] == vec.sizes()[0], Shape,
              fmt::format("mv: size mismatch, got `self` {} and `vec` {}", to_string(self.sizes()),
                          to_string(vec.sizes())));
  check_dtypes(self, vec, "mv", "self", "vec");
  out.set(0, {self.sizes()[0]}, self.dtype());
}

void dot(OutputSpecs& out, HeaderRef self, HeaderRef tensor) {
  check_ndim(self, 1, "dot", "self");
  check_ndim(tensor, 1, "dot", "tensor");
  TENON_CHECK(self.sizes()[0] == tensor.sizes()[0], Shape,
              fmt::format("dot: inconsistent tensor size, expected `tensor` of {} elements as `self`, got {}",
                          self.sizes()[0], tensor.sizes()[0]));
  check_dtypes(self, tensor, "dot", "self", "tensor");
  out.set(0, {}, self.dtype());
}

}  // namespace tenon::ops::shape
