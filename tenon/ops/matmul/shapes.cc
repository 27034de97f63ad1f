// Shapes of matrix products.
#include <fmt/core.h>

#include "tenon/generated/matmul/shapes.h"
#include "tenon/iter/geometry.h"
#include "tenon/ops/matmul/factors.h"
#include "tenon/ops/matmul/panels.h"

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

void packed_product(OutputSpecs& out, HeaderRef matrix, HeaderRef panels, int64_t columns, HeaderRef bias) {
  check_ndim(matrix, 2, "_packed_product", "matrix");
  check_ndim(panels, 3, "_packed_product", "panels");
  check_dtypes(matrix, panels, "_packed_product", "matrix", "panels");
  TENON_CHECK(has_panels(matrix.dtype()), NotImplemented,
              fmt::format("_packed_product: not implemented for {}", name(matrix.dtype())));
  if (bias.defined()) check_dtypes(matrix, bias, "_packed_product", "matrix", "bias");
  TENON_CHECK(columns >= 0, Value,
              fmt::format("_packed_product: expected `columns` of at least 0, got {}", columns));
  const Dims expected{panel_count(columns, matrix.dtype()), matrix.sizes()[1], panel_width(matrix.dtype())};
  TENON_CHECK(panels.sizes() == IntArrayRef(expected), Shape,
              fmt::format("_packed_product: expected `panels` {} for `matrix` {} and {} columns, got {}",
                          to_string(IntArrayRef(expected)), to_string(matrix.sizes()), columns,
                          to_string(panels.sizes())));
  TENON_CHECK(!bias.defined() || (bias.dim() == 1 && bias.sizes()[0] == columns), Shape,
              fmt::format("_packed_product: expected `bias` [{}], got {}", columns, to_string(bias.sizes())));
  out.set(0, {matrix.sizes()[0], columns}, matrix.dtype());
}

namespace {

/// Integers of 8 bits, and their zero: one number, or one for each of `count`.
void check_int8(HeaderRef matrix, HeaderRef zero, int64_t count, const char* op) {
  TENON_CHECK(matrix.dtype() == DType::UInt8 || matrix.dtype() == DType::Int8, Type,
              fmt::format("{}: expected `matrix` of uint8 or int8, got {}", op, name(matrix.dtype())));
  if (!zero.defined()) return;
  TENON_CHECK(
      zero.dtype() == matrix.dtype() && (zero.numel() == 1 || (zero.dim() == 1 && zero.sizes()[0] == count)),
      Shape,
      fmt::format("{}: expected `zero` {} with 1 or {} elements, got {} {}", op, name(matrix.dtype()), count,
                  name(zero.dtype()), to_string(zero.sizes())));
}
void check_rank(bool fits, HeaderRef matrix, const char* op, const char* expected) {
  TENON_CHECK(
      fits, Shape,
      fmt::format("{}: expected `matrix` of {} dimensions, got {}", op, expected, to_string(matrix.sizes())));
}

}  // namespace

void int8_pack(OutputSpecs& out, HeaderRef matrix, HeaderRef zero) {
  const IntArrayRef a = matrix.sizes();
  const size_t rank = a.size();
  check_rank(rank == 2 || rank == 3 || rank == 6, matrix, "_int8_pack", "2, 3 or 6");
  const int64_t columns = rank == 6 ? a[4] * a[5] : a[rank - 1];
  const int64_t rows = rank == 6 ? a[1] * a[2] * a[3] : a[rank - 2];
  check_int8(matrix, zero, columns, "_int8_pack");
  Dims sizes{(columns + 15) / 16, 2 + (rows + 3) / 4, 64};
  if (rank > 2) sizes.insert(0, a[0]);
  out.set(0, sizes, DType::Int8);
}

void int8_product(OutputSpecs& out, HeaderRef matrix, HeaderRef packed, int64_t columns, HeaderRef zero) {
  const IntArrayRef a = matrix.sizes(), b = packed.sizes();
  check_rank(a.size() == 2 || a.size() == 3, matrix, "_int8_product", "2 or 3");
  check_int8(matrix, zero, a[a.size() - 2], "_int8_product");
  const size_t rank = b.size();
  const bool is_packed = packed.dtype() == DType::Int8 && (rank == 3 || rank == 4) && b[rank - 1] == 64 &&
                         b[rank - 2] == 2 + (a.back() + 3) / 4 && columns >= 0 &&
                         columns <= b[rank - 3] * 16 && columns > (b[rank - 3] - 1) * 16;
  TENON_CHECK(
      is_packed && (rank == 3 || a.size() == 2 || a[0] == b[0]), Shape,
      fmt::format("_int8_product: expected `packed` of a matrix [{}, {}], or of as many as there are in "
                  "`matrix` {}, got {} {}",
                  a.back(), columns, to_string(a), name(packed.dtype()), to_string(b)));
  Dims sizes{a[a.size() - 2], columns};
  if (a.size() == 3 || rank == 4) sizes = {a.size() == 3 ? a[0] : b[0], sizes[0], sizes[1]};
  out.set(0, sizes, DType::Int32);
}

}  // namespace tenon::ops::shape
