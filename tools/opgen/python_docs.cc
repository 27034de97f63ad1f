#include "tools/opgen/python_docs.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::opgen {
namespace {

using schema::Argument;
using schema::BaseType;

/// A parameter of a text signature.
struct DocParameter {
  std::string name, value;
  bool keyword_only = false;

  std::string text() const { return value.empty() ? name : name + "=" + value; }
};

/// Those of one overload; outs are keywords that may be left out.
std::vector<DocParameter> doc_parameters_of(const PythonOverload& o, bool method) {
  std::vector<DocParameter> out;
  const bool several = o.op->schema.out_arguments().size() > 1;
  for (const Argument& a : o.shown_schema().arguments) {
    if (method && a.name == "self") continue;
    const std::string value = !a.is_out ? schema::python_default(a) : several ? "..." : "None";
    out.push_back({python_parameter_name(a), value, a.kwarg_only || a.is_out});
  }
  if (several) out.push_back({"out", "None", true});  // all of them, as a tuple
  if (o.takes_requires_grad()) out.push_back({"requires_grad", "False", true});
  return out;
}

/// Where all overloads have their positional parameters in one order, those of all; what some do not have,
/// or have a default for, is optional: `...` says that it may be left out.
bool merge(const std::vector<std::vector<DocParameter>>& overloads, std::vector<DocParameter>& merged) {
  const auto positional = [](const std::vector<DocParameter>& o) {
    return static_cast<size_t>(std::ranges::count(o, false, &DocParameter::keyword_only));
  };
  const auto& longest = *std::ranges::max_element(overloads, {}, positional);
  merged.assign(longest.begin(), longest.begin() + static_cast<std::ptrdiff_t>(positional(longest)));
  for (const auto& o : overloads) {
    for (size_t i = 0; i < o.size(); ++i) {
      if (o[i].keyword_only) {
        if (std::ranges::find(merged, o[i].name, &DocParameter::name) == merged.end()) merged.push_back(o[i]);
      } else if (o[i].name != merged[i].name) {
        return false;
      } else if (merged[i].value.empty()) {
        merged[i].value = o[i].value;
      }
    }
  }
  for (DocParameter& p : merged) {
    const bool everywhere = std::ranges::all_of(overloads, [&](const auto& o) {
      return std::ranges::find(o, p.name, &DocParameter::name) != o.end();
    });
    if (!everywhere && p.value.empty()) p.value = "...";
  }
  // What follows an optional parameter is optional.
  bool optional = false;
  for (DocParameter& p : merged) {
    if (p.keyword_only) break;
    optional |= !p.value.empty();
    if (optional && p.value.empty()) p.value = "...";
  }
  return true;
}

const PythonOverload* functional(const PythonName& name) {
  const auto at = std::ranges::find_if(
      name.overloads, [](const PythonOverload& o) { return o.op->form == Form::Functional; });
  return at == name.overloads.end() ? nullptr : &*at;
}

bool refuses_floating(const OpDef& def) {
  return std::ranges::find(def.pointwise.refused_dtypes, "floating") != def.pointwise.refused_dtypes.end();
}

/// `>>> tenon.add(tenon.ones(2, 3), tenon.ones(3)).shape`: what a pointwise operator does to shapes.
std::string pointwise_example(const PythonName& name, const PythonOverload& o) {
  const FunctionSchema& schema = o.op->schema;
  const std::string dtype = refuses_floating(*o.def) ? ", dtype=tenon.int64" : "";
  std::string arguments;
  size_t tensors = 0;
  for (const Argument& a : schema.arguments) {
    if (a.default_value.given()) break;
    if (!arguments.empty()) arguments += ", ";
    if (a.kwarg_only) arguments += schema::python_name(a) + "=";
    if (a.type.is_tensor() && !a.type.list)
      arguments += fmt::format("tenon.ones({}{})", tensors++ == 0 ? "2, 3" : "3", dtype);
    else if (a.type.base == BaseType::Bool)
      arguments += "True";
    else if (a.type.list || a.type.base == BaseType::Str)
      return "";
    else
      arguments += "1";
  }
  if (tensors == 0 || schema.returns.size() != 1 || !o.op->function) return "";
  for (size_t i = 0; i < o.def->pointwise.at_least_one.size() && i < 1; ++i)
    arguments += fmt::format(", {}=1", o.def->pointwise.at_least_one[i]);
  return fmt::format(">>> tenon.{}({}).shape\ntenon.Size([2, 3])\n", name.name, arguments);
}

std::string shapes(const PythonOverload& o) {
  if (o.def->body != Body::Expr || o.op->schema.returns.size() != 1) return "";
  const auto& arguments = o.op->schema.arguments;
  const auto tensors =
      std::ranges::count_if(arguments, [](const Argument& a) { return a.type.is_tensor() && !a.is_out; });
  return tensors > 1 ? "\nShapes: that to which the tensors broadcast, as NumPy's do.\n"
                     : "\nShapes: that of the tensor.\n";
}

}  // namespace

std::string python_parameter_name(const Argument& a) {
  return a.name == "self" ? "input" : schema::python_name(a);
}

std::string python_signature(const PythonOverload& o) {
  const FunctionSchema schema = o.shown_schema();
  std::string out;
  bool star = false;
  for (const Argument& a : schema.arguments) {
    if (!out.empty()) out += ", ";
    if (a.kwarg_only && !star) {
      out += "*, ";
      star = true;
    }
    out += python_parameter_name(a) + ": " + schema::python_type(a);
    if (const std::string value = schema::python_default(a); !value.empty()) out += " = " + value;
  }
  return fmt::format("({}) -> {}", out, schema::python_return_type(o.op->schema));
}

std::string text_signature(const PythonName& name, const std::vector<const PythonOverload*>& overloads,
                           bool method) {
  std::vector<std::vector<DocParameter>> all;
  bool variadic = false;
  for (const PythonOverload* o : overloads) {
    all.push_back(doc_parameters_of(*o, method));
    variadic |= o->variadic() && (method || o->op->schema.num_positional() == 1);
  }
  std::string out = method ? "$self" : "";
  std::vector<DocParameter> merged;
  if (!merge(all, merged) ||
      (variadic && overloads.size() > 1 && !all[0].empty() && all[0].size() > 1 && !all[0][1].keyword_only)) {
    out += out.empty() ? "*args, **kwargs" : ", *args, **kwargs";
  } else {
    bool star = false;
    for (const DocParameter& p : merged) {
      if (!out.empty()) out += ", ";
      if (variadic && !p.keyword_only) {
        out += "*" + p.name;
        star = true;
        continue;
      }
      if (p.keyword_only && !star) out += "*, ";
      star |= p.keyword_only;
      out += p.text();
    }
  }
  return fmt::format("{}({})\n--\n\n", name.name, out);
}

std::string python_doc(const PythonName& name) {
  std::string out;
  for (const PythonOverload& o : name.overloads) out += o.text + "\n";
  const PythonOverload* documented = nullptr;
  for (const PythonOverload& o : name.overloads) {
    if (o.op->form == Form::Functional && !o.def->doc.empty()) {
      documented = &o;
      break;
    }
  }
  if (documented) out += "\n" + documented->def->doc;
  if (out.ends_with("\n\n")) out.pop_back();
  if (const PythonOverload* o = functional(name)) {
    if (!out.ends_with("\n")) out += "\n";
    out += shapes(*o);
    const std::string example = !o->def->example.empty()     ? o->def->example
                                : o->def->body == Body::Expr ? pointwise_example(name, *o)
                                                             : "";
    if (!example.empty()) out += "\nExample:\n\n" + example;
  }
  return out;
}

}  // namespace tenon::opgen
