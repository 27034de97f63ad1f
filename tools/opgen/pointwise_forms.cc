#include "tools/opgen/pointwise_forms.h"

#include <fmt/format.h>

#include <algorithm>

#include "tenon/expr/instantiate.h"

namespace tenon::opgen {

namespace {

using expr::NodeId;
using expr::SymbolKind;

std::vector<expr::Symbol> all_symbols(const PointwiseForm& form) {
  std::vector<expr::Symbol> symbols = form.tensors;
  for (const std::string& s : form.scalars) symbols.push_back({s, SymbolKind::Scalar});
  return symbols;
}

}  // namespace

bool PointwiseForm::runs_in(expr::Type type) const {
  try {
    expr::check(graph, root, type);
    return true;
  } catch (const Error&) {
    return false;
  }
}

expr::ExpressionPtr PointwiseForm::typed(expr::Type type) const {
  return expr::instantiate(*graph.finish({root}), {.compute = type});
}

PointwiseForm pointwise_form(const OpDef& def, const std::string& text) {
  PointwiseForm form;
  const FunctionSchema& schema = def.schema();
  form.name = schema.name;
  for (const schema::Argument& a : schema.arguments) {
    if (a.is_out) continue;
    if (a.type.base == schema::BaseType::Tensor) {
      const auto& masks = def.pointwise.masks;
      const bool mask = std::find(masks.begin(), masks.end(), a.name) != masks.end();
      form.tensors.push_back({a.name, mask ? SymbolKind::MaskTensor : SymbolKind::Tensor});
    } else {
      form.scalars.push_back(a.name);
    }
  }
  for (const expr::Symbol& s : all_symbols(form)) form.graph.symbol(s.name, s.kind);
  const NodeId root = expr::parse(form.graph, text, all_symbols(form));
  form.root = expr::simplify(form.graph, root);
  form.text = text;
  // YAML folds lines; a trailing newline is none of the expression's business.
  while (!form.text.empty() && form.text.back() == '\n') form.text.pop_back();
  return form;
}

PointwiseForm pointwise_form(const OpDef& def) { return pointwise_form(def, def.pointwise.text); }

std::optional<PointwiseGradient> pointwise_gradient(const PointwiseForm& forward, size_t operand) {
  if (forward.tensors[operand].kind != SymbolKind::Tensor) return std::nullopt;
  expr::Builder work = forward.graph;
  const NodeId grad = work.symbol("grad");
  const NodeId result = work.symbol("result");
  const NodeId wrt = work.find_symbol(forward.tensors[operand].name);
  NodeId slope = expr::derivative(work, forward.root, wrt, {.grad = grad, .result = result});
  slope = slope == expr::kNoNode ? work.literal(0) : expr::simplify(work, slope);

  PointwiseGradient gradient{.factor = expr::factor_of(work, slope, grad)};
  PointwiseForm& form = gradient.form;
  form.name = forward.name + "_backward_" + forward.tensors[operand].name;
  form.text = expr::to_string(work, slope);
  form.tensors.push_back({"grad", SymbolKind::Tensor});
  gradient.tensors.push_back(PointwiseGradient::kGrad);
  for (size_t i = 0; i < forward.tensors.size(); ++i) {
    if (!expr::uses(work, slope, work.find_symbol(forward.tensors[i].name))) continue;
    form.tensors.push_back(forward.tensors[i]);
    gradient.tensors.push_back(static_cast<int>(i));
  }
  if (expr::uses(work, slope, result)) {
    form.tensors.push_back({"result", SymbolKind::Tensor});
    gradient.tensors.push_back(PointwiseGradient::kResult);
  }
  for (size_t i = 0; i < forward.scalars.size(); ++i) {
    if (!expr::uses(work, slope, work.find_symbol(forward.scalars[i]))) continue;
    form.scalars.push_back(forward.scalars[i]);
    gradient.scalars.push_back(static_cast<int>(i));
  }
  for (const expr::Symbol& s : all_symbols(form)) form.graph.symbol(s.name, s.kind);
  form.root = expr::parse(form.graph, form.text, all_symbols(form));
  return gradient;
}

}  // namespace tenon::opgen
