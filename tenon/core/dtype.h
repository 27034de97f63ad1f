// DType: the type of one element of a tensor, and how dtypes promote. Used by every room. Independent of
// tensors; the C++ types of elements are in half.h. A dtype is one row of kDTypeInfos. Whatever depends on
// the dtype reads that row and never compares codes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tenon {

/// The element types. Their codes are stored in compiled plug-ins: they never change, and new ones are
/// appended. Codes from kFirstRegisteredDType on are kept for dtypes that are registered out of tree.
enum class DType : uint8_t {
  Bool = 0,
  UInt8 = 1,
  Int8 = 2,
  Int16 = 3,
  Int32 = 4,
  Int64 = 5,
  Float16 = 6,
  BFloat16 = 7,
  Float32 = 8,
  Float64 = 9,
  Complex64 = 10,
  Complex128 = 11,
  QInt8 = 12,
  QUInt8 = 13,
  Float8E4M3FN = 14,
  Float8E5M2 = 15,
  UInt16 = 16,
  UInt32 = 17,
  UInt64 = 18,
};
inline constexpr int kNumDTypes = 19;
inline constexpr int kFirstRegisteredDType = 64;

inline constexpr DType kBool = DType::Bool;
inline constexpr DType kUInt8 = DType::UInt8;
inline constexpr DType kUInt16 = DType::UInt16;
inline constexpr DType kUInt32 = DType::UInt32;
inline constexpr DType kUInt64 = DType::UInt64;
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

/// PyTorch's name for DType, so that kernels and schemas written for PyTorch compile.
using ScalarType = DType;

/// The kind of number that an element is. From Bool to Complex, the higher category decides a promotion on
/// its own.
enum class DTypeCategory : uint8_t { Bool, Integer, Float, Complex, Quantized, Unknown };

/// Codes of DLPack's DLDataTypeCode, whose names are in its specification.
enum class DLPackCode : uint8_t {
  Int = 0,
  UInt = 1,
  Float = 2,
  BFloat = 4,
  Complex = 5,
  Bool = 6,
  Float8E4M3FN = 10,
  Float8E5M2 = 12,
  None = 255,
};

/// Everything that Tenon knows about one dtype.
struct DTypeInfo {
  DType code;
  const char* name;        ///< "float32": after `tenon.` in Python.
  const char* enumerator;  ///< "Float32": after `DType::` in C++.
  uint8_t bits;            ///< Of one element, in memory.
  DTypeCategory category;
  bool is_signed;
  /// Within a category, the dtype of higher rank wins a promotion, but an unsigned integer and a signed one
  /// of no higher rank promote to the signed one of the next rank, because neither can hold the other;
  /// float16 and bfloat16 as well. A dtype of rank 0 promotes with itself only.
  uint8_t rank;
  DType parts;                   ///< Of a complex dtype that of its real and imaginary parts; else itself.
  std::optional<DType> compute;  ///< What kernels compute in; none where elements are only stored and moved.
  const char* numpy;             ///< Its type string in NumPy's array interface; null where NumPy has none.
  DLPackCode dlpack;
  int8_t torch;  ///< PyTorch's number of it, which schemas may give as a default.
};

namespace detail {
constexpr std::array<DTypeInfo, kNumDTypes + 1> make_dtype_infos() {
  using enum DType;
  using C = DTypeCategory;
  using D = DLPackCode;
  return {{
      {Bool, "bool", "Bool", 8, C::Bool, false, 1, Bool, Int64, "|b1", D::Bool, 11},
      {UInt8, "uint8", "UInt8", 8, C::Integer, false, 1, UInt8, Int64, "|u1", D::UInt, 0},
      {Int8, "int8", "Int8", 8, C::Integer, true, 1, Int8, Int64, "|i1", D::Int, 1},
      {Int16, "int16", "Int16", 16, C::Integer, true, 2, Int16, Int64, "<i2", D::Int, 2},
      {Int32, "int32", "Int32", 32, C::Integer, true, 3, Int32, Int32, "<i4", D::Int, 3},
      {Int64, "int64", "Int64", 64, C::Integer, true, 4, Int64, Int64, "<i8", D::Int, 4},
      {Float16, "float16", "Float16", 16, C::Float, true, 1, Float16, Float32, "<f2", D::Float, 5},
      {BFloat16, "bfloat16", "BFloat16", 16, C::Float, true, 1, BFloat16, Float32, nullptr, D::BFloat, 15},
      {Float32, "float32", "Float32", 32, C::Float, true, 2, Float32, Float32, "<f4", D::Float, 6},
      {Float64, "float64", "Float64", 64, C::Float, true, 3, Float64, Float64, "<f8", D::Float, 7},
      // The rank of a complex dtype is that of its parts, so that it still holds a float64 part.
      {Complex64, "complex64", "Complex64", 64, C::Complex, true, 2, Float32, Float32, "<c8", D::Complex, 9},
      {Complex128, "complex128", "Complex128", 128, C::Complex, true, 3, Float64, Float64, "<c16", D::Complex,
       10},
      {QInt8, "qint8", "QInt8", 8, C::Quantized, true, 0, QInt8, {}, nullptr, D::None, 12},
      {QUInt8, "quint8", "QUInt8", 8, C::Quantized, false, 0, QUInt8, {}, nullptr, D::None, 13},
      {Float8E4M3FN,
       "float8_e4m3fn",
       "Float8E4M3FN",
       8,
       C::Float,
       true,
       0,
       Float8E4M3FN,
       {},
       nullptr,
       D::Float8E4M3FN,
       24},
      {Float8E5M2,
       "float8_e5m2",
       "Float8E5M2",
       8,
       C::Float,
       true,
       0,
       Float8E5M2,
       {},
       nullptr,
       D::Float8E5M2,
       23},
      {UInt16, "uint16", "UInt16", 16, C::Integer, false, 2, UInt16, Int64, "<u2", D::UInt, 27},
      {UInt32, "uint32", "UInt32", 32, C::Integer, false, 3, UInt32, Int64, "<u4", D::UInt, 28},
      // In int64's registers; what depends on the sign is written for it (tenon/expr/unsigned.h).
      {UInt64, "uint64", "UInt64", 64, C::Integer, false, 4, UInt64, Int64, "<u8", D::UInt, 29},
      // For every code without a row.
      {DType{255}, "unknown dtype", "", 0, C::Unknown, false, 0, DType{255}, {}, nullptr, D::None, -1},
  }};
}
inline constexpr auto kDTypeRows = make_dtype_infos();
}  // namespace detail

/// Whether a code names a dtype. A code from a plug-in, a file or a cast may not.
constexpr bool is_known(DType t) noexcept { return static_cast<uint8_t>(t) < kNumDTypes; }
/// The row of a dtype. For an unknown code it is a row of category Unknown with zero bits, which promotes
/// with nothing.
constexpr const DTypeInfo& dtype_info(DType t) noexcept {
  return detail::kDTypeRows[is_known(t) ? static_cast<uint8_t>(t) : kNumDTypes];
}
/// The known dtypes, by code.
inline constexpr std::array<DType, kNumDTypes> kDTypes = [] {
  std::array<DType, kNumDTypes> all{};
  for (int i = 0; i < kNumDTypes; ++i) all[i] = detail::kDTypeRows[i].code;
  return all;
}();
static_assert(
    [] {
      for (int i = 0; i < kNumDTypes; ++i) {
        if (static_cast<int>(kDTypes[i]) != i) return false;
      }
      return true;
    }(),
    "the rows stand in the order of their codes");

/// Throws Error{Type} for an unknown code. Code that makes a tensor checks this; code that reads one need
/// not.
[[noreturn]] void throw_unknown_dtype(DType t);
inline void check_known(DType t) {
  if (!is_known(t)) [[unlikely]]
    throw_unknown_dtype(t);
}

namespace detail {
/// Bytes of an element, by code: a table of its own, because this is read most often.
inline constexpr auto kItemSizes = [] {
  std::array<uint8_t, 256> sizes{};
  for (const DType t : kDTypes) sizes[static_cast<uint8_t>(t)] = dtype_info(t).bits / 8;
  return sizes;
}();
}  // namespace detail
/// Bytes of one element; bool takes one.
constexpr size_t item_size(DType t) noexcept { return detail::kItemSizes[static_cast<uint8_t>(t)]; }

constexpr bool is_complex(DType t) noexcept { return dtype_info(t).category == DTypeCategory::Complex; }
constexpr bool is_quantized(DType t) noexcept { return dtype_info(t).category == DTypeCategory::Quantized; }
/// Real floating point, half and 8-bit types included.
constexpr bool is_floating_point(DType t) noexcept { return dtype_info(t).category == DTypeCategory::Float; }
/// Integers, optionally with bool.
constexpr bool is_integral(DType t, bool include_bool) noexcept {
  const DTypeCategory c = dtype_info(t).category;
  return c == DTypeCategory::Integer || (include_bool && c == DTypeCategory::Bool);
}
constexpr bool is_signed(DType t) noexcept { return dtype_info(t).is_signed; }
/// Whether Tenon computes with the elements. Quantized and 8-bit floating-point elements are only stored and
/// moved.
constexpr bool has_arithmetic(DType t) noexcept { return dtype_info(t).compute.has_value(); }

/// The dtype of the real and imaginary parts of a complex dtype; any other dtype itself.
constexpr DType real_dtype(DType t) noexcept { return is_known(t) ? dtype_info(t).parts : t; }
/// The complex dtype whose parts hold a real dtype: complex128 for float64, complex64 for any other.
constexpr DType complex_dtype(DType t) noexcept {
  return real_dtype(t) == DType::Float64 ? DType::Complex128 : DType::Complex64;
}

/// "float32", "bool", ...: the name after `tenon.` in Python.
constexpr std::string_view name(DType t) noexcept { return dtype_info(t).name; }
/// The dtype of a name; accepts PyTorch's aliases too ("float", "double", "half", "int", "long", "short").
std::optional<DType> parse_dtype(std::string_view text) noexcept;

/// The smallest dtype that holds both, as torch.promote_types. Throws Error{Type} for quantized and 8-bit
/// floats mixed with anything else.
DType promote_types(DType a, DType b);
/// Whether a result of `from` may be written to a tensor of `to`, as torch.can_cast: no complex number as a
/// real one, no float as an integer, and nothing but bool as bool.
bool can_cast(DType from, DType to) noexcept;

/// Which dtypes an operator's `out=` may have: any that the result can be cast to, the result's own, or, of
/// truth values, that or uint8. PyTorch's rule for each operator.
enum class OutRule : uint8_t { Cast, Same, SameOrUInt8 };
/// Whether a result may be written to an `out=` of `to`, which it can be cast to.
inline bool can_store(OutRule rule, DType result, DType to) noexcept {
  return rule == OutRule::Cast || result == to || (rule == OutRule::SameOrUInt8 && to == DType::UInt8);
}

/// The dtype of Python floats, and of floating-point results of integer input; float32 unless set.
DType default_dtype() noexcept;
/// Sets the default dtype of the process. Throws Error{Type} unless `t` is a real floating-point dtype with
/// arithmetic.
void set_default_dtype(DType t);

}  // namespace tenon
