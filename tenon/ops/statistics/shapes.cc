// Shapes of what is found by the order of elements.
#include <fmt/core.h>

#include "tenon/generated/statistics/shapes.h"
#include "tenon/iter/geometry.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/forms/reduced_dims.h"

namespace tenon::ops::shape {
namespace {

/// One element of each row, and its position. Returns the length of rows.
int64_t one_of_row(OutputSpecs& out, HeaderRef self, int64_t dim, bool keepdim, const char* op) {
  check_real(self, op);
  const int64_t d = wrap_dim(dim, self.dim(), op);
  if (self.dim() == 0) {
    out.set(0, {}, self.dtype());
    out.set(1, {}, DType::Int64);
    return 1;
  }
  const int64_t length = self.sizes()[at(d)];
  TENON_CHECK(length > 0, Index,
              fmt::format("{}: dimension {} of `self`, {}, has no elements", op, d, to_string(self.sizes())));
  const Dims sizes = reduced_sizes(self.sizes(), reduction_mask(IntArrayRef(d), self.dim(), op), keepdim);
  out.set(0, sizes, self.dtype());
  out.set(1, sizes, DType::Int64);
  return length;
}

}  // namespace

void kthvalue(OutputSpecs& out, HeaderRef self, int64_t k, int64_t dim, bool keepdim) {
  const int64_t length = one_of_row(out, self, dim, keepdim, "kthvalue");
  TENON_CHECK(
      k >= 1 && k <= length, Index,
      fmt::format("kthvalue: selected number k out of range: {} of the {} elements of `self`, {}, along "
                  "dimension {}",
                  k, length, to_string(self.sizes()), dim));
}
void median_dim(OutputSpecs& out, HeaderRef self, int64_t dim, bool keepdim) {
  one_of_row(out, self, dim, keepdim, "median");
}
void mode(OutputSpecs& out, HeaderRef self, int64_t dim, bool keepdim) {
  one_of_row(out, self, dim, keepdim, "mode");
}

void running_extremum(OutputSpecs& out, HeaderRef self, int64_t dim) {
  check_real(self, kThisCall);
  wrap_dim(dim, self.dim(), kThisCall);
  out.set(0, self.sizes(), self.dtype());
  out.set(1, self.sizes(), DType::Int64);
}

void lexsort(OutputSpecs& out, HeaderRef self) {
  check_real(self, kThisCall);
  TENON_CHECK(self.dim() == 2, Shape, fmt::format(": expected a matrix, got {}", to_string(self.sizes())));
  out.set(0, self.sizes()[0], DType::Int64);
}

void searchsorted(OutputSpecs& out, HeaderRef sorted_sequence, HeaderRef self, bool out_int32, bool) {
  constexpr const char* kOp = "searchsorted";
  check_real(self, kOp);
  TENON_CHECK(sorted_sequence.dtype() == self.dtype(), Type,
              fmt::format("{}: `sorted_sequence` is {} and the elements are {}; convert one of them", kOp,
                          name(sorted_sequence.dtype()), name(self.dtype())));
  const IntArrayRef rows = sorted_sequence.sizes(), elements = self.sizes();
  TENON_CHECK(!rows.empty(), Shape,
              "searchsorted: `sorted_sequence` is 0-dim, expected at least one dimension");
  TENON_CHECK(
      rows.size() == 1 ||
          (rows.size() == elements.size() && std::equal(rows.begin(), rows.end() - 1, elements.begin())),
      Shape,
      fmt::format("searchsorted: `sorted_sequence` {} and the elements {} must have the same sizes but for "
                  "the last one, or `sorted_sequence` one dimension",
                  to_string(rows), to_string(elements)));
  TENON_CHECK(!out_int32 || rows.back() <= INT32_MAX, Value,
              fmt::format("searchsorted: a row of {} elements is longer than int32 can count", rows.back()));
  out.set(0, elements, out_int32 ? DType::Int32 : DType::Int64);
}

}  // namespace tenon::ops::shape
