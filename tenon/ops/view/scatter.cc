// Copies of a tensor with one view of it replaced, and matrices made of their diagonals.
#include <fmt/core.h>

#include "tenon/generated/view/bodies.h"
#include "tenon/generated/view/functions.h"
#include "tenon/iter/geometry.h"

namespace tenon::ops {
namespace {

/// Writes `src` into `place`, a view of a copy.
void put(Tensor place, const Tensor& src, const char* op) {
  TENON_CHECK(place.sizes() == src.sizes(), Shape,
              fmt::format("{}: expected `src` of shape {}, got {}", op, to_string(place.sizes()),
                          to_string(src.sizes())));
  place.copy_(src);
}

}  // namespace

Tensor diag_embed(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  TENON_CHECK(self.dim() > 0, Shape, "diag_embed: expects a tensor of at least 1 dimension, got 0");
  const int64_t rank = self.dim() + 1, a = wrap_dim(dim1, rank, "diag_embed"),
                b = wrap_dim(dim2, rank, "diag_embed");
  TENON_CHECK(a != b, Value, fmt::format("diag_embed: dim1 and dim2 cannot both be {}", dim1));
  int64_t side = 0;
  TENON_CHECK(
      offset != INT64_MIN && !__builtin_add_overflow(self.size(-1), offset < 0 ? -offset : offset, &side),
      Shape,
      fmt::format("diag_embed: a diagonal of {} elements at offset {} makes a side too long", self.size(-1),
                  offset));
  Dims sizes;
  for (int64_t d = 0, next = 0; d < rank; ++d) sizes.push_back(d == a || d == b ? side : self.size(next++));
  return tenon::diagonal_backward(self, sizes, offset, a, b);
}

Tensor diag(const Tensor& self, int64_t diagonal) {
  TENON_CHECK(self.dim() == 1 || self.dim() == 2, Shape,
              fmt::format("diag: expected a vector or a matrix, got shape {}", to_string(self.sizes())));
  if (self.dim() == 1) return tenon::diag_embed(self, diagonal, 0, 1);
  return self.diagonal(diagonal, 0, 1).clone(MemoryFormat::Contiguous);
}

Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) {
  Tensor out = self.clone();
  put(out.diagonal(offset, dim1, dim2), src, "diagonal_scatter");
  return out;
}

Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
  Tensor out = self.clone();
  put(out.select(dim, index), src, "select_scatter");
  return out;
}

Tensor slice_scatter(const Tensor& self, const Tensor& src, int64_t dim, std::optional<int64_t> start,
                     std::optional<int64_t> end, int64_t step) {
  Tensor out = self.clone();
  put(out.slice(dim, start, end, step), src, "slice_scatter");
  return out;
}

}  // namespace tenon::ops
