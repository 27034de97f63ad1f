// The type stubs: python/_C.pyi's operators, read by editors and type checkers.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <regex>
#include <set>

#include "tools/opgen/python_docs.h"

namespace tenon::opgen {
namespace {

using schema::Argument;

/// The module has dtypes called int, float and bool, and Tensor has methods and attributes of these names:
/// the stub has aliases for the types.
std::string in_stub(const std::string& text) {
  static const std::regex kShadowed(
      "\\b(int|float|bool|dtype|device|layout|memory_format|Number|Storage)\\b");
  return std::regex_replace(text, kShadowed, "_$1");
}

/// One parameter: its name and type, and its default, which decides whether it may be left out.
struct StubParameter {
  std::string declared, value;
  bool keyword_only;
  std::string text() const { return value.empty() ? declared : declared + " = " + value; }
};

std::vector<StubParameter> parameters_of(const PythonOverload& o, bool method) {
  std::vector<StubParameter> out;
  for (const Argument& a : o.shown_schema().arguments) {
    if (method && a.name == "self") continue;
    std::string type = in_stub(schema::python_type(a));
    if (a.type.base == schema::BaseType::ScalarType) type.replace(type.find("_dtype"), 6, "_DTypeLike");
    out.push_back({python_parameter_name(a) + ": " + type, schema::python_default(a), a.kwarg_only});
  }
  if (o.takes_requires_grad()) out.push_back({in_stub("requires_grad: bool"), "False", true});
  return out;
}

/// Whether every call that the second takes is one that the first takes.
bool covers(const std::vector<StubParameter>& first, const std::vector<StubParameter>& second) {
  size_t i = 0;
  for (const StubParameter& p : first) {
    const bool same = i < second.size() && second[i].declared == p.declared &&
                      second[i].keyword_only == p.keyword_only &&
                      (second[i].value.empty() || !p.value.empty());
    if (same)
      ++i;
    else if (p.value.empty())
      return false;
  }
  return i == second.size();
}

/// The class of named results, as max(x, dim) has them: one for each list of names.
std::string named_class(const FunctionSchema& schema) {
  std::string name;
  for (const auto& r : schema.returns) name += "_" + r.name;
  return name;
}

std::string returned(const FunctionSchema& schema) {
  if (PythonOverload::named_results(schema)) return named_class(schema);
  const std::string type = schema::python_return_type(schema);
  return type == "Number" ? "_Item" : in_stub(type);
}

std::string named_classes(const std::vector<PythonName>& names) {
  std::set<std::string> classes;
  for (const PythonName& name : names) {
    for (const auto* overloads : {&name.functions, &name.methods}) {
      for (const PythonOverload* o : *overloads) {
        const FunctionSchema& schema = o->op->schema;
        if (!PythonOverload::named_results(schema)) continue;
        std::string text = fmt::format("class {}(NamedTuple):\n", named_class(schema));
        for (const auto& r : schema.returns) text += fmt::format("    {}: Tensor\n", r.name);
        classes.insert(text + "\n");
      }
    }
  }
  return fmt::format("{}", fmt::join(classes, ""));
}

std::string definition(const PythonName& name, const std::vector<StubParameter>& parameters, bool method,
                       bool one_of_several, const std::string& result) {
  const std::string indent = method ? "    " : "";
  std::string text = method ? "self" : "";
  bool star = false;
  for (const StubParameter& p : parameters) {
    if (!text.empty()) text += ", ";
    if (p.keyword_only && !star) text += "*, ";
    star |= p.keyword_only || p.declared.starts_with('*');
    text += p.text();
  }
  return fmt::format("{0}{1}def {2}({3}) -> {4}: ...\n", one_of_several ? indent + "@overload\n" : "", indent,
                     name.name, text, result);
}

using Forms = std::vector<std::pair<std::vector<StubParameter>, std::string>>;

/// Gives the forms that `with_out` is but for its `out` that parameter, too. False: there is none.
bool make_out_optional(Forms& forms, std::vector<StubParameter> with_out) {
  const auto out = std::ranges::find(with_out, std::string("out: Tensor"), &StubParameter::declared);
  if (out == with_out.end()) return false;
  with_out.erase(out);
  const auto shown = [](const std::vector<StubParameter>& parameters) {
    std::multiset<std::string> declared;
    for (const StubParameter& p : parameters) declared.insert(p.declared);
    return declared;
  };
  const auto same = std::ranges::find(forms, shown(with_out), [&](auto& form) { return shown(form.first); });
  if (same == forms.end()) return false;
  same->first.push_back({"out: Tensor | None", "None", true});
  // The form that takes its sizes one by one follows.
  if (const auto next = same + 1; next != forms.end() && next->first.size() + 1 == same->first.size()) {
    const bool one_by_one =
        std::ranges::any_of(next->first, [](const StubParameter& p) { return p.declared.starts_with('*'); });
    if (one_by_one) next->first.push_back({"out: Tensor | None", "None", true});
  }
  return true;
}

std::string definitions(const PythonName& name, const std::vector<const PythonOverload*>& overloads,
                        bool method) {
  Forms forms;
  const auto add = [&](std::vector<StubParameter> parameters, const PythonOverload& o) {
    const bool known =
        std::ranges::any_of(forms, [&](const auto& form) { return covers(form.first, parameters); });
    if (!known) forms.emplace_back(std::move(parameters), returned(o.op->schema));
  };
  for (const PythonOverload* o : overloads) {
    std::vector<StubParameter> parameters = parameters_of(*o, method);
    // An overload with `out` is the one without it, or None for it.
    if (o->op->schema.out_arguments().size() == 1 && make_out_optional(forms, parameters)) continue;
    add(parameters, *o);
    // x.view(2, 3) as well as x.view((2, 3)).
    if (o->variadic() && (method || o->op->schema.num_positional() == 1)) {
      auto sizes = std::ranges::find(parameters, true, &StubParameter::keyword_only) - 1;
      *sizes = {"*" + sizes->declared.substr(0, sizes->declared.find(':')) + ": _int", "", false};
      add(parameters, *o);
    }
    // out=(a, b) as well as a name for each.
    if (const auto outs = o->op->schema.out_arguments(); outs.size() > 1) {
      std::vector<StubParameter> together = parameters_of(*o, method);
      std::erase_if(together, [&](const StubParameter& p) {
        return std::ranges::any_of(outs, [&](size_t i) {
          return p.declared == python_parameter_name(o->op->schema.arguments[i]) + ": Tensor";
        });
      });
      std::string type = "Tensor";
      for (size_t i = 1; i < outs.size(); ++i) type += ", Tensor";
      together.push_back({fmt::format("out: tuple[{}] | None", type), "", true});
      add(together, *o);
    }
  }
  std::string out;
  for (const auto& [parameters, result] : forms)
    out += definition(name, parameters, method, forms.size() > 1, result);
  return out;
}

/// Methods that the template of the stubs has by hand, because Python's code defines or widens them.
constexpr const char* kByHand[] = {"to", "norm", "hsplit", "vsplit", "dsplit"};

}  // namespace

std::vector<GeneratedFile> print_stubs(const std::vector<OpDef>& defs) {
  const std::vector<PythonName> names = python_names(defs);
  std::string functions = named_classes(names), methods;
  for (const PythonName& name : names) {
    if (!name.functions.empty()) functions += definitions(name, name.functions, false);
    const bool by_hand = std::ranges::find(kByHand, name.name) != std::end(kByHand);
    if (!name.methods.empty() && !by_hand) methods += definitions(name, name.methods, true);
  }
  return {{"python/functions.pyi", functions}, {"python/methods.pyi", methods}};
}

}  // namespace tenon::opgen
