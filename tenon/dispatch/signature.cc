#include "tenon/dispatch/signature.h"

#include <fmt/core.h>

namespace tenon {
namespace {

// `Tensor` and `Tensor?` (and `Generator`, `Tensor?[]`) share a C++ type, because an undefined handle is None
// in Python.
bool fits(const schema::Type& declared, const schema::Type& given) {
  const bool handle = schema::base_type_info(declared.base).has_undefined;
  return declared.base == given.base && declared.list == given.list &&
         (handle || declared.optional == given.optional);
}

}  // namespace

void check_signature(const schema::FunctionSchema& schema, const detail::SignatureTypes& types) {
  const std::string op = schema.full_name();
  TENON_CHECK(types.arguments.size() == schema.arguments.size(), Type,
              fmt::format("{}: the kernel takes {} arguments, the schema {}", op, types.arguments.size(),
                          schema.arguments.size()));
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const schema::Argument& declared = schema.arguments[i];
    TENON_CHECK(fits(declared.type, types.arguments[i].type), Type,
                fmt::format("{}: argument `{}` is {} in the schema, {} in the kernel", op, declared.name,
                            to_string(declared.type), to_string(types.arguments[i].type)));
    const bool tensor = declared.type.is_tensor();
    TENON_CHECK(!tensor || declared.is_write() == types.arguments[i].writes, Type,
                fmt::format("{}: argument `{}` is {} in the schema, so the kernel must take {}", op,
                            declared.name, declared.is_write() ? "written" : "only read",
                            declared.is_write() ? "Tensor&" : "const Tensor&"));
  }
  TENON_CHECK(types.returns.size() == schema.returns.size(), Type,
              fmt::format("{}: the kernel returns {} values, the schema {}", op, types.returns.size(),
                          schema.returns.size()));
  for (size_t i = 0; i < schema.returns.size(); ++i) {
    const schema::Return& declared = schema.returns[i];
    TENON_CHECK(fits(declared.type, types.returns[i].type), Type,
                fmt::format("{}: return {} is {} in the schema, {} in the kernel", op, i,
                            to_string(declared.type), to_string(types.returns[i].type)));
    const bool tensor = declared.type.is_tensor();
    TENON_CHECK(!tensor || declared.is_write() == types.returns[i].writes, Type,
                fmt::format("{}: return {} is {} in the schema, so the kernel must return {}", op, i,
                            declared.is_write() ? "a written argument" : "a new value",
                            declared.is_write() ? "Tensor&" : "Tensor"));
  }
}

schema::FunctionSchema infer_schema(std::string_view ns, std::string_view name,
                                    const detail::SignatureTypes& types) {
  schema::FunctionSchema s;
  s.ns = ns;
  const size_t dot = name.find('.');
  s.name = name.substr(0, dot);
  if (dot != std::string_view::npos) s.overload = name.substr(dot + 1);
  // The i-th written argument is the i-th written result.
  const auto written_set = [](char set) {
    schema::Alias alias;
    alias.before = {std::string(1, set)};
    alias.is_write = true;
    return alias;
  };
  char set = 'a';
  for (size_t i = 0; i < types.arguments.size(); ++i) {
    schema::Argument argument;
    argument.name = "_" + std::to_string(i);
    argument.type = types.arguments[i].type;
    if (types.arguments[i].writes) argument.alias = written_set(set++);
    s.arguments.push_back(std::move(argument));
  }
  set = 'a';
  for (const auto& value : types.returns) {
    schema::Return r;
    r.type = value.type;
    if (value.writes) r.alias = written_set(set++);
    s.returns.push_back(std::move(r));
  }
  return s;
}

}  // namespace tenon
