#include "tenon/ops/matmul/factors.h"

#include <fmt/core.h>

#include <cmath>

#include "tenon/core/error.h"

namespace tenon::ops {

Scalar factor_of(const Scalar& factor, DType dtype, const char* op, const char* argument) {
  TENON_CHECK(
      is_complex(dtype) || !factor.is_complex(), Type,
      fmt::format("{}: for {} tensors, `{}` must not be a complex number", op, name(dtype), argument));
  if (!is_integral(dtype, true) || factor.is_integral()) return factor;
  const Scalar truncated = factor.to_int();
  TENON_CHECK(truncated.to_double() == std::trunc(factor.to_double()), Value,
              fmt::format("{}: for {} tensors, `{}` must be a number within int64, got {}", op, name(dtype),
                          argument, factor.to_double()));
  return truncated;
}

void check_integral_factor(const Scalar& factor, DType dtype, const char* op, const char* argument) {
  TENON_CHECK(!is_integral(dtype, true) || factor.is_integral(), Type,
              fmt::format("{}: for {} tensors, `{}` must be an integer, got {}", op, name(dtype), argument,
                          factor.to_double()));
}

}  // namespace tenon::ops
