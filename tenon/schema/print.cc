#include <fmt/format.h>

#include <cmath>

#include "tenon/schema/schema.h"
#include "tenon/schema/words.h"

namespace tenon::schema {
namespace {

template <class Range, class Print>
std::string join(const Range& range, std::string_view separator, Print print) {
  std::string out;
  bool first = true;
  for (const auto& item : range) {
    if (!first) out += separator;
    first = false;
    out += print(item);
  }
  return out;
}

std::string print_alias(const Alias& alias) {
  const auto same = [](const std::string& s) { return s; };
  std::string out = "(" + join(alias.before, "|", same);
  if (alias.is_write) out += "!";
  if (!alias.after.empty()) out += " -> " + join(alias.after, "|", same);
  return out + ")";
}

std::string print_annotated(const Type& type, const std::optional<Alias>& alias) {
  std::string out(base_name(type.base, type.symbolic));
  if (alias) out += print_alias(*alias);
  if (type.list) {
    if (type.element_optional) out += "?";
    out += type.list_size < 0 ? "[]" : fmt::format("[{}]", type.list_size);
  }
  if (type.optional) out += "?";
  return out;
}

std::string print_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string out = fmt::format("{}", value);
  // The language tells a float from an int by its point: 2. and 1e-05.
  if (out.ends_with(".0")) out.pop_back();
  if (out.find_first_of(".e") == std::string::npos) out += ".";
  return out;
}

std::string print_quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      default:
        out += c;
    }
  }
  return out + "\"";
}

struct ValuePrinter {
  const Type& type;

  std::string operator()(std::monostate) const { return {}; }
  std::string operator()(NoneDefault) const { return "None"; }
  std::string operator()(int64_t i) const { return fmt::format("{}", i); }
  std::string operator()(double d) const { return print_float(d); }
  std::string operator()(bool b) const { return b ? "True" : "False"; }
  std::string operator()(const std::string& s) const {
    return type.base == BaseType::Str ? print_quoted(s) : s;
  }
  template <class T>
  std::string operator()(const std::vector<T>& values) const {
    return "[" + join(values, ", ", [this](T v) { return (*this)(v); }) + "]";
  }
};

}  // namespace

std::string to_string(const Type& type) { return print_annotated(type, std::nullopt); }

std::string to_string(const DefaultValue& value, const Type& type) {
  return value.text.empty() ? std::visit(ValuePrinter{type}, value.value) : value.text;
}

std::string to_string(const Argument& argument) {
  std::string out = print_annotated(argument.type, argument.alias) + " " + argument.name;
  if (argument.default_value.given()) out += "=" + to_string(argument.default_value, argument.type);
  return out;
}

std::string to_string(const Return& result) {
  std::string out = print_annotated(result.type, result.alias);
  if (!result.name.empty()) out += " " + result.name;
  return out;
}

std::string to_string(const FunctionSchema& schema) {
  bool kwarg_only = false;
  std::string out = schema.full_name() + "(";
  out += join(schema.arguments, ", ", [&](const Argument& a) {
    const bool turns = a.kwarg_only && !kwarg_only;
    kwarg_only = a.kwarg_only;
    return (turns ? "*, " : "") + to_string(a);
  });
  const std::string returns = join(schema.returns, ", ", [](const Return& r) { return to_string(r); });
  const bool bare = schema.returns.size() == 1 && schema.returns[0].name.empty();
  return out + ") -> " + (bare ? returns : "(" + returns + ")");
}

}  // namespace tenon::schema
