// Operators made of reductions and pointwise operators, and the gradients of sums and extrema.
#include <fmt/core.h>

#include <limits>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/reduction/bodies.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/iter/geometry.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/forms/reduced_dims.h"
#include "tenon/ops/reduction/gradients.h"

namespace tenon::ops {
Tensor sum_backward(const Tensor& grad, IntArrayRef sizes, std::optional<IntArrayRef> dim, bool keepdim) {
  const Dims mask = reduction_mask(dim, static_cast<int64_t>(sizes.size()), "sum");
  check_reduced(grad, sizes, mask, keepdim, "sum_backward");
  // One element needs no dimensions put back to broadcast.
  if (grad.numel() == 1 && grad.dim() == 0) return grad.expand(sizes);
  return with_kept_dims(grad, mask, keepdim).expand(sizes);
}

Tensor mean_backward(const Tensor& grad, IntArrayRef sizes, std::optional<IntArrayRef> dim, bool keepdim) {
  const int64_t n = reduced_extent(sizes, reduction_mask(dim, static_cast<int64_t>(sizes.size()), "mean"));
  return tenon::div(ops::sum_backward(grad, sizes, dim, keepdim), Scalar(n));
}

Tensor amax_backward(const Tensor& grad, const Tensor& self, const Tensor& result, IntArrayRef dim,
                     bool keepdim) {
  const Dims mask = reduction_mask(dim, self.dim(), "amax");
  check_reduced(grad, self.sizes(), mask, keepdim, "amax_backward");
  check_reduced(result, self.sizes(), mask, keepdim, "amax_backward", "`result`");
  const Tensor g = with_kept_dims(grad, mask, keepdim), r = with_kept_dims(result, mask, keepdim);
  // A NaN is its own extremum, though equal to nothing.
  const Tensor hit = tenon::logical_or(tenon::eq(self, r), tenon::ne(self, self));
  const Tensor ones = hit.to(g.dtype());
  const Tensor count = dim.empty() ? tenon::sum(ones) : tenon::sum(ones, dim, true);
  // Chosen rather than multiplied: an infinite gradient times 0 would be NaN.
  return tenon::where(hit, tenon::div(g, count), Scalar(0));
}

Tensor value_selecting_backward(const Tensor& grad, int64_t dim, const Tensor& indices, IntArrayRef sizes,
                                bool keepdim) {
  if (sizes.empty()) {
    check_reduced(grad, sizes, {}, keepdim, "value_selecting_backward");
    return grad;
  }
  const int64_t d = wrap_dim(dim, static_cast<int64_t>(sizes.size()), "max");
  const Tensor g = keepdim ? grad : grad.unsqueeze(d), i = keepdim ? indices : indices.unsqueeze(d);
  return tenon::gather_backward(g, sizes, d, i);
}

Tensor aminmax_backward(const Tensor& grad_min, const Tensor& grad_max, const Tensor& self, const Tensor& min,
                        const Tensor& max, std::optional<int64_t> dim, bool keepdim) {
  const IntArrayRef dims = dim ? IntArrayRef(*dim) : IntArrayRef();
  return tenon::add(ops::amax_backward(grad_max, self, max, dims, keepdim),
                    ops::amax_backward(grad_min, self, min, dims, keepdim));
}

Tensor sum_to_size(const Tensor& self, IntArrayRef size) {
  if (self.sizes() == size) return self;
  const int64_t leading = self.dim() - static_cast<int64_t>(size.size());
  bool fits = leading >= 0;
  Dims dims;
  for (int64_t d = 0; fits && d < self.dim(); ++d) {
    if (d < leading) {
      // One element needs no sum; the view below drops the dimension.
      if (self.sizes()[at(d)] != 1) dims.push_back(d);
      continue;
    }
    const int64_t wanted = size[at(d - leading)], have = self.sizes()[at(d)];
    if (wanted == 1 && have != 1)
      dims.push_back(d);
    else
      fits = wanted == have;
  }
  TENON_CHECK(fits, Shape,
              fmt::format("sum_to_size: size {} is not expandable to size {}", to_string(size),
                          to_string(self.sizes())));
  // A tensor of its own, as every other sum.
  if (dims.empty()) return tenon::_unsafe_view(self.clone(), size);
  const Tensor summed = tenon::sum(self, IntArrayRef(dims), true);
  return leading > 0 ? tenon::_unsafe_view(summed, size) : summed;
}

namespace {

Tensor complex_logsumexp(const Tensor& self, IntArrayRef dim) {
  if (self.numel() == 0) return tenon::log(tenon::sum(tenon::exp(self), dim, true));
  const Tensor largest = tenon::amax(tenon::real(self), dim, true);
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor shift = tenon::masked_fill(largest, tenon::eq(tenon::abs(largest), Scalar(infinity)), 0);
  return tenon::add(tenon::log(tenon::sum(tenon::exp(tenon::sub(self, shift)), dim, true)), shift);
}

}  // namespace

void logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim, Tensor& out) {
  if (self.is_complex())
    copy_elements(out, tenon::_unsafe_view(complex_logsumexp(self, dim), out.sizes()), "logsumexp");
  else
    tenon::_row_logsumexp_out(out, self, dim, keepdim);
}

Tensor logsumexp_backward(const Tensor& grad, const Tensor& self, const Tensor& result, IntArrayRef dim,
                          bool keepdim) {
  const Dims mask = reduction_mask(dim, self.dim(), "logsumexp_backward");
  check_reduced(grad, self.sizes(), mask, keepdim, "logsumexp_backward");
  check_reduced(result, self.sizes(), mask, keepdim, "logsumexp_backward", "`result`");
  const Tensor share = tenon::exp(tenon::sub(self, with_kept_dims(result, mask, keepdim)));
  return tenon::mul(with_kept_dims(grad, mask, keepdim), tenon::conj(share));
}

}  // namespace tenon::ops
