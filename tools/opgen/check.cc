#include "tools/opgen/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "tenon/core/dtype.h"
#include "tenon/expr/instantiate.h"
#include "tools/opgen/formula.h"
#include "tools/opgen/pointwise_forms.h"
#include "tools/opgen/rows_forms.h"
#include "tools/opgen/traits.h"

namespace tenon::opgen {

namespace {

bool takes_tensors(const FunctionSchema& schema) {
  return std::any_of(schema.arguments.begin(), schema.arguments.end(), [](const schema::Argument& a) {
    return a.type.base == schema::BaseType::Tensor && !a.is_out;
  });
}

// The results are new tensors, or those that the outputs name and the call writes.
void check_outputs(const OpDef& def, const YamlEntry& entry) {
  const FunctionSchema& schema = def.schema();
  std::vector<std::string> expected;
  for (size_t i = 0; i < schema.returns.size(); ++i) {
    const schema::Return& r = schema.returns[i];
    if (!r.type.is_tensor() || r.alias || r.type.optional)
      entry.fail_in("schema",
                    fmt::format("`outputs` are new tensors and written arguments, not {}", to_string(r)));
    expected.push_back(result_variable(schema, i));
  }
  if (expected.size() == 1)
    entry.fail_in("outputs", "one new result: give it as `expr`, or return nothing beside what is written");
  for (const schema::Argument& a : schema.arguments) {
    if (a.is_write()) expected.push_back(a.name);
  }
  std::vector<std::string> given;
  for (const auto& [name, text] : def.pointwise.outputs) given.push_back(name);
  if (given != expected)
    entry.fail_in("outputs",
                  fmt::format("expected {}, in this order: the results, then the written arguments",
                              fmt::join(expected, ", ")));
}

void check_pointwise_arguments(const OpDef& def, const YamlEntry& entry) {
  const FunctionSchema& schema = def.schema();
  if (!def.pointwise.outputs.empty()) {
    check_outputs(def, entry);
  } else if (def.operators.front().form != Form::Functional || schema.returns.size() != 1 ||
             !schema.returns[0].type.is_tensor()) {
    entry.fail_in("expr", "the schema must return one new tensor; `variants` makes the other forms");
  }
  size_t tensors = 0, scalars = 0, optional = 0;
  bool required = false;
  for (const schema::Argument& a : schema.arguments) {
    const bool number = a.type.base == schema::BaseType::Scalar || a.type.base == schema::BaseType::Float ||
                        a.type.base == schema::BaseType::Int || a.type.base == schema::BaseType::Bool;
    if (a.type.list || (!a.type.is_tensor() && !number)) {
      entry.fail_in("schema",
                    fmt::format("`{}` is {}; an expression takes Tensor, Scalar, float, int and bool", a.name,
                                to_string(a.type)));
    }
    optional += a.type.optional;
    required |= a.type.is_tensor() && !a.type.optional;
    ++(a.type.is_tensor() ? tensors : scalars);
  }
  if (!required) entry.fail_in("schema", "an expression needs a Tensor argument that is not optional");
  if (optional > 4) entry.fail_in("schema", "an expression takes at most 4 optional arguments");
  if (optional > 0 && !def.pointwise.bool_text.empty())
    entry.fail_in("bool_expr", "an entry with optional arguments has none");
  for (const std::string& name : def.pointwise.at_least_one) {
    const auto i = schema.argument_index(name);
    if (!i || !schema.arguments[*i].type.optional)
      entry.fail_in("at_least_one", fmt::format("'{}' is no optional argument of the schema", name));
  }
  if (tensors > 7 || scalars > 8)
    entry.fail_in("schema", "an expression takes at most 7 tensors and 8 numbers");
  for (const auto& [field, names, tensor] : {std::tuple{"promote", &def.pointwise.promote, false},
                                             std::tuple{"nonnegative", &def.pointwise.nonnegative, false},
                                             std::tuple{"nonzero", &def.pointwise.nonzero, false},
                                             std::tuple{"truncate", &def.pointwise.truncate, false},
                                             std::tuple{"masks", &def.pointwise.masks, true}}) {
    for (const std::string& name : *names) {
      const auto i = schema.argument_index(name);
      if (!i || schema.arguments[*i].type.is_tensor() != tensor) {
        entry.fail_in(field, fmt::format("'{}' is no {} of the schema", name, tensor ? "tensor" : "number"));
      }
    }
  }
  for (const auto* names : {&def.pointwise.refused_dtypes, &def.pointwise.refused_common}) {
    for (const std::string& name : *names) {
      if (name != "floating" && name != "integral" && !parse_dtype(name))
        entry.fail_in("refuse", fmt::format("'{}' is no dtype", name));
    }
  }
}

void check_expression(const OpDef& def, const YamlEntry& entry) {
  std::vector<std::optional<PointwiseForm>> forms;
  try {
    forms = pointwise_forms(def);
    if (!def.pointwise.bool_text.empty()) pointwise_form(def, def.pointwise.bool_text);
  } catch (const Error& e) {
    entry.fail_in("expr", e.what());
  }
  for (const auto& form : forms) {
    if (form && std::none_of(std::begin(expr::kComputeTypes), std::end(expr::kComputeTypes),
                             [&](expr::Type t) { return form->runs_in(t); })) {
      entry.fail_in("expr", "it runs neither on floating-point numbers nor on integers");
    }
    if (!form || def.derivative.kind != DerivativeDef::Kind::Expression) continue;
    for (size_t i = 0; i < form->tensors.size(); ++i) {
      try {
        const auto gradient = pointwise_gradient(*form, i);
        if (gradient) check_gradient(*form, i, *gradient);
      } catch (const Error& e) {
        entry.fail_in("expr", fmt::format("{}; write it in another form, or give `derivative`", e.what()));
      }
    }
  }
}

void check_derivative(const OpDef& def, const YamlEntry& entry) {
  const DerivativeDef& d = def.derivative;
  const FunctionSchema& schema = def.schema();
  if (d.kind == DerivativeDef::Kind::Absent && def.body != Body::Composite && takes_tensors(schema)) {
    entry.fail("`derivative` is missing: give a formula for each differentiable argument, or `none`");
  }
  if (d.kind == DerivativeDef::Kind::Formulas && def.body == Body::Composite) {
    entry.fail_in("derivative", "a composite is differentiated through what it calls");
  }
  for (const auto& [names, formula] : d.formulas) {
    for (const std::string& name : formula_arguments(names)) {
      const auto i = schema.argument_index(name);
      if (!i || schema.arguments[*i].type.base != schema::BaseType::Tensor) {
        entry.fail_in("derivative",
                      fmt::format("'{}' is no tensor argument of {}", name, schema.name_with_overload()));
      }
    }
  }
  const Operator* in_place = def.find(Form::Inplace);
  if (d.kind == DerivativeDef::Kind::Formulas && in_place) {
    // The written tensor's new history leads to its old one: through argument 0, by its formula.
    const auto& arguments = in_place->schema.arguments;
    const bool writes_first = !arguments.empty() && arguments[0].type.base == schema::BaseType::Tensor &&
                              !arguments[0].type.list && arguments[0].is_write();
    if (!writes_first) {
      entry.fail_in("derivative", fmt::format("{} must write its first argument to be differentiated",
                                              in_place->schema.name_with_overload()));
    }
    const bool has_self = std::any_of(d.formulas.begin(), d.formulas.end(),
                                      [&](const auto& f) { return f.first == arguments[0].name; });
    if (!has_self) {
      entry.fail_in("derivative",
                    fmt::format("{} writes `{}` in place, so `{}` needs a formula; an argument "
                                "whose old elements are lost has zeros_like(grad)",
                                in_place->schema.name_with_overload(), arguments[0].name, arguments[0].name));
    }
  }
  for (const auto& [field, flags] : {std::pair("output_differentiability", &d.output_differentiability),
                                     std::pair("optional_grads", &d.optional_grads)}) {
    if (!flags->empty() && flags->size() != schema.returns.size())
      entry.fail_in(field, fmt::format("{} values for {} results", flags->size(), schema.returns.size()));
  }
}

/// Results are new, or the one that is written and returned: nothing else can be allocated from a shape.
void check_structured(const OpDef& def, const YamlEntry& entry) {
  const FunctionSchema& schema = def.schema();
  const bool inplace = def.operators.front().form == Form::Inplace;
  bool fits = !schema.returns.empty() && (!inplace || schema.returns.size() == 1);
  for (const schema::Return& r : schema.returns)
    fits &= r.type.is_tensor() && r.alias.has_value() == inplace && (!inplace || r.is_write());
  if (!fits) {
    entry.fail_in(
        "shape",
        "a shape function speaks of new tensors, or of one tensor that is written in place and returned");
  }
  const bool self_first = !schema.arguments.empty() && schema.arguments[0].name == "self" &&
                          schema.arguments[0].type == schema::Type{};
  if (def.updates && (inplace || schema.returns.size() != 1 || !self_first)) {
    entry.fail_in("update",
                  "the schema must take `Tensor self` first and return one new tensor, a copy of it that is "
                  "written; `variants` makes the other forms");
  }
}

/// An expression of complex numbers has one operand, and is one of their parts.
void check_complex_rows(const OpDef& def, const YamlEntry& entry) {
  const RowsForm form = rows_form(def);
  if (form.tensors.size() != 1)
    entry.fail_in("rows", fmt::format("`complex` is of one tensor, the schema has {}", form.tensors.size()));
  const expr::ExpressionPtr written = form.written();
  const DType input[] = {DType::Complex64};
  std::vector<DType> results;
  for (const expr::Slot& s : written->outputs())
    results.push_back(s.dtype == DType::Bool ? DType::Bool : DType::Complex64);
  try {
    expr::instantiate(*written,
                      {.compute = expr::Type::F32, .inputs = input, .results = results, .dense = true});
  } catch (const Error& e) {
    entry.fail_in("rows", fmt::format("it says `complex`, but {}", e.what()));
  }
}

/// What an entry's `rows` names is there, and its expression reads.
void check_rows(const OpDef& def, const YamlEntry& entry) {
  const Rows& r = *def.rows;
  const FunctionSchema& schema = def.schema();
  const auto argument = [&](const std::string& name, const char* what) {
    if (!name.empty() && !schema.argument_index(name))
      entry.fail_in("rows", fmt::format("'{}' is no argument of the schema, as `{}` needs", name, what));
  };
  argument(r.dims, "over");
  argument(r.dtype, "dtype");
  argument(r.float32_when, "float32_when");
  for (const auto* list : {&r.of_rows, &r.index, &r.masks}) {
    for (const std::string& name : *list) {
      const auto i = schema.argument_index(name);
      if (!i || !schema.arguments[*i].type.is_tensor())
        entry.fail_in("rows", fmt::format("'{}' is no tensor of the schema", name));
    }
  }
  if (schema.arguments.empty() || !schema.arguments[0].type.is_tensor() || schema.arguments[0].type.optional)
    entry.fail_in("rows", "the first argument must be a tensor: it has the shape of the loop");
  try {
    const RowsForm form = rows_form(def);
    if (form.tensors.size() > 12 || form.scalars.size() > 8)
      entry.fail_in("rows", "an expression over rows takes at most 12 tensors and 8 numbers");
  } catch (const Error& e) {
    entry.fail_in("expr", e.what());
  }
  if (r.complex) check_complex_rows(def, entry);
}

/// An out form takes the options from `out`, and has them put where ops/forms/factory_out.h expects them.
void check_factory_out(const OpDef& def, const YamlEntry& entry) {
  const auto options = options_position(def.schema());
  if (!options || !def.find(Form::Out)) return;
  const auto& arguments = def.schema().arguments;
  const size_t after = arguments.size() - (*options + 4);
  const bool format = after == 1 && arguments.back().type.base == schema::BaseType::MemoryFormat;
  if (*options == 0 || (after > 0 && !format)) {
    entry.fail_in(
        "variants",
        "an out form needs an argument before dtype, layout, device and pin_memory, and behind them "
        "at most a memory format");
  }
}

}  // namespace

void check_entry(const OpDef& def, const YamlEntry& entry) {
  check_derivative(def, entry);
  check_traits(def, entry);
  if (def.body == Body::Structured) check_structured(def, entry);
  if (def.rows) check_rows(def, entry);
  check_factory_out(def, entry);
  if (def.body == Body::Expr) {
    check_pointwise_arguments(def, entry);
    check_expression(def, entry);
  }
}

}  // namespace tenon::opgen
