// The Python binding: a table of overloads for each name, and the C++ signatures that calls are instantiated
// for.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "tools/opgen/files.h"
#include "tools/opgen/python_names.h"
#include "tools/opgen/text.h"

namespace tenon::opgen {
namespace {

using schema::Argument;
using schema::BaseType;

std::string enum_value(BaseType type, const std::string& word) {
  const Argument argument{.type = {.base = type}, .default_value = {word, {}}};
  return fmt::format("static_cast<int64_t>({})", schema::cpp_default(argument));
}

/// The Default of a parameter, as C++.
struct DefaultText {
  const Argument& argument;
  const std::string& list_name;

  std::string operator()(std::monostate) const { return "{}"; }
  std::string operator()(schema::NoneDefault) const { return "Default::none()"; }
  std::string operator()(int64_t v) const {
    if (argument.type.base == BaseType::Float) return fmt::format("Default::number({})", v);
    return fmt::format("Default::integer({}ll)", v);
  }
  std::string operator()(double) const {
    return fmt::format("Default::number({})", schema::cpp_default({.type = {.base = BaseType::Float},
                                                                   .default_value = argument.default_value}));
  }
  std::string operator()(bool v) const { return fmt::format("Default::boolean({})", v); }
  std::string operator()(const std::string& v) const {
    const BaseType base = argument.type.base;
    if (base == BaseType::Str || base == BaseType::Device)
      return fmt::format("Default::string({})", quoted(v));
    return fmt::format("Default::integer({})", enum_value(base, v));
  }
  std::string operator()(const std::vector<int64_t>&) const {
    return fmt::format("Default::list({})", list_name);
  }
  template <class T>
  std::string operator()(const std::vector<T>&) const {
    return "Default::list({})";
  }
};

class TablePrinter {
 public:
  explicit TablePrinter(const std::vector<PythonName>& names) : names_(names) {}

  std::string print() {
    for (const PythonName& name : names_) print_name(name);
    std::string signatures;
    for (const std::string& s : signatures_)
      signatures += fmt::format("extern template struct Caller<{}>;\n", s);
    return "// Printed by opgen: the overloads of every operator, and the functions and methods that call "
           "them.\n" +
           signatures + "\nnamespace {\n\n" + tables_ + "\nPyMethodDef g_functions[] = {\n" + functions_ +
           "};\nPyMethodDef g_methods[] = {\n" + methods_ +
           "};\nconst Function* const g_function_table[] = {" + function_list_ +
           "};\nconst Function* const g_method_table[] = {" + method_list_ + "};\n\n}  // namespace\n";
  }

  const std::set<std::string>& signatures() const { return signatures_; }

 private:
  void print_name(const PythonName& name) {
    std::string shared;
    const auto table = [&](const std::vector<const PythonOverload*>& overloads, const char* kind) {
      std::string rows;
      for (const PythonOverload* o : overloads) rows += row(name, *o);
      // A method usually has the overloads of the function.
      if (rows != last_rows_) {
        shared = fmt::format("{}_{}", kind, name.name);
        tables_ += fmt::format("const Overload overloads_{}[] = {{\n{}}};\n", shared, rows);
        last_rows_ = rows;
      }
      tables_ += fmt::format("const Function {0}_{1}{{{2}, overloads_{3}, {4}}};\n", kind, name.name,
                             quoted(name.name), shared, name.numbers_as_tensors);
    };
    last_rows_.clear();
    const std::string doc = quoted(name.doc);
    if (!name.functions.empty()) {
      table(name.functions, "function");
      functions_ += fmt::format("    fast_method({}, &function_entry<function_{}>, {}),\n", quoted(name.name),
                                name.name, doc);
      function_list_ += fmt::format("&function_{}, ", name.name);
    }
    if (!name.methods.empty()) {
      table(name.methods, "method");
      methods_ += fmt::format("    fast_method({}, &method_entry<method_{}>, {}),\n", quoted(name.name),
                              name.name, doc);
      method_list_ += fmt::format("&method_{}, ", name.name);
    }
  }

  /// One Overload; its parameters are printed once.
  std::string row(const PythonName& name, const PythonOverload& o) {
    const FunctionSchema& schema = o.op->schema;
    const std::string id = o.op->constant;
    if (printed_.insert(id).second) print_params(id, schema);
    const std::string sig = signature(schema);
    signatures_.insert(sig);
    return fmt::format(
        "    {{&Caller<{}>::invoke, &detail::operator_entries[{}], params_{}, names_{}, {}, {}, {}, {}, {}, "
        "{}, {}, {}}},\n",
        sig, o.op->index, id, id, quoted(o.text), o.named_results() ? "results_" + id : "nullptr",
        schema.arguments.size(), schema.num_positional(), schema.out_arguments().size(), o.variadic(),
        o.takes_requires_grad(), schema.argument_index("self").value_or(0));
  }

  void print_params(const std::string& id, const FunctionSchema& schema) {
    std::string params;
    for (const Argument& a : schema.arguments) {
      const std::string list = fmt::format("ints_{}_{}", id, a.name);
      if (const auto* ints = std::get_if<std::vector<int64_t>>(&a.default_value.value)) {
        if (ints->empty())
          tables_ += fmt::format("constexpr std::span<const int64_t> {}{{}};\n", list);
        else
          tables_ += fmt::format("constexpr int64_t {}[] = {{{}}};\n", list, fmt::join(*ints, ", "));
      }
      params +=
          fmt::format("    {{{}, {}, {}, {}, {}, {}}},\n", quoted(schema::python_name(a)),
                      quoted(schema::python_type(a)), std::visit(DefaultText{a, list}, a.default_value.value),
                      a.type.optional, a.is_out, a.type.list_size);
    }
    if (schema.arguments.empty()) params = "    {\"\", \"\"},\n";
    tables_ += fmt::format("constexpr Param params_{}[] = {{\n{}}};\nPyObject* names_{}[{}];\n", id, params,
                           id, schema.arguments.size() + 1);
    if (PythonOverload{nullptr, nullptr, {}}.named_results(schema)) {
      std::string results;
      for (const auto& r : schema.returns) results += quoted(r.name) + ", ";
      tables_ += fmt::format("const char* const results_{}[] = {{{}nullptr}};\n", id, results);
    }
  }

  const std::vector<PythonName>& names_;
  std::set<std::string> signatures_, printed_;
  std::string tables_, functions_, methods_, function_list_, method_list_, last_rows_;
};

}  // namespace

std::vector<GeneratedFile> print_python(const std::vector<OpDef>& defs) {
  const std::vector<PythonName> names = python_names(defs);
  TablePrinter printer(names);
  std::vector<GeneratedFile> files{{"python/functions.inc", printer.print()}};
  std::array<std::string, kSignatureFiles> texts;
  size_t next = 0;
  for (const std::string& s : printer.signatures()) {
    texts[next++ % kSignatureFiles] += fmt::format("template struct Caller<{}>;\n", s);
  }
  for (size_t i = 0; i < kSignatureFiles; ++i) {
    files.push_back({fmt::format("python/signatures_{}.inc", i),
                     "// Printed by opgen: C++ signatures of operators that Python calls.\n" + texts[i]});
  }
  return files;
}

}  // namespace tenon::opgen
