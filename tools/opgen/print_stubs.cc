// The type stubs: python/_C.pyi's operators, read by editors and type checkers.
#include <fmt/format.h>

#include <regex>
#include <set>

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

/// The class of named results, as max(x, dim) has them: one for each list of names.
std::string named_class(const FunctionSchema& schema) {
  std::string name;
  for (const auto& r : schema.returns) name += "_" + r.name;
  return name;
}

std::string returned(const FunctionSchema& schema, bool method) {
  if (PythonOverload::named_results(schema)) return named_class(schema);
  return inside_class(schema::python_return_type(schema), method);
}

std::string named_classes(const std::vector<PythonName>& names) {
  std::set<std::string> classes;
  for (const PythonName& name : names) {
    for (const auto* overloads : {&name.functions, &name.methods}) {
      for (const PythonOverload* o : *overloads) {
        const FunctionSchema& schema = o->op->schema;
        if (!PythonOverload::named_results(schema)) continue;
        std::string text = fmt::format("class {}(NamedTuple):\n", named_class(schema));
        for (const auto& r : schema.returns) text += fmt::format("    {}: Tensor\n", r.name);
        classes.insert(text + "\n");
      }
    }
  }
  return fmt::format("{}", fmt::join(classes, ""));
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
                     returned(o.op->schema, method));
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
                     returned(schema, method));
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
  const std::vector<PythonName> names = python_names(defs);
  std::string functions = named_classes(names), methods;
  for (const PythonName& name : names) {
    if (!name.functions.empty()) functions += definitions(name, name.functions, false);
    if (!name.methods.empty()) methods += definitions(name, name.methods, true);
  }
  return {{"python/functions.pyi", functions}, {"python/methods.pyi", methods}};
}

}  // namespace tenon::opgen
