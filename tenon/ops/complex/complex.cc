// Complex tensors: views of their parts, and operators made of them.
#include <fmt/core.h>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/complex/bodies.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::ops {
Tensor view_as_real(const Tensor& self) {
  TENON_CHECK(self.is_complex(), Type,
              fmt::format("view_as_real: expected a complex tensor, got {}", name(self.dtype())));
  Dims sizes = self.sizes().to_dims(), strides;
  for (const int64_t s : self.strides()) strides.push_back(twice(s));
  sizes.push_back(2);
  strides.push_back(1);
  return retyped_view(self, real_dtype(self.dtype()), sizes, strides, 2 * self.storage_offset());
}

Tensor view_as_complex(const Tensor& self) {
  TENON_CHECK(self.dtype() == DType::Float32 || self.dtype() == DType::Float64, Type,
              fmt::format("view_as_complex: expected float32 or float64, got {}", name(self.dtype())));
  TENON_CHECK(
      self.dim() > 0 && self.sizes().back() == 2, Shape,
      fmt::format("view_as_complex: expected a last dimension of size 2, got {}", to_string(self.sizes())));
  TENON_CHECK(self.strides().back() == 1, Shape,
              fmt::format("view_as_complex: expected a last dimension with stride 1, got strides {}",
                          to_string(self.strides())));
  Dims sizes(self.sizes().data(), self.sizes().size() - 1), strides;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t stride = self.strides()[d];
    TENON_CHECK(stride % 2 == 0 || sizes[d] <= 1, Shape,
                fmt::format("view_as_complex: expected even strides apart from the last, got {}",
                            to_string(self.strides())));
    strides.push_back(stride / 2);
  }
  TENON_CHECK(self.storage_offset() % 2 == 0, Shape,
              fmt::format("view_as_complex: expected an even storage offset, got {}", self.storage_offset()));
  return retyped_view(self, complex_dtype(self.dtype()), sizes, strides, self.storage_offset() / 2);
}

Tensor imag(const Tensor& self) {
  TENON_CHECK(self.is_complex(), Type,
              fmt::format("imag: is not implemented for tensors with non-complex dtypes, got {}",
                          name(self.dtype())));
  return tenon::select(tenon::view_as_real(self), -1, 1);
}

void complex(const Tensor& real, const Tensor& imag, Tensor& out) {
  copy_elements(part_of(out, 0), real, "complex");
  copy_elements(part_of(out, 1), imag, "complex");
}

Tensor polar(const Tensor& abs, const Tensor& angle) {
  TENON_CHECK(abs.dtype() == DType::Float32 || abs.dtype() == DType::Float64, Type,
              fmt::format("polar: expected `abs` of float32 or float64, got {}", name(abs.dtype())));
  TENON_CHECK(
      abs.dtype() == angle.dtype(), Type,
      fmt::format("polar: `angle` is {}, expected {} as `abs`", name(angle.dtype()), name(abs.dtype())));
  return tenon::complex(tenon::mul(abs, tenon::cos(angle)), tenon::mul(abs, tenon::sin(angle)));
}

namespace {

void check_gradient(const Tensor& grad, const Tensor& self, const char* op) {
  TENON_CHECK(grad.sizes() == self.sizes(), Shape,
              fmt::format("{}: the gradient has shape {}, expected {} as `self`", op, to_string(grad.sizes()),
                          to_string(self.sizes())));
}

}  // namespace

Tensor angle_backward(const Tensor& grad, const Tensor& self) {
  check_gradient(grad, self, "angle_backward");
  if (!self.is_complex()) return tenon::zeros_like(self);
  // d atan2(b, a) = (a db - b da) / |x|^2: the gradient is i * x / |x|^2.
  const Tensor size = tenon::abs(self);
  const Tensor direction = tenon::div(tenon::mul(self, Scalar(std::complex<double>(0, 1))), size);
  return tenon::where(tenon::eq(size, Scalar(0)), Scalar(0), tenon::mul(grad, tenon::div(direction, size)));
}

Tensor sgn_backward(const Tensor& grad, const Tensor& self) {
  check_gradient(grad, self, "sgn_backward");
  if (!self.is_complex()) return tenon::zeros_like(self);
  // What is left of a step across the direction of x, over |x|.
  const Tensor size = tenon::abs(self), unit = tenon::sgn(self);
  const Tensor along = tenon::real(tenon::mul(tenon::conj(unit), grad));
  const Tensor across = tenon::div(tenon::sub(grad, tenon::mul(unit, along)), size);
  return tenon::where(tenon::eq(size, Scalar(0)), Scalar(0), across);
}

}  // namespace tenon::ops
