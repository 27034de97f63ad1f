// Operators made of reductions and pointwise operators, and the gradients of reductions.
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "tenon/core/thread_state.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/reduction/bodies.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/ops/copy/elements.h"
#include "tenon/ops/reduction/reduced_dims.h"
#include "tenon/ops/view/geometry.h"

namespace tenon::ops {
namespace {

/// Throws unless a tensor that comes with a gradient, or the gradient itself, has the shape of the result.
void check_reduced(const Tensor& t, IntArrayRef sizes, const Dims& mask, bool keepdim, const char* op,
                   const char* what = "the gradient") {
  const IntArrayRef given = t.sizes();
  size_t next = 0;
  bool same = true;
  for (size_t d = 0; d < mask.size(); ++d) {
    if (mask[d] && !keepdim) continue;
    same &= next < given.size() && given[next] == (mask[d] ? 1 : sizes[d]);
    ++next;
  }
  TENON_CHECK(same && next == given.size(), Shape,
              fmt::format("{}: {} has shape {}, expected {} as the result", op, what, to_string(given),
                          to_string(reduced_sizes(sizes, mask, keepdim))));
}

/// `reduced`, with reduced dimensions of size 1 put back where they were dropped.
Tensor with_kept_dims(const Tensor& reduced, const Dims& mask, bool keepdim) {
  if (keepdim) return reduced;
  Tensor t = reduced;
  for (size_t d = 0; d < mask.size(); ++d) {
    if (mask[d]) t = t.unsqueeze(static_cast<int64_t>(d));
  }
  return t;
}

}  // namespace

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

namespace {

/// Of each element the product of all that come before it along `dim`, by doubling (Hillis and Steele, 1986).
Tensor products_before(const Tensor& self, int64_t dim) {
  const int64_t n = self.sizes()[at(dim)];
  Tensor products = tenon::cat({tenon::ones_like(self.narrow(dim, 0, 1)), self.narrow(dim, 0, n - 1)}, dim);
  for (int64_t reach = 1; reach < n; reach *= 2) {
    const Tensor joined =
        tenon::mul(products.narrow(dim, reach, n - reach), products.narrow(dim, 0, n - reach));
    products = tenon::cat({products.narrow(dim, 0, reach), joined}, dim);
  }
  return products;
}

/// Whether none is zero, denormal, infinite or NaN: divided by a factor, each is as good as it is itself.
bool divides_well(const Tensor& products) {
  if (products.is_meta()) return false;
  const double smallest = products.dtype() == DType::Float16            ? 0x1p-14
                          : item_size(real_dtype(products.dtype())) < 8 ? 0x1p-126
                                                                        : 0x1p-1022;
  const NoGradGuard no_grad;
  const Tensor size = tenon::abs(products);
  return tenon::all(tenon::logical_and(tenon::ge(size, Scalar(smallest)), tenon::isfinite(size)))
      .item()
      .to_bool();
}

}  // namespace

Tensor prod_backward(const Tensor& grad, const Tensor& self, std::optional<int64_t> dim) {
  TENON_CHECK(grad.sizes() == (dim ? self.sizes() : IntArrayRef()), Shape,
              fmt::format("prod_backward: the gradient has shape {}, expected {}{}", to_string(grad.sizes()),
                          to_string(dim ? self.sizes() : IntArrayRef()), dim ? " as `self`" : ""));
  if (self.dim() == 0) return grad;
  if (self.numel() == 0) return tenon::zeros_like(self);
  if (!dim) {
    const Tensor flat = self.reshape({-1});
    return ops::prod_backward(grad.expand({self.numel()}), flat, 0).view(self.sizes());
  }
  // The product of all others: those before times those after, so that zeros do no harm.
  const int64_t d = wrap_dim(*dim, self.dim(), "prod");
  const Tensor whole = tenon::prod(self, d, true);
  if (divides_well(whole)) return tenon::mul(grad, tenon::conj(tenon::div(whole, self)));
  const Tensor before = products_before(self, d), after = products_before(self.flip({d}), d).flip({d});
  return tenon::mul(grad, tenon::conj(tenon::mul(before, after)));
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

Tensor logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim) {
  const Tensor x = is_integral(self.dtype(), true) ? self.to(default_dtype()) : self;
  if (x.numel() == 0) return tenon::log(tenon::sum(tenon::exp(x), dim, keepdim));
  const Tensor largest = tenon::amax(tenon::real(x), dim, true).detach();
  // An infinite maximum would make infinity minus infinity.
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor shift = tenon::masked_fill(largest, tenon::eq(tenon::abs(largest), Scalar(infinity)), 0);
  const Tensor total = tenon::log(tenon::sum(tenon::exp(tenon::sub(x, shift)), dim, true));
  const Tensor result = tenon::add(total, shift);
  return keepdim ? result
                 : tenon::_unsafe_view(
                       result, reduced_sizes(x.sizes(), reduction_mask(dim, x.dim(), "logsumexp"), false));
}

namespace {

/// What a variance divides by; 0 where the correction takes all elements.
double variance_divisor(IntArrayRef sizes, std::optional<IntArrayRef> dim, std::optional<Scalar> correction) {
  const int64_t n = reduced_extent(sizes, reduction_mask(dim, static_cast<int64_t>(sizes.size()), "var"));
  return std::max(0.0, static_cast<double>(n) - (correction ? correction->to_double() : 1.0));
}
Scalar correction_of(bool unbiased) { return Scalar(unbiased ? 1 : 0); }

/// |x|^2 is the sum of both parts' squares.
Tensor complex_variance(const Tensor& self, std::optional<IntArrayRef> dim, std::optional<Scalar> correction,
                        bool keepdim) {
  return tenon::add(tenon::_row_var(tenon::real(self), dim, correction, keepdim),
                    tenon::_row_var(tenon::imag(self), dim, correction, keepdim));
}

}  // namespace

void var(const Tensor& self, std::optional<IntArrayRef> dim, std::optional<Scalar> correction, bool keepdim,
         Tensor& out) {
  if (self.is_complex())
    copy_elements(out, complex_variance(self, dim, correction, keepdim), "var");
  else
    tenon::_row_var_out(out, self, dim, correction, keepdim);
}
Tensor var_unbiased(const Tensor& self, bool unbiased) {
  return tenon::var(self, std::nullopt, correction_of(unbiased), false);
}
Tensor var_dim(const Tensor& self, std::optional<IntArrayRef> dim, bool unbiased, bool keepdim) {
  return tenon::var(self, dim, correction_of(unbiased), keepdim);
}

Tensor var_backward(const Tensor& grad, const Tensor& self, std::optional<IntArrayRef> dim,
                    std::optional<Scalar> correction, bool keepdim) {
  const Dims mask = reduction_mask(dim, self.dim(), "var");
  check_reduced(grad, self.sizes(), mask, keepdim, "var_backward");
  const Tensor wide = with_kept_dims(grad, mask, keepdim);
  const double scale = 2 / variance_divisor(self.sizes(), dim, correction);
  return tenon::mul(tenon::mul(wide, Scalar(scale)), tenon::sub(self, tenon::mean(self, dim, true)));
}

void std(const Tensor& self, std::optional<IntArrayRef> dim, std::optional<Scalar> correction, bool keepdim,
         Tensor& out) {
  if (self.is_complex())
    copy_elements(out, tenon::sqrt(complex_variance(self, dim, correction, keepdim)), "std");
  else
    tenon::_row_std_out(out, self, dim, correction, keepdim);
}
Tensor std_unbiased(const Tensor& self, bool unbiased) {
  return tenon::std(self, std::nullopt, correction_of(unbiased), false);
}
Tensor std_dim(const Tensor& self, std::optional<IntArrayRef> dim, bool unbiased, bool keepdim) {
  return tenon::std(self, dim, correction_of(unbiased), keepdim);
}

Tensor std_backward(const Tensor& grad, const Tensor& result, const Tensor& self,
                    std::optional<IntArrayRef> dim, std::optional<Scalar> correction, bool keepdim) {
  const Dims mask = reduction_mask(dim, self.dim(), "std");
  check_reduced(grad, self.sizes(), mask, keepdim, "std_backward");
  check_reduced(result, self.sizes(), mask, keepdim, "std_backward", "`result`");
  // The root's slope is infinite at 0, where every distance is 0 too: PyTorch gives 0, not their product.
  const Tensor slope = tenon::div(grad, tenon::mul(result, Scalar(2)));
  const Tensor of_var = tenon::masked_fill(slope, tenon::eq(result, Scalar(0)), Scalar(0));
  return ops::var_backward(of_var, self, dim, correction, keepdim);
}

Tensor max_other(const Tensor& self, const Tensor& other) { return tenon::maximum(self, other); }
Tensor min_other(const Tensor& self, const Tensor& other) { return tenon::minimum(self, other); }

}  // namespace tenon::ops
