// Views made of other views, and reshape, which copies where no view will do.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tenon/core/copy_report.h"
#include "tenon/generated/view/bodies.h"
#include "tenon/generated/view/functions.h"
#include "tenon/iter/geometry.h"
#include "tenon/ops/view/split.h"

namespace tenon::ops {
namespace {

int64_t size_at(const Tensor& self, int64_t dim, const char* op) {
  TENON_CHECK(self.dim() > 0, Index, fmt::format("{}: expects at least a 1-dimensional tensor", op));
  return self.sizes()[at(wrap_dim(dim, self.dim(), op))];
}

}  // namespace

Tensor reshape(const Tensor& self, IntArrayRef shape) {
  const Dims sizes = infer_size(shape, self.numel(), "reshape");
  if (view_strides(self.sizes(), self.strides(), sizes)) return self.view(sizes);
  report_copy("reshape", "self", "its strides cannot show the new shape", self.nbytes());
  return tenon::_unsafe_view(self.clone(MemoryFormat::Contiguous), sizes);
}

Tensor numpy_T(const Tensor& self) {
  Dims dims(at(self.dim()));
  std::iota(dims.begin(), dims.end(), 0);
  std::reverse(dims.begin(), dims.end());
  return self.permute(dims);
}

Tensor mT(const Tensor& self) {
  TENON_CHECK(self.dim() >= 2, Shape,
              fmt::format("mT: expects a tensor of at least 2 dimensions, got {}", self.dim()));
  return self.transpose(-2, -1);
}

Tensor movedim(const Tensor& self, IntArrayRef source, IntArrayRef destination) {
  TENON_CHECK(source.size() == destination.size(), Value,
              fmt::format("movedim: `source` {} and `destination` {} must have as many dimensions",
                          to_string(source), to_string(destination)));
  const Dims from = wrap_dims(source, self.dim(), "movedim"),
             to = wrap_dims(destination, self.dim(), "movedim");
  if (self.dim() == 0) return tenon::alias(self);
  Dims order(at(self.dim()), -1);
  std::vector<bool> moved(at(self.dim()));
  for (size_t i = 0; i < from.size(); ++i) {
    order[at(to[i])] = from[i];
    moved[at(from[i])] = true;
  }
  size_t next = 0;
  for (int64_t& d : order) {
    if (d >= 0) continue;
    while (moved[next]) ++next;
    d = static_cast<int64_t>(next++);
  }
  return self.permute(order);
}

Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  const int64_t first = wrap_dim(start_dim, self.dim(), "flatten"),
                last = wrap_dim(end_dim, self.dim(), "flatten");
  TENON_CHECK(first <= last, Value, "flatten: start_dim cannot come after end_dim");
  if (self.dim() == 0) return self.reshape({1});
  if (first == last) return self;
  Dims sizes;
  int64_t merged = 1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d < first || d > last) {
      sizes.push_back(self.sizes()[at(d)]);
    } else {
      merged *= self.sizes()[at(d)];
      if (d == last) sizes.push_back(merged);
    }
  }
  return self.reshape(sizes);
}

Tensor unflatten(const Tensor& self, int64_t dim, IntArrayRef sizes) {
  const int64_t d = wrap_dim(dim, self.dim(), "unflatten");
  TENON_CHECK(!sizes.empty(), Value, "unflatten: sizes must be non-empty");
  const Dims inner = infer_size(sizes, size_at(self, d, "unflatten"), "unflatten");
  Dims shape(self.sizes().data(), at(d));
  for (const int64_t s : inner) shape.push_back(s);
  for (int64_t i = d + 1; i < self.dim(); ++i) shape.push_back(self.sizes()[at(i)]);
  return self.view(shape);
}

Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  TENON_CHECK(self.dim() > 0, Index, "narrow: cannot be applied to a 0-dim tensor");
  const int64_t size = size_at(self, dim, "narrow");
  TENON_CHECK(length >= 0, Value, fmt::format("narrow: length must be non-negative, got {}", length));
  TENON_CHECK(start >= -size && start <= size, Index,
              fmt::format("narrow: start out of range (expected to be in range of [{}, {}], but got {})",
                          -size, size, start));
  const int64_t first = start < 0 ? start + size : start;
  TENON_CHECK(
      length <= size - first, Value,
      fmt::format("narrow: start ({}) + length ({}) exceeds dimension size ({})", first, length, size));
  return self.slice(dim, first, first + length, 1);
}

std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  TENON_CHECK(chunks > 0, Value, fmt::format("chunk: expects `chunks` to be greater than 0, got {}", chunks));
  const int64_t size = size_at(self, dim, "chunk");
  const int64_t each = size / chunks + (size % chunks != 0);
  if (each == 0) {
    check_view_count(chunks, "chunk");
    std::vector<Tensor> parts;
    for (int64_t i = 0; i < chunks; ++i) parts.push_back(self.narrow(dim, 0, 0));
    return parts;
  }
  return tenon::split(self, each, dim);
}

}  // namespace tenon::ops
