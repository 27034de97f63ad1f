// The order of elements, as integers: an element comes before another exactly if its key is smaller. NaN
// comes after every number and is equal to NaN; -0 is equal to 0. Used by sorting; knows no tensors.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "tenon/core/dtype.h"
#include "tenon/core/error.h"

namespace tenon::cpu {

/// Elements of some integers' size whose keys are their bits, inverted where `kFlip` has ones.
template <class T, T kFlip = 0>
struct IntegerOrder {
  using Bits = T;
  static constexpr bool kFloating = false;
  static constexpr T kConstant = kFlip;
  static constexpr T key(T bits) noexcept { return static_cast<T>(bits ^ kFlip); }
};

/// Floating-point elements, by the bits of their infinity. The bits of a magnitude are ordered as numbers
/// are.
template <class T, T kInfinity>
struct FloatOrder {
  using Bits = T;
  static constexpr bool kFloating = true;
  static constexpr T kConstant = kInfinity;
  static constexpr T key(T bits) noexcept {
    constexpr T kLargest = std::numeric_limits<T>::max();
    const T magnitude = static_cast<T>(bits & kLargest);
    if (magnitude > kInfinity) return kLargest;
    // No branch: signs are often random.
    const T sign = static_cast<T>(bits >> (8 * sizeof(T) - 1));
    return static_cast<T>((magnitude ^ sign) - sign);
  }
};

using ByteOrder = IntegerOrder<int8_t, -128>;  ///< uint8, and bool
using HalfOrder = FloatOrder<int16_t, 0x7C00>;
using BFloat16Order = FloatOrder<int16_t, 0x7F80>;
using Float32Order = FloatOrder<int32_t, 0x7F800000>;
using Float64Order = FloatOrder<int64_t, 0x7FF0000000000000>;

/// Calls f with the order of a dtype: bool and all integer and floating-point dtypes that kernels compute
/// with.
template <class F>
auto with_order(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Bool:
    case DType::UInt8:
      return f(ByteOrder());
    case DType::Int8:
      return f(IntegerOrder<int8_t>());
    case DType::Int16:
      return f(IntegerOrder<int16_t>());
    case DType::Int32:
      return f(IntegerOrder<int32_t>());
    case DType::Int64:
      return f(IntegerOrder<int64_t>());
    case DType::UInt16:
      return f(IntegerOrder<int16_t, INT16_MIN>());
    case DType::UInt32:
      return f(IntegerOrder<int32_t, INT32_MIN>());
    case DType::UInt64:
      return f(IntegerOrder<int64_t, INT64_MIN>());
    case DType::Float16:
      return f(HalfOrder());
    case DType::BFloat16:
      return f(BFloat16Order());
    case DType::Float32:
      return f(Float32Order());
    case DType::Float64:
      return f(Float64Order());
    default:
      throw_error(ErrorKind::NotImplemented, std::string("not implemented for ") + std::string(name(dtype)));
  }
}

}  // namespace tenon::cpu
