// Type and Rank: what a node of an expression holds for each element, and what it varies with.
// Used by every file of this room and by what runs expressions. Knows tensors' dtypes only as what is loaded
// and stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tenon/core/dtype.h"

namespace tenon::expr {

/// What a register holds. The numbers are part of the plug-in ABI: new ones are appended.
enum class Type : uint8_t {
  Mask,
  F32,
  F64,
  I32,
  I64,
  // Reserved: no expression has them yet, and `check` refuses them.
  I8,
  U8,
  I16,
  U16,
  U32,
  U64,
  // Of written expressions, whose types follow from a call.
  Same = 0x80,  ///< The type that the call computes in.
  Wide,         ///< The wider one of the call: float32 with halves, float64 with floats, int64.
  Pattern,      ///< The integer as wide as Same, which bits() sees.
  Open,         ///< A literal's, until it meets a typed operand.
};

/// The types that kernels compute in; everything else converts on load and store.
inline constexpr Type kComputeTypes[] = {Type::F32, Type::F64, Type::I32, Type::I64};
inline constexpr int kNumComputeTypes = 4;

/// Whether a code that came from elsewhere is a type, reserved ones included.
constexpr bool is_type(Type t) noexcept { return t <= Type::U64 || (t >= Type::Same && t <= Type::Open); }
constexpr bool is_compute_type(Type t) noexcept { return t >= Type::F32 && t <= Type::I64; }
/// The place of a compute type among kComputeTypes: tables have a column for each.
constexpr int compute_index(Type t) noexcept { return static_cast<int>(t) - static_cast<int>(Type::F32); }
constexpr bool is_floating(Type t) noexcept { return t == Type::F32 || t == Type::F64; }
/// Bytes of one value of a compute type.
constexpr size_t item_size(Type t) noexcept { return t == Type::F32 || t == Type::I32 ? 4 : 8; }
/// The dtype whose elements are of a compute type.
constexpr DType dtype(Type t) noexcept {
  constexpr DType kDTypes[] = {DType::Bool, DType::Float32, DType::Float64, DType::Int32, DType::Int64};
  return kDTypes[static_cast<int>(t)];
}
/// The integer as wide as a compute type; integers themselves.
constexpr Type pattern_of(Type t) noexcept {
  return t == Type::F32 ? Type::I32 : t == Type::F64 ? Type::I64 : t;
}
/// "f32", "i64", "mask", "same": as typed texts and kernels' names have it.
std::string_view suffix(Type t) noexcept;
/// The compute type or mask of that suffix; Open where there is none.
Type parse_suffix(std::string_view text) noexcept;
/// "float32", "bool", ...: as the dtype is called.
std::string_view name(Type t) noexcept;

/// What an element of a dtype is once it is loaded: float16 is f32, int8 is i64, bool a mask, a complex
/// element's part f32 or f64. Open for quantized dtypes and 8-bit floats, which have no arithmetic.
constexpr Type carrier(DType t) noexcept {
  const DTypeInfo& row = dtype_info(t);
  if (row.category == DTypeCategory::Bool) return Type::Mask;
  for (const Type c : kComputeTypes) {
    if (row.compute == dtype(c)) return c;
  }
  return Type::Open;
}
/// What elements of a dtype, or the parts of complex ones, are computed in; none for dtypes without
/// arithmetic.
constexpr std::optional<Type> compute_type(DType t) noexcept {
  for (const Type c : kComputeTypes) {
    if (dtype_info(t).compute == dtype(c)) return c;
  }
  return std::nullopt;
}
/// Whether storing as `t` rounds or wraps values of its carrier: float16, bfloat16, 8- and 16-bit integers.
constexpr bool is_narrower_than_carrier(DType t) noexcept {
  const DTypeInfo& row = dtype_info(t);
  const bool number = row.category == DTypeCategory::Integer || row.category == DTypeCategory::Float;
  return number && row.compute && row.bits < dtype_info(*row.compute).bits;
}

/// Which loop groups a value varies with: a loop goes across rows and along each.
enum class Rank : uint8_t {
  Number,   ///< Neither: one value for the whole call.
  Row,      ///< One for each row.
  Column,   ///< One for each place along a row.
  Element,  ///< Both.
};
constexpr Rank operator|(Rank a, Rank b) noexcept {
  return static_cast<Rank>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
/// Whether it varies with the place along a row; what is left of it once the row is reduced.
constexpr bool varies_along(Rank r) noexcept { return (static_cast<uint8_t>(r) & 2u) != 0; }
constexpr Rank reduced(Rank r) noexcept { return static_cast<Rank>(static_cast<uint8_t>(r) & 1u); }

}  // namespace tenon::expr
