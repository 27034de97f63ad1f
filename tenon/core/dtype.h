// DType: what one element of a tensor is, and how dtypes promote.
// Used by every room. Knows nothing of tensors; the element types themselves are in half.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tenon {

/// The element types, in the order of their promotion within a category.
enum class DType : uint8_t {
  Bool,
  UInt8,
  Int8,
  Int16,
  Int32,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  Complex64,
  Complex128,
  QInt8,
  QUInt8,
  Float8E4M3FN,
  Float8E5M2,
};
inline constexpr int kNumDTypes = 16;

inline constexpr DType kBool = DType::Bool;
inline constexpr DType kUInt8 = DType::UInt8;
inline constexpr DType kInt8 = DType::Int8;
inline constexpr DType kInt16 = DType::Int16;
inline constexpr DType kInt32 = DType::Int32;
inline constexpr DType kInt64 = DType::Int64;
inline constexpr DType kFloat16 = DType::Float16;
inline constexpr DType kBFloat16 = DType::BFloat16;
inline constexpr DType kFloat32 = DType::Float32;
inline constexpr DType kFloat64 = DType::Float64;
inline constexpr DType kComplex64 = DType::Complex64;
inline constexpr DType kComplex128 = DType::Complex128;

/// PyTorch's name for the same type, so that kernels and schemas carry over.
using ScalarType = DType;

/// Bytes of one element; bool takes one.
constexpr size_t item_size(DType t) noexcept {
  constexpr uint8_t kBytes[kNumDTypes] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 1, 1, 1, 1};
  return kBytes[static_cast<int>(t)];
}

constexpr bool is_complex(DType t) noexcept { return t == DType::Complex64 || t == DType::Complex128; }
constexpr bool is_quantized(DType t) noexcept { return t == DType::QInt8 || t == DType::QUInt8; }
/// Real floating point, half and 8-bit types included.
constexpr bool is_floating_point(DType t) noexcept {
  return (t >= DType::Float16 && t <= DType::Float64) || t == DType::Float8E4M3FN || t == DType::Float8E5M2;
}
/// Integers, optionally with bool.
constexpr bool is_integral(DType t, bool include_bool) noexcept {
  return (t >= DType::UInt8 && t <= DType::Int64) || (include_bool && t == DType::Bool);
}
constexpr bool is_signed(DType t) noexcept {
  return t != DType::Bool && t != DType::UInt8 && t != DType::QUInt8;
}

/// The dtype of the real and imaginary parts of a complex dtype; any other dtype itself.
constexpr DType real_dtype(DType t) noexcept {
  return t == DType::Complex64 ? DType::Float32 : t == DType::Complex128 ? DType::Float64 : t;
}
/// The complex dtype whose parts are of a real one: complex128 of float64, complex64 of any other.
constexpr DType complex_dtype(DType t) noexcept {
  return t == DType::Float64 || t == DType::Complex128 ? DType::Complex128 : DType::Complex64;
}

/// "float32", "bool", ...: the name after `tenon.` in Python.
std::string_view name(DType t) noexcept;
/// The reverse of `name`, also for PyTorch's aliases ("float", "double", "half", "int", "long", "short").
std::optional<DType> parse_dtype(std::string_view text) noexcept;

/// The smallest dtype that holds both, as torch.promote_types. Throws Error{Type} for quantized and 8-bit
/// floats mixed with anything else.
DType promote_types(DType a, DType b);
/// Whether a value of `from` may be stored in `to` without losing its category (complex > float > integer >
/// bool).
bool can_cast(DType from, DType to) noexcept;

/// The dtype that float results of integer input and Python floats get; float32 unless set.
DType default_dtype() noexcept;
/// Sets it for the process. Throws Error{Type} unless `t` is a real floating type.
void set_default_dtype(DType t);

}  // namespace tenon
