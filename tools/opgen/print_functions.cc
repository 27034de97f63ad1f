// The C++ API: free functions, methods of Tensor, and a constant for each operator.
#include <fmt/format.h>

#include "tools/opgen/files.h"
#include "tools/opgen/printers.h"
#include "tools/opgen/text.h"

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

std::string body(const Operator& op, const std::string& self) {
  const std::string call =
      fmt::format("operators::{}.call({})", op.constant, call_arguments(op.schema, self));
  if (!makes_options(op.schema)) return fmt::format("  return {};\n", call);
  return fmt::format(
      "  Tensor made = {};\n"
      "  if (options.requires_grad_flag) made.requires_grad_(true);\n"
      "  return made;\n",
      call);
}

std::string functions_header(const std::vector<OperatorOf>& all) {
  std::string text = banner("Every operator as a free function.");
  text += "#pragma once\n\n#include \"tenon/core/tensor.h\"\n\nnamespace tenon {\n\n";
  for (const auto& [def, op] : all) {
    if (!op->function) continue;
    text += summary_comment(*def, *op, "");
    for (const std::string& name : function_names(*op)) {
      text += fmt::format("{} {}({});\n", schema::cpp_return_type(op->schema), name,
                          parameter_list(parameters(*op, false), true));
    }
  }
  return text + "\n}  // namespace tenon\n";
}

std::string operators_header(const std::vector<OperatorOf>& all) {
  std::string text =
      banner("tenon::operators: a constant for each operator, for redispatch and for calls without look-up.");
  text += fmt::format(R"(#pragma once

#include "tenon/dispatch/operator.h"

namespace tenon::detail {{
extern OperatorEntry operator_entries[{}];
}}

namespace tenon::operators {{

)",
                      all.size());
  for (const auto& [def, op] : all) {
    text +=
        fmt::format("/// {}\ninline constexpr TypedOperator<{}> {}{{tenon::detail::operator_entries[{}]}};\n",
                    schema::to_string(op->schema), signature(op->schema), op->constant, op->index);
  }
  return text + "\n}  // namespace tenon::operators\n";
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

// A mark of a caller's line steps over these functions: nothing else may stand between them and a kernel.
constexpr std::string_view kCallSite = "TENON_CALL_SITE [[gnu::flatten]]";

std::string definitions(const std::vector<OperatorOf>& some) {
  std::string text = banner("Definitions of operator functions and methods.");
  text +=
      "#include \"tenon/generated/functions.h\"\n#include \"tenon/generated/operators.h\"\n\nnamespace tenon "
      "{\n\n";
  for (const auto& [def, op] : some) {
    const std::string returns = schema::cpp_return_type(op->schema);
    for (const std::string& name : op->function ? function_names(*op) : std::vector<std::string>{}) {
      text += fmt::format("{} {} {}({}) {{\n{}}}\n", kCallSite, returns, name,
                          parameter_list(parameters(*op, false), false), body(*op, ""));
    }
    for (const std::string& name : op->method ? method_names(*op) : std::vector<std::string>{}) {
      const bool writes = op->schema.arguments[*op->schema.argument_index("self")].is_write();
      text += fmt::format("{} {} Tensor::{}({}) const {{\n{}}}\n", kCallSite, returns, name,
                          parameter_list(parameters(*op, true), false),
                          body(*op, writes ? "const_cast<Tensor&>(*this)" : "*this"));
    }
  }
  return text + "\n}  // namespace tenon\n";
}

}  // namespace

std::vector<GeneratedFile> print_functions(const std::vector<OpDef>& defs) {
  const auto all = all_operators(defs);
  std::vector<GeneratedFile> files = {{"tenon/generated/functions.h", functions_header(all)},
                                      {"tenon/generated/operators.h", operators_header(all)},
                                      {"tenon/generated/tensor_methods.inc", method_declarations(all)}};
  const auto pieces = split(all, kFunctionFiles);
  for (size_t i = 0; i < pieces.size(); ++i) {
    files.push_back({fmt::format("functions_{}.cc", i), definitions(pieces[i])});
  }
  return files;
}

}  // namespace tenon::opgen
