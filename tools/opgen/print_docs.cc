// docs/operators.md: every operator by family, as the YAML documents it.
#include <fmt/format.h>

#include "tools/opgen/pointwise_forms.h"
#include "tools/opgen/printers.h"
#include "tools/opgen/text.h"

namespace tenon::opgen {

namespace {

std::string_view derivative_text(const OpDef& def) {
  switch (def.derivative.kind) {
    case DerivativeDef::Kind::Absent:
      return def.body == Body::Composite ? "through what it calls" : "";
    case DerivativeDef::Kind::Expression:
      return "from the expression";
    case DerivativeDef::Kind::None:
      return "none";
    case DerivativeDef::Kind::Formulas:
      return "by formula";
  }
  return "";
}

}  // namespace

std::vector<GeneratedFile> print_docs(const std::vector<OpDef>& defs) {
  std::string text = "# Operators\n\nPrinted by opgen from `tenon/ops/yaml`, one section a file.\n";
  std::string family;
  for (const OpDef& def : defs) {
    if (def.file != family) {
      family = def.file;
      text += fmt::format("\n## {}\n", family.substr(0, family.find('.')));
    }
    text += fmt::format("\n### {}\n\n```\n", def.schema().name_with_overload());
    for (const Operator& op : def.operators) text += schema::to_string(op.schema) + "\n";
    text += "```\n";
    if (const auto& aliases = def.operators.front().aliases; !aliases.empty())
      text += fmt::format("\nAlso known as {}.\n", fmt::join(aliases, ", "));
    if (!def.doc.empty()) text += "\n" + def.doc + (def.doc.ends_with("\n") ? "" : "\n");
    if (def.body == Body::Expr) text += fmt::format("\nExpression: `{}`\n", expression_text(def));
    if (const auto d = derivative_text(def); !d.empty()) text += fmt::format("\nDerivative: {}.\n", d);
  }
  return {{"docs/operators.md", text}};
}

}  // namespace tenon::opgen
