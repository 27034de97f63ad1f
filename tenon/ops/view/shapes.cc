// Shapes of the gradients of views. Each has the sizes of the tensor that was viewed, and checks its gradient
// against the view of it.
#include <fmt/core.h>

#include <algorithm>

#include "tenon/core/tensor.h"
#include "tenon/generated/view/shapes.h"
#include "tenon/iter/geometry.h"

namespace tenon::ops::shape {
namespace {

void check_same(HeaderRef grad, IntArrayRef view, const char* op) {
  TENON_CHECK(grad.sizes() == view, Shape,
              fmt::format("{}: the gradient has shape {}, expected {} as the view", op,
                          to_string(grad.sizes()), to_string(view)));
}

}  // namespace

void select_backward(OutputSpecs& out, HeaderRef grad_output, IntArrayRef input_sizes, int64_t dim,
                     int64_t index) {
  checked_numel(input_sizes, "select_backward");
  TENON_CHECK(!input_sizes.empty(), Index, "select_backward: cannot be applied to a 0-dim tensor");
  const auto d = at(wrap_dim(dim, static_cast<int64_t>(input_sizes.size()), "select_backward"));
  const int64_t size = input_sizes[d];
  TENON_CHECK(index >= -size && index < size, Index,
              fmt::format("select_backward: index {} out of range for tensor of size {} at dimension {}",
                          index, to_string(input_sizes), d));
  Dims view = input_sizes.to_dims();
  view.erase(d);
  check_same(grad_output, view, "select_backward");
  out.set(0, input_sizes, grad_output.dtype(), Elements::Zero);
}

void slice_backward(OutputSpecs& out, HeaderRef grad_output, IntArrayRef input_sizes, int64_t dim,
                    std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  checked_numel(input_sizes, "slice_backward");
  TENON_CHECK(!input_sizes.empty(), Index, "slice_backward: cannot be applied to a 0-dim tensor");
  const auto d = at(wrap_dim(dim, static_cast<int64_t>(input_sizes.size()), "slice_backward"));
  Dims view = input_sizes.to_dims();
  view[d] = slice_range(view[d], start, end, step, "slice_backward").length;
  check_same(grad_output, view, "slice_backward");
  out.set(0, input_sizes, grad_output.dtype(), Elements::Zero);
}

void diagonal_backward(OutputSpecs& out, HeaderRef grad_output, IntArrayRef input_sizes, int64_t offset,
                       int64_t dim1, int64_t dim2) {
  checked_numel(input_sizes, "diagonal_backward");
  const auto ndim = static_cast<int64_t>(input_sizes.size());
  const int64_t a = wrap_dim(dim1, ndim, "diagonal_backward"), b = wrap_dim(dim2, ndim, "diagonal_backward");
  TENON_CHECK(a != b, Value,
              fmt::format("diagonal_backward: dimensions cannot be identical {}, {}", dim1, dim2));
  Dims view = input_sizes.to_dims();
  view.erase(at(std::max(a, b)));
  view.erase(at(std::min(a, b)));
  view.push_back(diagonal_length(input_sizes[at(a)], input_sizes[at(b)], offset));
  check_same(grad_output, view, "diagonal_backward");
  out.set(0, input_sizes, grad_output.dtype(), Elements::Zero);
}

void unfold_backward(OutputSpecs& out, HeaderRef grad_in, IntArrayRef input_sizes, int64_t dim, int64_t size,
                     int64_t step) {
  checked_numel(input_sizes, "unfold_backward");
  check_same(grad_in, unfolded_sizes(input_sizes, dim, size, step), "unfold_backward");
  out.set(0, input_sizes, grad_in.dtype(), Elements::Zero);
}

void as_strided_backward(OutputSpecs& out, HeaderRef grad, IntArrayRef input_sizes, IntArrayRef input_strides,
                         int64_t input_offset, IntArrayRef size, IntArrayRef stride,
                         std::optional<int64_t> storage_offset) {
  StoragePlaces(input_sizes, input_strides, input_offset, size, stride,
                storage_offset.value_or(input_offset));
  check_same(grad, size, "as_strided_backward");
  out.set(0, input_sizes, grad.dtype());
}

void as_strided_elements(OutputSpecs& out, HeaderRef self, IntArrayRef input_sizes, IntArrayRef input_strides,
                         int64_t input_offset, IntArrayRef size, IntArrayRef stride,
                         std::optional<int64_t> storage_offset) {
  StoragePlaces(input_sizes, input_strides, input_offset, size, stride,
                storage_offset.value_or(input_offset));
  TENON_CHECK(self.sizes() == input_sizes, Shape,
              fmt::format("as_strided_elements: `self` has shape {}, expected input_sizes {}",
                          to_string(self.sizes()), to_string(input_sizes)));
  out.set(0, size, self.dtype());
}

}  // namespace tenon::ops::shape
