#include "tools/opgen/python_names.h"

#include <algorithm>
#include <map>
#include <set>

#include "tools/opgen/python_docs.h"

namespace tenon::opgen {
namespace {

using schema::Argument;
using schema::BaseType;

/// Operators any of whose tensors PyTorch also takes as a number.
const std::set<std::string> kNumbersAsTensors = {
    "add", "sub", "mul", "div", "divide", "multiply", "subtract", "true_divide", "floor_divide"};
/// Operators that PyTorch has with a number in the place of one tensor, in overloads that are none here.
const std::set<std::string> kNumbersWithTensors = {
    "remainder", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"};

/// Tensors before lists before numbers: a 0-dim tensor also fits a number, so the number's overload must come
/// later.
int rank(const Argument& a) {
  if (a.type.is_tensor()) return 0;
  if (a.type.list) return 1;
  switch (a.type.base) {
    case BaseType::Int:
      return 2;
    case BaseType::Float:
      return 3;
    case BaseType::Scalar:
      return 4;
    default:
      return 5;
  }
}

std::vector<int> ranks(const FunctionSchema& schema) {
  std::vector<int> out;
  for (const Argument& a : schema.arguments) {
    if (!a.is_out) out.push_back(rank(a));
  }
  return out;
}

bool is_int_list(const Argument& a) {
  return a.type.list && a.type.base == BaseType::Int && a.type.list_size < 0;
}

}  // namespace

bool PythonOverload::variadic() const {
  const FunctionSchema& s = op->schema;
  const size_t n = s.num_positional();
  if (n == 0 || n > 2 || !is_int_list(s.arguments[n - 1])) return false;
  return n == 1 || (s.arguments[0].type.is_tensor() && s.arguments[0].name == "self");
}

bool PythonOverload::takes_requires_grad() const {
  return options_position(def->schema()).has_value() && op->schema.name != "to" &&
         op->schema.name != "_to_copy";
}

FunctionSchema PythonOverload::shown_schema() const {
  FunctionSchema shown = op->schema;
  if (!def->takes_options_of_out(*op)) return shown;
  const auto first =
      def->schema().arguments.begin() + static_cast<std::ptrdiff_t>(*options_position(def->schema()));
  for (auto a = first; a != first + 4; ++a) {
    Argument& option = shown.arguments.emplace_back(*a);
    option.kwarg_only = true;
    option.default_value = {schema::NoneDefault{}, "None"};
  }
  return shown;
}

bool PythonOverload::named_results(const FunctionSchema& schema) {
  return schema.returns.size() > 1 && std::all_of(schema.returns.begin(), schema.returns.end(),
                                                  [](const auto& r) { return !r.name.empty(); });
}

std::vector<PythonName> python_names(const std::vector<OpDef>& defs) {
  std::map<std::string, PythonName> names;
  for (const OpDef& def : defs) {
    if (!def.python) continue;
    for (const Operator& op : def.operators) {
      if (!op.function && !op.method) continue;
      std::string name = def.python_name.empty() ? op.schema.name : def.python_name;
      if (!def.python_name.empty() && op.form == Form::Inplace) name += "_";
      std::vector<std::string> all{name};
      all.insert(all.end(), op.aliases.begin(), op.aliases.end());
      for (const std::string& known_as : all) {
        PythonName& entry = names[known_as];
        entry.name = known_as;
        PythonOverload& overload = entry.overloads.emplace_back(PythonOverload{&def, &op, ""});
        overload.text = known_as + python_signature(overload);
      }
    }
  }
  std::vector<PythonName> out;
  for (auto& [key, name] : names) {
    std::stable_sort(name.overloads.begin(), name.overloads.end(), [](const auto& a, const auto& b) {
      return ranks(a.shown_schema()) < ranks(b.shown_schema());
    });
    std::string plain = name.name;
    if (plain.ends_with('_')) plain.pop_back();
    if (kNumbersAsTensors.contains(plain)) name.numbers_as_tensors = NumbersAsTensors::All;
    if (kNumbersWithTensors.contains(plain)) name.numbers_as_tensors = NumbersAsTensors::Mixed;
    out.push_back(std::move(name));
  }
  for (PythonName& name : out) {
    for (const PythonOverload& o : name.overloads) {
      if (o.op->function) name.functions.push_back(&o);
      if (o.op->method) name.methods.push_back(&o);
    }
    const std::string doc = python_doc(name);
    if (!name.functions.empty()) name.function_doc = text_signature(name, name.functions, false) + doc;
    if (!name.methods.empty()) name.method_doc = text_signature(name, name.methods, true) + doc;
  }
  return out;
}

}  // namespace tenon::opgen
