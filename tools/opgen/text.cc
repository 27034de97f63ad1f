#include "tools/opgen/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace tenon::opgen {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::string banner(std::string_view what) {
  return fmt::format("// {} Printed by opgen from tenon/ops/yaml; edit those files instead.\n", what);
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

namespace {

/// The type of a public function's parameter, where it must differ from the dispatcher's.
std::string api_type(const schema::Argument& a) {
  std::string type = schema::cpp_type(a);
  return type == "std::optional<IntArrayRef>" ? "OptionalIntArrayRef" : type;
}

}  // namespace

std::vector<Parameter> parameters(const Operator& op, bool skip_self) {
  const FunctionSchema& schema = op.schema;
  const auto default_of = [&](const schema::Argument& a) -> std::string {
    const bool without = std::ranges::find(op.cpp_no_default, a.name) != op.cpp_no_default.end();
    return without ? "" : std::string(schema::cpp_default(a));
  };
  std::vector<Parameter> list;
  for (const schema::Argument& a : schema.arguments) {
    if (a.is_out) list.push_back({schema::cpp_type(a), schema::cpp_name(a), ""});
  }
  const auto options = options_position(schema);
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const schema::Argument& a = schema.arguments[i];
    if (a.is_out || (skip_self && a.name == "self")) continue;
    if (options && i == *options) {
      list.push_back({"TensorOptions", "options", a.default_value.given() ? "{}" : ""});
      i += 3;
      continue;
    }
    list.push_back({api_type(a), schema::cpp_name(a), default_of(a)});
  }
  // C++ defaults must trail; a schema's keyword arguments need not.
  for (size_t i = list.size(); i-- > 0;) {
    if (!list[i].default_value.empty()) continue;
    for (size_t j = 0; j < i; ++j) list[j].default_value.clear();
    break;
  }
  return list;
}

std::string parameter_list(const std::vector<Parameter>& parameters, bool defaults) {
  std::string text;
  for (const Parameter& p : parameters) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", p.type, p.name);
    if (defaults && !p.default_value.empty()) text += " = " + p.default_value;
  }
  return text;
}

std::string call_arguments(const FunctionSchema& schema, const std::string& self) {
  std::string text;
  const auto options = options_position(schema);
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    text += text.empty() ? "" : ", ";
    if (!self.empty() && schema.arguments[i].name == "self") {
      text += self;
    } else if (options && i == *options) {
      text += "options.dtype_opt, options.layout_opt, options.device_opt, options.pinned_memory_opt";
      i += 3;
    } else {
      text += schema::cpp_name(schema.arguments[i]);
    }
  }
  return text;
}

std::string signature_word(const FunctionSchema& schema) {
  std::string word;
  const auto add = [&](std::string type) {
    // Most arguments are `const T&`; what is written is the exception.
    const bool reference = type.ends_with('&');
    if (type.starts_with("const ") && reference)
      type = type.substr(6, type.size() - 7);
    else if (reference)
      type = "Out" + type.substr(0, type.size() - 1);
    if (!word.empty() && word.back() != '_') word += '_';
    for (size_t i = 0; i < type.size(); ++i) {
      if (type.compare(i, 5, "std::") == 0) i += 5;
      const char c = type[i];
      if (std::isalnum(static_cast<unsigned char>(c)))
        word += c;
      else if (c == '&')
        word += "Ref";
      else if (word.back() != '_')
        word += '_';
    }
  };
  add(schema::cpp_return_type(schema));
  word += word.ends_with('_') ? "of" : "_of";
  for (const schema::Argument& a : schema.arguments) add(schema::cpp_type(a));
  return word.ends_with('_') ? word.substr(0, word.size() - 1) : word;
}

uint64_t stable_hash(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

std::vector<std::string> method_names(const Operator& op) {
  std::vector<std::string> names{op.schema.name};
  names.insert(names.end(), op.aliases.begin(), op.aliases.end());
  return names;
}

std::string kernel_parameters(const FunctionSchema& schema, bool names) {
  std::string text;
  for (const schema::Argument& a : schema.arguments) {
    text += (text.empty() ? "" : ", ") + schema::cpp_type(a) + (names ? " " + schema::cpp_name(a) : "");
  }
  for (size_t i = 0; i < schema.returns.size(); ++i) {
    if (schema.returns[i].alias) continue;
    text += fmt::format("{}Tensor&{}", text.empty() ? "" : ", ",
                        !names                       ? ""
                        : schema.returns.size() == 1 ? " out"
                                                     : fmt::format(" out{}", i));
  }
  return text;
}

std::string pointwise_stub_name(const OpDef& def, const std::vector<const OpDef*>& family) {
  const FunctionSchema& schema = def.schema();
  const auto has_plain_name = [&](const OpDef* other) {
    return other->schema().name == schema.name && other->schema().overload.empty();
  };
  if (schema.overload.empty() ||
      (schema.overload == "Tensor" && std::none_of(family.begin(), family.end(), has_plain_name)))
    return schema.name;
  return schema.name + "_" + schema.overload;
}

std::string kernel_signature(const FunctionSchema& schema) {
  std::string text;
  for (schema::Argument a : schema.arguments) {
    a.default_value = {};
    text += (text.empty() ? "" : ", ") + schema::to_string(a);
  }
  char alias = 'o';  // a schema's own begin with a
  for (size_t i = 0; i < schema.returns.size(); ++i) {
    if (schema.returns[i].alias) continue;
    text += fmt::format("{}Tensor({}!) {}", text.empty() ? "" : ", ", alias++,
                        schema.returns.size() == 1 ? "out" : fmt::format("out{}", i));
  }
  return fmt::format("({}) -> ()", text);
}

std::string body_parameters(const OpDef& def, bool names) {
  if (!def.updates) return kernel_parameters(def.schema(), names);
  std::string text = names ? "Tensor& self" : "Tensor&";
  const auto& arguments = def.schema().arguments;
  for (size_t i = 1; i < arguments.size(); ++i)
    text += ", " + schema::cpp_type(arguments[i]) + (names ? " " + schema::cpp_name(arguments[i]) : "");
  return text;
}

std::string shape_type(const schema::Argument& argument) {
  const std::string type = schema::cpp_type(argument);
  return type == "TensorList"                           ? "HeaderList"
         : type == "const Tensor&" || type == "Tensor&" ? "HeaderRef"
                                                        : type;
}

std::vector<std::string> function_names(const Operator& op) {
  std::vector<std::string> names = method_names(op);
  for (std::string& name : names) name += op.form == Form::Out ? "_out" : "";
  return names;
}

std::vector<OperatorOf> all_operators(const std::vector<OpDef>& defs) {
  std::vector<OperatorOf> all;
  for (const OpDef& def : defs) {
    for (const Operator& op : def.operators) all.push_back({&def, &op});
  }
  return all;
}

}  // namespace tenon::opgen
