// Variances and deviations, with and without the mean, over the row operators; complex numbers by their
// parts.
#include <algorithm>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/reduction/bodies.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/forms/reduced_dims.h"
#include "tenon/ops/reduction/gradients.h"

namespace tenon::ops {
namespace {

/// What the distances from the mean are multiplied by: 2 / (n - correction). A correction above n counts as n
/// only where nothing but the whole tensor is reduced, as in PyTorch.
double variance_slope(const Tensor& self, std::optional<IntArrayRef> dim, std::optional<Scalar> correction) {
  const int64_t n = reduced_extent(self.sizes(), reduction_mask(dim, self.dim(), "var"));
  const double divisor = static_cast<double>(n) - (correction ? correction->to_double() : 1.0);
  return 2 / (dim && self.dim() > 0 ? divisor : std::max(0.0, divisor));
}
/// |x|^2 is the sum of both parts' squares.
Tensor complex_variance(const Tensor& self, std::optional<IntArrayRef> dim, std::optional<Scalar> correction,
                        bool keepdim) {
  return tenon::add(tenon::_row_var(tenon::real(self), dim, correction, keepdim),
                    tenon::_row_var(tenon::imag(self), dim, correction, keepdim));
}

void copy_both(const std::tuple<Tensor, Tensor>& from, Tensor& first, Tensor& second) {
  copy_elements(first, std::get<0>(from), "var_mean");
  copy_elements(second, std::get<1>(from), "var_mean");
}

}  // namespace

void var(const Tensor& self, std::optional<IntArrayRef> dim, std::optional<Scalar> correction, bool keepdim,
         Tensor& out) {
  if (self.is_complex())
    copy_elements(out, complex_variance(self, dim, correction, keepdim), "var");
  else
    tenon::_row_var_out(out, self, dim, correction, keepdim);
}

void var_mean(const Tensor& self, std::optional<IntArrayRef> dim, std::optional<Scalar> correction,
              bool keepdim, Tensor& out0, Tensor& out1) {
  if (self.is_complex()) {
    copy_elements(out0, complex_variance(self, dim, correction, keepdim), "var_mean");
    tenon::mean_out(out1, self, dim, keepdim);
  } else {
    copy_both(tenon::_row_var_mean(self, dim, correction, keepdim), out0, out1);
  }
}

Tensor var_backward(const Tensor& grad, const Tensor& self, std::optional<IntArrayRef> dim,
                    std::optional<Scalar> correction, bool keepdim) {
  const Dims mask = reduction_mask(dim, self.dim(), "var");
  check_reduced(grad, self.sizes(), mask, keepdim, "var_backward");
  const Tensor wide = with_kept_dims(grad, mask, keepdim);
  const Scalar slope(variance_slope(self, dim, correction));
  return tenon::mul(tenon::mul(wide, slope), tenon::sub(self, tenon::mean(self, dim, true)));
}

void std(const Tensor& self, std::optional<IntArrayRef> dim, std::optional<Scalar> correction, bool keepdim,
         Tensor& out) {
  if (self.is_complex())
    copy_elements(out, tenon::sqrt(complex_variance(self, dim, correction, keepdim)), "std");
  else
    tenon::_row_std_out(out, self, dim, correction, keepdim);
}

void std_mean(const Tensor& self, std::optional<IntArrayRef> dim, std::optional<Scalar> correction,
              bool keepdim, Tensor& out0, Tensor& out1) {
  if (self.is_complex()) {
    copy_elements(out0, tenon::sqrt(complex_variance(self, dim, correction, keepdim)), "std_mean");
    tenon::mean_out(out1, self, dim, keepdim);
  } else {
    copy_both(tenon::_row_std_mean(self, dim, correction, keepdim), out0, out1);
  }
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

}  // namespace tenon::ops
