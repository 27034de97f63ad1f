// Special functions that are made of others.
#include <fmt/core.h>

#include <cmath>
#include <numbers>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/random/functions.h"
#include "tenon/generated/special/bodies.h"
#include "tenon/generated/special/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/iter/result_shape.h"

namespace tenon::ops {

Tensor mvlgamma(const Tensor& self, int64_t p) {
  TENON_CHECK(p >= 1, Value, fmt::format("mvlgamma: p has to be greater than or equal to 1, got {}", p));
  TENON_CHECK(p <= 100'000, Value, fmt::format("mvlgamma: p of {} has too many terms; at most 100000", p));
  Tensor sum = tenon::lgamma(self);
  for (int64_t i = 1; i < p; ++i)
    sum = tenon::add(sum, tenon::lgamma(tenon::sub(self, Scalar(0.5 * static_cast<double>(i)))));
  const double constant = 0.25 * static_cast<double>(p * (p - 1)) * std::log(std::numbers::pi);
  return p == 1 ? sum : tenon::add(sum, Scalar(constant));
}

Tensor polygamma(int64_t n, const Tensor& self) {
  TENON_CHECK(n >= 0, Value, fmt::format("polygamma: n has to be 0 or more, got {}", n));
  if (n == 0) return tenon::digamma(self);
  if (n == 1) return tenon::_trigamma(self);
  double factor = n % 2 == 0 ? -1 : 1;
  for (int64_t k = 2; k <= n && std::isfinite(factor); ++k) factor *= static_cast<double>(k);
  return tenon::_polygamma(self, static_cast<double>(n + 1), factor);
}

Tensor _igamma_shape_gradient(const Tensor& grad, const Tensor& self, const Tensor& other) {
  Dims sizes = self.sizes().to_dims();
  broadcast_to(sizes, other.sizes(), "igamma");
  const DType dtype = grad.dtype();
  const Tensor slope =
      tenon::_standard_gamma_grad(self.to(dtype).expand(sizes), other.to(dtype).expand(sizes));
  return tenon::neg(tenon::mul(grad, tenon::mul(tenon::_igamma_density(self, other), slope)));
}

Tensor _special_zeta_exponent_gradient(const Tensor&) {
  throw_error(ErrorKind::NotImplemented,
              "special_zeta: there is no derivative by the exponent `self`; detach it before the call");
}

}  // namespace tenon::ops
