// Division with a rounding mode, and rounding to decimal places.
#include <fmt/core.h>

#include <cmath>

#include "tenon/generated/arithmetic/bodies.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/unary/bodies.h"
#include "tenon/generated/unary/functions.h"

namespace tenon::ops {
namespace {

using Mode = std::optional<std::string_view>;

enum class Rounding { None, Trunc, Floor };

Rounding rounding_of(Mode mode) {
  if (!mode) return Rounding::None;
  if (*mode == "trunc") return Rounding::Trunc;
  if (*mode == "floor") return Rounding::Floor;
  throw_error(ErrorKind::Value,
              fmt::format("div: expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{}'",
                          *mode));
}

template <class Other>
Tensor divided(const Tensor& self, const Other& other, Mode mode) {
  switch (rounding_of(mode)) {
    case Rounding::Trunc:
      return tenon::trunc_divide(self, other);
    case Rounding::Floor:
      return tenon::floor_divide(self, other);
    default:
      return tenon::div(self, other);
  }
}

template <class Other>
Tensor& divide(Tensor& self, const Other& other, Mode mode) {
  switch (rounding_of(mode)) {
    case Rounding::Trunc:
      return self.trunc_divide_(other);
    case Rounding::Floor:
      return self.floor_divide_(other);
    default:
      return self.div_(other);
  }
}

}  // namespace

Tensor div_mode(const Tensor& self, const Tensor& other, Mode mode) { return divided(self, other, mode); }
Tensor div_Scalar_mode(const Tensor& self, const Scalar& other, Mode mode) {
  return divided(self, other, mode);
}
Tensor& div__mode(Tensor& self, const Tensor& other, Mode mode) { return divide(self, other, mode); }
Tensor& div__Scalar_mode(Tensor& self, const Scalar& other, Mode mode) { return divide(self, other, mode); }

// Multiplies for places after the point, divides for those before it: powers of ten are exact to 10^22,
// their reciprocals never.
Tensor round_decimals(const Tensor& self, int64_t decimals) {
  if (decimals == 0 || is_integral(self.dtype(), true)) return tenon::round(self);
  // The half types have too few digits for the product.
  if (self.itemsize() < 4) return ops::round_decimals(self.to(kFloat32), decimals).to(self.dtype());
  const Scalar ten(std::pow(10.0, std::abs(static_cast<double>(decimals))));
  return decimals > 0 ? tenon::div(tenon::round(tenon::mul(self, ten)), ten)
                      : tenon::mul(tenon::round(tenon::div(self, ten)), ten);
}

Tensor& round__decimals(Tensor& self, int64_t decimals) {
  return self.copy_(ops::round_decimals(self, decimals));
}

}  // namespace tenon::ops
