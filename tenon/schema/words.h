// Words: the names of the language's types and of the values that defaults may name.
// Used by the schema parser and printers; one table each, so that they cannot disagree.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tenon/schema/schema.h"

namespace tenon::schema {

/// "Tensor", "SymInt": the spelling of a type without `[]` and `?`.
std::string_view base_name(BaseType base, bool symbolic) noexcept;
/// The reverse; only `base` and `symbolic` are set.
std::optional<Type> find_base(std::string_view word) noexcept;
/// The type that a mistaken word may have meant; empty where nothing is near.
std::string_view suggest_base(std::string_view word);

/// The canonical word for a Layout, MemoryFormat, ScalarType or Device default spelt as a word ("long" ->
/// "int64").
std::optional<std::string> find_word(BaseType base, std::string_view word);
/// The same for PyTorch's number of a Layout, MemoryFormat or ScalarType (4 -> "int64").
std::optional<std::string> find_numbered_word(BaseType base, int64_t number);
/// The enumerator that a canonical word stands for, as the number that it has in C++.
int64_t word_number(BaseType base, std::string_view word) noexcept;
/// `Mean` and `Sum`, the named values of an int argument.
std::optional<int64_t> find_int_word(std::string_view word) noexcept;
/// The C++ expression for a canonical word: `MemoryFormat::Preserve`, `DType::Int64`, `Device("cpu")`.
std::string cpp_word(BaseType base, std::string_view word);

}  // namespace tenon::schema
