#include "tools/opgen/yaml_fields.h"

#include <fmt/format.h>

#include "tenon/core/error.h"

namespace tenon::opgen {

YamlEntry::YamlEntry(const YAML::Node& node, std::string file)
    : node_(node), file_(std::move(file)), line_(node.Mark().line + 1) {
  if (!node_.IsMap()) fail("an entry must be a mapping with a `schema`");
}

void YamlEntry::fail_at(int line, const std::string& message) const {
  throw_error(ErrorKind::Value, fmt::format("{}:{}: {}", file_, line, message));
}

void YamlEntry::fail_in(const char* field, const std::string& message) const {
  const YAML::Node value = node_[field];
  fail_at(value ? value.Mark().line + 1 : line_, fmt::format("`{}`: {}", field, message));
}

YAML::Node YamlEntry::take(const char* field) {
  known_.insert(field);
  return node_[field];
}

std::string YamlEntry::text(const char* field) {
  const YAML::Node value = take(field);
  if (!value) return "";
  if (!value.IsScalar()) fail_in(field, "expected text");
  return value.Scalar();
}

std::string YamlEntry::required_text(const char* field) {
  std::string value = text(field);
  if (value.empty()) fail(fmt::format("`{}` is missing", field));
  return value;
}

bool YamlEntry::flag(const char* field, bool fallback) {
  const std::string value = text(field);
  if (value.empty()) return fallback;
  if (value != "true" && value != "false")
    fail_in(field, fmt::format("expected true or false, got '{}'", value));
  return value == "true";
}

std::vector<std::string> YamlEntry::list(const char* field) {
  const YAML::Node value = take(field);
  std::vector<std::string> items;
  if (!value) return items;
  if (!value.IsSequence()) fail_in(field, "expected a list");
  for (const YAML::Node& item : value) {
    if (!item.IsScalar()) fail_in(field, "expected a list of words");
    items.push_back(item.Scalar());
  }
  return items;
}

std::vector<bool> YamlEntry::flags(const char* field) {
  std::vector<bool> values;
  for (const std::string& item : list(field)) {
    const bool on = item == "True" || item == "true";
    if (!on && item != "False" && item != "false")
      fail_in(field, fmt::format("expected True or False, got '{}'", item));
    values.push_back(on);
  }
  return values;
}

std::vector<std::pair<std::string, std::string>> YamlEntry::pairs(const char* field) {
  const YAML::Node value = take(field);
  std::vector<std::pair<std::string, std::string>> items;
  if (!value) return items;
  if (!value.IsMap()) fail_in(field, "expected a mapping");
  for (const auto& item : value) {
    if (!item.second.IsScalar()) fail_in(field, fmt::format("expected text for '{}'", item.first.Scalar()));
    items.emplace_back(item.first.Scalar(), item.second.Scalar());
  }
  return items;
}

YamlEntry YamlEntry::nested(const char* field) {
  const YAML::Node value = take(field);
  if (!value.IsMap()) fail_in(field, "expected a mapping");
  return YamlEntry(value, file_);
}

void YamlEntry::refuse_unknown_fields() const {
  for (const auto& item : node_) {
    const std::string& name = item.first.Scalar();
    if (known_.contains(name)) continue;
    fail_at(item.first.Mark().line + 1,
            fmt::format("unknown field `{}`; docs/adding-an-operator.md lists them", name));
  }
}

}  // namespace tenon::opgen
