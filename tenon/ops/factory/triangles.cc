// Triangles of matrices: tril, triu, and the places of their elements.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/factory/bodies.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/factory/filled.h"
#include "tenon/ops/factory/from_data.h"

namespace tenon::ops {
namespace {

/// column - row of each place of the matrices.
Tensor distance(const Tensor& self, const char* op) {
  TENON_CHECK(self.dim() >= 2, Shape,
              fmt::format("{}: expects a tensor of at least 2 dimensions, got {}", op, self.dim()));
  const TensorOptions options = TensorOptions().dtype(DType::Int64).device(self.device());
  const Tensor rows = tenon::arange(self.size(-2), options), columns = tenon::arange(self.size(-1), options);
  return tenon::sub(columns, rows.unsqueeze(1));
}

/// The first column and the one after the last, for each row that has any of the triangle; `low`: the lower
/// one.
template <class F>
void for_each_row(bool low, int64_t row, int64_t col, int64_t offset, F&& f) {
  using Wide = __int128;
  const auto begin = static_cast<int64_t>(low ? std::clamp<Wide>(-Wide(offset), 0, row) : 0);
  const auto end = static_cast<int64_t>(low ? row : std::clamp<Wide>(Wide(col) - offset, 0, row));
  for (int64_t i = begin; i < end; ++i) {
    const Wide edge = Wide(i) + offset;
    if (low) {
      f(i, 0, static_cast<int64_t>(std::min<Wide>(edge + 1, col)));
    } else {
      f(i, static_cast<int64_t>(std::max<Wide>(edge, 0)), col);
    }
  }
}

int64_t count(bool low, int64_t row, int64_t col, int64_t offset, const char* op) {
  using Wide = __int128;
  TENON_CHECK(row >= 0 && col >= 0, Value,
              fmt::format("{}: row and col must be non-negative, got {} and {}", op, row, col));
  // Those on diagonal k and below: row i has i + k + 1 of them, from the first that has any to the first that
  // has all.
  const auto below = [&](Wide k) {
    const Wide first = std::clamp<Wide>(-k, 0, row);
    const Wide full = std::clamp<Wide>(col - 1 - k, first, row);
    return (full - first) * (first + full + 2 * k + 1) / 2 + (row - full) * col;
  };
  const Wide places = low ? below(offset) : Wide(row) * col - below(Wide(offset) - 1);
  TENON_CHECK(places <= std::numeric_limits<int64_t>::max(), Shape,
              fmt::format("{}: the places are more than int64 can count", op));
  return static_cast<int64_t>(places);
}

}  // namespace

Tensor tril(const Tensor& self, int64_t diagonal) {
  return tenon::masked_fill(self, tenon::gt(distance(self, "tril"), diagonal), 0);
}
Tensor triu(const Tensor& self, int64_t diagonal) {
  return tenon::masked_fill(self, tenon::lt(distance(self, "triu"), diagonal), 0);
}

void fill_indices(bool low, int64_t row, int64_t col, int64_t offset, Tensor& out, const char* op) {
  std::vector<int64_t> rows, columns;
  if (col > 0) {
    for_each_row(low, row, col, offset, [&](int64_t i, int64_t first, int64_t last) {
      for (int64_t j = first; j < last; ++j) {
        rows.push_back(i);
        columns.push_back(j);
      }
    });
  }
  rows.insert(rows.end(), columns.begin(), columns.end());
  const int64_t n = static_cast<int64_t>(columns.size());
  const Tensor places = from_blob(rows.data(), {2, n}, TensorOptions().dtype(DType::Int64));
  copy_elements(out, places, op);
}

int64_t triangle_places(bool low, int64_t row, int64_t col, int64_t offset) {
  return count(low, row, col, offset, low ? "tril_indices" : "triu_indices");
}

}  // namespace tenon::ops
