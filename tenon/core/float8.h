// What the bytes of the 8-bit floating-point dtypes mean. Used where elements are shown to people and to
// Python; Tenon does not compute with them.
#pragma once

#include <bit>
#include <cstdint>

#include "tenon/core/dtype.h"
#include "tenon/core/half.h"

namespace tenon {

constexpr bool is_float8(DType t) noexcept { return is_floating_point(t) && item_size(t) == 1; }

namespace detail {

/// Four bits of exponent, three of mantissa, no infinities (OCP's E4M3). A binary16 with the same bits after
/// its sign has 2^-8 times the value.
inline float float8_e4m3fn_to_float(uint8_t b) noexcept {
  const auto sign = static_cast<uint16_t>((b & 0x80u) << 8);
  if ((b & 0x7Fu) == 0x7Fu) return half_to_float(sign | 0x7E00u);
  return half_to_float(static_cast<uint16_t>(sign | (b & 0x7Fu) << 7)) * 256.0f;
}

/// The upper byte of a binary16.
inline float float8_e5m2_to_float(uint8_t b) noexcept { return half_to_float(static_cast<uint16_t>(b << 8)); }

}  // namespace detail

/// Exact. `dtype` is one for which is_float8 holds.
inline float float8_to_float(DType dtype, uint8_t byte) noexcept {
  return dtype == DType::Float8E5M2 ? detail::float8_e5m2_to_float(byte)
                                    : detail::float8_e4m3fn_to_float(byte);
}

}  // namespace tenon
