#include "tools/opgen/families.h"

#include <fmt/format.h>

#include "tools/opgen/text.h"

namespace tenon::opgen {
namespace {

/// Calls `f(word, text before it, text after it)` for every identifier of a text.
template <class F>
void each_word(std::string_view text, F&& f) {
  for (size_t i = 0; i < text.size();) {
    if (!is_word(text[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    f(text.substr(i, end - i), text.substr(0, i), text.substr(end));
    i = end;
  }
}

}  // namespace

std::string Family::header(std::string_view what) const {
  return fmt::format("tenon/generated/{}/{}.h", name, what);
}
std::string Family::source(std::string_view what) const { return fmt::format("{}/{}.cc", name, what); }

std::string family_name(const OpDef& def) { return def.file.substr(0, def.file.rfind('.')); }

std::vector<Family> families_of(const std::vector<OpDef>& defs) {
  std::vector<Family> families;
  for (const OpDef& def : defs) {
    const std::string name = family_name(def);
    if (families.empty() || families.back().name != name) families.push_back({name, {}});
    families.back().defs.push_back(&def);
  }
  return families;
}

std::string entry_of(const OpDef& def, const Operator& op) {
  return fmt::format("tenon::detail::{}_entries[{}]", family_name(def), op.index);
}

FunctionFamilies::FunctionFamilies(const std::vector<OpDef>& defs) {
  for (const auto& [def, op] : all_operators(defs)) {
    const std::string family = family_name(*def);
    constants_[op->constant].insert(family);
    if (!op->function) continue;
    for (const std::string& name : function_names(*op)) functions_[name].insert(family);
  }
}

std::set<std::string> FunctionFamilies::called_in(std::string_view cpp) const {
  std::set<std::string> families;
  each_word(cpp, [&](std::string_view word, std::string_view before, std::string_view after) {
    const bool method = before.ends_with('.') || before.ends_with("->");
    const auto found = functions_.find(word);
    if (!method && after.starts_with('(') && found != functions_.end())
      families.insert(found->second.begin(), found->second.end());
  });
  return families;
}

std::set<std::string> FunctionFamilies::constants_in(std::string_view cpp) const {
  std::set<std::string> families;
  each_word(cpp, [&](std::string_view word, std::string_view before, std::string_view) {
    const auto found = constants_.find(word);
    if (before.ends_with("operators::") && found != constants_.end())
      families.insert(found->second.begin(), found->second.end());
  });
  return families;
}

}  // namespace tenon::opgen
