// index, index_put_ and take, put: reading and writing at the positions that lists of index tensors and masks
// name, or at positions in the flattened tensor.
#include <fmt/core.h>

#include "tenon/generated/indexing/bodies.h"
#include "tenon/generated/view/bodies.h"
#include "tenon/ops/device_stubs.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/forms/structured.h"
#include "tenon/ops/indexing/indexed.h"
#include "tenon/ops/indexing/selection.h"

namespace tenon::ops {
namespace {

using detail::Headers;

/// For each dimension of a tensor, the positions that index it, or nothing. A mask becomes the positions
/// where it is true.
std::vector<Tensor> by_dimension(IntArrayRef sizes, TensorList indices, const char* op) {
  check_indices(sizes, Headers(indices), op);
  std::vector<Tensor> result;
  for (const Tensor& t : indices) {
    if (!t.defined() || !is_mask(t)) {
      result.push_back(t);
      continue;
    }
    TENON_CHECK(
        !t.is_meta(), NotImplemented,
        fmt::format("{}: how many elements a mask selects depends on its values, which a meta tensor lacks",
                    op));
    const Tensor found = nonzero_stub(t.device(), t);
    if (t.dim() == 0) result.push_back(zeros_on({found.sizes()[0]}, found));
    for (int64_t d = 0; d < t.dim(); ++d) result.push_back(ops::select(found, 1, d));
  }
  result.resize(sizes.size());
  return result;
}

/// What index tensors, one for each dimension or none, select of `t`: the loop has the sizes of the
/// selection.
IndexedSide selected(const Tensor& t, const std::vector<Tensor>& index, const IndexGeometry& geometry) {
  IndexedSide side{t, {}, {}};
  const size_t after = geometry.before + geometry.positions.size();
  side.strides = Dims(geometry.sizes.size(), 0);
  for (size_t d = 0, kept = 0; d < index.size(); ++d) {
    if (index[d].defined()) continue;
    const size_t place = kept < geometry.before ? kept : after + kept - geometry.before;
    side.strides[place] = t.strides()[d];
    ++kept;
  }
  for (size_t d = 0; d < index.size(); ++d) {
    if (!index[d].defined()) continue;
    Dims strides(geometry.sizes.size(), 0);
    const IntArrayRef sizes = index[d].sizes(), steps = index[d].strides();
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] != 1) strides[after - sizes.size() + i] = steps[i];
    }
    side.by.push_back(
        {index[d], std::move(strides), Dims{t.sizes()[d]}, Dims{t.strides()[d]}, static_cast<int64_t>(d)});
  }
  return side;
}

/// The same of index tensors that may be elsewhere.
IndexedSide selected(const Tensor& t, std::vector<Tensor> index, IndexGeometry& geometry, const char* op) {
  for (Tensor& i : index) {
    if (i.defined()) i = on_device_of(t, i);
  }
  geometry = index_geometry(t.sizes(), Headers(index), op);
  checked_numel(geometry.sizes, op);
  return selected(t, index, geometry);
}

/// The only index, if it is a mask over all dimensions of `self` and on its device.
const Tensor* whole_mask(const Tensor& self, TensorList indices) {
  return indices.size() == 1 && indices[0].defined() && is_mask(indices[0]) && self.dim() > 0 &&
                 indices[0].dim() == self.dim() && indices[0].device() == self.device()
             ? &indices[0]
             : nullptr;
}

}  // namespace

Tensor index(const Tensor& self, TensorList indices) {
  const Tensor* mask = whole_mask(self, indices);
  if (mask && masked_select_stub.has(self.device().backend)) {
    check_indices(self.sizes(), Headers(indices), "index");
    return masked_select_stub(self.device(), self, *mask);
  }
  const std::vector<Tensor> list = by_dimension(self.sizes(), indices, "index");
  IndexGeometry geometry;
  if (self.is_meta()) {
    geometry = index_geometry(self.sizes(), Headers(list), "index");
    return make_empty(geometry.sizes, self.dtype(), self.device());
  }
  const IndexedSide from = selected(self, list, geometry, "index");
  const Tensor out = make_empty(geometry.sizes, self.dtype(), self.device());
  run_indexed({.op = "index",
               .argument = "indices",
               .sizes = geometry.sizes,
               .to = every_element(out, geometry.sizes),
               .from = from,
               .wraps = true,
               .fresh = true});
  return out;
}

void index_backward(const Tensor& grad, IntArrayRef sizes, TensorList indices, Tensor& out) {
  combine_in_compute_dtype(out, grad, "index_backward", [&](Tensor& sums, const Tensor& terms) {
    IndexGeometry geometry;
    const IndexedSide to =
        selected(sums, by_dimension(sizes, indices, "index_backward"), geometry, "index_backward");
    check_selected_gradient(grad.sizes(), geometry.sizes, "index_backward");
    run_indexed({.op = "index_backward",
                 .argument = "indices",
                 .sizes = geometry.sizes,
                 .to = to,
                 .from = every_element(terms, geometry.sizes),
                 .combine = Combine::Add,
                 .wraps = true});
  });
}

void index_put_(Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  IndexGeometry geometry;
  const IndexedSide to =
      selected(self, by_dimension(self.sizes(), indices, "index_put_"), geometry, "index_put_");
  check_selected_values(values.sizes(), geometry.sizes, "index_put_");
  run_indexed({.op = "index_put_",
               .argument = "indices",
               .sizes = geometry.sizes,
               .to = to,
               .from = every_element(values, geometry.sizes),
               .combine = accumulate ? Combine::Add : Combine::Set,
               .wraps = true});
}

void take(const Tensor& self, const Tensor& index, Tensor& out) {
  const bool fresh = is_fresh(out);
  run_indexed({.op = "take",
               .argument = "index",
               .sizes = index.sizes().to_dims(),
               .to = every_element(out, index.sizes()),
               .from = flattened(self, index),
               .wraps = true,
               .fresh = fresh});
}

void put(Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  Tensor values = source;
  if (source.sizes() != index.sizes()) {
    const Tensor in_order = as_contiguous(source);
    values = make_view(in_order, index.sizes(), contiguous_strides(index.sizes()), in_order.storage_offset());
  }
  run_indexed({.op = "put",
               .argument = "index",
               .sizes = index.sizes().to_dims(),
               .to = flattened(self, index),
               .from = every_element(values, index.sizes()),
               .combine = accumulate ? Combine::Add : Combine::Set,
               .wraps = true});
}

void masked_scatter(Tensor& self, const Tensor& mask, const Tensor& source) {
  const Tensor list[] = {ops::expand(mask, self.sizes(), false)};
  if (self.dim() == 0) {  // as a vector
    Tensor vector = make_view(self, {1}, {1}, self.storage_offset());
    return masked_scatter(vector, make_view(mask, {1}, {1}, mask.storage_offset()), source);
  }
  IndexGeometry geometry;
  const IndexedSide to =
      selected(self, by_dimension(self.sizes(), list, "masked_scatter"), geometry, "masked_scatter");
  const int64_t count = geometry.sizes[0];
  TENON_CHECK(source.numel() >= count, Shape,
              fmt::format("masked_scatter: `source` has {} elements, and {} elements of `mask` are true",
                          source.numel(), count));
  const Tensor in_order = as_contiguous(source);
  run_indexed({.op = "masked_scatter",
               .argument = "mask",
               .sizes = geometry.sizes,
               .to = to,
               .from = {make_view(in_order, {count}, {1}, in_order.storage_offset()), {1}, {}}});
}

}  // namespace tenon::ops
