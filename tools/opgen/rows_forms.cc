#include "tools/opgen/rows_forms.h"

#include <fmt/format.h>

#include <algorithm>

#include "tenon/expr/instantiate.h"
#include "tenon/expr/plain_reduction.h"
#include "tools/opgen/text.h"

namespace tenon::opgen {

namespace {

using expr::SymbolKind;
using schema::BaseType;

bool is_in(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_number(const schema::Argument& a) {
  const BaseType t = a.type.base;
  return !a.type.list &&
         (t == BaseType::Scalar || t == BaseType::Float || t == BaseType::Int || t == BaseType::Bool);
}

// Result `i`'s expression, after the definitions that all share.
std::string text_of_result(const OpDef& def, size_t i) {
  const Rows& r = *def.rows;
  if (r.outputs.empty()) {
    TENON_CHECK(def.schema().returns.size() == 1, Value, "`outputs` is missing: there are several results");
    return r.text;
  }
  const std::string& name = def.schema().returns[i].name;
  const auto found =
      std::find_if(r.outputs.begin(), r.outputs.end(), [&](const auto& o) { return o.first == name; });
  TENON_CHECK(found != r.outputs.end(), Value, fmt::format("`outputs` has no expression for `{}`", name));
  return r.text + "\n" + found->second;
}

}  // namespace

bool is_plain_reduction(const OpDef& def) {
  const expr::ExpressionPtr written = rows_form(def).written();
  return expr::plain_reduction(*expr::instantiate(*written, {.dense = true})).has_value();
}

bool is_rows_setting(const Rows& rows, const schema::Argument& argument) {
  return argument.name == rows.dims || argument.name == rows.dtype || argument.name == rows.float32_when ||
         argument.name == "keepdim" || argument.type.base == BaseType::ScalarType;
}

RowsForm rows_form(const OpDef& def) {
  RowsForm form;
  const Rows& r = *def.rows;
  std::vector<expr::Symbol> symbols;
  for (const schema::Argument& a : def.schema().arguments) {
    if (a.is_out || is_rows_setting(r, a)) continue;
    if (a.type.base == BaseType::Tensor) {
      const SymbolKind kind = is_in(r.masks, a.name)   ? SymbolKind::MaskTensor
                              : is_in(r.index, a.name) ? SymbolKind::IndexTensor
                                                       : SymbolKind::Tensor;
      form.tensors.push_back(
          {a.name, kind, is_in(r.of_rows, a.name) ? expr::Rank::Row : expr::Rank::Element});
    } else {
      TENON_CHECK(
          is_number(a), Value,
          fmt::format("`{}` is {}, which an expression over rows does not take", a.name, to_string(a.type)));
      form.scalars.push_back(a.name);
    }
  }
  symbols = form.tensors;
  for (const std::string& s : form.scalars) symbols.push_back({s, SymbolKind::Scalar});
  for (const expr::Symbol& s : symbols) form.graph.symbol(s.name, s.kind, s.rank);
  for (size_t i = 0; i < def.schema().returns.size(); ++i) {
    const std::string text = text_of_result(def, i);
    form.roots.push_back(expr::simplify(form.graph, expr::parse_rows(form.graph, text, symbols)));
  }
  form.text = r.text;
  for (const auto& [name, text] : r.outputs) form.text += fmt::format("\n{}: {}", name, text);
  return form;
}

}  // namespace tenon::opgen
