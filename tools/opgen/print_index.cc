// python/operators.json: for each operator where its entry is, what computes it, its derivative and its
// bindings. `tenon where` shows it.
#include <fmt/format.h>

#include "tools/opgen/node_names.h"
#include "tools/opgen/pointwise_forms.h"
#include "tools/opgen/python_names.h"
#include "tools/opgen/text.h"

namespace tenon::opgen {
namespace {

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out.append({'\\', c});
    else if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    else
      out += c;
  }
  return out + "\"";
}

std::string json_list(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (size_t i = 0; i < texts.size(); ++i) out += (i ? ", " : "") + json_string(texts[i]);
  return out + "]";
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

std::string json_object(const Pairs& pairs) {
  std::string out = "{";
  for (size_t i = 0; i < pairs.size(); ++i)
    out += (i ? ", " : "") + json_string(pairs[i].first) + ": " + json_string(pairs[i].second);
  return out + "}";
}

/// The C++ that computes the entry: a function, or what the entry has in its place.
std::string function_of(const OpDef& def) {
  return def.cpp.empty() ? "tenon::ops::" + def.function : def.cpp;
}

/// The entry's body: the field of the YAML and its text.
Pairs body_of(const OpDef& def) {
  switch (def.body) {
    case Body::Expr: {
      Pairs fields = {{"expr", expression_text(def)}};
      if (!def.pointwise.bool_text.empty()) fields.emplace_back("bool_expr", def.pointwise.bool_text);
      return fields;
    }
    case Body::Structured:
      if (def.rows) return {{"rows", def.rows->text}};
      return {{"shape", def.shape_cpp.empty() ? "tenon::ops::shape::" + def.shape : def.shape_cpp},
              def.kernel.empty()
                  ? std::pair<std::string, std::string>("body", function_of(def))
                  : std::pair<std::string, std::string>("kernel", "tenon::cpu::" + def.kernel)};
    case Body::View:
      return {{"view", function_of(def)}};
    case Body::Explicit:
      return {{"explicit", function_of(def)}, {"reason", def.reason}};
    case Body::Composite:
      return {{"composite", function_of(def)}};
    case Body::Dispatch: {
      Pairs fields;
      for (const auto& [key, function] : def.dispatch) fields.emplace_back(key, "tenon::ops::" + function);
      return fields;
    }
  }
  return {};
}

/// What the entry says of the derivative, and the formula by each argument.
std::pair<std::string, Pairs> derivative_of(const OpDef& def) {
  switch (def.derivative.kind) {
    case DerivativeDef::Kind::Absent:
      return {def.body == Body::Composite ? "through what it calls" : "not stated", {}};
    case DerivativeDef::Kind::None:
      return {"none", {}};
    case DerivativeDef::Kind::Formulas:
      return {"by formula", Pairs(def.derivative.formulas.begin(), def.derivative.formulas.end())};
    case DerivativeDef::Kind::Expression:
      break;
  }
  Pairs formulas;
  const PointwiseForm forward = pointwise_form(def);
  for (size_t i = 0; i < forward.tensors.size(); ++i) {
    if (const auto gradient = pointwise_gradient(forward, i))
      formulas.emplace_back(forward.tensors[i].name, gradient->form.text);
  }
  return {"from the expression", formulas};
}

std::vector<std::string> cpp_bindings(const Operator& op) {
  const std::string returns = schema::cpp_return_type(op.schema);
  std::vector<std::string> out;
  if (op.function) {
    out.push_back(fmt::format("{} tenon::{}({})", returns, function_names(op).front(),
                              parameter_list(parameters(op, false), true)));
  }
  if (op.method) {
    out.push_back(fmt::format("{} tenon::Tensor::{}({})", returns, op.schema.name,
                              parameter_list(parameters(op, true), true)));
  }
  out.push_back("tenon::operators::" + op.constant);
  return out;
}

std::map<const Operator*, std::vector<std::string>> python_bindings(const std::vector<PythonName>& names) {
  std::map<const Operator*, std::vector<std::string>> out;
  for (const PythonName& name : names) {
    for (const PythonOverload* o : name.functions) out[o->op].push_back("tenon." + o->text);
    for (const PythonOverload* o : name.methods) out[o->op].push_back("tenon.Tensor." + name.name);
  }
  return out;
}

}  // namespace

std::vector<GeneratedFile> print_index(const std::vector<OpDef>& defs) {
  const auto nodes = node_names(defs);
  const std::vector<PythonName> names = python_names(defs);
  const auto python = python_bindings(names);
  std::string text;
  for (const OpDef& def : defs) {
    const auto [derivative, formulas] = derivative_of(def);
    const bool recorded = def.derivative.kind == DerivativeDef::Kind::Expression ||
                          def.derivative.kind == DerivativeDef::Kind::Formulas;
    for (const Operator& op : def.operators) {
      const auto bound = python.find(&op);
      text += fmt::format(
          "{}{}: {{\"file\": {}, \"line\": {}, \"body\": {}, \"out_dtype\": {}, \"derivative\": {}, "
          "\"formulas\": {}, \"node\": "
          "{}, "
          "\"cpp\": {}, \"python\": {}, \"doc\": {}}}",
          text.empty() ? "{\n" : ",\n", json_string(full_name(op.schema)),
          json_string("tenon/ops/yaml/" + def.file), def.line, json_object(body_of(def)),
          json_string(def.out_dtype), json_string(derivative), json_object(formulas),
          recorded ? json_string(nodes.at(&def)) : "null", json_list(cpp_bindings(op)),
          json_list(bound == python.end() ? std::vector<std::string>() : bound->second),
          json_string(def.doc.substr(0, def.doc.find('\n'))));
    }
  }
  return {{"python/operators.json", (text.empty() ? "{" : text) + "\n}\n"}};
}

}  // namespace tenon::opgen
