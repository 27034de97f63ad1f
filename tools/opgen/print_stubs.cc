// The type stubs: python/_C.pyi's operators, read by editors and type checkers.
#include <fmt/format.h>

#include <regex>

#include "tools/opgen/python_names.h"

namespace tenon::opgen {
namespace {

using schema::Argument;

/// Inside Tensor, `int`, `dtype` and the like are its own methods and attributes: the stub has aliases for
/// the types.
std::string inside_class(const std::string& text, bool method) {
  static const std::regex kShadowed("\\b(int|float|bool|dtype|device|layout|memory_format)\\b");
  return method ? std::regex_replace(text, kShadowed, "_$1") : text;
}

std::string parameter(const Argument& a, bool method) {
  const std::string name = a.name == "self" ? "input" : schema::python_name(a);
  const std::string type = inside_class(schema::python_type(a), method);
  const std::string value = schema::python_default(a);
  return fmt::format("{}: {}{}{}", name, type, value.empty() ? "" : " = ", value);
}

std::string definition(const PythonName& name, const PythonOverload& o, bool method, bool one_of_several) {
  const std::string indent = method ? "    " : "";
  std::string parameters = method ? "self" : "";
  bool star = false;
  const FunctionSchema schema = o.shown_schema();
  for (const Argument& a : schema.arguments) {
    if (method && a.name == "self") continue;
    if (!parameters.empty()) parameters += ", ";
    // x.view(2, 3) as well as x.view((2, 3)): the overload for the former is printed by the caller.
    if (a.kwarg_only && !star) {
      parameters += "*, ";
      star = true;
    }
    parameters += parameter(a, method);
  }
  if (o.takes_requires_grad()) {
    parameters += star ? ", " : (parameters.empty() ? "*, " : ", *, ");
    parameters += inside_class("requires_grad: bool = False", method);
  }
  const std::string decorator = one_of_several ? indent + "@overload\n" : "";
  return fmt::format("{}{}def {}({}) -> {}: ...\n", decorator, indent, name.name, parameters,
                     inside_class(schema::python_return_type(o.op->schema), method));
}

/// The form that takes its sizes one by one.
std::string variadic_definition(const PythonName& name, const PythonOverload& o, bool method) {
  const std::string indent = method ? "    " : "";
  const FunctionSchema schema = o.shown_schema();
  std::string parameters = method ? "self, " : "";
  parameters += "*" + schema.arguments[schema.num_positional() - 1].name + inside_class(": int", method);
  for (const Argument& a : schema.arguments) {
    if (a.kwarg_only) parameters += ", " + parameter(a, method);
  }
  if (o.takes_requires_grad()) parameters += inside_class(", requires_grad: bool = False", method);
  return fmt::format("{0}@overload\n{0}def {1}({2}) -> {3}: ...\n", indent, name.name, parameters,
                     inside_class(schema::python_return_type(schema), method));
}

std::string definitions(const PythonName& name, const std::vector<const PythonOverload*>& overloads,
                        bool method) {
  const auto is_variadic = [&](const PythonOverload& o) {
    return o.variadic() && (method || o.op->schema.num_positional() == 1);
  };
  bool several = overloads.size() > 1;
  for (const PythonOverload* o : overloads) several |= is_variadic(*o);
  std::string out;
  for (const PythonOverload* o : overloads) {
    out += definition(name, *o, method, several);
    if (is_variadic(*o)) out += variadic_definition(name, *o, method);
  }
  return out;
}

}  // namespace

std::vector<GeneratedFile> print_stubs(const std::vector<OpDef>& defs) {
  std::string functions, methods;
  for (const PythonName& name : python_names(defs)) {
    if (!name.functions.empty()) functions += definitions(name, name.functions, false);
    if (!name.methods.empty()) methods += definitions(name, name.methods, true);
  }
  return {{"python/functions.pyi", functions}, {"python/methods.pyi", methods}};
}

}  // namespace tenon::opgen
