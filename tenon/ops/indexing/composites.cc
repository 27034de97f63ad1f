// What is made of gather and scatter: their gradients, and operators that differentiate through them.
#include <fmt/core.h>

#include <limits>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/bodies.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/iter/geometry.h"
#include "tenon/iter/result_shape.h"
#include "tenon/ops/tensor_operators.h"

namespace tenon::ops {
namespace {

/// The words of the older `reduce` argument as those of scatter_reduce.
const char* reduce_word(std::string_view reduce) {
  TENON_CHECK(reduce == "add" || reduce == "multiply", Value,
              fmt::format("scatter: `reduce` must be add or multiply, got '{}'", reduce));
  return reduce == "add" ? "sum" : "prod";
}

Tensor repeated(const Tensor& like, const Scalar& value, const Tensor& index) {
  return tenon::full({}, value, like.options()).expand(index.sizes());
}

/// 1 where a condition holds, else 0, in the dtype of `like`.
Tensor indicator(const Tensor& condition, const Tensor& like) { return condition.to(like.dtype()); }

Tensor ones_as(const Tensor& like) { return tenon::ones(like.sizes(), like.options()); }
Tensor zeros_as(const Tensor& like) { return tenon::zeros(like.sizes(), like.options()); }

Tensor conjugated(const Tensor& t) { return t.is_complex() ? tenon::conj(t) : t; }

/// What the operators that they call check too, but not for every word.
void check_reduced(const char* op, const Tensor& grad, int64_t dim, TensorList others) {
  wrap_dim(dim, grad.dim(), op);
  for (const Tensor& t : others) {
    TENON_CHECK(t.device() == grad.device(), Device,
                fmt::format("{}: expected all tensors on the device of `grad`, {}, got one on {}", op,
                            to_string(grad.device()), to_string(t.device())));
  }
}

/// How many elements each place is the mean of; at least 1.
Tensor mean_counts(const Tensor& grad, int64_t dim, const Tensor& index, bool include_self) {
  const Tensor start = include_self ? ones_as(grad) : zeros_as(grad);
  const Tensor counts = tenon::scatter_add(start, dim, index, repeated(grad, 1, index));
  return tenon::masked_fill(counts, counts == 0, 1);
}

/// The gradient of an extremum, divided among the elements that are the extremum; and which elements of
/// `self` are.
struct Shared {
  Tensor grad, self_share;
};
Shared shared_gradient(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                       const Tensor& src_share, bool include_self, const Tensor& result) {
  Tensor self_share = indicator(self == result, grad);
  if (!include_self) self_share = tenon::scatter(self_share, dim, index, 0);
  const Tensor sharers = tenon::scatter_add(self_share, dim, index, src_share);
  return {grad / clamp_min(sharers, 1), self_share};
}

}  // namespace

Tensor bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  TENON_CHECK(minlength >= 0, Value,
              fmt::format("bincount: minlength must not be negative, got {}", minlength));
  TENON_CHECK(self.dim() == 1 && is_integral(self.dtype(), false), Value,
              fmt::format("bincount: expected a vector of integers, got {}", summary(self)));
  TENON_CHECK(!weights.defined() || weights.sizes() == self.sizes(), Shape,
              fmt::format("bincount: weights must have the input's shape {}, got {}", to_string(self.sizes()),
                          summary(weights)));
  TENON_CHECK(!self.is_meta(), NotImplemented,
              "bincount: how many numbers there are depends on values, which a meta tensor lacks");
  const TensorOptions options = TensorOptions().device(self.device());
  if (self.numel() == 0) return tenon::zeros({minlength}, options.dtype(DType::Int64));
  const auto lowest = self.min().item<int64_t>(), highest = self.max().item<int64_t>();
  TENON_CHECK(lowest >= 0, Value, fmt::format("bincount: expected no negative numbers, got {}", lowest));
  const DType dtype = !weights.defined()                  ? DType::Int64
                      : weights.dtype() == DType::Float32 ? DType::Float32
                                                          : DType::Float64;
  const Tensor added =
      weights.defined() ? weights.to(dtype) : tenon::ones(self.sizes(), options.dtype(dtype));
  return tenon::zeros({std::max(highest + 1, minlength)}, options.dtype(dtype))
      .index_add(0, self.to(DType::Int64), added);
}

Tensor scatter_src_backward(const Tensor& grad, int64_t dim, const Tensor& index, IntArrayRef sizes) {
  if (index.numel() == 0) return tenon::zeros(sizes, grad.options());
  Tensor result = tenon::gather(grad.dim() == 0 ? grad.reshape({1}) : grad, dim, index);
  if (result.sizes().size() != sizes.size()) return result.reshape(sizes);
  for (int64_t d = 0; d < result.dim(); ++d) {
    if (result.size(d) == sizes[at(d)]) continue;
    Dims wide = result.sizes().to_dims();
    wide[at(d)] = sizes[at(d)];
    result = tenon::slice_backward(result, wide, d, 0, result.size(d), 1);
  }
  return result;
}

Tensor scatter_reduced(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                       std::string_view reduce) {
  return tenon::scatter_reduce(self, dim, index, src, reduce_word(reduce));
}

Tensor scatter_value_reduced(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                             std::string_view reduce) {
  return tenon::scatter_reduce(self, dim, index, repeated(self, value, index), reduce_word(reduce));
}

Tensor& scatter_reduced_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                         std::string_view reduce) {
  return self.scatter_reduce_(dim, index, src, reduce_word(reduce));
}

Tensor& scatter_value_reduced_(Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                               std::string_view reduce) {
  return self.scatter_reduce_(dim, index, repeated(self, value, index), reduce_word(reduce));
}

Tensor scatter_reduce_self_backward(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                                    const Tensor& src, std::string_view reduce, bool include_self,
                                    const Tensor& result) {
  const Tensor others_of[] = {self, index, src, result};
  check_reduced("scatter_reduce_self_backward", grad, dim, others_of);
  const auto overwritten = [&](const Tensor& g) {
    return include_self ? g : tenon::scatter(g, dim, index, 0);
  };
  if (reduce == "sum") return overwritten(grad);
  if (reduce == "mean") return overwritten(grad / mean_counts(grad, dim, index, include_self));
  if (reduce == "prod") {
    // The product of the others: that of all with a zero of `self` counted as one.
    const Tensor nonzero = tenon::masked_fill(self, self == 0, 1);
    const Tensor others = tenon::scatter_reduce(nonzero, dim, index, src, reduce, include_self) / nonzero;
    return overwritten(grad * conjugated(others));
  }
  const Tensor src_share = indicator(src == ops::scatter_src_backward(result, dim, index, src.sizes()), grad);
  const Shared shared = shared_gradient(grad, self, dim, index, src_share, include_self, result);
  return shared.self_share * shared.grad;
}

Tensor scatter_reduce_src_backward(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                                   const Tensor& src, std::string_view reduce, bool include_self,
                                   const Tensor& result) {
  const Tensor others_of[] = {self, index, src, result};
  check_reduced("scatter_reduce_src_backward", grad, dim, others_of);
  const auto read = [&](const Tensor& t) { return ops::scatter_src_backward(t, dim, index, src.sizes()); };
  if (reduce == "sum") return read(grad);
  if (reduce == "mean") return read(grad / mean_counts(grad, dim, index, include_self));
  if (reduce == "prod") {
    // Where one of the factors of a place is zero, only that one has a gradient: the product of the others.
    const Tensor zero = src == 0;
    const Tensor zeros_there = read(tenon::scatter_add(zeros_as(self), dim, index, indicator(zero, self)));
    const Tensor only_zero = zero.logical_and(zeros_there == 1);
    const Tensor others =
        tenon::scatter_reduce(self, dim, index, tenon::masked_fill(src, only_zero, 1), reduce, include_self);
    return where(only_zero, read(grad * conjugated(others)),
                 read(grad * conjugated(result)) / conjugated(tenon::masked_fill(src, zero, 1)));
  }
  const Tensor src_share = indicator(src == read(result), grad);
  return src_share * read(shared_gradient(grad, self, dim, index, src_share, include_self, result).grad);
}

namespace {

/// Positions along a dimension of `size`, where those from -size to -1 count from its end.
Tensor from_start(const Tensor& indices, int64_t size) {
  return tenon::where(tenon::logical_and(indices < 0, indices >= -size), indices + size, indices);
}

}  // namespace

Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  if (!dim) return tenon::gather(self.reshape({-1}), 0, from_start(indices.reshape({-1}), self.numel()));
  TENON_CHECK(self.dim() == indices.dim(), Shape,
              fmt::format("take_along_dim: `indices` {} must have the same number of dimensions as `self` {}",
                          to_string(indices.sizes()), to_string(self.sizes())));
  const int64_t d = wrap_dim(*dim, self.dim(), "take_along_dim");
  if (self.dim() == 0) return tenon::gather(self, d, from_start(indices, 1));
  Dims of_self = self.sizes().to_dims(), of_indices = indices.sizes().to_dims();
  of_self[at(d)] = of_indices[at(d)] = 1;
  of_self = of_indices = broadcast_shapes(of_self, of_indices, "take_along_dim");
  of_self[at(d)] = self.size(d);
  of_indices[at(d)] = indices.size(d);
  return tenon::gather(self.expand(of_self), d, from_start(indices, self.size(d)).expand(of_indices));
}

Tensor one_hot(const Tensor& self, int64_t num_classes) {
  TENON_CHECK(self.dtype() == DType::Int64 || self.dtype() == DType::Int32, Type,
              fmt::format("one_hot: expected dtype int32 or int64 for self, got {}", name(self.dtype())));
  if (self.numel() == 0) {
    TENON_CHECK(num_classes > 0, Value,
                "one_hot: the number of classes does not follow from an empty tensor; give `num_classes`");
  } else if (!self.is_meta()) {
    const int64_t low = amin(self).item<int64_t>(), high = amax(self).item<int64_t>();
    TENON_CHECK(low >= 0, Index, fmt::format("one_hot: class {} in `self` is negative", low));
    TENON_CHECK(high < std::numeric_limits<int64_t>::max(), Shape,
                fmt::format("one_hot: class {} in `self` asks for more classes than int64 can count", high));
    if (num_classes == -1) num_classes = high + 1;
    TENON_CHECK(
        num_classes > high, Index,
        fmt::format("one_hot: class {} in `self` is out of range for `num_classes` {}", high, num_classes));
  }
  TENON_CHECK(num_classes >= 0, Value,
              fmt::format("one_hot: on meta, `num_classes` must be given, got {}", num_classes));
  Dims sizes = self.sizes().to_dims();
  sizes.push_back(num_classes);
  Tensor result = tenon::zeros(sizes, self.options().dtype(DType::Int64));
  if (self.numel() > 0) result.scatter_(-1, self.unsqueeze(-1), 1);
  return result;
}

}  // namespace tenon::ops
