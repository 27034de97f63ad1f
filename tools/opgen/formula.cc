#include "tools/opgen/formula.h"

#include <fmt/format.h>

#include <array>

#include "tools/opgen/text.h"

namespace tenon::opgen {

namespace {

// What follows a word: a call, or a member such as ".sizes".
bool followed_by_call(const std::string& text, size_t at) {
  while (at < text.size() && text[at] == ' ') ++at;
  return at < text.size() && text[at] == '(';
}
std::string member_after(const std::string& text, size_t at) {
  if (at >= text.size() || text[at] != '.') return "";
  const size_t first = ++at;
  while (at < text.size() && is_word(text[at])) ++at;
  return text.substr(first, at - first);
}
bool is_meta(const std::string& member) {
  constexpr std::array kMembers = {"sizes", "size",        "strides", "stride",  "dim",           "numel",
                                   "dtype", "scalar_type", "device",  "options", "storage_offset"};
  for (const char* m : kMembers) {
    if (member == m) return true;
  }
  return false;
}

std::string replace_results(std::string text) {
  constexpr std::string_view kOpen = "results[";
  for (size_t at = text.find(kOpen); at != std::string::npos; at = text.find(kOpen, at)) {
    const size_t close = text.find(']', at);
    text.replace(at, close - at + 1, "results_" + text.substr(at + kOpen.size(), close - at - kOpen.size()));
  }
  return text;
}

}  // namespace

std::string result_variable(const FunctionSchema& schema, size_t i) {
  if (schema.returns.size() == 1) return "result";
  return schema.returns[i].name.empty() ? fmt::format("results_{}", i) : schema.returns[i].name;
}

std::vector<std::string> formula_arguments(const std::string& arguments) {
  std::vector<std::string> names(1);
  for (const char c : arguments) {
    if (c == ',')
      names.emplace_back();
    else if (c != ' ')
      names.back() += c;
  }
  return names;
}

Formula read_formula(const FunctionSchema& schema, const std::string& arguments, const std::string& text) {
  Formula f;
  for (const std::string& name : formula_arguments(arguments)) f.of.push_back(*schema.argument_index(name));
  f.text = replace_results(text);
  for (size_t at = 0; at < f.text.size();) {
    if (!is_word(f.text[at])) {
      ++at;
      continue;
    }
    const size_t first = at;
    while (at < f.text.size() && is_word(f.text[at])) ++at;
    const std::string word = f.text.substr(first, at - first);
    const bool qualified = first > 0 && (f.text[first - 1] == '.' || f.text[first - 1] == ':');
    if (qualified || word == "grad" || word == "grads" || followed_by_call(f.text, at)) continue;
    for (size_t r = 0; r < schema.returns.size(); ++r) {
      if (word == result_variable(schema, r) || word == fmt::format("results_{}", r)) f.results.insert(r);
    }
    for (size_t a = 0; a < schema.arguments.size(); ++a) {
      if (word != schema::cpp_name(schema.arguments[a])) continue;
      const schema::Type& type = schema.arguments[a].type;
      const std::string member = member_after(f.text, at);
      const bool meta = type.is_tensor() ? is_meta(member) : type.is_tensor_list() && member == "metas";
      (meta ? f.metas : f.arguments).insert(a);
    }
  }
  // A tensor that is kept whole has its sizes too.
  for (const size_t a : f.arguments) f.metas.erase(a);
  return f;
}

}  // namespace tenon::opgen
