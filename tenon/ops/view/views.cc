// Operators that return a view of the same storage with other sizes, strides or offset.
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "tenon/core/thread_state.h"
#include "tenon/generated/view/bodies.h"
#include "tenon/iter/geometry.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::ops {
namespace {

/// `self` with dimension `dim` taken out or its geometry replaced starts from these copies.
struct StridedView {
  Dims sizes, strides;
  int64_t offset;
  explicit StridedView(const Tensor& t)
      : sizes(t.sizes().to_dims()), strides(t.strides().to_dims()), offset(t.storage_offset()) {}
  void erase(int64_t dim) {
    sizes.erase(at(dim));
    strides.erase(at(dim));
  }
  /// Without elements a place is no place, but `resize_` begins there: not before the storage.
  Tensor view(const Tensor& self) const {
    return make_view(self, sizes, strides, std::max<int64_t>(offset, 0));
  }
};

}  // namespace

Tensor alias(const Tensor& self) { return StridedView(self).view(self); }

Tensor detach(const Tensor& self) {
  // No base: whatever history `self` has or gets later, this tensor has none.
  return Tensor(self.checked_impl().alias(nullptr));
}

Tensor view(const Tensor& self, IntArrayRef size) {
  const Dims sizes = infer_size(size, self.numel(), "view");
  const auto strides = view_strides(self.sizes(), self.strides(), sizes);
  TENON_CHECK(
      strides, Shape,
      fmt::format("view: size {} is not compatible with input tensor's size {} and stride {} (at least one "
                  "dimension spans across two contiguous subspaces). Use .reshape(...) instead",
                  to_string(sizes), to_string(self.sizes()), to_string(self.strides())));
  return make_view(self, sizes, *strides, self.storage_offset());
}

Tensor _reshape_alias(const Tensor& self, IntArrayRef size, IntArrayRef stride) {
  const int64_t numel = checked_numel(size, "_reshape_alias");
  std::optional<Dims> strides;
  if (numel == self.numel()) strides = view_strides(self.sizes(), self.strides(), size);
  bool same = strides && size.size() == stride.size();
  for (size_t d = 0; same && numel > 0 && d < size.size(); ++d)
    same = size[d] == 1 || stride[d] == (*strides)[d];
  TENON_CHECK(
      same, Shape,
      fmt::format("_reshape_alias: sizes {} with strides {} are no view of sizes {} with strides {}; "
                  "use as_strided for other elements",
                  to_string(size), to_string(stride), to_string(self.sizes()), to_string(self.strides())));
  return make_view(self, size, stride, self.storage_offset());
}

Tensor _unsafe_view(const Tensor& self, IntArrayRef size) {
  Tensor result = ops::view(self, size);
  result.impl()->set_base(nullptr);
  return result;
}

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  const int64_t a = wrap_dim(dim0, self.dim(), "transpose"), b = wrap_dim(dim1, self.dim(), "transpose");
  Tensor view = make_view(self, self.sizes(), self.strides(), self.storage_offset());
  if (a != b) view.impl()->swap_dims(at(a), at(b));
  return view;
}

Tensor t(const Tensor& self) {
  TENON_CHECK(self.dim() <= 2, Shape,
              fmt::format("t: expects a tensor with <= 2 dimensions, but self is {}D", self.dim()));
  return self.dim() < 2 ? ops::alias(self) : ops::transpose(self, 0, 1);
}

Tensor permute(const Tensor& self, IntArrayRef dims) {
  TENON_CHECK(
      static_cast<int64_t>(dims.size()) == self.dim(), Shape,
      fmt::format("permute: the number of dimensions in the tensor input does not match the length of the "
                  "desired ordering of dimensions, input.dim() = {} is not equal to len(dims) = {}",
                  self.dim(), dims.size()));
  const Dims order = wrap_dims(dims, self.dim(), "permute");
  StridedView g(self);
  for (size_t d = 0; d < order.size(); ++d) {
    g.sizes[d] = self.sizes()[at(order[d])];
    g.strides[d] = self.strides()[at(order[d])];
  }
  return g.view(self);
}

Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  TENON_CHECK(self.dim() > 0, Index, "select: cannot be applied to a 0-dim tensor");
  const int64_t d = wrap_dim(dim, self.dim(), "select");
  const int64_t size = self.sizes()[at(d)];
  TENON_CHECK(index >= -size && index < size, Index,
              fmt::format("select: index {} out of range for tensor of size {} at dimension {}", index,
                          to_string(self.sizes()), d));
  StridedView g(self);
  g.offset += (index < 0 ? index + size : index) * g.strides[at(d)];
  g.erase(d);
  return g.view(self);
}

namespace {

/// A stride times a step; the stride alone where that is more bytes than memory has, as it is in dimensions
/// of one element, where strides do not count.
int64_t stepped(int64_t stride, int64_t step) {
  int64_t result = 0, bytes = 0;
  return __builtin_mul_overflow(stride, step, &result) || __builtin_mul_overflow(result, 64, &bytes) ? stride
                                                                                                     : result;
}

}  // namespace

Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
             int64_t step) {
  TENON_CHECK(self.dim() > 0, Index, "slice: cannot be applied to a 0-dim tensor");
  const auto d = at(wrap_dim(dim, self.dim(), "slice"));
  StridedView g(self);
  const SliceRange range = slice_range(g.sizes[d], start, end, step, "slice");
  int64_t stride = 0;
  if (range.length > 1)
    stride = g.strides[d] * step;
  else if (step == 1)
    stride = g.strides[d];
  else
    stride = stepped(g.strides[d], step);
  g.offset += range.start * g.strides[d];
  g.sizes[d] = range.length;
  g.strides[d] = stride;
  return g.view(self);
}

Tensor flip(const Tensor& self, IntArrayRef dims) {
  StridedView g(self);
  for (const int64_t dim : wrap_dims(dims, self.dim(), "flip")) {
    if (g.sizes.empty()) break;
    const auto d = at(dim);
    if (g.sizes[d] > 0) g.offset += (g.sizes[d] - 1) * g.strides[d];
    g.strides[d] = -g.strides[d];
  }
  return g.view(self);
}

Tensor expand(const Tensor& self, IntArrayRef size, bool implicit) {
  const size_t added = size.size() - static_cast<size_t>(self.dim());
  TENON_CHECK(
      size.size() >= static_cast<size_t>(self.dim()), Shape,
      fmt::format("expand: the number of sizes provided ({}) must be greater or equal to the number of "
                  "dimensions in the tensor ({})",
                  size.size(), self.dim()));
  Dims sizes = size.to_dims(), strides(size.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    if (d < added) {
      TENON_CHECK(
          sizes[d] >= 0, Shape,
          fmt::format("expand: the expanded size {} isn't allowed in a leading, non-existing dimension {}",
                      sizes[d], d));
      // As if the new dimension were in front of what follows, so that one of size 1 keeps a tensor
      // contiguous.
      strides[d] = sizes[d] == 1 && d + 1 < sizes.size() ? sizes[d + 1] * strides[d + 1]
                   : sizes[d] == 1                       ? 1
                                                         : 0;
      continue;
    }
    const int64_t own = self.sizes()[d - added];
    if (sizes[d] == -1) sizes[d] = own;
    TENON_CHECK(
        sizes[d] == own || (own == 1 && sizes[d] >= 0), Shape,
        fmt::format("expand: the expanded size of the tensor ({}) must match the existing size ({}) at "
                    "non-singleton dimension {}. Target sizes: {}. Tensor sizes: {}",
                    sizes[d], own, d, to_string(size), to_string(self.sizes())));
    strides[d] = own == sizes[d] ? self.strides()[d - added] : 0;
  }
  checked_numel(sizes, "expand");
  return make_view(self, sizes, strides, self.storage_offset());
}

Tensor as_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                  std::optional<int64_t> storage_offset) {
  TENON_CHECK(size.size() == stride.size(), Shape,
              fmt::format("as_strided: mismatch in length of strides and shape: {} and {}", to_string(size),
                          to_string(stride)));
  checked_numel(size, "as_strided");
  const int64_t offset = storage_offset.value_or(self.storage_offset());
  const Extent e = extent(size, stride, "as_strided");
  const auto held = static_cast<int64_t>(self.storage().nbytes() / self.itemsize());
  TENON_CHECK(offset >= 0, Value,
              fmt::format("as_strided: storage_offset must not be negative, got {}", offset));
  const bool empty = e.high == e.low;
  TENON_CHECK(
      empty || (offset + e.low >= 0 && e.high <= held && offset <= held - e.high), Shape,
      fmt::format(
          "as_strided: sizes {}, strides {}, storage offset {} reach outside the storage of {} elements",
          to_string(size), to_string(stride), offset, held));
  return make_view(self, size, stride, offset);
}

Tensor unsqueeze(const Tensor& self, int64_t dim) {
  const int64_t d = wrap_dim(dim, self.dim() + 1, "unsqueeze");
  StridedView g(self);
  const int64_t stride = d < self.dim() ? g.sizes[at(d)] * g.strides[at(d)] : 1;
  g.sizes.insert(at(d), 1);
  g.strides.insert(at(d), stride);
  return g.view(self);
}

Tensor squeeze(const Tensor& self) {
  StridedView g(self);
  for (int64_t d = self.dim(); d-- > 0;) {
    if (g.sizes[at(d)] == 1) g.erase(d);
  }
  return g.view(self);
}

Tensor squeeze_dim(const Tensor& self, int64_t dim) {
  const int64_t d = wrap_dim(dim, self.dim(), "squeeze");
  StridedView g(self);
  if (self.dim() > 0 && g.sizes[at(d)] == 1) g.erase(d);
  return g.view(self);
}

Tensor squeeze_dims(const Tensor& self, IntArrayRef dim) {
  Dims dims = wrap_dims(dim, self.dim(), "squeeze");
  std::sort(dims.begin(), dims.end());
  StridedView g(self);
  for (size_t i = dims.size(); i-- > 0;) {
    if (self.dim() > 0 && g.sizes[at(dims[i])] == 1) g.erase(dims[i]);
  }
  return g.view(self);
}

Tensor diagonal(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t a = wrap_dim(dim1, self.dim(), "diagonal"), b = wrap_dim(dim2, self.dim(), "diagonal");
  TENON_CHECK(a != b, Value, fmt::format("diagonal: dimensions cannot be identical {}, {}", dim1, dim2));
  offset = std::max(offset, -std::numeric_limits<int64_t>::max());  // so that it has a negation
  StridedView g(self);
  const int64_t length = diagonal_length(g.sizes[at(a)], g.sizes[at(b)], offset);
  if (length > 0) g.offset += offset >= 0 ? offset * g.strides[at(b)] : -offset * g.strides[at(a)];
  // Unsigned: the strides of no elements are any numbers.
  const auto stride =
      static_cast<int64_t>(static_cast<uint64_t>(g.strides[at(a)]) + static_cast<uint64_t>(g.strides[at(b)]));
  g.erase(std::max(a, b));
  g.erase(std::min(a, b));
  g.sizes.push_back(length);
  g.strides.push_back(stride);
  return g.view(self);
}

Tensor unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  StridedView g(self);
  g.sizes = unfolded_sizes(self.sizes(), dimension, size, step);
  if (self.dim() == 0) {
    g.strides.push_back(1);
  } else {
    const auto d = at(wrap_dim(dimension, self.dim(), "unfold"));
    const int64_t stride = g.strides[d];
    g.strides[d] = stepped(stride, step);
    g.strides.push_back(stride);
  }
  return g.view(self);
}

Tensor view_dtype(const Tensor& self, DType dtype) {
  const int64_t have = static_cast<int64_t>(item_size(self.dtype())),
                want = static_cast<int64_t>(item_size(dtype));
  if (have == want) return retyped_view(self, dtype, self.sizes(), self.strides(), self.storage_offset());
  TENON_CHECK(self.dim() > 0, Shape,
              fmt::format("view: a 0-dim tensor cannot be viewed as {}, whose size differs from that of {}",
                          name(dtype), name(self.dtype())));
  TENON_CHECK(self.strides().back() == 1 || self.sizes().back() == 1, Shape,
              fmt::format("view: to view {} as {}, the last dimension must have stride 1, got strides {}",
                          name(self.dtype()), name(dtype), to_string(self.strides())));
  Dims sizes = self.sizes().to_dims(), strides = self.strides().to_dims();
  strides.back() = 1;
  if (have > want) {
    const int64_t parts = have / want;
    for (size_t d = 0; d + 1 < strides.size(); ++d) {
      TENON_CHECK(!__builtin_mul_overflow(strides[d], parts, &strides[d]), Shape, "view: strides overflow");
    }
    TENON_CHECK(!__builtin_mul_overflow(sizes.back(), parts, &sizes.back()), Shape, "view: sizes overflow");
    return retyped_view(self, dtype, sizes, strides, self.storage_offset() * parts);
  }
  const int64_t parts = want / have;
  TENON_CHECK(sizes.back() % parts == 0 && self.storage_offset() % parts == 0, Shape,
              fmt::format("view: to view {} as {}, the last size and the storage offset must be multiples of "
                          "{}, got {} and {}",
                          name(self.dtype()), name(dtype), parts, sizes.back(), self.storage_offset()));
  sizes.back() /= parts;
  for (size_t d = 0; d + 1 < strides.size(); ++d) {
    TENON_CHECK(
        strides[d] % parts == 0 || sizes[d] <= 1, Shape,
        fmt::format("view: to view {} as {}, strides apart from the last must be multiples of {}, got {}",
                    name(self.dtype()), name(dtype), parts, to_string(self.strides())));
    strides[d] /= parts;
  }
  return retyped_view(self, dtype, sizes, strides, self.storage_offset() / parts);
}

}  // namespace tenon::ops
