// FunctionSchema: an operator's signature, parsed from and printed to PyTorch's native_functions.yaml
// language. Used by the generator, the dispatcher (m.def) and the Python argument parser. Knows of core only
// errors and dtypes: a schema names types, it never holds a tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tenon/core/dtype.h"
#include "tenon/core/error.h"
#include "tenon/schema/base_types.h"

// Comparisons are defined in schema.cc: every file that registers an operator includes this one, and that of
// the variant is dear to compile.
namespace tenon::schema {

/// A type of the language: `Tensor`, `int[2]?`, `Tensor?[]`, `SymInt`.
struct Type {
  BaseType base = BaseType::Tensor;
  bool list = false;              ///< `T[]` or `T[N]`.
  bool optional = false;          ///< `T?`, and for a list `T[]?`: the whole value may be None.
  bool element_optional = false;  ///< `T?[]`: elements of the list may be None.
  bool symbolic = false;          ///< Written SymInt, SymFloat or SymBool; treated as int, float or bool.
  int32_t list_size = -1;         ///< N of `T[N]`; -1 for `T[]` and for what is not a list.

  bool is_tensor() const noexcept { return base == BaseType::Tensor && !list; }
  bool is_tensor_list() const noexcept { return base == BaseType::Tensor && list; }
  friend bool operator==(const Type&, const Type&) = default;
};

/// `(a!)`, `(a -> *)`, `(a|b)`: the sets of memory that a tensor may belong to. `*` is the wildcard set.
struct Alias {
  std::vector<std::string> before;  ///< Sets on entry.
  std::vector<std::string> after;  ///< Sets on exit where `->` gives them; otherwise empty, meaning `before`.
  bool is_write = false;           ///< `!`: the operator writes to it.

  friend bool operator==(const Alias&, const Alias&) = default;
};

/// An explicit `=None`.
struct NoneDefault {
  friend bool operator==(NoneDefault, NoneDefault) = default;
};

/// A default, already fitted to its argument's type:
///   int -> int64_t (`Mean` and `Sum`, words of `int reduction`, are 1 and 2); float -> double, also from
///   `1`; Scalar -> int64_t, double or bool; ScalarType -> the dtype's name ("int64", also from `long` and
///   from PyTorch's number 4); Layout, MemoryFormat, Device -> the word ("strided", "contiguous_format",
///   "cpu"); str -> the unescaped text; lists -> vectors; one value for `int[N]` is repeated N times; `[]` of
///   other types is an empty vector<int64_t>.
struct DefaultValue {
  using Value = std::variant<std::monostate, NoneDefault, int64_t, double, bool, std::string,
                             std::vector<int64_t>, std::vector<double>, std::vector<bool>>;
  Value value;       ///< monostate: the argument has no default and must be given.
  std::string text;  ///< As the schema spells it (`1e-05`, `[0,1]`); may be empty where no text was parsed.

  bool given() const noexcept { return value.index() != 0; }
  bool is_none() const noexcept { return std::holds_alternative<NoneDefault>(value); }
  /// Two spellings of one value are equal.
  friend bool operator==(const DefaultValue& a, const DefaultValue& b);
};

struct Argument {
  std::string name;
  Type type;
  std::optional<Alias> alias;
  DefaultValue default_value;
  bool kwarg_only = false;  ///< After `*`.
  bool is_out = false;      ///< Keyword-only and written: `*, Tensor(a!) out`.

  bool is_write() const noexcept { return alias && alias->is_write; }
  friend bool operator==(const Argument& a, const Argument& b);
};

struct Return {
  std::string name;  ///< Empty where unnamed.
  Type type;
  std::optional<Alias> alias;

  bool is_write() const noexcept { return alias && alias->is_write; }
  friend bool operator==(const Return& a, const Return& b);
};

/// `ns::name.overload(arguments) -> returns`.
struct FunctionSchema {
  std::string ns;        ///< Empty where the text names none.
  std::string name;      ///< "add", "relu_".
  std::string overload;  ///< Empty for the default overload.
  std::vector<Argument> arguments;
  std::vector<Return> returns;

  /// "ns::name.overload", without the parts that are empty.
  std::string full_name() const;
  /// "name.overload", without the namespace.
  std::string name_with_overload() const;
  /// Whether it writes to any argument.
  bool is_mutable() const noexcept;
  /// Whether it has `out` arguments.
  bool is_out_variant() const noexcept;
  /// Whether any return is a view of an argument that it does not write to: `Tensor(a) self -> Tensor(a)`.
  bool is_view() const noexcept;
  /// Positions of the `out` arguments, in order.
  std::vector<size_t> out_arguments() const;
  /// How many arguments come before `*`.
  size_t num_positional() const noexcept;
  std::optional<size_t> argument_index(std::string_view argument_name) const noexcept;
  /// The argument whose memory the i-th return shares; nothing for a fresh result or the wildcard set.
  std::optional<size_t> aliased_argument(size_t return_index) const noexcept;

  friend bool operator==(const FunctionSchema& a, const FunctionSchema& b);
};

/// Parses one schema and checks it: names, types, defaults that fit and trail, alias sets. Throws
/// Error{Value}; the message says what was expected, at which column (from 1), what came, and shows the text
/// with a caret below:
///   schema: expected an argument name at column 14, got ')'
///     myadd(Tensor ) -> Tensor
///                  ^
FunctionSchema parse_schema(std::string_view text);
/// Parses one type without alias annotations, such as "int[2]?". Throws like parse_schema.
Type parse_type(std::string_view text);

/// The schema's text in PyTorch's spacing; what was parsed in that spacing comes back byte for byte.
std::string to_string(const FunctionSchema& schema);
std::string to_string(const Argument& argument);
std::string to_string(const Return& result);
std::string to_string(const Type& type);
/// As written, or PyTorch's spelling of the value; empty where there is no default.
std::string to_string(const DefaultValue& value, const Type& type);

/// The C++ parameter type: `const Tensor&` (undefined for None), `Tensor&` for (a!), `TensorList`, `int64_t`,
/// `IntArrayRef`, `std::span<const double>`, `std::string_view`, `const Scalar&`, `DType`,
/// `std::optional<...>`.
std::string cpp_type(const Argument& argument);
/// The type of one return: `Tensor`, `Tensor&` for (a!), `std::vector<Tensor>`, `int64_t`, `Scalar`.
std::string cpp_type(const Return& result);
/// The whole return type: `void`, one type, or `std::tuple<...>`.
std::string cpp_return_type(const FunctionSchema& schema);
/// Text after `=` of the C++ parameter (`1`, `std::nullopt`, `Tensor()`, `IntArrayRef{1}`, `{}`,
/// `MemoryFormat::Preserve`); empty where there is no default.
std::string cpp_default(const Argument& argument);
/// The name as a C++ parameter: C++'s keywords get a trailing underscore.
std::string cpp_name(const Argument& argument);

/// The annotation in a .pyi stub: `Tensor | None`, `int | Sequence[int]`, `Sequence[Tensor]`, `Number` for
/// Scalar, `dtype`, `device | str`, `layout`, `memory_format`, `Generator`.
std::string python_type(const Argument& argument);
/// `None`, `Tensor`, `list[Tensor]`, `tuple[Tensor, Tensor]`.
std::string python_return_type(const FunctionSchema& schema);
/// Text after `=` in a stub: `1`, `None`, `()`, `"none"`, and `...` for dtypes and other enum words; empty
/// where there is no default.
std::string python_default(const Argument& argument);
/// The name as a Python parameter: Python's keywords get a trailing underscore.
std::string python_name(const Argument& argument);

}  // namespace tenon::schema
