// Operators that read and write at positions: index, index_put_, gather, index_select, masks.
//
// General indexing turns its index tensors into one tensor of positions in the flattened `self`, checked
// before anything is read or written; reading, writing and the gradient are then one stub each. Shapes are
// computed and checked in shapes.cc.
#include <fmt/core.h>

#include <algorithm>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/indexing/bodies.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/view/bodies.h"
#include "tenon/iter/result_shape.h"
#include "tenon/ops/copy/elements.h"
#include "tenon/ops/device_stubs.h"
#include "tenon/ops/forms/structured.h"
#include "tenon/ops/indexing/selection.h"
#include "tenon/ops/view/geometry.h"

namespace tenon::ops {
namespace {

using detail::Headers;

/// On the host, contiguous, int64.
Tensor host_positions(const Tensor& index) {
  Tensor host = make_empty(index.sizes(), DType::Int64);
  copy_elements(host, index, "index");
  return host;
}

/// `host`, where kernels of `device` read it.
Tensor on_device(Tensor host, Device device) {
  if (device.is_cpu()) return host;
  Tensor there = make_empty(host.sizes(), host.dtype(), device);
  copy_elements(there, host, "index");
  return there;
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

/// For each dimension of a tensor, the checked positions that index it, or nothing. A mask becomes the
/// positions where it is true. Index tensors of meta have none to check.
std::vector<Tensor> by_dimension(IntArrayRef sizes, TensorList indices, Device device, const char* op) {
  check_indices(sizes, Headers(indices), op);
  std::vector<Tensor> result;
  for (const Tensor& t : indices) {
    if (!t.defined()) {
      result.emplace_back();
    } else if (is_mask(t)) {
      TENON_CHECK(
          !t.is_meta(), NotImplemented,
          fmt::format("{}: how many elements a mask selects depends on its values, which a meta tensor lacks",
                      op));
      const Tensor found = nonzero_stub(t.device(), t);
      if (t.dim() == 0) result.push_back(zeros_on({found.sizes()[0]}, found));
      for (int64_t d = 0; d < t.dim(); ++d) result.push_back(host_positions(ops::select(found, 1, d)));
    } else {
      result.push_back(t.is_meta() && device.is_meta() ? t : host_positions(t));
    }
  }
  result.resize(sizes.size());
  for (size_t d = 0; d < result.size(); ++d) {
    if (result[d].defined() && !result[d].is_meta())
      check_positions(result[d], sizes[d], static_cast<int64_t>(d), op);
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

/// The positions in the flattened tensor that `index`, one tensor for each dimension, names: in the shape of
/// the result, on `device`.
Tensor linear_positions(IntArrayRef sizes, const std::vector<Tensor>& index, const IndexGeometry& geometry,
                        Device device, const char* op) {
  // Before the lists below, so that invalid sizes and sizes beyond memory give different errors.
  Tensor positions = make_empty(geometry.sizes, DType::Int64);
  if (positions.numel() == 0) return on_device(positions, device);

  const Dims strides = contiguous_strides(sizes);
  std::vector<int64_t> named(at(checked_numel(geometry.positions, op)), 0);
  for (size_t d = 0; d < index.size(); ++d) {
    if (!index[d].defined()) continue;
    const Tensor wide = contiguous_copy(ops::expand(index[d], geometry.positions, false));
    const auto* p = static_cast<const int64_t*>(wide.data_ptr());
    for (size_t i = 0; i < named.size(); ++i) named[i] += (p[i] < 0 ? p[i] + sizes[d] : p[i]) * strides[d];
  }
  std::vector<int64_t> offsets{0};
  for (size_t d = 0; d < geometry.before; ++d) extend(offsets, sizes[d], strides[d]);
  std::vector<int64_t> both;
  both.reserve(offsets.size() * named.size());
  for (const int64_t o : offsets) {
    for (const int64_t n : named) both.push_back(o + n);
  }
  offsets = std::move(both);
  for (size_t d = geometry.before; d < sizes.size(); ++d) {
    if (!index[d].defined()) extend(offsets, sizes[d], strides[d]);
  }
  std::copy(offsets.begin(), offsets.end(), static_cast<int64_t*>(positions.data_ptr()));
  return on_device(positions, device);
}

/// The checked positions that `indices` name in a tensor of `sizes`.
Tensor selected_positions(IntArrayRef sizes, TensorList indices, Device device, const char* op) {
  const std::vector<Tensor> index = by_dimension(sizes, indices, device, op);
  return linear_positions(sizes, index, index_geometry(sizes, Headers(index), op), device, op);
}

/// Checked positions of gather: index[i, j] along `dim`, the place's own coordinates along the others.
Tensor gather_positions(IntArrayRef sizes, int64_t dim, const Tensor& index, Device device) {
  const auto ndim = static_cast<int64_t>(sizes.size());
  const int64_t d = wrap_dim(dim, ndim, "gather");
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
  return on_device(host, device);
}

/// An index of index_select and similar operators, checked and counted from the front: contiguous int64 on
/// its device.
Tensor slice_positions(IntArrayRef sizes, int64_t dim, const Tensor& index) {
  const Tensor positions = as_contiguous(as_dtype(index, DType::Int64));
  if (positions.numel() == 0) return positions;
  const int64_t size = sizes.empty() ? 1 : sizes[at(dim)];
  const auto [low, high] = int_range_stub(positions.device(), positions);
  TENON_CHECK(low >= 0 && high < size, Index,
              fmt::format("index_select: index {} is out of range for dimension {} with size {}",
                          low < 0 ? low : high, dim, size));
  return positions;
}

/// A 0-dim tensor as one of a single element.
Tensor at_least_1d(const Tensor& t) { return t.dim() == 0 ? make_view(t, {1}, {1}, t.storage_offset()) : t; }

/// Adds alpha * source[i] to self[index[i]] along `dim`.
void add_slices(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                const Scalar& alpha) {
  const int64_t d = wrap_dim(dim, self.dim(), "index_add");
  const Tensor positions = slice_positions(self.sizes(), d, index);
  const Tensor to = at_least_1d(self), from = at_least_1d(source);
  if (from.numel() == 0) return;
  index_add_stub(self.device(), to, d, positions,
                 from.storage() == to.storage() ? contiguous_copy(from) : from, alpha);
}

}  // namespace

Tensor index(const Tensor& self, TensorList indices) {
  const std::vector<Tensor> list = by_dimension(self.sizes(), indices, self.device(), "index");
  const IndexGeometry selected = index_geometry(self.sizes(), Headers(list), "index");
  Tensor out = make_empty(selected.sizes, self.dtype(), self.device());
  if (self.is_meta()) return out;
  const Tensor positions = linear_positions(self.sizes(), list, selected, self.device(), "index");
  if (out.numel() > 0) take_stub(self.device(), self, positions, out);
  return out;
}

void index_backward(const Tensor& grad, IntArrayRef sizes, TensorList indices, Tensor& out) {
  const Tensor positions = selected_positions(sizes, indices, out.device(), "index_backward");
  check_selected_gradient(grad.sizes(), positions.sizes(), "index_backward");
  if (grad.numel() > 0) put_stub(out.device(), out, positions, grad, true);
}

void index_put_(Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  const Tensor positions = selected_positions(self.sizes(), indices, self.device(), "index_put_");
  check_selected_values(values.sizes(), positions.sizes(), "index_put_");
  Tensor wide = make_empty(positions.sizes(), values.dtype(), self.device());
  copy_elements(wide, values, "index_put_");
  if (wide.numel() > 0) put_stub(self.device(), self, positions, wide, accumulate);
}

void index_put_self_backward(const Tensor& grad, TensorList indices, Tensor& out) {
  copy_elements(out, grad, "index_put_self_backward");
  ops::index_put_(out, indices, zeros_on({}, grad), false);
}

void gather(const Tensor& self, int64_t dim, const Tensor& index, bool sparse_grad, Tensor& out) {
  const Tensor positions = gather_positions(self.sizes(), dim, index, self.device());
  if (out.numel() > 0) take_stub(self.device(), self, positions, out);
}

void gather_backward(const Tensor& grad, IntArrayRef sizes, int64_t dim, const Tensor& index, Tensor& out) {
  const Tensor positions = gather_positions(sizes, dim, index, out.device());
  if (grad.numel() > 0) put_stub(out.device(), out, positions, grad, true);
}

void index_select(const Tensor& self, int64_t dim, const Tensor& index, Tensor& out) {
  const int64_t d = wrap_dim(dim, self.dim(), "index_select");
  const Tensor positions = slice_positions(self.sizes(), d, index);
  if (out.numel() == 0) return;
  if (self.dim() == 0)
    copy_elements(out, self, "index_select");
  else
    index_select_stub(self.device(), self, d, positions, out);
}

void index_select_backward(const Tensor& grad, IntArrayRef self_sizes, int64_t dim, const Tensor& index,
                           Tensor& out) {
  add_slices(out, dim, index, grad, 1);
}

void index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
               const Scalar& alpha, Tensor& out) {
  copy_elements(out, self, "index_add");
  add_slices(out, dim, index, source, alpha);
}

void index_add_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  add_slices(self, dim, index, source, alpha);
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
