// Shapes and bodies of functions of numbers.
#include <fmt/core.h>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/numeric/bodies.h"
#include "tenon/generated/numeric/shapes.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/iter/promotion.h"
#include "tenon/iter/result_shape.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/tensor_operators.h"

namespace tenon::ops {

namespace {

DType common_dtype(HeaderRef a, HeaderRef b) {
  Promotion promotion;
  promotion.add(a.checked());
  promotion.add(b.checked());
  return promotion.common();
}

}  // namespace

namespace shape {

void signbit(OutputSpecs& out, HeaderRef self) {
  check_real(self, kThisCall);
  out.set_like(0, self, DType::Bool);
}

void gcd(OutputSpecs& out, HeaderRef self, HeaderRef other) {
  const DType dtype = common_dtype(self, other);
  TENON_CHECK(is_integral(dtype, false), Type, fmt::format(": expected integers, got {}", name(dtype)));
  out.set(0, broadcast_shapes(self.sizes(), other.sizes(), kThisCall), dtype);
}

void nextafter(OutputSpecs& out, HeaderRef self, HeaderRef other) {
  const DType dtype = common_dtype(self, other);
  TENON_CHECK(is_floating_point(dtype) && has_arithmetic(dtype), Type,
              fmt::format(": expected a floating point dtype, got {}; convert it", name(dtype)));
  out.set(0, broadcast_shapes(self.sizes(), other.sizes(), kThisCall), dtype);
}

void frexp(OutputSpecs& out, HeaderRef self) {
  check_arithmetic(self, kThisCall);
  TENON_CHECK(is_floating_point(self.dtype()), Type,
              fmt::format(": expected a floating point dtype, got {}; convert it", name(self.dtype())));
  out.set(0, self.sizes(), self.dtype());
  out.set(1, self.sizes(), DType::Int32);
}

}  // namespace shape

Tensor isreal(const Tensor& self) {
  if (self.is_complex()) return tenon::imag(self) == 0;
  return tenon::ones(self.sizes(), self.options().dtype(DType::Bool));
}

Tensor positive(const Tensor& self) {
  TENON_CHECK(self.dtype() != DType::Bool, Type, "positive: bool has no sign; convert it");
  return tenon::alias(self);
}

// In three steps, whose factors are in the range of the dtype though 2 ** other may not be.
Tensor ldexp(const Tensor& self, const Tensor& other) {
  const Tensor* both[] = {&self, &other};
  const DType common = result_type(both), dtype = is_floating_point(common) ? common : default_dtype();
  if (self.is_complex() || other.is_complex()) return self * tenon::pow(2.0, other);
  const double most = dtype == DType::Float64 ? 1022 : dtype == DType::Float16 ? 14 : 126;
  const Tensor exponent = tenon::clamp(other.to(dtype), -3 * most, 3 * most);
  const Tensor third = tenon::trunc(exponent.detach() / 3), factor = tenon::pow(2.0, third);
  return self.to(dtype) * factor * factor * tenon::pow(2.0, exponent - 2 * third);
}

Tensor logaddexp2(const Tensor& self, const Tensor& other) {
  const Tensor* both[] = {&self, &other};
  const DType dtype = result_type(both);
  TENON_CHECK(is_floating_point(dtype), Type,
              fmt::format("logaddexp2: expected a floating point dtype, got {}; convert it", name(dtype)));
  const DType wide = dtype_info(dtype).compute.value_or(dtype);
  const Tensor a = self.to(wide), b = other.to(wide);
  const Tensor largest = tenon::maximum(a, b);
  const Tensor more = tenon::log1p(tenon::exp2(-tenon::abs(a - b))) / 0.69314718055994530942;
  // Equal infinities have no difference.
  return tenon::where(tenon::logical_and(a == b, tenon::isinf(a)), a, largest + more).to(dtype);
}

namespace {

/// float64, or complex128 if one of both is complex.
DType power_dtype(bool is_complex) { return is_complex ? DType::Complex128 : DType::Float64; }

}  // namespace

Tensor float_power(const Tensor& self, const Tensor& exponent) {
  const DType dtype = power_dtype(self.is_complex() || exponent.is_complex());
  return tenon::pow(self.to(dtype), exponent.to(dtype));
}
Tensor float_power_Scalar(const Scalar& self, const Tensor& exponent) {
  return tenon::pow(self, exponent.to(power_dtype(self.is_complex() || exponent.is_complex())));
}
Tensor float_power_Tensor_Scalar(const Tensor& self, const Scalar& exponent) {
  const DType dtype = power_dtype(self.is_complex() || exponent.is_complex());
  // A float exponent: an integer one must not be negative where integers are computed.
  return tenon::pow(self.to(dtype), exponent.is_complex() ? exponent : Scalar(exponent.to_double()));
}

}  // namespace tenon::ops
