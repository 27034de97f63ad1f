#include "tenon/core/scalar.h"

#include <fmt/core.h>

#include <cmath>

#include "tenon/core/error.h"

namespace tenon {

DType Scalar::dtype_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::Bool:
      return DType::Bool;
    case Kind::Int:
      return DType::Int64;
    case Kind::Float:
      return default_dtype();
    case Kind::Complex:
      break;
  }
  return default_dtype() == DType::Float64 ? DType::Complex128 : DType::Complex64;
}

void check_fits(const Scalar& value, DType dtype, const char* op) {
  TENON_CHECK(!value.is_complex() || is_complex(dtype) || value.to_complex().imag() == 0, Type,
              fmt::format("{}: a complex value cannot be converted to {}", op, name(dtype)));
  if (!is_integral(dtype, false) || value.is_bool()) return;
  const bool beyond = value.is_beyond_int64();
  if (value.is_integral() && (dtype == DType::Int64 || dtype == DType::UInt64) && beyond <= !is_signed(dtype))
    return;
  const bool has_sign = is_signed(dtype);
  const double limit = std::ldexp(1.0, static_cast<int>(8 * item_size(dtype)) - (has_sign ? 1 : 0));
  const double v = std::trunc(value.to_double());
  const bool fits = v < limit && (has_sign ? v >= -limit : v >= 0 || (value.is_integral() && v > -limit));
  TENON_CHECK(fits, Value,
              fmt::format("{}: value {} cannot be converted to {} without overflow", op, value.to_double(),
                          name(dtype)));
}

}  // namespace tenon
