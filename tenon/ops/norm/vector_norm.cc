// Norms of vectors: which row operator an order is, and the gradient.
#include <fmt/core.h>

#include <cmath>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/norm/bodies.h"
#include "tenon/generated/norm/functions.h"
#include "tenon/generated/norm/shapes.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/forms/reduced_dims.h"
#include "tenon/ops/reduction/gradients.h"

namespace tenon::ops {

namespace shape {

void linalg_vector_norm(OutputSpecs& out, HeaderRef self, const Scalar& ord, std::optional<IntArrayRef> dim,
                        bool keepdim, std::optional<DType> dtype) {
  const DType from = self.dtype(), to = dtype.value_or(from);
  TENON_CHECK(
      is_floating_point(from) || is_complex(from), NotImplemented,
      fmt::format(": expected `self` of a floating or complex dtype, got {}; convert it", name(from)));
  check_arithmetic(self, kThisCall);
  TENON_CHECK(!ord.is_complex(), Type, ": `ord` is a complex number, a real one was expected");
  TENON_CHECK(is_complex(from) ? is_complex(to) : is_floating_point(to), Type,
              fmt::format(": expected a {} dtype for `self` of {}, got {}",
                          is_complex(from) ? "complex" : "floating", name(from), name(to)));
  TENON_CHECK(promote_types(from, to) == to, Type,
              fmt::format(": {} is narrower than `self` of {}", name(to), name(from)));
  const Dims mask = reduction_mask(dim, self.dim(), kThisCall);
  const double p = ord.to_double();
  TENON_CHECK((p >= 0 && p != INFINITY) || reduced_extent(self.sizes(), mask) > 0, Runtime,
              fmt::format(": the norm of order {} of no elements does not exist; `self` is {}", p,
                          to_string(self.sizes())));
  out.set(0, reduced_sizes(self.sizes(), mask, keepdim), real_dtype(to));
}

}  // namespace shape

void linalg_vector_norm(const Tensor& self, const Scalar& ord, std::optional<IntArrayRef> dim, bool keepdim,
                        std::optional<DType> dtype, Tensor& out) {
  const Tensor converted = dtype && *dtype != self.dtype() ? self.to(*dtype) : self;
  const Tensor x = converted.is_complex() ? tenon::abs(converted) : converted;
  const double p = ord.to_double();
  if (p == 2)
    tenon::_norm_two_out(out, x, dim, keepdim);
  else if (p == 1)
    tenon::_norm_one_out(out, x, dim, keepdim);
  else if (p == 0)
    tenon::_norm_count_out(out, x, dim, keepdim);
  else if (p == INFINITY)
    tenon::_norm_largest_out(out, x, dim, keepdim);
  else if (p == -INFINITY)
    tenon::_norm_smallest_out(out, x, dim, keepdim);
  else
    tenon::_norm_power_out(out, x, ord, dim, keepdim);
}

Tensor linalg_vector_norm_backward(const Tensor& grad, const Tensor& self, const Scalar& ord,
                                   const Tensor& result, std::optional<IntArrayRef> dim, bool keepdim) {
  constexpr const char* kName = "linalg_vector_norm_backward";
  const Dims mask = reduction_mask(dim, self.dim(), kName);
  check_reduced(grad, self.sizes(), mask, keepdim, kName);
  check_reduced(result, self.sizes(), mask, keepdim, kName, "`result`");
  const double p = ord.to_double();
  if (is_floating_point(self.dtype()) && dtype_info(self.dtype()).compute != self.dtype() && p != 0 &&
      p != 1 && p != 2 && !std::isinf(p)) {
    // Powers of elements and norms leave half types where the gradient does not.
    return tenon::linalg_vector_norm_backward(grad.to(DType::Float32), self.to(DType::Float32), ord,
                                              result.to(DType::Float32), dim, keepdim)
        .to(self.dtype());
  }
  const Tensor g = with_kept_dims(grad, mask, keepdim), norm = with_kept_dims(result, mask, keepdim);
  if (p == 0) return tenon::zeros_like(self);
  if (p == 1) return tenon::mul(tenon::sgn(self), g);
  // Where the norm is 0 so are all elements, and any slope would do: PyTorch takes 0. Of a negative order one
  // element is, and the others have no effect. There nothing is divided by it or raised to a power, or
  // derivatives of this would be NaN.
  const Tensor none = tenon::eq(norm, Scalar(0)), divisor = tenon::masked_fill(norm, none, Scalar(1));
  const auto at_zero = [&](const Tensor& t) { return tenon::masked_fill(t, none, Scalar(0)); };
  if (p == 2) return tenon::mul(at_zero(tenon::div(self, divisor)), g);
  const Tensor size = tenon::abs(self);
  if (std::isinf(p)) {
    // A NaN is its own extremum, though equal to nothing.
    const Tensor hit = tenon::logical_or(tenon::eq(size, norm), tenon::ne(size, size));
    Dims dims;
    for (size_t d = 0; d < mask.size(); ++d) {
      if (mask[d]) dims.push_back(static_cast<int64_t>(d));
    }
    const Tensor count = tenon::sum(hit.to(g.dtype()), IntArrayRef(dims), true);
    return tenon::mul(tenon::sgn(self), tenon::mul(tenon::div(g, count), hit.to(g.dtype())));
  }
  // 0 where an element is.
  const auto power = [&](double exponent) {
    const Tensor zeros = tenon::eq(size, Scalar(0));
    return tenon::masked_fill(tenon::pow(tenon::masked_fill(size, zeros, Scalar(1)), Scalar(exponent)), zeros,
                              Scalar(0));
  };
  if (p < 1) {
    return tenon::mul(tenon::mul(tenon::mul(tenon::sgn(self), power(p - 1)), g),
                      at_zero(tenon::pow(divisor, Scalar(1 - p))));
  }
  const Tensor scale = at_zero(tenon::div(g, tenon::pow(divisor, Scalar(p - 1))));
  if (p < 2) return tenon::mul(tenon::mul(tenon::sgn(self), power(p - 1)), scale);
  return tenon::mul(tenon::mul(self, tenon::pow(size, Scalar(p - 2))), scale);
}

}  // namespace tenon::ops
