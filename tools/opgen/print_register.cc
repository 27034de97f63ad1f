// The functions and the tables of each family, and the code that all operators of a signature share.
#include <fmt/format.h>

#include <map>

#include "tools/opgen/files.h"
#include "tools/opgen/kernel_rows.h"
#include "tools/opgen/printers.h"
#include "tools/opgen/rows_forms.h"
#include "tools/opgen/text.h"
#include "tools/opgen/traits.h"
#include "tools/opgen/typed_signatures.h"

namespace tenon::opgen {

namespace {

/// Everything of one family's operators.cc, gathered entry by entry.
class FamilyPrinter {
 public:
  FamilyPrinter(const std::vector<OpDef>& defs, const Family& family) : defs_(defs), family_(family) {
    for (const OpDef* def : family.defs) {
      if (def->body == Body::Structured) {
        add_structured(*def);
        if (!def->kernel.empty()) stubs_.push_back(def->kernel);
      }
      stubs_.insert(stubs_.end(), def->stubs.begin(), def->stubs.end());
      for (const Operator& op : def->operators) add_operator(*def, op);
    }
  }

  std::string print() const {
    std::string text = banner(fmt::format("The operators of {}.yaml.", family_.name));
    std::set<std::string> headers = {family_.header("operators"),     family_.header("functions"),
                                     family_.header("bodies"),        "tenon/core/source_mark.h",
                                     "tenon/dispatch/key.h",          "tenon/ops/device_stubs.h",
                                     "tenon/ops/forms/registration.h"};
    if (!structured_.empty()) {
      headers.insert({family_.header("shapes"), family_.header("kernels"), "tenon/ops/forms/structured.h"});
    }
    const FamilyText derivatives = derivatives_of(defs_, family_);
    headers.insert(derivatives.headers.begin(), derivatives.headers.end());
    FamilyText cpp = cpp_bodies(defs_, family_);
    headers.merge(cpp.headers);
    if (!pointwise_.empty()) headers.insert("tenon/iter/pointwise_device.h");
    if (!rows_.empty()) headers.insert("tenon/ops/forms/rows.h");
    headers.merge(stub_headers(defs_, stubs_));

    for (const std::string& header : headers) text += fmt::format("#include \"{}\"\n", header);

    const std::string functions = stub_definitions(defs_, family_) + cpp.text;
    if (!functions.empty())
      text += fmt::format("\nnamespace tenon::ops {{\n\n{}\n}}  // namespace tenon::ops\n", functions);
    if (!rows_.empty())
      text += "\nnamespace tenon::rows_info {\n" + rows_ + "}  // namespace tenon::rows_info\n";
    if (!structured_.empty())
      text += fmt::format(
          "\nnamespace tenon::structured_info {{\nnamespace {{\n\n{}\n}}  // namespace\n}}  // namespace "
          "tenon::structured_info\n",
          structured_);
    if (!pointwise_.empty()) {
      text += "\nnamespace tenon {\nstruct PointwiseInfo;\n}\nnamespace tenon::pointwise_info {\n" +
              pointwise_ + "}  // namespace tenon::pointwise_info\n";
    }
    text += derivatives.text;
    text +=
        "\nnamespace tenon::detail {\n\n// What all operators of a signature share; see signatures_*.cc.\n";
    for (const std::string& line : declarations_) text += line;
    if (!traits_text_.empty()) text += "\n" + traits_text_;
    text += fmt::format("\nconstinit OperatorEntry {}_entries[{}] = {{\n{}}};\n", family_.name,
                        num_operators_, entries_);
    if (num_bodies_ > 0)
      text += fmt::format("\nstatic const BuiltinFunction bodies[] = {{\n{}}};\n", bodies_);
    text += fmt::format("\nstatic const BuiltinKernel kernels[] = {{\n{}}};\n", kernels_);
    text += fmt::format("\nstatic const BuiltinOperator operators[] = {{\n{}}};\n", operators_);
    text += fmt::format("\nstatic const char schemas[] =\n{};\n", schemas_);
    text += fmt::format("\nstatic const BuiltinCode* const codes[] = {{\n{}}};\n", codes_.text);
    text += fmt::format("\nstatic const ServesProbe probes[] = {{\n{}}};\n", probes_.text);
    text += fmt::format(
        "\nextern const BuiltinFamily {0}_family;\nconst BuiltinFamily {0}_family{{{1}, {0}_entries, "
        "kernels, operators, schemas, codes, probes}};\n",
        family_.name, quote(fmt::format("tenon/ops/yaml/{}.yaml", family_.name)));
    text += "\n}  // namespace tenon::detail\n\nnamespace tenon {\n\n";
    text += function_definitions(family_);
    return text + "\n}  // namespace tenon\n";
  }

 private:
  void add_structured(const OpDef& def) {
    const FunctionSchema& schema = def.schema();
    if (def.rows) {
      const std::string id = def.operators.front().constant;
      rows_ += fmt::format("extern const RowsInfo {};\n", id);
      structured_ += rows_functions(def);
    }
    std::string shape = "OutputSpecs&", computed = "nullptr", names;
    for (const schema::Argument& a : schema.arguments) {
      shape += ", " + shape_type(a);
      names += (names.empty() ? "" : " ") + a.name;
    }
    if (!def.kernel.empty()) {
      computed = fmt::format("&ops::{}_stub, nullptr", def.kernel);
    } else if (def.function == "none") {
      computed += ", reinterpret_cast<detail::AnyFunction>(&detail::no_elements)";
    } else {
      const std::string function =
          def.rows ? def.operators.front().constant + "_rows_body" : "ops::" + def.function;
      computed += fmt::format(", reinterpret_cast<detail::AnyFunction>(static_cast<void (*)({})>(&{}))",
                              body_parameters(def, false), function);
    }
    computed += def.stubs.empty() ? ", nullptr" : fmt::format(", detail::kStubs<{}>", stub_names(def));
    const bool rule = def.out_dtype != "Cast";
    if (def.mixed_devices || def.rows || rule) computed += def.mixed_devices ? ", true" : ", false";
    if (def.rows)
      computed += fmt::format(", &rows_info::{}", def.operators.front().constant);
    else if (rule)
      computed += ", nullptr";
    if (rule) computed += fmt::format(", OutRule::{}", def.out_dtype);
    structured_ += fmt::format(
        "const StructuredInfo {}{{{}, {}, reinterpret_cast<detail::AnyFunction>(static_cast<void "
        "(*)({})>(&{})),\n"
        "    {}}};\n",
        def.operators.front().constant,
        quote(def.rows && !def.rows->name.empty() ? def.rows->name : schema.name), quote(names), shape,
        def.rows ? def.operators.front().constant + "_rows_shape" : "ops::shape::" + def.shape, computed);
  }

  void add_operator(const OpDef& def, const Operator& op) {
    declare_call(op);
    ++num_operators_;
    const size_t first = num_kernels_;
    std::vector<KernelRow> rows;
    add_kernel_rows(def, op, rows);
    add_autograd_rows(def, op, rows);
    add_record_rows(def, op, rows);
    for (const KernelRow& row : rows) add_kernel(row);
    uint64_t written = 0;
    for (size_t i = 0; i < op.schema.arguments.size(); ++i) {
      if (op.schema.arguments[i].is_write()) written |= uint64_t{1} << i;
    }
    entries_ += fmt::format("    {{.name = \"aten::{}\"{}{}{}{}{}{}}},\n", op.schema.name,
                            op.schema.overload.empty() ? "" : ", .overload = " + quote(op.schema.overload),
                            written ? fmt::format(", .written{{{:#x}}}", written) : "",
                            def.mixed_devices ? ", .mixed_devices = true" : "",
                            def.crosses_devices ? ", .crosses_devices = true" : "", forms_fields(def, op),
                            traits_field(def, op));
    const std::string text = schema::to_string(op.schema);
    operators_ +=
        fmt::format("    {{{}, {}, {}, {}}},\n", schemas_size_, def.line, first, num_kernels_ - first);
    schemas_ += fmt::format("    {} \"\\0\"\n", quote(text));
    schemas_size_ += text.size() + 1;
    if (def.body == Body::Expr && &op == &def.operators.front()) {
      pointwise_ += fmt::format("extern const PointwiseInfo {};\n", op.constant);
    }
  }

  /// How far from its entry those of its other forms are.
  static std::string forms_fields(const OpDef& def, const Operator& op) {
    const auto field = [&](const char* name, const Operator* form) {
      const auto distance = form ? static_cast<int>(form->index) - static_cast<int>(op.index) : 0;
      return distance != 0 ? fmt::format(", .{} = {}", name, distance) : "";
    };
    if (op.form != Form::Functional) return field("to_functional", def.find(Form::Functional));
    const Operator* const out = def.find(Form::Out);
    return field("to_out", out && !def.takes_options_of_out(*out) ? out : nullptr);
  }

  /// Operators with the same traits share a constant.
  std::string traits_field(const OpDef& def, const Operator& op) {
    const std::string text = traits_of(def, op);
    if (text.empty()) return "";
    const auto [at, is_new] = traits_.try_emplace(text, traits_.size());
    if (is_new)
      traits_text_ += fmt::format("static constexpr OperatorTraits traits_{}{{{}}};\n", at->second, text);
    return fmt::format(", .traits = &traits_{}", at->second);
  }

  void declare_call(const Operator& op) {
    std::string parameters;
    for (const schema::Argument& a : op.schema.arguments) parameters += schema::cpp_type(a) + ", ";
    declarations_.insert(fmt::format("[[gnu::visibility(\"hidden\")]] {} call_{}({}OperatorEntry&);\n",
                                     schema::cpp_return_type(op.schema), signature_word(op.schema),
                                     parameters));
  }

  void add_kernel(const KernelRow& row) {
    ++num_kernels_;
    std::string code = "code_fallthrough", data = row.data;
    if (row.entry == "cells") {
      code = "autograd::kHistoryOverCells";
    } else if (!row.entry.empty()) {
      code = code_name(row.entry, row.op->schema);
      declarations_.insert(
          fmt::format("[[gnu::visibility(\"hidden\")]] extern const BuiltinCode {};\n", code));
    }
    if (!row.body.empty()) {
      data = fmt::format("&bodies[{}]", num_bodies_++);
      bodies_ += fmt::format("    {},\n", row.body);
    }
    kernels_ +=
        fmt::format("    {{{}, {}, {}, {}}},\n", row.key, probes_.place(row.probe.empty() ? "{}" : row.probe),
                    codes_.place("&" + code), data.empty() ? "nullptr" : data);
  }

  /// Lines of a table, each once, in the order in which they are first asked for.
  struct Lines {
    size_t place(const std::string& line) {
      const auto [at, is_new] = places.try_emplace(line, places.size());
      if (is_new) text += fmt::format("    {},\n", line);
      return at->second;
    }
    std::string text;
    std::map<std::string, size_t> places;
  };

  const std::vector<OpDef>& defs_;
  const Family& family_;
  std::vector<std::string> stubs_;
  std::set<std::string> declarations_;
  std::map<std::string, size_t> traits_;
  std::string traits_text_, structured_, rows_, pointwise_, entries_, operators_, kernels_, bodies_, schemas_;
  Lines codes_, probes_;
  size_t num_operators_ = 0, num_kernels_ = 0, num_bodies_ = 0, schemas_size_ = 0;
};

std::string families_file(const std::vector<Family>& families) {
  std::string declarations, list;
  for (const Family& family : families) {
    declarations += fmt::format("extern const BuiltinFamily {}_family;\n", family.name);
    list += fmt::format("    &{}_family,\n", family.name);
  }
  return banner("The families of operators.") + fmt::format(R"(#include "tenon/dispatch/builtin.h"
#include "tenon/dispatch/library.h"

namespace tenon::detail {{

{}
static const BuiltinFamily* const families[] = {{
{}}};

static void register_all(Library&) {{ register_builtin(families); }}

// Before the static initialisers of other files, which may call operators.
[[gnu::init_priority(1000)]] static LibraryBlock block(Library::Kind::Def, "aten", "", &register_all, __FILE__, __LINE__);

}}  // namespace tenon::detail
)",
                                                            declarations, list);
}

// Kernels of rooms above the operators: in files of their own, which include those.
bool is_above(const std::string& entry) { return entry == "HistoryCall" || entry == "RecordCall"; }

// One signature's call, and its kernels' code. A mark of a caller's line steps over the call: everything
// between it and a kernel is part of it.
std::string signature_text(const SignatureCode& code, bool above) {
  std::string text;
  if (!above) {
    std::string parameters, arguments;
    for (size_t i = 0; i < code.parameters.size(); ++i) {
      parameters += fmt::format("{} a{}, ", code.parameters[i], i);
      arguments += fmt::format("{}a{}", i ? ", " : "", i);
    }
    text += fmt::format(
        "[[gnu::visibility(\"hidden\")]] {0} call_{1}({2}OperatorEntry& entry);\n"
        "TENON_CALL_SITE [[gnu::flatten]] {0} call_{1}({2}OperatorEntry& entry) {{\n  return "
        "TypedOperator<{3}>(entry).call({4});\n}}\n",
        code.returns, code.word, parameters, code.signature, arguments);
  }
  for (const std::string& entry : code.entries) {
    if (is_above(entry) != above) continue;
    const std::string name = fmt::format("code_{}_{}", entry, code.word);
    text += fmt::format(
        "[[gnu::visibility(\"hidden\")]] extern const BuiltinCode {0};\n"
        "const BuiltinCode {0}{{{{reinterpret_cast<AnyFunction>(&{2}{3}<{1}>::call), {4}, nullptr}},\n"
        "    &SignatureOf<{1}>::types}};\n",
        name, code.signature,
        entry == "HistoryCall"  ? "autograd::"
        : entry == "RecordCall" ? "record::"
                                : "",
        entry,
        entry == "RecordCall" ? "&record::record_boxed"
                              : fmt::format("&BoxedFromUnboxed<{}>::call", code.signature));
  }
  return text;
}

}  // namespace

std::vector<GeneratedFile> print_register(const std::vector<OpDef>& defs) {
  const std::vector<Family> families = families_of(defs);
  std::vector<GeneratedFile> files = {{"families.cc", families_file(families)}};
  for (const Family& family : families)
    files.push_back({family.source("operators"), FamilyPrinter(defs, family).print()});
  const std::vector<SignatureCode> all = signature_code(defs);
  // Which file a signature is in follows from its text, so that a new one changes one file.
  const auto add = [&](size_t count, const char* stem, bool above, const auto& headers, auto&& belongs) {
    std::vector<std::string> texts(count, banner("What operators of one C++ signature share."));
    for (std::string& text : texts) {
      for (const char* header : headers) text += fmt::format("#include \"{}\"\n", header);
      text += "\nnamespace tenon::detail {\n\n";
    }
    for (const SignatureCode& code : all)
      if (belongs(code)) texts[stable_hash(code.word) % count] += signature_text(code, above);
    for (size_t i = 0; i < count; ++i)
      files.push_back({fmt::format("{}_{}.cc", stem, i), texts[i] + "\n}  // namespace tenon::detail\n"});
  };
  const auto is_common = [](const SignatureCode& code) { return has_typed_code(code.signature); };
  const std::vector<const char*> below = {"tenon/core/source_mark.h",      "tenon/iter/pointwise.h",
                                          "tenon/ops/forms/factory_out.h", "tenon/ops/forms/registration.h",
                                          "tenon/ops/forms/structured.h",  "tenon/ops/forms/update.h"};
  add(kSignatureFiles, "signatures", false, below, is_common);
  add(kRareSignatureFiles, "rare_signatures", false, below,
      [&](const SignatureCode& code) { return !is_common(code); });
  add(kHistoryFiles, "history", true,
      std::vector<const char*>{"tenon/autograd/history.h", "tenon/ops/forms/registration.h",
                               "tenon/record/record_call.h"},
      [](const SignatureCode&) { return true; });
  return files;
}

}  // namespace tenon::opgen
