// What autograd knows of each operator: DerivativeInfo as data, formulas as functions, rows for the key
// Autograd.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tools/opgen/files.h"
#include "tools/opgen/formula.h"
#include "tools/opgen/kernel_rows.h"
#include "tools/opgen/node_names.h"
#include "tools/opgen/pointwise_forms.h"
#include "tools/opgen/printers.h"
#include "tools/opgen/text.h"
#include "tools/opgen/typed_signatures.h"

namespace tenon::opgen {

namespace {

using Kind = DerivativeDef::Kind;

// One line of `uses`: bits are positions among all arguments, or among results.
struct Use {
  size_t argument = 0;
  uint64_t saves = 0, saves_results = 0, metas = 0;
};

uint64_t bits(const std::set<size_t>& positions, const FunctionSchema& schema, bool tensors_only) {
  uint64_t mask = 0;
  for (const size_t i : positions) {
    if (!tensors_only || schema.arguments[i].type.base == schema::BaseType::Tensor) mask |= uint64_t{1} << i;
  }
  return mask;
}

std::vector<Formula> formulas_of(const OpDef& def) {
  std::vector<Formula> formulas;
  for (const auto& [argument, text] : def.derivative.formulas) {
    formulas.push_back(read_formula(def.schema(), argument, text));
  }
  std::sort(formulas.begin(), formulas.end(), [](const Formula& a, const Formula& b) { return a.of < b.of; });
  return formulas;
}

std::vector<Use> pointwise_uses(const OpDef& def) {
  const FunctionSchema& schema = def.schema();
  // Which operands the call had decides what its derivative is.
  uint64_t asked = 0;
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const schema::Argument& a = schema.arguments[i];
    if (!a.is_out && a.type.optional && a.type.base == schema::BaseType::Tensor) asked |= uint64_t{1} << i;
  }
  std::map<size_t, Use> uses;
  for (const auto& form : pointwise_forms(def)) {
    for (size_t i = 0; form && i < form->tensors.size(); ++i) {
      const auto gradient = pointwise_gradient(*form, i);
      if (!gradient) continue;
      const size_t argument = *schema.argument_index(form->tensors[i].name);
      Use& use = uses[argument];
      use.argument = argument;
      use.metas = asked;
      for (const int t : gradient->tensors) {
        if (t == PointwiseGradient::kResult) use.saves_results = 1;
        if (t >= 0)
          use.saves |= uint64_t{1} << *schema.argument_index(form->tensors[static_cast<size_t>(t)].name);
      }
    }
  }
  std::vector<Use> list;
  for (const auto& [argument, use] : uses) list.push_back(use);
  return list;
}

std::vector<Use> uses_of(const OpDef& def) {
  if (def.derivative.kind == Kind::Expression) return pointwise_uses(def);
  std::vector<Use> uses;
  for (const Formula& f : formulas_of(def)) {
    for (const size_t argument : f.of) {
      uses.push_back({argument, bits(f.arguments, def.schema(), true), bits(f.results, def.schema(), false),
                      bits(f.metas, def.schema(), true)});
    }
  }
  std::sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a.argument < b.argument; });
  return uses;
}

std::string declaration(const FunctionSchema& schema, size_t argument, bool typed) {
  const schema::Argument& a = schema.arguments[argument];
  const char* type = a.type.is_tensor() ? "const Tensor" : typed ? "decltype(auto)" : "const auto";
  if (!typed)
    return fmt::format("    {} {} = saved.arg<{}>({});\n", type, schema::cpp_name(a), schema::cpp_type(a),
                       argument);
  return fmt::format("    {} {} = saved.arg<{}>();\n", type, schema::cpp_name(a), argument);
}

// The function that takes what a call of this form saved: forms whose calls are typed share one, those whose
// calls are cells another.
std::string backward_name(const OpDef& def, const Operator& op) {
  const bool typed = has_typed_code(signature(op.schema));
  const bool as_base = typed == has_typed_code(signature(def.schema()));
  return fmt::format("backward_of_{}{}", def.operators.front().constant,
                     as_base ? ""
                     : typed ? "_typed"
                             : "_cells");
}

std::string backward_function(const OpDef& def, const Operator& op) {
  const FunctionSchema& schema = def.schema();
  const bool typed = has_typed_code(signature(op.schema));
  std::string text = fmt::format(
      "void {}(const OpNode& node, [[maybe_unused]] std::span<const Tensor> grads, Gradients& "
      "out) {{\n"
      "  [[maybe_unused]] const auto& saved = static_cast<const {}&>(node);\n"
      "  [[maybe_unused]] const Tensor& grad = grads[0];\n",
      backward_name(def, op), typed ? fmt::format("SavedCall<{}>", signature(op.schema)) : "CellCall");
  for (const Formula& f : formulas_of(def)) {
    std::string wanted, names;
    for (const size_t a : f.of) {
      wanted += fmt::format("{}out.wanted({})", wanted.empty() ? "" : " || ", a);
      names += (names.empty() ? "" : ", ") + schema.arguments[a].name;
    }
    text += fmt::format("  if ({}) {{  // {}\n", wanted, names);
    for (const size_t a : f.arguments) text += declaration(schema, a, typed);
    for (const size_t a : f.metas) {
      const schema::Argument& argument = schema.arguments[a];
      text += fmt::format("    const {} {} = saved.{}({});\n",
                          argument.type.is_tensor() ? "ArgumentMeta&" : "ListMeta",
                          schema::cpp_name(argument), argument.type.is_tensor() ? "meta" : "list_meta", a);
    }
    for (const size_t r : f.results)
      text += fmt::format("    const Tensor {} = saved.result({});\n", result_variable(schema, r), r);
    if (f.of.size() == 1) {
      text += fmt::format("    out.set({}, {});\n  }}\n", f.of[0], f.text);
      continue;
    }
    text += fmt::format("    const auto gradients = {};\n", f.text);
    for (size_t i = 0; i < f.of.size(); ++i)
      text +=
          fmt::format("    if (out.wanted({})) out.set({}, std::get<{}>(gradients));\n", f.of[i], f.of[i], i);
    text += "  }\n";
  }
  return text + "}\n";
}

// A mask of results: bit i is flag i; those without a flag have `others`.
uint64_t mask_of(const std::vector<bool>& flags, bool others) {
  uint64_t mask = others ? ~uint64_t{0} : 0;
  for (size_t i = 0; i < flags.size(); ++i) {
    const uint64_t bit = uint64_t{1} << i;
    mask = flags[i] ? mask | bit : mask & ~bit;
  }
  return mask;
}

uint64_t out_arguments(const FunctionSchema& schema) {
  uint64_t mask = 0;
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    if (schema.arguments[i].is_out) mask |= uint64_t{1} << i;
  }
  return mask;
}

// Results that are single tensors.
size_t tensor_results(const FunctionSchema& schema) {
  size_t n = 0;
  for (const schema::Return& r : schema.returns) n += r.type.is_tensor();
  return n;
}

// CallShape of a call over cells.
std::string shape_of(const Operator& op) {
  uint64_t tensors = 0, lists = 0, written = 0, numbers = 0;
  uint64_t bit = 1;
  for (const schema::Argument& a : op.schema.arguments) {
    const schema::BaseType base = a.type.base;
    const bool number = base == schema::BaseType::Scalar || base == schema::BaseType::Int ||
                        base == schema::BaseType::Float || base == schema::BaseType::Bool;
    if (a.type.is_tensor()) tensors |= bit;
    if (a.type.is_tensor() && a.is_write()) written |= bit;
    if (a.type.is_tensor_list()) lists |= bit;
    if (number && !a.type.list) numbers |= bit;
    bit <<= 1;
  }
  return fmt::format("constexpr CallShape {}_shape({:#x}, {:#x}, {:#x}, {:#x});\n", op.constant, tensors,
                     lists, written, numbers);
}

// Whether an operator's history is written at all; the others step aside at Autograd.
bool is_recorded(const OpDef& def, const Operator& op) {
  if (def.derivative.kind == Kind::Expression || def.derivative.kind == Kind::Formulas) return true;
  return def.copies_out(op) || (op.form != Form::Functional && def.body != Body::Composite);
}

class DerivativePrinter {
 public:
  explicit DerivativePrinter(const std::vector<OpDef>& defs) : names_(node_names(defs)) {}

  std::string print(const OpDef& def) {
    const bool differentiable =
        def.derivative.kind == Kind::Expression || def.derivative.kind == Kind::Formulas;
    const std::string base = def.operators.front().constant;
    std::string text;
    const std::vector<Use> uses = differentiable ? uses_of(def) : std::vector<Use>{};
    std::string rows;
    for (const Use& u : uses) {
      rows += fmt::format("    {{.argument = {}, .saves = {:#x}, .saves_results = {:#x}, .metas = {:#x}}},\n",
                          u.argument, u.saves, u.saves_results, u.metas);
    }
    if (!uses.empty()) text += fmt::format("constexpr ArgumentUse {}_uses[] = {{\n{}}};\n", base, rows);
    for (const Operator& op : def.operators) {
      if (!is_recorded(def, op)) continue;
      std::string used = uses.empty() ? "" : base + "_uses";
      // A composite has no uses of its own; its out form is refused where any tensor requires grad.
      if (uses.empty() && def.copies_out(op) && def.body == Body::Composite) {
        std::string all;
        for (size_t i = 0; i < def.schema().arguments.size(); ++i) {
          if (def.schema().arguments[i].type.base == schema::BaseType::Tensor)
            all += fmt::format("    {{.argument = {}}},\n", i);
        }
        if (!all.empty()) used = op.constant + "_uses";
        if (!all.empty()) text += fmt::format("constexpr ArgumentUse {}[] = {{\n{}}};\n", used, all);
      }
      text += row(def, op, used);
    }
    return text;
  }

 private:
  std::string row(const OpDef& def, const Operator& op, const std::string& uses) {
    const std::string base = def.operators.front().constant;
    std::string backward = "nullptr", data = "nullptr", used = uses;
    if (def.derivative.kind == Kind::Expression) {
      backward = "&pointwise_backward";
      data = "&pointwise_info::" + base;
    } else if (def.derivative.kind == Kind::Formulas) {
      backward = "&" + backward_name(def, op);
    } else if (op.form == Form::Inplace) {
      // Nothing of the old elements is left: what was written has no history any more.
      used = "kOverwritesSelf";
    }
    std::string cells, shape;
    if (!has_typed_code(signature(op.schema))) {
      shape = shape_of(op);
      cells =
          fmt::format("    .shape = &{}_shape,\n    .num_arguments = {},\n    .num_tensor_results = {},\n",
                      op.constant, op.schema.arguments.size(), tensor_results(op.schema));
    }
    return shape + fmt::format(
                       "constinit const DerivativeInfo {}{{\n    .entry = &{},\n    "
                       ".node_name = {},\n"
                       "    .uses = {},\n    .backward = {},\n    .data = {},\n    .differentiable_results = "
                       "{:#x},\n    .undefined_grads = {:#x},\n    "
                       ".is_view = {},\n    .outs = {:#x},\n{}}};\n",
                       op.constant, entry_of(def, op), quote(names_.at(&def)), used.empty() ? "{}" : used,
                       backward, data, mask_of(def.derivative.output_differentiability, true),
                       mask_of(def.derivative.optional_grads, false), op.schema.is_view(),
                       out_arguments(op.schema), cells);
  }

  std::map<const OpDef*, std::string> names_;
};

}  // namespace

void add_autograd_rows(const OpDef& def, const Operator& op, std::vector<KernelRow>& rows) {
  if (def.body == Body::Composite && !def.copies_out(op)) return;
  if (is_recorded(def, op)) {
    rows.push_back({&op, "kAutogradAlias", has_typed_code(signature(op.schema)) ? "HistoryCall" : "cells",
                    fmt::format("&autograd::derivative_info::{}", op.constant)});
  } else {
    rows.push_back({&op, "kAutogradAlias", "", "nullptr"});
  }
}

std::map<const OpDef*, std::string> node_names(const std::vector<OpDef>& defs) {
  std::map<std::string, std::vector<const OpDef*>> families;
  for (const OpDef& def : defs) {
    std::string name;
    bool upper = true;
    for (const char c : def.schema().name) {
      if (c != '_') name += upper ? static_cast<char>(std::toupper(c)) : c;
      upper = c == '_';
    }
    families[name].push_back(&def);
  }
  const auto rank = [](const OpDef* d) {
    const std::string& overload = d->schema().overload;
    return std::pair(overload.empty()                                       ? 0
                     : overload.starts_with("Tensor") || overload == "self" ? 1
                                                                            : 2,
                     overload);
  };
  std::map<const OpDef*, std::string> names;
  for (auto& [name, family] : families) {
    std::stable_sort(family.begin(), family.end(),
                     [&](const OpDef* a, const OpDef* b) { return rank(a) < rank(b); });
    const bool wraps = std::any_of(family.begin(), family.end(), [](const OpDef* def) {
      return def->schema().overload == "Tensor" || def->schema().overload == "self";
    });
    size_t number = 0;
    for (const OpDef* def : family) {
      const bool has = def->derivative.kind == Kind::Expression || def->derivative.kind == Kind::Formulas;
      const bool own = has && !(wraps && def->schema().overload.starts_with("Scalar"));
      names[def] = fmt::format("{}Backward{}", name, own ? number++ : 0);
    }
  }
  return names;
}

FamilyText derivatives_of(const std::vector<OpDef>& defs, const Family& family) {
  DerivativePrinter printer(defs);
  const FunctionFamilies functions(defs);
  FamilyText out{{"tenon/autograd/cell_history.h", "tenon/autograd/formulas.h"}, ""};
  // A formula names operators; no DerivativeInfo of the same name may hide them in its scope.
  std::string backward, infos;
  for (const OpDef* def : family.defs) {
    infos += printer.print(*def);
    if (def->derivative.kind != Kind::Formulas) continue;
    out.headers.insert(def->includes.begin(), def->includes.end());
    std::set<std::string> written;
    for (const Operator& op : def->operators) {
      if (!is_recorded(*def, op) || !written.insert(backward_name(*def, op)).second) continue;
      const std::string function = backward_function(*def, op);
      for (const std::string& used : functions.called_in(function))
        out.headers.insert(Family{used, {}}.header("functions"));
      for (const std::string& used : functions.constants_in(function))
        out.headers.insert(Family{used, {}}.header("operators"));
      backward += function;
    }
  }
  if (infos.empty()) return {};
  out.text = "\nnamespace tenon::autograd {\n\nnamespace {\n\nusing namespace formulas;\n\n" + backward +
             "\n[[maybe_unused]] constexpr ArgumentUse kOverwritesSelf[] = {{.argument = 0}};\n\n"
             "namespace derivative_info {\n\n" +
             infos +
             "\n}  // namespace derivative_info\n\n}  // namespace\n\n}  // namespace tenon::autograd\n";
  return out;
}

}  // namespace tenon::opgen
