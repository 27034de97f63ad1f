// Shapes of operators that read and write at positions. The bodies check that positions are in range.
#include <fmt/core.h>

#include "tenon/core/tensor.h"
#include "tenon/generated/indexing/shapes.h"
#include "tenon/ops/copy/elements.h"
#include "tenon/ops/indexing/selection.h"
#include "tenon/ops/view/geometry.h"

namespace tenon::ops::shape {
namespace {

void check_gather(IntArrayRef sizes, int64_t dim, HeaderRef index) {
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
}

/// The index of index_select and similar operators.
void check_slice_index(HeaderRef index) {
  TENON_CHECK(
      index.dim() <= 1, Index,
      fmt::format("index_select: `index` must be a vector or 0-dim, got {}", to_string(index.sizes())));
  TENON_CHECK(
      index.dtype() == DType::Int64 || index.dtype() == DType::Int32, Type,
      fmt::format("index_select: expected dtype int32 or int64 for index, got {}", name(index.dtype())));
}

/// The slices of `dim` that `index` names; one element is a vector here.
Dims slices(IntArrayRef sizes, int64_t dim, HeaderRef index) {
  Dims result = sizes.empty() ? Dims{1} : sizes.to_dims();
  result[at(dim)] = index.numel();
  return result;
}

void check_index_add(HeaderRef self, int64_t dim, HeaderRef index, HeaderRef source) {
  const int64_t d = wrap_dim(dim, self.dim(), "index_add");
  TENON_CHECK(self.dtype() == source.dtype(), Type,
              fmt::format("index_add: `source` is {}, expected {} as `self`", name(source.dtype()),
                          name(self.dtype())));
  check_slice_index(index);
  const Dims expected = slices(self.sizes(), d, index);
  const bool fits =
      source.dim() == 0 ? IntArrayRef(expected) == IntArrayRef({1}) : source.sizes() == IntArrayRef(expected);
  TENON_CHECK(fits, Shape,
              fmt::format("index_add: expected `source` of shape {}, got {}", to_string(expected),
                          to_string(source.sizes())));
}

}  // namespace

void gather(OutputSpecs& out, HeaderRef self, int64_t dim, HeaderRef index, bool sparse_grad) {
  TENON_CHECK(!sparse_grad, NotImplemented, "gather: sparse_grad is not supported");
  check_gather(self.sizes(), dim, index);
  out.set(0, index.sizes(), self.dtype());
}

void gather_backward(OutputSpecs& out, HeaderRef grad, IntArrayRef sizes, int64_t dim, HeaderRef index) {
  checked_numel(sizes, "gather_backward");
  check_gather(sizes, dim, index);
  check_selected_gradient(grad.sizes(), index.sizes(), "gather_backward");
  out.set(0, sizes, grad.dtype(), Elements::Zero);
}

void index_backward(OutputSpecs& out, HeaderRef grad, IntArrayRef sizes, HeaderList indices) {
  checked_numel(sizes, "index_backward");
  if (!check_indices(sizes, indices, "index_backward")) {
    const IndexGeometry selected = index_geometry(sizes, indices, "index_backward");
    check_selected_gradient(grad.sizes(), selected.sizes, "index_backward");
  }
  out.set(0, sizes, grad.dtype(), Elements::Zero);
}

void index_put_(OutputSpecs&, HeaderRef self, HeaderList indices, HeaderRef values, bool) {
  TENON_CHECK(self.dtype() == values.dtype(), Type,
              fmt::format("index_put_: `values` is {}, expected {} as `self`", name(values.dtype()),
                          name(self.dtype())));
  check_no_internal_overlap(self, "index_put_");
  if (check_indices(self.sizes(), indices, "index_put_")) return;
  const IndexGeometry selected = index_geometry(self.sizes(), indices, "index_put_");
  check_selected_values(values.sizes(), selected.sizes, "index_put_");
}

void index_put_self_backward(OutputSpecs& out, HeaderRef grad, HeaderList indices) {
  if (!check_indices(grad.sizes(), indices, "index_put_self_backward"))
    index_geometry(grad.sizes(), indices, "index_put_self_backward");
  out.set(0, grad.sizes(), grad.dtype());
}

void index_select(OutputSpecs& out, HeaderRef self, int64_t dim, HeaderRef index) {
  const int64_t d = wrap_dim(dim, self.dim(), "index_select");
  check_slice_index(index);
  TENON_CHECK(self.dim() > 0 || index.numel() == 1, Index,
              "index_select: a 0-dim `self` takes exactly one index");
  out.set(0, self.dim() == 0 ? Dims() : slices(self.sizes(), d, index), self.dtype());
}

void index_select_backward(OutputSpecs& out, HeaderRef grad, IntArrayRef self_sizes, int64_t dim,
                           HeaderRef index) {
  checked_numel(self_sizes, "index_select_backward");
  const int64_t d = wrap_dim(dim, static_cast<int64_t>(self_sizes.size()), "index_select_backward");
  check_slice_index(index);
  const bool one = self_sizes.empty() && grad.dim() == 0 && index.numel() == 1;
  if (!one) check_selected_gradient(grad.sizes(), slices(self_sizes, d, index), "index_select_backward");
  out.set(0, self_sizes, grad.dtype(), Elements::Zero);
}

void index_add(OutputSpecs& out, HeaderRef self, int64_t dim, HeaderRef index, HeaderRef source,
               const Scalar&) {
  check_index_add(self, dim, index, source);
  out.set(0, self.sizes(), self.dtype());
}

void index_add_(OutputSpecs&, HeaderRef self, int64_t dim, HeaderRef index, HeaderRef source, const Scalar&) {
  check_index_add(self, dim, index, source);
  check_no_internal_overlap(self, "index_add_");
}

}  // namespace tenon::ops::shape
