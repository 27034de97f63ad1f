// BaseType: the type of a value in the schema language, without `[]` and `?`. Each has one row, which the
// parser and the printers of C++ and Python types read. dispatch/value_types.h says what a base type is in
// C++, and python/src/call/python_value.h what it is in a call from Python: a new one needs a row in each of
// the three.
#pragma once

#include <cstdint>
#include <iterator>
#include <string_view>

namespace tenon::schema {

enum class BaseType : uint8_t {
  Tensor,
  Int,
  Float,
  Bool,
  Str,
  Scalar,
  ScalarType,
  Device,
  Layout,
  MemoryFormat,
  Generator,
  Storage,
};

struct BaseTypeInfo {
  BaseType base;
  std::string_view name;      ///< In a schema.
  std::string_view symbolic;  ///< PyTorch's name for a value that may be symbolic (SymInt); else empty.
  std::string_view owned;     ///< The C++ type that owns one value.
  std::string_view borrowed;  ///< The C++ type of a value in an argument's std::optional or std::span.
  bool by_reference;          ///< An argument is a `const T&`.
  bool has_undefined;         ///< Its undefined value is None, so that it needs no std::optional.
  std::string_view accepted;  ///< What a caller in Python may pass, as an annotation.
  std::string_view returned;  ///< The annotation of a result in Python.
};

inline constexpr BaseTypeInfo kBaseTypes[] = {
    {BaseType::Tensor, "Tensor", "", "Tensor", "Tensor", true, true, "Tensor", "Tensor"},
    {BaseType::Int, "int", "SymInt", "int64_t", "int64_t", false, false, "int", "int"},
    {BaseType::Float, "float", "SymFloat", "double", "double", false, false, "float", "float"},
    {BaseType::Bool, "bool", "SymBool", "bool", "bool", false, false, "bool", "bool"},
    {BaseType::Str, "str", "", "std::string", "std::string_view", false, false, "str", "str"},
    {BaseType::Scalar, "Scalar", "", "Scalar", "Scalar", true, false, "Number", "Number"},
    {BaseType::ScalarType, "ScalarType", "", "DType", "DType", false, false, "dtype", "dtype"},
    {BaseType::Device, "Device", "", "Device", "Device", false, false, "device | str", "device"},
    {BaseType::Layout, "Layout", "", "Layout", "Layout", false, false, "layout", "layout"},
    {BaseType::MemoryFormat, "MemoryFormat", "", "MemoryFormat", "MemoryFormat", false, false,
     "memory_format", "memory_format"},
    {BaseType::Generator, "Generator", "", "Generator", "Generator", true, true, "Generator", "Generator"},
    {BaseType::Storage, "Storage", "", "Storage", "Storage", true, false, "Storage", "Storage"},
};
inline constexpr size_t kNumBaseTypes = std::size(kBaseTypes);

constexpr const BaseTypeInfo& base_type_info(BaseType base) noexcept {
  return kBaseTypes[static_cast<size_t>(base)];
}
static_assert(
    [] {
      for (size_t i = 0; i < kNumBaseTypes; ++i) {
        if (static_cast<size_t>(kBaseTypes[i].base) != i) return false;
      }
      return true;
    }(),
    "the rows stand in the order of the enumeration");

}  // namespace tenon::schema
