#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "tenon/schema/schema.h"
#include "tenon/schema/words.h"

namespace tenon::schema {
namespace {

std::string_view owned(BaseType base) noexcept { return base_type_info(base).owned; }
std::string_view element(BaseType base) noexcept { return base_type_info(base).borrowed; }
bool has_undefined(BaseType base) noexcept { return base_type_info(base).has_undefined; }

std::string list_type(const Type& type) {
  if (type.base == BaseType::Tensor) return "TensorList";
  if (type.element_optional) return fmt::format("std::span<const std::optional<{}>>", element(type.base));
  if (type.base == BaseType::Int) return "IntArrayRef";
  return fmt::format("std::span<const {}>", element(type.base));
}

std::string cpp_int(int64_t value) {
  // The literal of the smallest int64 does not exist: its digits are parsed before its sign.
  if (value == std::numeric_limits<int64_t>::min()) return fmt::format("{} - 1", value + 1);
  return fmt::format("{}", value);
}

std::string cpp_float(double value) {
  if (std::isnan(value)) return "std::numeric_limits<double>::quiet_NaN()";
  if (std::isinf(value))
    return fmt::format("{}std::numeric_limits<double>::infinity()", value < 0 ? "-" : "");
  const std::string out = fmt::format("{}", value);
  return out.find_first_of(".e") == std::string::npos ? out + ".0" : out;
}

std::string cpp_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      // Three octal digits end the escape, whatever follows.
      out += fmt::format("\\{:03o}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

template <class T>
std::string cpp_list(const Type& type, const std::vector<T>& values) {
  if (values.empty()) return type.optional ? list_type(type) + "{}" : "{}";
  std::string items;
  for (const T value : values) {
    if (!items.empty()) items += ", ";
    if constexpr (std::is_same_v<T, int64_t>) {
      items += cpp_int(value);
    } else if constexpr (std::is_same_v<T, double>) {
      items += cpp_float(value);
    } else {
      items += value ? "true" : "false";
    }
  }
  if (type.base == BaseType::Int && !type.element_optional) return "IntArrayRef{" + items + "}";
  // std::span takes no braced list before C++26. The list outlives the call that its default serves.
  const std::string one = type.element_optional ? fmt::format("std::optional<{}>", element(type.base))
                                                : std::string(element(type.base));
  return fmt::format("{}(std::initializer_list<{}>{{{}}})", list_type(type), one, items);
}

struct DefaultPrinter {
  const Type& type;

  std::string operator()(std::monostate) const { return {}; }
  std::string operator()(NoneDefault) const {
    if (!type.list && has_undefined(type.base)) return fmt::format("{}()", owned(type.base));
    return "std::nullopt";
  }
  std::string operator()(int64_t i) const { return scalar(cpp_int(i)); }
  std::string operator()(double d) const { return scalar(cpp_float(d)); }
  std::string operator()(bool b) const { return scalar(b ? "true" : "false"); }
  std::string operator()(const std::string& s) const {
    return type.base == BaseType::Str ? cpp_string(s) : cpp_word(type.base, s);
  }
  template <class T>
  std::string operator()(const std::vector<T>& values) const {
    return cpp_list(type, values);
  }

  /// std::optional<Scalar> from a number would take two conversions of a user's; one is spelt out.
  std::string scalar(const std::string& number) const {
    return type.base == BaseType::Scalar && type.optional ? "Scalar(" + number + ")" : number;
  }
};

constexpr std::string_view kCppKeywords[] = {
    "alignas",  "and",       "asm",      "auto",     "bool",      "break",  "case",     "catch",    "char",
    "class",    "const",     "continue", "default",  "delete",    "do",     "double",   "else",     "enum",
    "explicit", "export",    "extern",   "false",    "float",     "for",    "friend",   "goto",     "if",
    "inline",   "int",       "long",     "mutable",  "namespace", "new",    "not",      "operator", "or",
    "private",  "protected", "public",   "register", "requires",  "return", "short",    "signed",   "sizeof",
    "static",   "struct",    "switch",   "template", "this",      "throw",  "true",     "try",      "typedef",
    "typename", "union",     "unsigned", "using",    "virtual",   "void",   "volatile", "while",    "xor"};

}  // namespace

std::string cpp_type(const Argument& argument) {
  const Type& type = argument.type;
  if (type.list) return type.optional ? fmt::format("std::optional<{}>", list_type(type)) : list_type(type);
  if (type.base == BaseType::Tensor) {
    // For a written Tensor? an undefined tensor is None, as for one that is only read.
    return argument.is_write() ? "Tensor&" : "const Tensor&";
  }
  if (type.optional && !has_undefined(type.base)) {
    return fmt::format("std::optional<{}>", element(type.base));
  }
  if (base_type_info(type.base).by_reference) return fmt::format("const {}&", owned(type.base));
  return std::string(element(type.base));
}

std::string cpp_type(const Return& result) {
  const Type& type = result.type;
  if (type.list) {
    const bool wrapped = type.element_optional && type.base != BaseType::Tensor;
    const std::string out = wrapped ? fmt::format("std::vector<std::optional<{}>>", owned(type.base))
                                    : fmt::format("std::vector<{}>", owned(type.base));
    return type.optional ? fmt::format("std::optional<{}>", out) : out;
  }
  if (type.optional && !has_undefined(type.base)) return fmt::format("std::optional<{}>", owned(type.base));
  if (result.is_write() && !type.optional) return fmt::format("{}&", owned(type.base));
  return std::string(owned(type.base));
}

std::string cpp_return_type(const FunctionSchema& schema) {
  if (schema.returns.empty()) return "void";
  if (schema.returns.size() == 1) return cpp_type(schema.returns[0]);
  std::string out;
  for (const Return& r : schema.returns) out += (out.empty() ? "" : ", ") + cpp_type(r);
  return "std::tuple<" + out + ">";
}

std::string cpp_default(const Argument& argument) {
  // Nothing that a call makes up can be written to.
  if (cpp_type(argument) == "Tensor&") return {};
  return std::visit(DefaultPrinter{argument.type}, argument.default_value.value);
}

std::string cpp_name(const Argument& argument) {
  for (const std::string_view keyword : kCppKeywords) {
    if (keyword == argument.name) return argument.name + "_";
  }
  return argument.name;
}

}  // namespace tenon::schema
