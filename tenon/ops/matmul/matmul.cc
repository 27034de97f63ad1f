// matmul and linear: the rules of ranks and batches, made of mm, bmm, mv, dot and views.
#include <fmt/core.h>

#include "tenon/core/thread_state.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/matmul/bodies.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/view/bodies.h"
#include "tenon/generated/view/functions.h"
#include "tenon/iter/geometry.h"
#include "tenon/iter/result_shape.h"

namespace tenon::ops {
namespace {

Dims batch_of(const Tensor& t) { return Dims(t.sizes().data(), t.sizes().size() - 2); }

Dims joined(Dims front, std::initializer_list<int64_t> back) {
  for (const int64_t s : back) front.push_back(s);
  return front;
}

int64_t product(const Dims& sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}

/// Removes a dimension of size 1 from a product that was not returned yet.
Tensor without_dim(const Tensor& product, int64_t dim) {
  Dims sizes = product.sizes().to_dims();
  sizes.erase(static_cast<size_t>(wrap_dim(dim, product.dim(), "matmul")));
  return tenon::_unsafe_view(product, sizes);
}

void check_inner(int64_t a, int64_t b, const Tensor& self, const Tensor& other) {
  TENON_CHECK(a == b, Shape,
              fmt::format("matmul: `self` {} and `other` {} cannot be multiplied ({} columns and {} rows)",
                          to_string(self.sizes()), to_string(other.sizes()), a, b));
}

/// Whether the columns of all matrices in `t`, one below the other, are a matrix that needs a copy.
bool folds_by_copying(const Tensor& t) {
  const Tensor columns = t.transpose(-2, -1);
  const Dims folded{product(batch_of(columns)) * columns.size(-2), columns.size(-1)};
  return !view_strides(columns.sizes(), columns.strides(), folded);
}

/// Both at least matrices that fit, one with more dimensions.
Tensor matmul_batched(const Tensor& self, const Tensor& other) {
  const int64_t m = self.size(-2), k = self.size(-1), n = other.size(-1);
  if (other.dim() == 2) {
    // All rows of the batch against one matrix.
    const Dims rows = joined(batch_of(self), {m});
    return tenon::_unsafe_view(tenon::mm(self.reshape({product(rows), k}), other), joined(rows, {n}));
  }
  Dims batch = batch_of(self);
  const Dims other_batch = batch_of(other);
  broadcast_to(batch, other_batch, "matmul");
  const int64_t count = product(batch);
  const Tensor a = self.expand(joined(batch, {m, k})).reshape({count, m, k});
  Tensor b = other.expand(joined(batch, {k, n})).reshape({count, k, n});
  if (thread_state.grad_enabled && self.dim() == 2 && self.requires_grad() && folds_by_copying(other)) {
    // What the gradient of `self` needs of `other` is a copy, as in PyTorch: `other` may be written
    // afterwards.
    if (b.storage() == other.storage()) b = b.clone();
  }
  return tenon::_unsafe_view(tenon::bmm(a, b), joined(batch, {m, n}));
}

}  // namespace

Tensor matmul(const Tensor& self, const Tensor& other) {
  TENON_CHECK(self.dim() > 0 && other.dim() > 0, Shape,
              fmt::format("matmul: both arguments need to be at least 1D, but they are {}D and {}D",
                          self.dim(), other.dim()));
  check_inner(self.size(-1), other.size(other.dim() == 1 ? 0 : -2), self, other);
  TENON_CHECK(self.dtype() == other.dtype(), Type,
              fmt::format("matmul: `other` is {}, `self` is {}; expected both to have the same dtype",
                          name(other.dtype()), name(self.dtype())));
  if (self.dim() == 1 && other.dim() == 1) return tenon::dot(self, other);
  if (self.dim() == 2 && other.dim() == 1) return tenon::mv(self, other);
  if (self.dim() == 2 && other.dim() == 2) return tenon::mm(self, other);
  if (self.dim() == 1) {
    const Tensor row = self.unsqueeze(0);
    return without_dim(other.dim() == 2 ? tenon::mm(row, other) : matmul_batched(row, other), -2);
  }
  if (other.dim() == 1) return without_dim(matmul_batched(self, other.unsqueeze(1)), -1);
  return matmul_batched(self, other);
}

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  TENON_CHECK(weight.dim() == 1 || weight.dim() == 2, Shape,
              fmt::format("linear: `weight` must be [out, in] or [in], got {}", to_string(weight.sizes())));
  TENON_CHECK(
      input.dim() > 0 && input.size(-1) == weight.size(-1), Shape,
      fmt::format(
          "linear: `input` {} and `weight` {} do not fit: expected the last dimension of `input` to be {}",
          to_string(input.sizes()), to_string(weight.sizes()), weight.size(-1)));
  TENON_CHECK(input.dtype() == weight.dtype(), Type,
              fmt::format("linear: `weight` is {}, `input` is {}; convert one with .to(tenon.{})",
                          name(weight.dtype()), name(input.dtype()), name(input.dtype())));
  const int64_t out = weight.dim() == 1 ? 1 : weight.size(0);
  TENON_CHECK(!bias.defined() || bias.dim() > 1 || bias.numel() == 1 || bias.numel() == out, Shape,
              fmt::format("linear: expected `bias` of {} elements for `weight` {}, got {}", out,
                          to_string(weight.sizes()), to_string(bias.sizes())));
  if (weight.dim() == 1) {
    const Tensor product = tenon::matmul(input, weight);
    return bias.defined() ? tenon::add(product, bias) : product;
  }
  if (input.dim() == 2)
    return bias.defined() ? tenon::addmm(bias, input, weight.t()) : tenon::mm(input, weight.t());
  Dims sizes = input.sizes().to_dims();
  sizes.back() = weight.size(0);
  const Dims rows(sizes.data(), sizes.size() - 1);
  const Tensor flat = input.reshape({product(rows), input.size(-1)});
  return tenon::_unsafe_view(
      bias.defined() ? tenon::addmm(bias, flat, weight.t()) : tenon::mm(flat, weight.t()), sizes);
}

Tensor outer(const Tensor& self, const Tensor& vec2) {
  TENON_CHECK(self.dim() == 1 && vec2.dim() == 1, Shape,
              fmt::format("outer: expected two vectors, got {} and {}", to_string(self.sizes()),
                          to_string(vec2.sizes())));
  return tenon::mul(self.unsqueeze(1), vec2);
}

Tensor scaled(const Tensor& self, const Scalar& factor) {
  const bool one = !factor.is_complex() && factor.to_double() == 1;
  return one ? self : tenon::mul(self, factor);
}

}  // namespace tenon::ops
