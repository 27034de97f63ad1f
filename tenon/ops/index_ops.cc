// Operators that read and write at positions: index, index_put_, gather, index_select, masks.
//
// General indexing turns its index tensors into one tensor of positions in the flattened `self`, checked
// before anything is read or written; reading, writing and the gradient are then one stub each.
#include <fmt/core.h>

#include <algorithm>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/indexing/bodies.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/view/bodies.h"
#include "tenon/iter/geometry.h"
#include "tenon/ops/device_stubs.h"
#include "tenon/ops/elements.h"
#include "tenon/ops/geometry.h"

namespace tenon::ops {
namespace {

size_t at(int64_t dim) { return static_cast<size_t>(dim); }

bool is_mask(const Tensor& t) { return t.dtype() == DType::Bool || t.dtype() == DType::UInt8; }

/// On the host, contiguous, int64.
Tensor host_positions(const Tensor& index) {
  Tensor host = make_empty(index.sizes(), DType::Int64);
  copy_elements(host, index, "index");
  return host;
}

/// Throws Error{Index} unless every position is within [-size, size).
void check_positions(const Tensor& index, int64_t size, int64_t dim, const char* op) {
  if (index.numel() == 0) return;
  const auto [low, high] = int_range_stub(index.device(), index);
  const int64_t wrong = high >= size ? high : low;
  TENON_CHECK(
      low >= -size && high < size, Index,
      fmt::format("{}: index {} is out of bounds for dimension {} with size {}", op, wrong, dim, size));
}

/// For each dimension of a tensor, the positions that index it, or nothing.
std::vector<Tensor> by_dimension(IntArrayRef sizes, TensorList indices, const char* op) {
  std::vector<Tensor> result;
  for (const Tensor& t : indices) {
    if (!t.defined()) {
      result.emplace_back();
    } else if (is_mask(t)) {
      const auto first = static_cast<int64_t>(result.size());
      for (int64_t d = 0; d < t.dim(); ++d) {
        const bool fits = at(first + d) < sizes.size() && sizes[at(first + d)] == t.sizes()[at(d)];
        TENON_CHECK(
            fits, Index,
            fmt::format(
                "{}: the shape of the mask {} at index {} does not match the shape of the indexed tensor {}",
                op, to_string(t.sizes()), d, to_string(sizes)));
      }
      const Tensor found = nonzero_stub(t.device(), t);
      if (t.dim() == 0) result.push_back(zeros_on({found.sizes()[0]}, found));
      for (int64_t d = 0; d < t.dim(); ++d) result.push_back(host_positions(ops::select(found, 1, d)));
    } else {
      TENON_CHECK(t.dtype() == DType::Int64 || t.dtype() == DType::Int32, Index,
                  fmt::format("{}: tensors used as indices must be int32, int64, uint8 or bool, got {}", op,
                              name(t.dtype())));
      result.push_back(host_positions(t));
    }
  }
  TENON_CHECK(result.size() <= sizes.size(), Index,
              fmt::format("{}: too many indices for tensor of dimension {} (got {})", op, sizes.size(),
                          result.size()));
  result.resize(sizes.size());
  for (size_t d = 0; d < result.size(); ++d) {
    if (result[d].defined()) check_positions(result[d], sizes[d], static_cast<int64_t>(d), op);
  }
  return result;
}

/// Adds offset[i] + j * step for j < size behind each of the given offsets.
void extend(std::vector<int64_t>& offsets, int64_t size, int64_t step) {
  std::vector<int64_t> longer;
  longer.reserve(offsets.size() * at(size));
  for (const int64_t o : offsets) {
    for (int64_t j = 0; j < size; ++j) longer.push_back(o + j * step);
  }
  offsets = std::move(longer);
}

/// The positions in the flattened tensor that `indices` name, in the shape of the result, on the tensor's
/// device.
Tensor linear_positions(IntArrayRef sizes, TensorList indices, Device device, const char* op) {
  const std::vector<Tensor> index = by_dimension(sizes, indices, op);
  const Dims strides = contiguous_strides(sizes);
  Dims shape;  // of the index tensors together
  size_t first = sizes.size(), last = 0, count = 0;
  for (size_t d = 0; d < index.size(); ++d) {
    if (!index[d].defined()) continue;
    shape = count == 0 ? index[d].sizes().to_dims() : broadcast_shapes(shape, index[d].sizes(), op);
    first = std::min(first, d);
    last = d;
    ++count;
  }
  // Index tensors side by side leave their dimensions in place; apart, they come first.
  const bool in_place = count > 0 && last - first + 1 == count;
  const size_t before = in_place ? first : 0;

  Dims result;
  for (size_t d = 0; d < before; ++d) result.push_back(sizes[d]);
  for (const int64_t s : shape) result.push_back(s);
  for (size_t d = before; d < sizes.size(); ++d) {
    if (!index[d].defined()) result.push_back(sizes[d]);
  }
  // Before the lists below, so that sizes that make no sense are told from those that memory lacks.
  Tensor positions = make_empty(result, DType::Int64);
  if (positions.numel() == 0) return device.is_cpu() ? positions : make_empty(result, DType::Int64, device);

  std::vector<int64_t> named(at(checked_numel(shape, op)), 0);
  for (size_t d = 0; d < index.size(); ++d) {
    if (!index[d].defined()) continue;
    const Tensor wide = contiguous_copy(ops::expand(index[d], shape, false));
    const auto* p = static_cast<const int64_t*>(wide.data_ptr());
    for (size_t i = 0; i < named.size(); ++i) named[i] += (p[i] < 0 ? p[i] + sizes[d] : p[i]) * strides[d];
  }
  std::vector<int64_t> offsets{0};
  for (size_t d = 0; d < before; ++d) extend(offsets, sizes[d], strides[d]);
  std::vector<int64_t> both;
  both.reserve(offsets.size() * named.size());
  for (const int64_t o : offsets) {
    for (const int64_t n : named) both.push_back(o + n);
  }
  offsets = std::move(both);
  for (size_t d = before; d < sizes.size(); ++d) {
    if (!index[d].defined()) extend(offsets, sizes[d], strides[d]);
  }
  std::copy(offsets.begin(), offsets.end(), static_cast<int64_t*>(positions.data_ptr()));
  if (device.is_cpu()) return positions;
  Tensor there = make_empty(result, DType::Int64, device);
  copy_elements(there, positions, op);
  return there;
}

Tensor take(const Tensor& self, const Tensor& positions) {
  Tensor out = make_empty(positions.sizes(), self.dtype(), self.device());
  if (out.numel() > 0 && !out.is_meta()) take_stub(self.device(), self, positions, out);
  return out;
}

Tensor put_into_zeros(const Tensor& values, IntArrayRef sizes, const Tensor& positions, const char* op) {
  TENON_CHECK(values.sizes() == positions.sizes(), Shape,
              fmt::format("{}: the gradient has shape {}, expected {} as the indices select", op,
                          to_string(values.sizes()), to_string(positions.sizes())));
  Tensor result = zeros_on(sizes, values);
  if (values.numel() > 0 && !values.is_meta()) put_stub(values.device(), result, positions, values, true);
  return result;
}

/// Checked positions of gather: index[i, j] along `dim`, the place's own coordinates along the others.
Tensor gather_positions(IntArrayRef sizes, int64_t dim, const Tensor& index) {
  const auto ndim = static_cast<int64_t>(sizes.size());
  const int64_t d = wrap_dim(dim, ndim, "gather");
  TENON_CHECK(index.dtype() == DType::Int64, Type,
              fmt::format("gather: expected dtype int64 for index, got {}", name(index.dtype())));
  TENON_CHECK(std::max<int64_t>(index.dim(), 1) == std::max<int64_t>(ndim, 1), Shape,
              fmt::format("gather: `index` {} must have the same number of dimensions as `self` {}",
                          to_string(index.sizes()), to_string(sizes)));
  for (int64_t i = 0; i < index.dim() && ndim > 0; ++i) {
    TENON_CHECK(
        i == d || index.sizes()[at(i)] <= sizes[at(i)], Shape,
        fmt::format(
            "gather: size does not match at dimension {}, expected `index` {} to be no larger than `self` {} "
            "apart from dimension {}",
            i, to_string(index.sizes()), to_string(sizes), d));
  }
  const int64_t size = ndim > 0 ? sizes[at(d)] : 1;
  const Tensor host = host_positions(index);
  const Dims strides = contiguous_strides(sizes);
  auto* p = static_cast<int64_t*>(host.data_ptr());
  for (int64_t i = 0; i < host.numel(); ++i) {
    TENON_CHECK(
        p[i] >= 0 && p[i] < size, Index,
        fmt::format("gather: index {} is out of bounds for dimension {} with size {}", p[i], d, size));
  }
  for (int64_t i = 0; ndim > 0 && i < host.numel(); ++i) {
    int64_t rest = i, offset = p[i] * strides[at(d)];
    for (int64_t k = index.dim(); k-- > 0;) {
      if (k != d) offset += rest % index.sizes()[at(k)] * strides[at(k)];
      rest /= index.sizes()[at(k)];
    }
    p[i] = offset;
  }
  return host;
}

/// An index of index_select and its kin, checked and counted from the front: contiguous int64 on its device.
Tensor slice_positions(IntArrayRef sizes, int64_t dim, const Tensor& index, const char* op) {
  TENON_CHECK(index.dim() <= 1, Index,
              fmt::format("{}: `index` must be a vector or 0-dim, got {}", op, to_string(index.sizes())));
  TENON_CHECK(index.dtype() == DType::Int64 || index.dtype() == DType::Int32, Type,
              fmt::format("{}: expected dtype int32 or int64 for index, got {}", op, name(index.dtype())));
  const Tensor positions = as_contiguous(as_dtype(index, DType::Int64));
  if (positions.is_meta() || positions.numel() == 0) return positions;
  const int64_t size = sizes.empty() ? 1 : sizes[at(dim)];
  const auto [low, high] = int_range_stub(positions.device(), positions);
  TENON_CHECK(low >= 0 && high < size, Index,
              fmt::format("{}: index {} is out of range for dimension {} with size {}", op,
                          low < 0 ? low : high, dim, size));
  return positions;
}

/// Throws Error{Device}: kernels read both where they lie.
void check_same_device(const Tensor& self, const Tensor& other, const char* argument, const char* op) {
  TENON_CHECK(self.device() == other.device(), Device,
              fmt::format("{}: `{}` is on {}, expected {} as `self`; move one with .to()", op, argument,
                          to_string(other.device()), to_string(self.device())));
}

/// A 0-dim tensor as one of a single element.
Tensor at_least_1d(const Tensor& t) { return t.dim() == 0 ? make_view(t, {1}, {1}, t.storage_offset()) : t; }

}  // namespace

Tensor index(const Tensor& self, TensorList indices) {
  return take(self, linear_positions(self.sizes(), indices, self.device(), "index"));
}

Tensor index_backward(const Tensor& grad, IntArrayRef sizes, TensorList indices) {
  checked_numel(sizes, "index_backward");
  return put_into_zeros(grad, sizes, linear_positions(sizes, indices, grad.device(), "index"),
                        "index_backward");
}

Tensor& index_put_(Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  TENON_CHECK(self.dtype() == values.dtype(), Type,
              fmt::format("index_put_: `values` is {}, expected {} as `self`", name(values.dtype()),
                          name(self.dtype())));
  check_no_internal_overlap(self, "index_put_");
  const Tensor positions = linear_positions(self.sizes(), indices, self.device(), "index_put_");
  Tensor wide = make_empty(positions.sizes(), values.dtype(), values.device());
  copy_elements(wide, values, "index_put_");
  if (wide.numel() > 0 && !wide.is_meta()) put_stub(self.device(), self, positions, wide, accumulate);
  return self;
}

Tensor index_put_self_backward(const Tensor& grad, TensorList indices, bool accumulate) {
  if (accumulate) return grad;
  Tensor result = contiguous_copy(grad);
  Tensor zero = zeros_on({}, grad);
  return ops::index_put_(result, indices, zero, false);
}

Tensor gather(const Tensor& self, int64_t dim, const Tensor& index, bool sparse_grad) {
  TENON_CHECK(!sparse_grad, NotImplemented, "gather: sparse_grad is not supported");
  return take(self, gather_positions(self.sizes(), dim, index));
}

Tensor gather_backward(const Tensor& grad, IntArrayRef sizes, int64_t dim, const Tensor& index) {
  checked_numel(sizes, "gather_backward");
  return put_into_zeros(grad, sizes, gather_positions(sizes, dim, index), "gather_backward");
}

Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  const int64_t d = wrap_dim(dim, self.dim(), "index_select");
  check_same_device(self, index, "index", "index_select");
  const Tensor positions = slice_positions(self.sizes(), d, index, "index_select");
  Dims sizes = self.sizes().to_dims();
  if (self.dim() > 0) sizes[at(d)] = positions.numel();
  TENON_CHECK(self.dim() > 0 || positions.numel() == 1, Index,
              "index_select: a 0-dim `self` takes exactly one index");
  Tensor out = make_empty(sizes, self.dtype(), self.device());
  if (out.numel() == 0 || out.is_meta()) return out;
  if (self.dim() == 0)
    copy_elements(out, self, "index_select");
  else
    index_select_stub(self.device(), self, d, positions, out);
  return out;
}

Tensor& index_add_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                   const Scalar& alpha) {
  const int64_t d = wrap_dim(dim, self.dim(), "index_add_");
  TENON_CHECK(self.dtype() == source.dtype(), Type,
              fmt::format("index_add_: `source` is {}, expected {} as `self`", name(source.dtype()),
                          name(self.dtype())));
  check_same_device(self, index, "index", "index_add_");
  check_same_device(self, source, "source", "index_add_");
  check_no_internal_overlap(self, "index_add_");
  const Tensor positions = slice_positions(self.sizes(), d, index, "index_add_");
  Tensor to = at_least_1d(self);
  Dims expected = to.sizes().to_dims();
  expected[at(d)] = positions.numel();
  const Tensor from = at_least_1d(source);
  TENON_CHECK(from.sizes() == IntArrayRef(expected), Shape,
              fmt::format("index_add_: expected `source` of shape {}, got {}", to_string(expected),
                          to_string(source.sizes())));
  if (from.numel() == 0 || from.is_meta()) return self;
  index_add_stub(self.device(), to, d, positions,
                 from.storage() == to.storage() ? contiguous_copy(from) : from, alpha);
  return self;
}

Tensor index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                 const Scalar& alpha) {
  Tensor result = contiguous_copy(self);
  return ops::index_add_(result, dim, index, source, alpha);
}

Tensor index_select_backward(const Tensor& grad, IntArrayRef self_sizes, int64_t dim, const Tensor& index) {
  Tensor result = zeros_on(self_sizes, grad);
  return ops::index_add_(result, dim, at_least_1d(index), self_sizes.empty() ? at_least_1d(grad) : grad, 1);
}

Tensor nonzero(const Tensor& self) {
  TENON_CHECK(!self.is_meta(), NotImplemented,
              "nonzero: the shape of the result depends on the data, which a meta tensor lacks");
  return nonzero_stub(self.device(), self);
}

std::vector<Tensor> nonzero_numpy(const Tensor& self) {
  return tenon::nonzero(self.dim() == 0 ? self.unsqueeze(0) : self).unbind(1);
}

Tensor masked_fill(const Tensor& self, const Tensor& mask, const Scalar& value) {
  TENON_CHECK(mask.dtype() == DType::Bool, Type,
              fmt::format("masked_fill: `mask` must be bool, got {}", name(mask.dtype())));
  TENON_CHECK(
      !is_integral(self.dtype(), true) || value.is_integral(), Type,
      fmt::format("masked_fill: a floating point value cannot fill `self` of {}", name(self.dtype())));
  TENON_CHECK(!value.is_complex() || self.is_complex(), Type,
              fmt::format("masked_fill: a complex value cannot fill `self` of {}", name(self.dtype())));
  return tenon::where(mask, value, self).to(self.dtype());
}

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  TENON_CHECK(mask.dtype() == DType::Bool, Type,
              fmt::format("masked_select: `mask` must be bool, got {}", name(mask.dtype())));
  const Dims sizes = broadcast_shapes(self.sizes(), mask.sizes(), "masked_select");
  const Tensor flat_mask = mask.expand(sizes).reshape({-1});
  const Tensor list[] = {flat_mask};
  return tenon::index(self.expand(sizes).reshape({-1}), list);
}

}  // namespace tenon::ops
