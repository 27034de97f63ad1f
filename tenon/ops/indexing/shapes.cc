// Shapes of operators that read and write at positions. The bodies check that positions are in range.
#include <fmt/core.h>

#include "tenon/core/tensor.h"
#include "tenon/generated/indexing/shapes.h"
#include "tenon/iter/geometry.h"
#include "tenon/iter/result_shape.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/indexing/selection.h"

namespace tenon::ops::shape {
namespace {

void check_positions(HeaderRef index, const char* op) {
  TENON_CHECK(index.dtype() == DType::Int64 || index.dtype() == DType::Int32, Type,
              fmt::format("{}: expected dtype int32 or int64 for index, got {}", op, name(index.dtype())));
}

void check_same_dtype(HeaderRef self, HeaderRef other, const char* argument, const char* op) {
  TENON_CHECK(self.dtype() == other.dtype(), Type,
              fmt::format("{}: `{}` is {}, expected {} as `self`", op, argument, name(other.dtype()),
                          name(self.dtype())));
}

/// The index of a scatter, and its source if there is one: of the rank of `self`, the index no larger than
/// either apart from `dim` of `self`.
void check_scatter(HeaderRef self, int64_t dim, HeaderRef index, HeaderRef src, const char* op) {
  const int64_t d = wrap_dim(dim, self.dim(), op);
  check_positions(index, op);
  if (src.defined()) check_same_dtype(self, src, "src", op);
  if (index.numel() == 0) return;
  const auto rank = [](HeaderRef t) { return std::max<int64_t>(t.dim(), 1); };
  TENON_CHECK(rank(index) == rank(self) && (!src.defined() || rank(src) == rank(self)), Shape,
              fmt::format("{}: `index` {} and `src` must have the same number of dimensions as `self` {}", op,
                          to_string(index.sizes()), to_string(self.sizes())));
  const auto size = [](HeaderRef t, int64_t i) { return t.dim() == 0 ? 1 : t.sizes()[at(i)]; };
  for (int64_t i = 0; i < rank(index); ++i) {
    const bool fits =
        (i == d || size(index, i) <= size(self, i)) && (!src.defined() || size(index, i) <= size(src, i));
    TENON_CHECK(
        fits, Shape,
        fmt::format(
            "{}: `index` {} must be no larger than `self` {} apart from dimension {}{}", op,
            to_string(index.sizes()), to_string(self.sizes()), d,
            src.defined() ? fmt::format(", and no larger than `src` {}", to_string(src.sizes())) : ""));
  }
}

void check_gather(IntArrayRef sizes, int64_t dim, HeaderRef index) {
  const auto ndim = static_cast<int64_t>(sizes.size());
  const int64_t d = wrap_dim(dim, ndim, "gather");
  check_positions(index, "gather");
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
void check_slice_index(HeaderRef index, const char* op) {
  TENON_CHECK(index.dim() <= 1, Index,
              fmt::format("{}: `index` must be a vector or 0-dim, got {}", op, to_string(index.sizes())));
  check_positions(index, op);
}

/// The slices of `dim` that `index` names; one element is a vector here.
Dims slices(IntArrayRef sizes, int64_t dim, HeaderRef index) {
  Dims result = sizes.empty() ? Dims{1} : sizes.to_dims();
  result[at(dim)] = index.numel();
  return result;
}

/// A source of slices: it has the sizes of `self`, with as many slices as `index` names.
void check_slices(HeaderRef self, int64_t dim, HeaderRef index, HeaderRef source, const char* op) {
  const int64_t d = wrap_dim(dim, self.dim(), op);
  check_same_dtype(self, source, "source", op);
  check_slice_index(index, op);
  const Dims expected = slices(self.sizes(), d, index);
  const bool fits =
      source.dim() == 0 ? IntArrayRef(expected) == IntArrayRef({1}) : source.sizes() == IntArrayRef(expected);
  TENON_CHECK(fits, Shape,
              fmt::format("{}: expected `source` of shape {}, got {}", op, to_string(expected),
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

static void check_index_put(HeaderRef self, HeaderList indices, HeaderRef values, const char* op) {
  check_same_dtype(self, values, "values", op);
  if (check_indices(self.sizes(), indices, op)) return;
  const IndexGeometry selected = index_geometry(self.sizes(), indices, op);
  check_selected_values(values.sizes(), selected.sizes, op);
}

void index_put(OutputSpecs& out, HeaderRef self, HeaderList indices, HeaderRef values, bool) {
  check_index_put(self, indices, values, "index_put");
  out.set(0, self.sizes(), self.dtype());
}

void index_put_(OutputSpecs&, HeaderRef self, HeaderList indices, HeaderRef values, bool) {
  check_no_internal_overlap(self, "index_put_");
  check_index_put(self, indices, values, "index_put_");
}

void index_select(OutputSpecs& out, HeaderRef self, int64_t dim, HeaderRef index) {
  const int64_t d = wrap_dim(dim, self.dim(), "index_select");
  check_slice_index(index, "index_select");
  TENON_CHECK(self.dim() > 0 || index.numel() == 1, Index,
              "index_select: a 0-dim `self` takes exactly one index");
  out.set(0, self.dim() == 0 ? Dims() : slices(self.sizes(), d, index), self.dtype());
}

void index_select_backward(OutputSpecs& out, HeaderRef grad, IntArrayRef self_sizes, int64_t dim,
                           HeaderRef index) {
  checked_numel(self_sizes, "index_select_backward");
  const int64_t d = wrap_dim(dim, static_cast<int64_t>(self_sizes.size()), "index_select_backward");
  check_slice_index(index, "index_select_backward");
  const bool one = self_sizes.empty() && grad.dim() == 0 && index.numel() == 1;
  if (!one) check_selected_gradient(grad.sizes(), slices(self_sizes, d, index), "index_select_backward");
  out.set(0, self_sizes, grad.dtype(), Elements::Zero);
}

void index_add(OutputSpecs& out, HeaderRef self, int64_t dim, HeaderRef index, HeaderRef source,
               const Scalar&) {
  check_slices(self, dim, index, source, "index_add");
  out.set(0, self.sizes(), self.dtype());
}

void index_copy(OutputSpecs& out, HeaderRef self, int64_t dim, HeaderRef index, HeaderRef source) {
  check_slices(self, dim, index, source, "index_copy");
  out.set(0, self.sizes(), self.dtype());
}

void index_fill_Scalar(OutputSpecs& out, HeaderRef self, int64_t dim, HeaderRef index, const Scalar&) {
  wrap_dim(dim, self.dim(), "index_fill");
  check_slice_index(index, "index_fill");
  out.set(0, self.sizes(), self.dtype());
}

void index_fill_Tensor(OutputSpecs& out, HeaderRef self, int64_t dim, HeaderRef index, HeaderRef value) {
  TENON_CHECK(value.dim() == 0, Shape,
              fmt::format("index_fill: `value` must be a number or a 0-dim tensor, got a tensor of shape {}",
                          to_string(value.sizes())));
  wrap_dim(dim, self.dim(), "index_fill");
  check_slice_index(index, "index_fill");
  out.set(0, self.sizes(), self.dtype());
}

void scatter_src(OutputSpecs& out, HeaderRef self, int64_t dim, HeaderRef index, HeaderRef src) {
  check_scatter(self, dim, index, src, "scatter");
  out.set(0, self.sizes(), self.dtype());
}

void scatter_value(OutputSpecs& out, HeaderRef self, int64_t dim, HeaderRef index, const Scalar&) {
  check_scatter(self, dim, index, {}, "scatter");
  out.set(0, self.sizes(), self.dtype());
}

void scatter_add(OutputSpecs& out, HeaderRef self, int64_t dim, HeaderRef index, HeaderRef src) {
  check_scatter(self, dim, index, src, "scatter_add");
  out.set(0, self.sizes(), self.dtype());
}

void scatter_reduce(OutputSpecs& out, HeaderRef self, int64_t dim, HeaderRef index, HeaderRef src,
                    std::string_view reduce, bool) {
  const bool known =
      reduce == "sum" || reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin";
  TENON_CHECK(
      known, Value,
      fmt::format("scatter_reduce: `reduce` must be sum, prod, mean, amax or amin, got '{}'", reduce));
  TENON_CHECK(!is_complex(self.dtype()) || !reduce.starts_with('a'), NotImplemented,
              fmt::format("scatter_reduce: `reduce` {} of complex numbers, which have no order", reduce));
  TENON_CHECK(self.dtype() != DType::Bool || reduce != "mean", Type,
              "scatter_reduce: `reduce` mean of bool; convert `self` and `src` to numbers");
  check_scatter(self, dim, index, src, "scatter_reduce");
  out.set(0, self.sizes(), self.dtype());
}

void take(OutputSpecs& out, HeaderRef self, HeaderRef index) {
  check_positions(index, "take");
  out.set(0, index.sizes(), self.dtype());
}

void put(OutputSpecs& out, HeaderRef self, HeaderRef index, HeaderRef source, bool) {
  check_positions(index, "put");
  check_same_dtype(self, source, "source", "put");
  TENON_CHECK(index.numel() == source.numel(), Shape,
              fmt::format("put: expected as many elements in `source` as in `index`, got {} and {}",
                          source.numel(), index.numel()));
  out.set(0, self.sizes(), self.dtype());
}

void masked_scatter(OutputSpecs& out, HeaderRef self, HeaderRef mask, HeaderRef source) {
  TENON_CHECK(mask.dtype() == DType::Bool, Type,
              fmt::format("masked_scatter: `mask` must be bool, got {}", name(mask.dtype())));
  check_same_dtype(self, source, "source", "masked_scatter");
  out.set(0, broadcast_shapes(self.sizes(), mask.sizes(), "masked_scatter"), self.dtype());
}

}  // namespace tenon::ops::shape
