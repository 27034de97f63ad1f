// Gradients of views: each writes the gradient of a view to the elements of the tensor that the view shows.
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "tenon/generated/factory/functions.h"
#include "tenon/generated/view/bodies.h"
#include "tenon/generated/view/functions.h"
#include "tenon/iter/geometry.h"
#include "tenon/iter/overlap.h"
#include "tenon/ops/device_stubs.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/indexing/indexed.h"

namespace tenon::ops {
namespace {

/// The gradient of a part that received none: zeros with the dtype and device of the others.
Tensor zeros_in_place_of(TensorList grads, IntArrayRef sizes) {
  for (const Tensor& g : grads) {
    if (g.defined()) return tenon::zeros(sizes, g.options());
  }
  throw_error(ErrorKind::Internal, "the gradient of several views has no defined part");
}

void check_gradient(const Tensor& grad, IntArrayRef expected, const char* op) {
  TENON_CHECK(grad.sizes() == expected, Shape,
              fmt::format("{}: the gradient has shape {}, expected {} as the view", op,
                          to_string(grad.sizes()), to_string(expected)));
}

void check_parts(TensorList grads, IntArrayRef sizes, size_t expected, const char* op) {
  TENON_CHECK(!sizes.empty() && !grads.empty() && grads.size() == expected, Shape,
              fmt::format("{}: {} gradients for {} parts of a tensor of sizes {}", op, grads.size(), expected,
                          to_string(sizes)));
}

/// Adds each element of `grad` to the element of `flat`, which has zeros, that a view with these strides
/// shows.
void scatter_to_places(const Tensor& grad, const Tensor& flat, IntArrayRef strides, int64_t offset,
                       const char* op) {
  if (grad.numel() == 0) return;
  if (!overlaps_itself(grad.sizes(), strides)) {
    return copy_elements(make_view(flat, grad.sizes(), strides, flat.storage_offset() + offset), grad, op);
  }
  Tensor numbers = make_empty({flat.numel()}, DType::Int64, grad.device());
  arange_stub(grad.device(), numbers, Scalar(0), Scalar(1));
  run_indexed({.op = op,
               .argument = "stride",
               .sizes = grad.sizes().to_dims(),
               .to = flattened(flat, ops::as_strided(numbers, grad.sizes(), strides, offset)),
               .from = every_element(grad, grad.sizes()),
               .combine = Combine::Add});
}

}  // namespace

Tensor permute_backward(const Tensor& grad, IntArrayRef dims) {
  const Dims order = wrap_dims(dims, grad.dim(), "permute");
  Dims inverse(order.size());
  for (size_t d = 0; d < order.size(); ++d) inverse[at(order[d])] = static_cast<int64_t>(d);
  return grad.permute(inverse);
}

Tensor split_with_sizes_backward(TensorList grads, IntArrayRef sizes, IntArrayRef split_sizes, int64_t dim) {
  check_parts(grads, sizes, split_sizes.size(), "split_with_sizes_backward");
  const int64_t d = wrap_dim(dim, static_cast<int64_t>(sizes.size()), "split_with_sizes_backward");
  std::vector<Tensor> parts(grads.begin(), grads.end());
  Dims part = sizes.to_dims();
  for (size_t i = 0; i < parts.size(); ++i) {
    part[at(d)] = split_sizes[i];
    if (!parts[i].defined()) parts[i] = zeros_in_place_of(grads, part);
    check_gradient(parts[i], part, "split_with_sizes_backward");
  }
  return tenon::cat(parts, d);
}

Tensor split_backward(TensorList grads, IntArrayRef sizes, int64_t split_size, int64_t dim) {
  TENON_CHECK(!sizes.empty() && split_size >= 0, Value,
              fmt::format("split_backward: no tensor of sizes {} is split into parts of {}", to_string(sizes),
                          split_size));
  const int64_t size = sizes[at(wrap_dim(dim, static_cast<int64_t>(sizes.size()), "split_backward"))];
  const int64_t whole = split_size > 0 ? size / split_size + (size % split_size != 0) : 1;
  check_parts(grads, sizes, static_cast<size_t>(std::max<int64_t>(whole, 1)), "split_backward");
  Dims split_sizes(grads.size(), split_size);
  split_sizes.back() = size - split_size * static_cast<int64_t>(grads.size() - 1);
  return ops::split_with_sizes_backward(grads, sizes, split_sizes, dim);
}

Tensor unbind_backward(TensorList grads, IntArrayRef sizes, int64_t dim) {
  TENON_CHECK(!sizes.empty(), Shape, "unbind_backward: a 0-dim tensor has no parts");
  const int64_t d = wrap_dim(dim, static_cast<int64_t>(sizes.size()), "unbind_backward");
  check_parts(grads, sizes, static_cast<size_t>(sizes[at(d)]), "unbind_backward");
  Dims part = sizes.to_dims();
  part.erase(at(d));
  std::vector<Tensor> parts(grads.begin(), grads.end());
  for (Tensor& t : parts) {
    if (!t.defined()) t = zeros_in_place_of(grads, part);
  }
  return tenon::stack(parts, d);
}

void as_strided_backward(const Tensor& grad, IntArrayRef input_sizes, IntArrayRef input_strides,
                         int64_t input_offset, IntArrayRef size, IntArrayRef stride,
                         std::optional<int64_t> storage_offset, Tensor& out) {
  const int64_t offset = storage_offset.value_or(input_offset);
  const StoragePlaces places(input_sizes, input_strides, input_offset, size, stride, offset);
  const Tensor flat = zeros_on({places.count}, grad);
  scatter_to_places(grad, flat, stride, offset - places.origin, "as_strided_backward");
  copy_elements(out, make_view(flat, input_sizes, input_strides, input_offset - places.origin),
                "as_strided_backward");
}

void as_strided_elements(const Tensor& self, IntArrayRef input_sizes, IntArrayRef input_strides,
                         int64_t input_offset, IntArrayRef size, IntArrayRef stride,
                         std::optional<int64_t> storage_offset, Tensor& out) {
  const int64_t offset = storage_offset.value_or(input_offset);
  const StoragePlaces places(input_sizes, input_strides, input_offset, size, stride, offset);
  const Tensor flat = zeros_on({places.count}, self);
  copy_elements(make_view(flat, input_sizes, input_strides, input_offset - places.origin), self,
                "as_strided_elements");
  copy_elements(out, make_view(flat, size, stride, offset - places.origin), "as_strided_elements");
}

void unfold_backward(const Tensor& grad_in, IntArrayRef input_sizes, int64_t dim, int64_t size, int64_t step,
                     Tensor& out) {
  const Tensor flat = make_view(out, {out.numel()}, {1}, out.storage_offset());
  scatter_to_places(grad_in, flat, ops::unfold(out, dim, size, step).strides(), 0, "unfold_backward");
}

}  // namespace tenon::ops
