#include "tools/opgen/schema_forms.h"

#include <fmt/format.h>

#include "tenon/core/error.h"
#include "tools/opgen/model.h"

namespace tenon::opgen {

namespace {

schema::Alias written(size_t i) {
  return {.before = {std::string(1, static_cast<char>('a' + i))}, .after = {}, .is_write = true};
}

void require_fresh_tensors(const FunctionSchema& schema, const char* form) {
  TENON_CHECK(!schema.returns.empty(), Value,
              fmt::format("{} returns nothing and has no {} form", schema.name, form));
  for (const schema::Return& r : schema.returns) {
    TENON_CHECK(r.type.is_tensor() && !r.alias, Value,
                fmt::format("{} returns {}, so it has no {} form", schema.name, to_string(r), form));
  }
}

}  // namespace

Form form_of(const FunctionSchema& schema) {
  if (schema.is_out_variant()) return Form::Out;
  if (schema.name.ends_with("_") && !schema.name.ends_with("__") && !schema.arguments.empty() &&
      schema.arguments[0].is_write()) {
    return Form::Inplace;
  }
  return Form::Functional;
}

FunctionSchema inplace_form(const FunctionSchema& schema, const std::string& overload) {
  require_fresh_tensors(schema, "in-place");
  TENON_CHECK(schema.returns.size() == 1 && !schema.arguments.empty() && schema.arguments[0].name == "self" &&
                  schema.arguments[0].type == schema::Type{},
              Value,
              fmt::format("the in-place form of {} needs a first argument `Tensor self` and one result",
                          schema.name));
  FunctionSchema form = schema;
  form.name += "_";
  if (!overload.empty()) form.overload = overload;
  form.arguments[0].alias = written(0);
  form.returns[0].alias = written(0);
  return form;
}

FunctionSchema out_form(const FunctionSchema& schema, const std::string& overload,
                        const std::vector<std::string>& names) {
  require_fresh_tensors(schema, "out");
  TENON_CHECK(names.empty() || names.size() == schema.returns.size(), Value,
              fmt::format("expected {} names of results, got {}", schema.returns.size(), names.size()));
  FunctionSchema form = schema;
  form.overload = !overload.empty() ? overload : schema.overload.empty() ? "out" : schema.overload + "_out";
  if (const auto options = options_position(schema)) {
    const auto first = form.arguments.begin() + static_cast<std::ptrdiff_t>(*options);
    form.arguments.erase(first, first + 4);
  }
  for (size_t i = 0; i < form.returns.size(); ++i) {
    schema::Argument out;
    const bool named = !form.returns[i].name.empty();
    out.name = !names.empty()             ? names[i]
               : form.returns.size() == 1 ? "out"
               : named                    ? form.returns[i].name
                                          : fmt::format("out{}", i);
    out.alias = written(i);
    out.kwarg_only = true;
    out.is_out = true;
    form.arguments.push_back(std::move(out));
    form.returns[i].alias = written(i);
  }
  return form;
}

}  // namespace tenon::opgen
