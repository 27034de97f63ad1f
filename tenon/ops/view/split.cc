#include "tenon/ops/view/split.h"

#include <fmt/core.h>

#include <algorithm>

#include "tenon/generated/view/bodies.h"
#include "tenon/iter/geometry.h"

// split and unbind make all their views at once, so that these have one node, and so that autograd can refuse
// to write through them.
namespace tenon::ops {
namespace {

int64_t split_dim(const Tensor& self, int64_t dim, const char* op) {
  TENON_CHECK(self.dim() > 0, Index, fmt::format("{}: expects at least a 1-dimensional tensor", op));
  return wrap_dim(dim, self.dim(), op);
}

/// Elements [start, start + length) along `dim`.
Tensor part(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  return ops::slice(self, dim, start, start + length, 1);
}

}  // namespace

void check_view_count(int64_t count, const char* op) {
  constexpr int64_t kMaxViews = int64_t{1} << 28;
  TENON_CHECK(count <= kMaxViews, Value,
              fmt::format("{}: {} views are more than the {} that a call may return", op, count, kMaxViews));
}

std::vector<Tensor> unbind(const Tensor& self, int64_t dim) {
  const int64_t d = split_dim(self, dim, "unbind"), size = self.sizes()[at(d)];
  check_view_count(size, "unbind");
  std::vector<Tensor> parts;
  parts.reserve(at(size));
  for (int64_t i = 0; i < size; ++i) parts.push_back(ops::select(self, d, i));
  return parts;
}

std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim) {
  const int64_t d = split_dim(self, dim, "split"), size = self.sizes()[at(d)];
  TENON_CHECK(split_size >= 0, Value,
              fmt::format("split: expects split_size be non-negative, got {}", split_size));
  TENON_CHECK(
      split_size > 0 || size == 0, Value,
      fmt::format("split: split_size can only be 0 if dimension size is 0, but got dimension size of {}",
                  size));
  if (split_size > 0) check_view_count(size / split_size, "split");
  std::vector<Tensor> parts;
  int64_t start = 0;
  do {
    const int64_t length = std::min(split_size, size - start);
    parts.push_back(part(self, d, start, length));
    start += length;
  } while (start < size);
  return parts;
}

std::vector<Tensor> split_with_sizes(const Tensor& self, IntArrayRef split_sizes, int64_t dim) {
  const int64_t d = split_dim(self, dim, "split_with_sizes"), size = self.sizes()[at(d)];
  int64_t total = 0;
  bool fits = true;
  for (const int64_t length : split_sizes)
    fits = fits && length >= 0 && !__builtin_add_overflow(total, length, &total);
  TENON_CHECK(
      fits && total == size, Value,
      fmt::format(
          "split_with_sizes: expects split_sizes to be non-negative and to sum exactly to {} (the size "
          "at dimension {}), but got split_sizes={}",
          size, d, to_string(split_sizes)));
  std::vector<Tensor> parts;
  parts.reserve(split_sizes.size());
  int64_t start = 0;
  for (const int64_t length : split_sizes) {
    parts.push_back(part(self, d, start, length));
    start += length;
  }
  return parts;
}

}  // namespace tenon::ops
