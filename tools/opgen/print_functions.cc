// The C++ API: free functions, methods of Tensor, and a constant for each operator.
#include <fmt/format.h>

#include "tools/opgen/families.h"
#include "tools/opgen/printers.h"
#include "tools/opgen/text.h"
#include "tools/opgen/typed_signatures.h"

namespace tenon::opgen {

namespace {

// "/// Sigmoid-weighted linear unit.\n", the doc's first line.
std::string summary_comment(const OpDef& def, const Operator& op, std::string_view indent) {
  if (op.form != def.operators.front().form) return "";
  const std::string line = def.doc.substr(0, def.doc.find('\n'));
  return line.empty() ? "" : fmt::format("{}/// {}\n", indent, line);
}

bool makes_options(const FunctionSchema& schema) {
  return options_position(schema) && schema.returns.size() == 1 && schema.returns[0].type.is_tensor() &&
         !schema.returns[0].alias;
}

std::string body(const OpDef& def, const Operator& op, const std::string& self) {
  const std::string arguments = call_arguments(op.schema, self);
  const std::string call =
      has_inline_call(op.schema.name)
          ? fmt::format("TypedOperator<{}>({}).call({})", signature(op.schema), entry_of(def, op), arguments)
          : fmt::format("detail::call_{}({}{}{})", signature_word(op.schema), arguments,
                        arguments.empty() ? "" : ", ", entry_of(def, op));
  if (!makes_options(op.schema)) return fmt::format("  return {};\n", call);
  return fmt::format(
      "  Tensor made = {};\n"
      "  if (options.requires_grad_flag) made.requires_grad_(true);\n"
      "  return made;\n",
      call);
}

std::string functions_header(const Family& family) {
  std::string text = banner(fmt::format("The operators of {}.yaml as free functions.", family.name));
  text += "#pragma once\n\n#include \"tenon/core/tensor.h\"\n\nnamespace tenon {\n\n";
  for (const OpDef* def : family.defs) {
    for (const Operator& op : def->operators) {
      if (!op.function) continue;
      text += summary_comment(*def, op, "");
      for (const std::string& name : function_names(op)) {
        text += fmt::format("{} {}({});\n", schema::cpp_return_type(op.schema), name,
                            parameter_list(parameters(op, false), true));
      }
    }
  }
  return text + "\n}  // namespace tenon\n";
}

std::string operators_header(const Family& family) {
  std::string text = banner(
      fmt::format("tenon::operators: a constant for each operator of {}.yaml, for redispatch and for calls "
                  "without look-up.",
                  family.name));
  size_t count = 0;
  for (const OpDef* def : family.defs) count += def->operators.size();
  text += fmt::format(R"(#pragma once

#include "tenon/dispatch/operator.h"

namespace tenon::detail {{
extern OperatorEntry {}_entries[{}];
}}

namespace tenon::operators {{

)",
                      family.name, count);
  for (const OpDef* def : family.defs) {
    for (const Operator& op : def->operators) {
      text +=
          fmt::format("/// {}\ninline constexpr TypedOperator<{}> {}{{{}}};\n", schema::to_string(op.schema),
                      signature(op.schema), op.constant, entry_of(*def, op));
    }
  }
  return text + "\n}  // namespace tenon::operators\n";
}

// For those who want every family.
std::string umbrella_header(const std::vector<Family>& families, std::string_view what,
                            std::string_view about) {
  std::string text = banner(about) + "#pragma once\n\n";
  for (const Family& family : families) text += fmt::format("#include \"{}\"\n", family.header(what));
  return text;
}

std::string method_declarations(const std::vector<OperatorOf>& all) {
  std::string text = banner("Methods of Tensor.");
  for (const auto& [def, op] : all) {
    if (!op->method) continue;
    text += summary_comment(*def, *op, "  ");
    for (const std::string& name : method_names(*op)) {
      text += fmt::format("  {} {}({}) const;\n", schema::cpp_return_type(op->schema), name,
                          parameter_list(parameters(*op, true), true));
    }
  }
  return text;
}

}  // namespace

// A function loads its operator's entry and goes to the call of its signature, so that it costs a few bytes
// and next to nothing to compile. The shortest and hottest have the call inline.
std::string function_definitions(const Family& family) {
  std::string text;
  for (const OpDef* def : family.defs) {
    for (const Operator& op : def->operators) {
      const std::string returns = schema::cpp_return_type(op.schema);
      // Only these functions may come between the caller's code and a kernel.
      const char* call_site =
          has_inline_call(op.schema.name) ? "TENON_CALL_SITE [[gnu::flatten]]" : "TENON_CALL_SITE";
      for (const std::string& name : op.function ? function_names(op) : std::vector<std::string>{}) {
        text += fmt::format("{} {} {}({}) {{\n{}}}\n", call_site, returns, name,
                            parameter_list(parameters(op, false), false), body(*def, op, ""));
      }
      for (const std::string& name : op.method ? method_names(op) : std::vector<std::string>{}) {
        const bool writes = op.schema.arguments[*op.schema.argument_index("self")].is_write();
        text += fmt::format("{} {} Tensor::{}({}) const {{\n{}}}\n", call_site, returns, name,
                            parameter_list(parameters(op, true), false),
                            body(*def, op, writes ? "const_cast<Tensor&>(*this)" : "*this"));
      }
    }
  }
  return text;
}

std::vector<GeneratedFile> print_functions(const std::vector<OpDef>& defs) {
  const std::vector<Family> families = families_of(defs);
  std::vector<GeneratedFile> files = {
      {"tenon/generated/functions.h",
       umbrella_header(families, "functions", "Every operator as a free function.")},
      {"tenon/generated/operators.h",
       umbrella_header(families, "operators", "A constant for each operator.")},
      {"tenon/generated/tensor_methods.inc", method_declarations(all_operators(defs))}};
  for (const Family& family : families) {
    files.push_back({family.header("functions"), functions_header(family)});
    files.push_back({family.header("operators"), operators_header(family)});
  }
  return files;
}

}  // namespace tenon::opgen
