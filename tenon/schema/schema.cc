#include "tenon/schema/schema.h"

#include <algorithm>

namespace tenon::schema {

bool operator==(const DefaultValue& a, const DefaultValue& b) { return a.value == b.value; }
bool operator==(const Argument&, const Argument&) = default;
bool operator==(const Return&, const Return&) = default;
bool operator==(const FunctionSchema&, const FunctionSchema&) = default;

std::string FunctionSchema::name_with_overload() const {
  return overload.empty() ? name : name + "." + overload;
}

std::string FunctionSchema::full_name() const {
  return ns.empty() ? name_with_overload() : ns + "::" + name_with_overload();
}

bool FunctionSchema::is_mutable() const noexcept {
  return std::any_of(arguments.begin(), arguments.end(), [](const Argument& a) { return a.is_write(); });
}

bool FunctionSchema::is_out_variant() const noexcept {
  return std::any_of(arguments.begin(), arguments.end(), [](const Argument& a) { return a.is_out; });
}

bool FunctionSchema::is_view() const noexcept {
  for (size_t i = 0; i < returns.size(); ++i) {
    const std::optional<size_t> source = aliased_argument(i);
    if (source && !returns[i].is_write() && !arguments[*source].is_write()) return true;
  }
  return false;
}

std::vector<size_t> FunctionSchema::out_arguments() const {
  std::vector<size_t> out;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].is_out) out.push_back(i);
  }
  return out;
}

size_t FunctionSchema::num_positional() const noexcept {
  return static_cast<size_t>(
      std::count_if(arguments.begin(), arguments.end(), [](const Argument& a) { return !a.kwarg_only; }));
}

std::optional<size_t> FunctionSchema::argument_index(std::string_view argument_name) const noexcept {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name == argument_name) return i;
  }
  return std::nullopt;
}

std::optional<size_t> FunctionSchema::aliased_argument(size_t return_index) const noexcept {
  const std::optional<Alias>& result = returns[return_index].alias;
  if (!result) return std::nullopt;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].alias) continue;
    for (const std::string& set : arguments[i].alias->before) {
      if (set == "*") continue;
      if (std::find(result->before.begin(), result->before.end(), set) != result->before.end()) return i;
    }
  }
  return std::nullopt;
}

}  // namespace tenon::schema
