// The Python binding: a table of overloads for each name, and the C++ signatures that calls are instantiated
// for.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "tools/opgen/files.h"
#include "tools/opgen/python_names.h"
#include "tools/opgen/text.h"
#include "tools/opgen/typed_signatures.h"

namespace tenon::opgen {
namespace {

// Texts one after another, each followed by a zero.
class TextPrinter {
 public:
  uint32_t add(const std::string& text) {
    const auto [at, inserted] = places_.emplace(text, size_);
    if (!inserted) return at->second;
    lines_ += quote(text);
    lines_.insert(lines_.size() - 1, "\\0");
    lines_ += "\n    ";
    size_ += static_cast<uint32_t>(text.size()) + 1;
    return at->second;
  }
  std::string print() const {
    return fmt::format("constexpr char kText[] =\n    {};\n", lines_.empty() ? "\"\"" : lines_);
  }

 private:
  std::map<std::string, uint32_t> places_;
  std::string lines_;
  uint32_t size_ = 0;
};

class TablePrinter {
 public:
  TablePrinter(const std::vector<OpDef>& defs, const std::vector<PythonName>& names) {
    for (const Family& family : families_of(defs)) families_.push_back(family.name);
    for (const PythonName& name : names) {
      for (const PythonOverload& o : name.overloads) {
        const std::string sig = signature(o.op->schema);
        if (has_typed_code(sig)) signatures_.insert(sig);
      }
    }
    for (const PythonName& name : names) print_name(name);
  }

  std::string print() const {
    std::string declarations, entries, callers, invokes;
    for (const std::string& family : families_) {
      declarations += fmt::format("extern OperatorEntry {}_entries[];\n", family);
      entries += fmt::format("    detail::{}_entries,\n", family);
    }
    for (const std::string& s : signatures_) {
      callers += fmt::format("extern template struct Caller<{}>;\n", s);
      invokes += fmt::format("    &Caller<{}>::invoke,\n", s);
    }
    return fmt::format(
        "// Printed by opgen: the names that Python knows operators by, and their overloads.\n"
        "}}  // namespace tenon::python\n\nnamespace tenon::detail {{\n{}}}  // namespace tenon::detail\n\n"
        "namespace tenon::python {{\n\n{}\nnamespace {{\n\n"
        "OperatorEntry* const kEntries[] = {{\n{}}};\nconstexpr Invoke kInvokes[] = {{\n    "
        "&call_cells,\n{}}};\n"
        "constexpr OverloadRow kOverloads[] = {{\n{}}};\nconstexpr NameRow kNames[] = {{\n{}}};\n"
        "constexpr size_t kNumFunctions = {}, kNumMethods = {};\n{}\n}}  // namespace\n",
        declarations, callers, entries, invokes, overloads_, names_, num_functions_, num_methods_,
        text_.print());
  }

  /// How many entry points there are: more than are needed, so that their number seldom changes.
  std::string print_entries() const {
    const auto round = [](size_t n) { return (n / 256 + 1) * 256; };
    return fmt::format(
        "// Printed by opgen: how many entry points Python's functions and methods have.\n#pragma "
        "once\n\n#include <cstddef>\n\n"
        "namespace tenon::python {{\n\ninline constexpr size_t kFunctionEntries = {};\ninline constexpr "
        "size_t kMethodEntries = "
        "{};\n\n}}  // namespace tenon::python\n",
        round(num_functions_), round(num_methods_));
  }

  const std::set<std::string>& signatures() const { return signatures_; }

 private:
  void print_name(const PythonName& name) {
    num_functions_ += !name.functions.empty();
    num_methods_ += !name.methods.empty();
    const size_t functions = add_rows(name.functions);
    // A method usually has the overloads of the function.
    const size_t methods = name.methods == name.functions ? functions : add_rows(name.methods);
    names_ += fmt::format("    {{{}, {}, {}, {}, {}, {}, {}, {}}},\n", text_.add(name.name),
                          text_.add(name.function_doc), text_.add(name.method_doc), functions,
                          name.functions.size(), methods, name.methods.size(),
                          static_cast<int>(name.numbers_as_tensors));
  }

  size_t add_rows(const std::vector<const PythonOverload*>& overloads) {
    const size_t first = num_overloads_;
    for (const PythonOverload* o : overloads) {
      const FunctionSchema& schema = o->op->schema;
      const auto family = std::ranges::find(families_, family_name(*o->def)) - families_.begin();
      // The first is for signatures that have no code of their own.
      const bool options = o->def->takes_options_of_out(*o->op);
      const auto typed = options ? signatures_.end() : signatures_.find(signature(schema));
      const auto invoke = typed == signatures_.end() ? 0 : std::distance(signatures_.begin(), typed) + 1;
      std::string flags;
      const auto flag = [&](bool on, const char* text) {
        flags += on ? (flags.empty() ? "" : " | ") + std::string(text) : "";
      };
      flag(o->variadic(), "kVariadic");
      flag(o->takes_requires_grad(), "kTakesRequiresGrad");
      flag(o->named_results(), "kNamedResults");
      flag(options, "kOptionsOfOut");
      flag(o->def->body == Body::View, "kView");
      overloads_ += fmt::format("    {{{}, {}, {}, {}, {}}},\n", family, o->op->index, invoke,
                                flags.empty() ? "0" : flags, text_.add(o->text));
      ++num_overloads_;
    }
    return first;
  }

  std::vector<std::string> families_;
  std::set<std::string> signatures_;
  TextPrinter text_;
  std::string overloads_, names_;
  size_t num_overloads_ = 0, num_functions_ = 0, num_methods_ = 0;
};

}  // namespace

std::vector<GeneratedFile> print_python(const std::vector<OpDef>& defs) {
  const std::vector<PythonName> names = python_names(defs);
  const TablePrinter printer(defs, names);
  std::vector<GeneratedFile> files{{"python/functions.inc", printer.print()},
                                   {"python/entries.inc", printer.print_entries()}};
  std::array<std::string, kPythonSignatureFiles> texts;
  for (const std::string& s : printer.signatures())
    texts[stable_hash(s) % kPythonSignatureFiles] += fmt::format("template struct Caller<{}>;\n", s);
  for (size_t i = 0; i < kPythonSignatureFiles; ++i) {
    files.push_back({fmt::format("python/signatures_{}.inc", i),
                     "// Printed by opgen: C++ signatures of operators that Python calls.\n" + texts[i]});
  }
  return files;
}

}  // namespace tenon::opgen
