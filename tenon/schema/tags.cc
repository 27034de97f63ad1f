#include "tenon/schema/tags.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tenon/core/error.h"
#include "tenon/schema/edit_distance.h"
#include "tenon/schema/schema.h"

namespace tenon {
namespace {

using schema::FunctionSchema;

bool writes_first(const FunctionSchema& s) { return !s.arguments.empty() && s.arguments[0].is_write(); }
bool takes_tensors(const FunctionSchema& s) {
  return std::ranges::any_of(s.arguments,
                             [](const auto& a) { return a.type.base == schema::BaseType::Tensor; });
}
bool returns_tensors(const FunctionSchema& s) {
  return std::ranges::any_of(s.returns,
                             [](const auto& r) { return r.type.base == schema::BaseType::Tensor; });
}
bool returns_values(const FunctionSchema& s) {
  return std::ranges::any_of(s.returns,
                             [](const auto& r) { return r.type.base != schema::BaseType::Tensor; });
}
bool gives_new_tensors(const FunctionSchema& s) {
  return returns_tensors(s) &&
         std::ranges::none_of(s.returns, [](const auto& r) { return r.alias.has_value(); });
}
bool computes_tensors(const FunctionSchema& s) {
  return takes_tensors(s) && (returns_tensors(s) || s.is_mutable());
}
bool has_out(const FunctionSchema& s) { return s.is_out_variant(); }

/// What a tag says of a schema.
struct Rule {
  Tag tag;
  bool (*holds)(const FunctionSchema&);
  const char* what;
};
constexpr Rule kRules[] = {
    {Tag::data_dependent_output, &returns_values, "returns something else than tensors"},
    {Tag::dynamic_output_shape, &returns_tensors, "returns a tensor"},
    {Tag::inplace, &writes_first, "writes its first argument"},
    {Tag::inplace_view, &writes_first, "writes its first argument"},
    {Tag::out, &has_out, "has an out argument"},
    {Tag::out_variant, &has_out, "has an out argument"},
    {Tag::pointwise, &computes_tensors, "takes tensors, and returns or writes some"},
    {Tag::reduction, &computes_tensors, "takes tensors, and returns or writes some"},
    {Tag::view_copy, &gives_new_tensors, "returns new tensors"},
};

}  // namespace

Tag parse_tag(std::string_view text) {
  std::vector<std::string_view> near;
  for (uint32_t i = 0; i < kNumTags; ++i) {
    if (kTagNames[i] == text) return static_cast<Tag>(i);
    if (schema::edit_distance(kTagNames[i], text) <= std::max<size_t>(1, text.size() / 4))
      near.push_back(kTagNames[i]);
  }
  if (!near.empty())
    throw_error(ErrorKind::Value,
                fmt::format("There is no tag '{}'; did you mean '{}'?", text, fmt::join(near, "' or '")));
  throw_error(ErrorKind::Value,
              fmt::format("There is no tag '{}'; there are {}", text, fmt::join(kTagNames, ", ")));
}

void check_tags(Tags tags, const FunctionSchema& schema) {
  for (const Rule& rule : kRules) {
    TENON_CHECK(!tags.has(rule.tag) || rule.holds(schema), Value,
                fmt::format("{}: the tag '{}' is for an operator that {}, and its schema is {}",
                            schema.full_name(), name(rule.tag), rule.what, schema::to_string(schema)));
  }
}

}  // namespace tenon
