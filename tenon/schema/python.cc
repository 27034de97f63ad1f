#include "tenon/schema/schema.h"

namespace tenon::schema {
namespace {

std::string returned(const Type& type) {
  std::string out(base_type_info(type.base).returned);
  if (type.list && type.base == BaseType::Tensor) {
    out = "tuple[" + out + ", ...]";  // as PyTorch's
  } else if (type.list) {
    out = "list[" + out + (type.element_optional ? " | None" : "") + "]";
  }
  return type.optional ? out + " | None" : out;
}

/// Of such an argument, Python takes None for the default, as in PyTorch: amax(x, None).
bool defaults_to_no_numbers(const Argument& argument) {
  const auto* values = std::get_if<std::vector<int64_t>>(&argument.default_value.value);
  return argument.type.list && argument.type.base == BaseType::Int && values && values->empty();
}

constexpr std::string_view kPythonKeywords[] = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "for",      "finally",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};

}  // namespace

std::string python_type(const Argument& argument) {
  const Type& type = argument.type;
  const std::string one(base_type_info(type.base).accepted);
  std::string out = one;
  if (type.list) {
    out = "Sequence[" + one + (type.element_optional ? " | None" : "") + "]";
    // int[2] takes one int for both.
    if (type.list_size > 0) out = one + " | " + out;
  }
  return type.optional || defaults_to_no_numbers(argument) ? out + " | None" : out;
}

std::string python_return_type(const FunctionSchema& schema) {
  if (schema.returns.empty()) return "None";
  if (schema.returns.size() == 1) return returned(schema.returns[0].type);
  std::string out;
  for (const Return& r : schema.returns) out += (out.empty() ? "" : ", ") + returned(r.type);
  return "tuple[" + out + "]";
}

std::string python_default(const Argument& argument) {
  const DefaultValue& value = argument.default_value;
  if (!value.given()) return {};
  // Printed from the value: the schema's `Mean` and `[0,1]` are not Python's, and a tuple does not change.
  const std::string text = to_string(DefaultValue{value.value, {}}, argument.type);
  if (std::holds_alternative<std::string>(value.value)) {
    return argument.type.base == BaseType::Str ? text : "...";
  }
  // inf and nan are no literals of Python.
  if (text.find("inf") != std::string::npos || text.find("nan") != std::string::npos) return "...";
  if (text.starts_with('[')) {
    const std::string items = text.substr(1, text.size() - 2);
    const bool single = !items.empty() && items.find(',') == std::string::npos;
    if (single && argument.type.list_size > 0) return items;  // one number for all dimensions
    return "(" + items + (single ? ",)" : ")");
  }
  return text;
}

std::string python_name(const Argument& argument) {
  for (const std::string_view keyword : kPythonKeywords) {
    if (keyword == argument.name) return argument.name + "_";
  }
  return argument.name;
}

}  // namespace tenon::schema
