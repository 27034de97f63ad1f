// Sums and means without NaN, covariances.
#include <fmt/core.h>

#include <algorithm>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/statistics/bodies.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/tensor_operators.h"

namespace tenon::ops {
namespace {

using OptDims = std::optional<IntArrayRef>;

Tensor without_nan(const Tensor& self) {
  return is_floating_point(self.dtype()) ? tenon::where(tenon::isnan(self), Scalar(0), self) : self;
}

/// The weights of observations, a vector of `n`; undefined where there are none.
void check_weights(const Tensor& weights, int64_t n, const char* name_of, bool integers) {
  if (!weights.defined()) return;
  TENON_CHECK(weights.dim() <= 1 && weights.numel() == n, Shape,
              fmt::format("cov: {} must be a vector of {} observations, got shape {}", name_of, n,
                          to_string(weights.sizes())));
  TENON_CHECK(
      is_integral(weights.dtype(), false) == integers && (integers || is_floating_point(weights.dtype())),
      Type,
      fmt::format("cov: {} must be of {}, got {}", name_of, integers ? "integers" : "floating point",
                  name(weights.dtype())));
  TENON_CHECK(weights.is_meta() || n == 0 || read_scalar(tenon::amin(weights.detach())).to_double() >= 0,
              Value, fmt::format("cov: {} must not be negative", name_of));
}

}  // namespace

Tensor nansum(const Tensor& self, OptDims dim, bool keepdim, std::optional<DType> dtype) {
  TENON_CHECK(!is_complex(self.dtype()), Type,
              "nansum: complex numbers are not summed without NaN; take real and "
              "imaginary parts");
  return tenon::sum(without_nan(self), dim, keepdim, dtype);
}

Tensor nanmean(const Tensor& self, OptDims dim, bool keepdim, std::optional<DType> dtype) {
  TENON_CHECK(
      is_floating_point(self.dtype()), Type,
      fmt::format("nanmean: expected a floating point dtype, got {}; convert it", name(self.dtype())));
  const Tensor count = tenon::sum(tenon::logical_not(tenon::isnan(self.detach())), dim, keepdim);
  return ops::nansum(self, dim, keepdim, dtype) / count;
}

Tensor cov(const Tensor& self, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  TENON_CHECK(self.dim() <= 2, Shape,
              fmt::format("cov: expected at most 2 dimensions, got shape {}", to_string(self.sizes())));
  TENON_CHECK(self.dtype() != DType::Bool, Type, "cov: bool has no covariance; convert it");
  const Tensor x = self.dim() < 2 ? self.reshape({1, -1}) : self;
  const int64_t n = x.size(1);
  check_weights(fweights, n, "fweights", true);
  check_weights(aweights, n, "aweights", false);
  Tensor weights = fweights.defined() ? fweights.reshape({-1}) : Tensor();
  if (aweights.defined())
    weights = weights.defined() ? weights * aweights.reshape({-1}) : aweights.reshape({-1});
  const Tensor total = weights.defined() ? tenon::sum(weights) : Tensor();
  const Tensor values = is_integral(x.dtype(), false) ? x.to(default_dtype()) : x;
  const Tensor mean = total.defined() ? tenon::sum(values * weights, IntArrayRef(1), true) / total
                                      : tenon::sum(values, IntArrayRef(1), true) / n;
  const Tensor apart = values - mean;
  const Tensor products =
      tenon::mm(apart, tenon::conj(weights.defined() ? (apart * weights).to(apart.dtype()) : apart).t());
  if (!total.defined()) return (products / std::max<int64_t>(n - correction, 0)).squeeze();
  Tensor norm = total - correction;
  if (aweights.defined() && correction != 0)
    norm = total - tenon::sum(weights * aweights.reshape({-1})) * correction / total;
  return (products / tenon::clamp_min(norm, 0)).squeeze();
}

Tensor corrcoef(const Tensor& self) {
  TENON_CHECK(self.dim() <= 2, Shape,
              fmt::format("corrcoef: expected at most 2 dimensions, got shape {}", to_string(self.sizes())));
  const Tensor c = ops::cov(self, 1, {}, {});
  if (c.dim() == 0) return c / c;
  const Tensor spread = tenon::sqrt(c.is_complex() ? tenon::real(c.diagonal()) : c.diagonal());
  const Tensor ratio = c / spread.unsqueeze(1) / spread.unsqueeze(0);
  if (!ratio.is_complex()) return tenon::clamp(ratio, Scalar(-1), Scalar(1));
  return tenon::complex(tenon::clamp(tenon::real(ratio), Scalar(-1), Scalar(1)),
                        tenon::clamp(tenon::imag(ratio), Scalar(-1), Scalar(1)));
}

}  // namespace tenon::ops
