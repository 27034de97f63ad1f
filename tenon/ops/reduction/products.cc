// The gradients of products, where a factor may be zero.
#include <fmt/core.h>

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
#include "tenon/iter/geometry.h"

namespace tenon::ops {

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

bool is_half(const Tensor& t) { return t.dtype() == DType::Float16 || t.dtype() == DType::BFloat16; }

}  // namespace

Tensor prod_backward(const Tensor& grad, const Tensor& self, std::optional<int64_t> dim) {
  TENON_CHECK(grad.sizes() == (dim ? self.sizes() : IntArrayRef()), Shape,
              fmt::format("prod_backward: the gradient has shape {}, expected {}{}", to_string(grad.sizes()),
                          to_string(dim ? self.sizes() : IntArrayRef()), dim ? " as `self`" : ""));
  if (self.dim() == 0) return grad;
  if (self.numel() == 0) return tenon::zeros_like(self);
  // Half types round once, at the end.
  if (is_half(self))
    return ops::prod_backward(grad.to(DType::Float32), self.to(DType::Float32), dim).to(self.dtype());
  if (!dim) {
    const Tensor flat = self.reshape({-1});
    return ops::prod_backward(grad.expand({self.numel()}), flat, 0).view(self.sizes());
  }
  // The product of all others: those before times those after, so that zeros do no harm.
  const int64_t d = wrap_dim(*dim, self.dim(), "prod");
  const Tensor whole = tenon::prod(self, d, true);
  if (divides_well(whole)) return tenon::mul(grad, tenon::conj(tenon::div(whole, self)));
  const Tensor before = products_before(self, d), after = products_before(self.flip({d}), d).flip({d});
  const Tensor gradient = tenon::mul(grad, tenon::conj(tenon::mul(before, after)));
  // Its own gradient flows through every product.
  if (thread_state.grad_enabled) return gradient;
  // Two zeros leave no gradient at all, also where others' products overflow and infinity times 0 is NaN.
  const Tensor zeros = tenon::sum(tenon::eq(self, Scalar(0)), d, true);
  return tenon::masked_fill(gradient, tenon::ge(zeros, Scalar(2)), Scalar(0));
}

namespace {

/// r[k] = grad[k] + factors[k + 1] * r[k + 1], from the last place back, by doubling.
Tensor weighted_after(const Tensor& grad, const Tensor& factors, int64_t dim) {
  const int64_t n = grad.sizes()[at(dim)];
  Tensor sums = grad;
  Tensor weights =
      tenon::cat({factors.narrow(dim, 1, n - 1), tenon::zeros_like(factors.narrow(dim, 0, 1))}, dim);
  for (int64_t reach = 1; reach < n; reach *= 2) {
    const auto near = [&](const Tensor& t) { return t.narrow(dim, 0, n - reach); };
    const auto far = [&](const Tensor& t) { return t.narrow(dim, reach, n - reach); };
    const auto last = [&](const Tensor& t) { return t.narrow(dim, n - reach, reach); };
    const Tensor joined = tenon::add(near(sums), tenon::mul(near(weights), far(sums)));
    weights = tenon::cat({tenon::mul(near(weights), far(weights)), last(weights)}, dim);
    sums = tenon::cat({joined, last(sums)}, dim);
  }
  return sums;
}

}  // namespace

Tensor cumprod_backward(const Tensor& grad, const Tensor& input, int64_t dim, const Tensor& output) {
  for (const Tensor& t : {grad, output}) {
    TENON_CHECK(t.sizes() == input.sizes(), Shape,
                fmt::format("cumprod_backward: expected {} of shape {} as `input`, got {}",
                            t.is_same(grad) ? "the gradient" : "`output`", to_string(input.sizes()),
                            to_string(t.sizes())));
    TENON_CHECK(t.device() == input.device(), Device,
                fmt::format("cumprod_backward: expected all tensors on {} as `input`, got one on {}",
                            to_string(input.device()), to_string(t.device())));
  }
  const int64_t d = wrap_dim(dim, input.dim(), "cumprod");
  if (is_half(input)) {
    const Tensor wide = input.to(DType::Float32);
    return ops::cumprod_backward(grad.to(DType::Float32), wide, d, tenon::cumprod(wide, d)).to(input.dtype());
  }
  if (input.dim() == 0 || input.numel() == 0 || input.sizes()[at(d)] == 1) return grad;
  const Tensor factors = tenon::conj(input);
  if (input.is_meta() || divides_well(output)) {
    const Tensor terms = tenon::mul(grad, tenon::conj(output));
    return tenon::div(tenon::cumsum(terms.flip({d}), d).flip({d}), factors);
  }
  // What comes before a factor, times the sum over all that come after it: no factor is divided by.
  // In order in memory, as the other way leaves it.
  return tenon::mul(products_before(factors, d).contiguous(), weighted_after(grad, factors, d));
}

}  // namespace tenon::ops
