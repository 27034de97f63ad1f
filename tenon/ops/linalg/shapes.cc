// Shapes of linear algebra.
#include <fmt/core.h>

#include <algorithm>

#include "tenon/generated/linalg/shapes.h"
#include "tenon/iter/geometry.h"
#include "tenon/iter/result_shape.h"
#include "tenon/ops/linalg/checks.h"

namespace tenon::ops {

void check_linalg_dtype(HeaderRef t, const char* argument) {
  const DType d = t.dtype();
  TENON_CHECK(
      d == DType::Float32 || d == DType::Float64 || d == DType::Complex64 || d == DType::Complex128,
      NotImplemented,
      fmt::format(": expected `{}` of float32, float64, complex64 or complex128, got {}; convert it with "
                  ".to(tenon.float32)",
                  argument, name(d)));
}

void check_matrices(HeaderRef t, const char* argument) {
  check_linalg_dtype(t, argument);
  TENON_CHECK(t.dim() >= 2, Shape,
              fmt::format(": `{}` must have at least 2 dimensions, those of a matrix last, got {}", argument,
                          to_string(t.sizes())));
}

void check_square(HeaderRef t, const char* argument) {
  check_matrices(t, argument);
  TENON_CHECK(rows_of(t) == columns_of(t), Shape,
              fmt::format(": `{}` must be batches of square matrices, but they are {} by {} matrices",
                          argument, rows_of(t), columns_of(t)));
}

void check_same_dtype(HeaderRef a, const char* a_name, HeaderRef b, const char* b_name) {
  TENON_CHECK(a.dtype() == b.dtype(), Type,
              fmt::format(": `{}` is {}, `{}` is {}; expected both to have the same dtype", b_name,
                          name(b.dtype()), a_name, name(a.dtype())));
}

Dims joined(Dims batch, std::initializer_list<int64_t> sizes) {
  for (const int64_t s : sizes) batch.push_back(s);
  return batch;
}

bool is_vector_solve(HeaderRef A, HeaderRef B) {
  if (B.dim() == 1) return true;
  const IntArrayRef a = A.sizes(), b = B.sizes();
  return a.size() == b.size() + 1 && std::equal(b.begin(), b.end(), a.begin());
}

void check_reflections(HeaderRef input, HeaderRef tau) {
  check_matrices(input, "input");
  check_same_dtype(input, "input", tau, "tau");
  const int64_t m = rows_of(input), n = columns_of(input);
  TENON_CHECK(m >= n, Shape,
              fmt::format(": expected `input` with at least as many rows as columns, got {}",
                          to_string(input.sizes())));
  const IntArrayRef t = tau.sizes(), batch(input.sizes().data(), input.sizes().size() - 2);
  TENON_CHECK(
      t.size() == batch.size() + 1 && std::equal(batch.begin(), batch.end(), t.begin()) && t.back() <= n,
      Shape,
      fmt::format(": expected `tau` with the batch of `input` {} and at most {} elements, got {}",
                  to_string(input.sizes()), n, to_string(t)));
}

void check_pivots(HeaderRef factors, const char* factors_name, HeaderRef pivots, const char* argument) {
  TENON_CHECK(pivots.dtype() == DType::Int32, Type,
              fmt::format(": expected `{}` of int32, got {}", argument, name(pivots.dtype())));
  Dims wanted = joined(batch_of(factors), {std::min(rows_of(factors), columns_of(factors))});
  TENON_CHECK(pivots.sizes() == IntArrayRef(wanted), Shape,
              fmt::format(": expected `{}` of shape {} for `{}` {}, got {}", argument, to_string(wanted),
                          factors_name, to_string(factors.sizes()), to_string(pivots.sizes())));
}

namespace shape {
namespace {

Dims broadcast_batches(HeaderRef a, HeaderRef b, const char* op) {
  Dims batch = batch_of(a);
  broadcast_to(batch, batch_of(b), op);
  return batch;
}

void check_right_side(HeaderRef A, HeaderRef B, bool left, const char* a_name) {
  check_matrices(B, "B");
  check_same_dtype(A, a_name, B, "B");
  const int64_t n = columns_of(A), given = left ? rows_of(B) : columns_of(B);
  TENON_CHECK(n == given, Shape,
              fmt::format(": `B` {} and `{}` {} do not fit: expected `B` to have {} {}", to_string(B.sizes()),
                          a_name, to_string(A.sizes()), n, left ? "rows" : "columns"));
}

void set_lu(OutputSpecs& out, size_t first, HeaderRef A) {
  out.set(first, A.sizes(), A.dtype());
  out.set(first + 1, joined(batch_of(A), {std::min(rows_of(A), columns_of(A))}), DType::Int32);
}

void check_uplo(std::string_view UPLO) {
  TENON_CHECK(UPLO == "L" || UPLO == "U" || UPLO == "l" || UPLO == "u", Runtime,
              fmt::format(": expected `UPLO` of 'L' or 'U', got '{}'", UPLO));
}

}  // namespace

void linalg_cholesky_ex(OutputSpecs& out, HeaderRef self, bool, bool) {
  check_square(self, "self");
  out.set(0, self.sizes(), self.dtype());
  out.set(1, batch_of(self), DType::Int32);
}

void linalg_inv_ex(OutputSpecs& out, HeaderRef A, bool) {
  check_square(A, "A");
  out.set(0, A.sizes(), A.dtype());
  out.set(1, batch_of(A), DType::Int32);
}

void linalg_lu_factor_ex(OutputSpecs& out, HeaderRef A, bool, bool) {
  check_matrices(A, "A");
  set_lu(out, 0, A);
  out.set(2, batch_of(A), DType::Int32);
}

void _linalg_det(OutputSpecs& out, HeaderRef A) {
  check_square(A, "A");
  out.set(0, batch_of(A), A.dtype());
  set_lu(out, 1, A);
}

void _linalg_solve_ex(OutputSpecs& out, HeaderRef A, HeaderRef B, bool left, bool) {
  check_square(A, "A");
  check_linalg_dtype(B, "B");
  if (is_vector_solve(A, B)) {
    check_same_dtype(A, "A", B, "B");
    TENON_CHECK(left, Shape, ": `left` must be true where `B` is a vector for each matrix");
    TENON_CHECK(columns_of(A) == B.sizes().back(), Shape,
                fmt::format(": `B` {} and `A` {} do not fit: expected vectors of {} elements",
                            to_string(B.sizes()), to_string(A.sizes()), columns_of(A)));
    Dims sizes = batch_of(A);
    broadcast_to(sizes, IntArrayRef(B.sizes().data(), B.sizes().size() - 1), "linalg_solve");
    out.set(0, joined(sizes, {columns_of(A)}), A.dtype());
  } else {
    check_right_side(A, B, left, "A");
    out.set(0, joined(broadcast_batches(A, B, "linalg_solve"), {rows_of(B), columns_of(B)}), A.dtype());
  }
  set_lu(out, 1, A);
  out.set(3, batch_of(A), DType::Int32);
}

void linalg_solve_triangular(OutputSpecs& out, HeaderRef self, HeaderRef B, bool, bool left, bool) {
  check_square(self, "self");
  check_right_side(self, B, left, "self");
  out.set(0, joined(broadcast_batches(self, B, "linalg_solve_triangular"), {rows_of(B), columns_of(B)}),
          self.dtype());
}

void _linalg_lu_solve(OutputSpecs& out, HeaderRef LU, HeaderRef pivots, HeaderRef B, bool left, bool) {
  check_square(LU, "LU");
  check_pivots(LU, "LU", pivots, "pivots");
  check_right_side(LU, B, left, "LU");
  out.set(0, joined(broadcast_batches(LU, B, "linalg_lu_solve"), {rows_of(B), columns_of(B)}), LU.dtype());
}

void _pivots_to_permutation(OutputSpecs& out, HeaderRef pivots, int64_t rows) {
  TENON_CHECK(pivots.dtype() == DType::Int32 && pivots.dim() >= 1, Type,
              fmt::format(": expected pivots of int32, got {} of shape {}", name(pivots.dtype()),
                          to_string(pivots.sizes())));
  TENON_CHECK(rows >= pivots.sizes().back(), Shape,
              fmt::format(": {} pivots for {} rows", pivots.sizes().back(), rows));
  Dims sizes(pivots.sizes());
  sizes.back() = rows;
  out.set(0, sizes, DType::Int64);
}

void linalg_qr(OutputSpecs& out, HeaderRef A, std::string_view mode) {
  check_matrices(A, "A");
  const int64_t m = rows_of(A), n = columns_of(A), k = std::min(m, n);
  TENON_CHECK(mode == "reduced" || mode == "complete" || mode == "r", Runtime,
              fmt::format(": expected `mode` of 'reduced', 'complete' or 'r', got '{}'", mode));
  const int64_t q = mode == "complete" ? m : k;
  if (mode == "r")
    out.set(0, {0}, A.dtype());
  else
    out.set(0, joined(batch_of(A), {m, q}), A.dtype());
  out.set(1, joined(batch_of(A), {q, n}), A.dtype());
}

void geqrf(OutputSpecs& out, HeaderRef self) {
  check_matrices(self, "self");
  out.set(0, self.sizes(), self.dtype());
  out.set(1, joined(batch_of(self), {std::min(rows_of(self), columns_of(self))}), self.dtype());
}

void _householder_product(OutputSpecs& out, HeaderRef input, HeaderRef tau) {
  check_reflections(input, tau);
  out.set(0, input.sizes(), input.dtype());
}

void _linalg_eigh(OutputSpecs& out, HeaderRef A, std::string_view UPLO, bool compute_v) {
  check_square(A, "A");
  check_uplo(UPLO);
  out.set(0, joined(batch_of(A), {columns_of(A)}), real_dtype(A.dtype()));
  if (compute_v)
    out.set(1, A.sizes(), A.dtype());
  else
    out.set(1, {0}, A.dtype());
}

void _linalg_eig(OutputSpecs& out, HeaderRef self, bool compute_v) {
  check_square(self, "self");
  const DType to = self.dtype() == DType::Float32   ? DType::Complex64
                   : self.dtype() == DType::Float64 ? DType::Complex128
                                                    : self.dtype();
  out.set(0, joined(batch_of(self), {columns_of(self)}), to);
  if (compute_v)
    out.set(1, self.sizes(), to);
  else
    out.set(1, {0}, to);
}

void _linalg_svd(OutputSpecs& out, HeaderRef A, bool full_matrices, bool compute_uv,
                 std::optional<std::string_view> driver) {
  check_matrices(A, "A");
  TENON_CHECK(!driver, Runtime, ": `driver` is for CUDA devices alone; leave it out");
  const int64_t m = rows_of(A), n = columns_of(A), k = std::min(m, n);
  if (compute_uv) {
    out.set(0, joined(batch_of(A), {m, full_matrices ? m : k}), A.dtype());
    out.set(1, joined(batch_of(A), {k}), real_dtype(A.dtype()));
    out.set(2, joined(batch_of(A), {full_matrices ? n : k, n}), A.dtype());
  } else {
    out.set(0, {0}, A.dtype());
    out.set(1, joined(batch_of(A), {k}), real_dtype(A.dtype()));
    out.set(2, {0}, A.dtype());
  }
}

void linalg_ldl_factor_ex(OutputSpecs& out, HeaderRef self, bool, bool) {
  check_square(self, "self");
  set_lu(out, 0, self);
  out.set(2, batch_of(self), DType::Int32);
}

void linalg_ldl_solve(OutputSpecs& out, HeaderRef LD, HeaderRef pivots, HeaderRef B, bool) {
  check_square(LD, "LD");
  check_pivots(LD, "LD", pivots, "pivots");
  check_right_side(LD, B, true, "LD");
  out.set(0, joined(broadcast_batches(LD, B, "linalg_ldl_solve"), {rows_of(B), columns_of(B)}), LD.dtype());
}

void linalg_matrix_exp(OutputSpecs& out, HeaderRef self) {
  check_square(self, "self");
  out.set(0, self.sizes(), self.dtype());
}

}  // namespace shape
}  // namespace tenon::ops
