#include "tools/opgen/pointwise_forms.h"

#include <fmt/format.h>

#include <algorithm>

#include "tenon/core/error.h"
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

std::string trimmed(std::string text) {
  // YAML folds lines; a trailing newline is none of the expression's business.
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

bool is_absent(const std::vector<std::string>& absent, const std::string& name) {
  return std::find(absent.begin(), absent.end(), name) != absent.end();
}

// The operands of an entry that are not absent.
PointwiseForm with_operands(const OpDef& def, const std::vector<std::string>& absent) {
  PointwiseForm form;
  form.name = def.schema().name;
  for (const schema::Argument& a : def.schema().arguments) {
    if (a.is_out || is_absent(absent, a.name)) continue;
    if (a.type.base == schema::BaseType::Tensor) {
      const auto& masks = def.pointwise.masks;
      const bool mask = std::find(masks.begin(), masks.end(), a.name) != masks.end();
      form.tensors.push_back({a.name, mask ? SymbolKind::MaskTensor : SymbolKind::Tensor});
    } else {
      form.scalars.push_back(a.name);
    }
  }
  return form;
}

NodeId parse_into(PointwiseForm& form, const std::string& text) {
  for (const expr::Symbol& s : all_symbols(form)) form.graph.symbol(s.name, s.kind);
  return expr::simplify(form.graph, expr::parse(form.graph, text, all_symbols(form)));
}

// `text` with given() answered, over the operands that are there.
std::string answered(const OpDef& def, const std::string& text, const std::vector<std::string>& absent) {
  PointwiseForm all = with_operands(def, {});
  NodeId root = parse_into(all, text);
  for (const std::string& name : optional_operands(def)) {
    const uint64_t is_there = is_absent(absent, name) ? 0 : 1;
    const NodeId truth = all.graph.add({.op = expr::Op::Literal, .type = expr::Type::Mask, .bits = is_there});
    root = expr::substitute(all.graph, root, all.graph.given(name), truth);
  }
  root = expr::simplify(all.graph, root);
  const std::vector<bool> used = expr::reached(all.graph, std::span(&root, 1));
  for (NodeId id = 0; id < used.size(); ++id) {
    if (!used[id]) continue;
    const expr::Node& n = all.graph[id];
    TENON_CHECK(n.op != expr::Op::Given, Value,
                fmt::format("given({}): it is not optional", all.graph.symbol_name(n.bits)));
    TENON_CHECK(!all.graph.is_symbol(id) || !is_absent(absent, all.graph.symbol_of(id).name), Value,
                fmt::format("without `{}` its value is used; ask given({}) before",
                            all.graph.symbol_of(id).name, all.graph.symbol_of(id).name));
  }
  return expr::to_string(all.graph, root);
}

PointwiseForm form_without(const OpDef& def, const std::vector<std::string>& absent) {
  const Pointwise& p = def.pointwise;
  PointwiseForm form = with_operands(def, absent);
  if (p.outputs.empty() && optional_operands(def).empty()) {
    form.roots = {parse_into(form, p.text)};
    form.text = trimmed(p.text);
    return form;
  }
  for (const std::string& name : absent) form.absent += (form.absent.empty() ? "_without_" : "_") + name;
  if (p.outputs.empty()) {
    form.text = answered(def, p.text, absent);
    form.roots = {parse_into(form, form.text)};
    return form;
  }
  for (const auto& [name, text] : p.outputs) {
    if (is_absent(absent, name)) continue;
    const std::string own = answered(def, p.text + " " + text, absent);
    form.outputs.push_back(name);
    form.roots.push_back(parse_into(form, own));
    form.text += fmt::format("{}{}: {}", form.text.empty() ? "" : "\n", name, own);
  }
  return form;
}

}  // namespace

std::vector<std::string> optional_operands(const OpDef& def) {
  std::vector<std::string> tensors, numbers;
  for (const schema::Argument& a : def.schema().arguments) {
    if (a.is_out || !a.type.optional) continue;
    (a.type.base == schema::BaseType::Tensor ? tensors : numbers).push_back(a.name);
  }
  tensors.insert(tensors.end(), numbers.begin(), numbers.end());
  return tensors;
}

std::string expression_text(const OpDef& def) {
  std::string text = trimmed(def.pointwise.text);
  for (const auto& [name, value] : def.pointwise.outputs)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", name, trimmed(value));
  return text;
}

bool PointwiseForm::runs_in(expr::Type type) const {
  try {
    typed(type);
    return true;
  } catch (const Error&) {
    return false;
  }
}

expr::ExpressionPtr PointwiseForm::typed(expr::Type type) const {
  return expr::instantiate(*written(), {.compute = type});
}

PointwiseForm pointwise_form(const OpDef& def, const std::string& text) {
  PointwiseForm form = with_operands(def, {});
  form.roots = {parse_into(form, text)};
  form.text = trimmed(text);
  return form;
}

PointwiseForm pointwise_form(const PointwiseForm& of, const std::string& text) {
  PointwiseForm form{.name = of.name, .text = trimmed(text), .tensors = of.tensors, .scalars = of.scalars};
  form.roots = {parse_into(form, text)};
  return form;
}

PointwiseForm pointwise_form(const OpDef& def) { return form_without(def, {}); }

std::vector<std::optional<PointwiseForm>> pointwise_forms(const OpDef& def) {
  const std::vector<std::string> optional = optional_operands(def);
  const std::vector<std::string>& wanted = def.pointwise.at_least_one;
  std::vector<std::optional<PointwiseForm>> forms(size_t{1} << optional.size());
  for (size_t set = 0; set < forms.size(); ++set) {
    std::vector<std::string> absent;
    for (size_t i = 0; i < optional.size(); ++i) {
      if ((set >> i) & 1u) absent.push_back(optional[i]);
    }
    const bool refused = !wanted.empty() && std::all_of(wanted.begin(), wanted.end(), [&](const auto& name) {
      return is_absent(absent, name);
    });
    if (!refused) forms[set] = form_without(def, absent);
  }
  return forms;
}

std::optional<PointwiseGradient> pointwise_gradient(const PointwiseForm& forward, size_t operand) {
  if (forward.tensors[operand].kind != SymbolKind::Tensor) return std::nullopt;
  expr::Builder work = forward.graph;
  const NodeId grad = work.symbol("grad");
  const NodeId result = work.symbol("result");
  const NodeId wrt = work.find_symbol(forward.tensors[operand].name);
  NodeId slope = expr::derivative(work, forward.root(), wrt, {.grad = grad, .result = result});
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
  form.roots = {expr::parse(form.graph, form.text, all_symbols(form))};
  return gradient;
}

std::string pointwise_stub_type(const OpDef& def) {
  std::string type = "void(const TensorIterator&";
  for (size_t i = pointwise_form(def).scalars.size(); i > 0; --i) type += ", const Scalar&";
  return type + ")";
}

std::string pointwise_signature(const OpDef& def) {
  const PointwiseForm form = pointwise_form(def);
  std::string text;
  char alias = 'a';
  const auto add = [&](const std::string& type, const std::string& name) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", type, name);
  };
  const auto output = [&](const std::string& name) { add(fmt::format("Tensor({}!)", alias++), name); };
  if (form.outputs.empty()) output("out");
  for (const std::string& name : form.outputs) {
    const bool written = std::any_of(form.tensors.begin(), form.tensors.end(),
                                     [&](const expr::Symbol& t) { return t.name == name; });
    output(written ? name + "_out" : name);
  }
  for (const expr::Symbol& t : form.tensors) add("Tensor", t.name);
  for (const std::string& name : form.scalars) add("Scalar", name);
  return fmt::format("({}) -> ()", text);
}

}  // namespace tenon::opgen
