// Words: the names of the schema language's types, and of the values that a default may name. Used by the
// schema parser and the printers, which read the same tables and so cannot disagree.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tenon/schema/schema.h"

namespace tenon::schema {

/// "Tensor", "SymInt": the spelling of a type without `[]` and `?`.
std::string_view base_name(BaseType base, bool symbolic) noexcept;
/// The type of such a name; only `base` and `symbolic` are set.
std::optional<Type> find_base(std::string_view word) noexcept;
/// The type name that a misspelt word may have meant; empty if none is close.
std::string_view suggest_base(std::string_view word);

/// The canonical word for a Layout, MemoryFormat, ScalarType or Device default spelt as a word ("long" ->
/// "int64").
std::optional<std::string> find_word(BaseType base, std::string_view word);
/// The canonical word for PyTorch's number of a Layout, MemoryFormat or ScalarType (4 -> "int64").
std::optional<std::string> find_numbered_word(BaseType base, int64_t number);
/// The number, in C++, of the enumerator that a canonical word names.
int64_t word_number(BaseType base, std::string_view word) noexcept;
/// The value of `Mean` or `Sum`, the words that an int argument may have as its default.
std::optional<int64_t> find_int_word(std::string_view word) noexcept;
/// The C++ expression for a canonical word: `MemoryFormat::Preserve`, `DType::Int64`, `Device("cpu")`.
std::string cpp_word(BaseType base, std::string_view word);

}  // namespace tenon::schema
