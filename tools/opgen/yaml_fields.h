// YamlEntry: one mapping of a YAML file, read field by field, with errors that name its file and line.
// Used by model.cc only.
#pragma once

#include <yaml-cpp/yaml.h>

#include <set>
#include <string>
#include <vector>

namespace tenon::opgen {

class YamlEntry {
 public:
  YamlEntry(const YAML::Node& node, std::string file);

  int line() const noexcept { return line_; }
  bool has(const char* field) const { return static_cast<bool>(node_[field]); }
  /// Throws Error{Value} "FILE:LINE: message".
  [[noreturn]] void fail(const std::string& message) const { fail_at(line_, message); }
  [[noreturn]] void fail_in(const char* field, const std::string& message) const;

  /// A field's text; empty where it is absent. The field counts as known.
  std::string text(const char* field);
  std::string required_text(const char* field);
  bool flag(const char* field, bool fallback);
  std::vector<std::string> list(const char* field);
  std::vector<bool> flags(const char* field);
  /// Pairs of a mapping in the YAML's order.
  std::vector<std::pair<std::string, std::string>> pairs(const char* field);
  /// A mapping inside this one.
  YamlEntry nested(const char* field);
  bool is_text(const char* field) const { return node_[field] && node_[field].IsScalar(); }

  /// Throws for the first field that was not read, and suggests a name.
  void refuse_unknown_fields() const;

 private:
  [[noreturn]] void fail_at(int line, const std::string& message) const;
  YAML::Node take(const char* field);

  YAML::Node node_;
  std::string file_;
  int line_;
  std::set<std::string> known_;
};

}  // namespace tenon::opgen
