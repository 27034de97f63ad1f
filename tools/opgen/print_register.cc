// The table of operators and the tables of their kernels.
#include <fmt/format.h>

#include "tools/opgen/files.h"
#include "tools/opgen/kernel_rows.h"
#include "tools/opgen/printers.h"
#include "tools/opgen/text.h"

namespace tenon::opgen {

namespace {

// An array of the stubs that a body calls, as the data of a probe.
std::string stubs_probe(const OpDef& def) {
  if (def.stubs.empty()) return "";
  std::string names;
  for (const std::string& stub : def.stubs)
    names += fmt::format("{}&ops::{}_stub", names.empty() ? "" : ", ", stub);
  return fmt::format("{{&stubs_serve, kStubs<{}>}}", names);
}

// The schema that a structured operator's in-place and out forms share with their functional form.
std::string structured_entry(Form form) {
  return form == Form::Functional ? "StructuredCall"
         : form == Form::Inplace  ? "StructuredInplaceCall"
                                  : "StructuredOutCall";
}

std::string runtime_key(const std::string& key) {
  if (key == "CPU") return "DispatchKey(Functionality::Dense, kCpuBackend)";
  if (key == "Meta") return "DispatchKey(Functionality::Dense, kMetaBackend)";
  if (key == "CompositeDense") return "kCompositeDense";
  if (key == "CompositeExplicit") return "kCompositeExplicit";
  if (key == "CompositeImplicit") return "kCompositeImplicit";
  return fmt::format("key_parse({})", quoted(key));
}

void add_rows(const OpDef& def, const Operator& op, std::vector<KernelRow>& rows) {
  const std::string sig = signature(op.schema);
  const auto generated = [&](const std::string& entry) {
    return fmt::format("make_generated<{}, {}<{}>>", sig, entry, sig);
  };
  const auto function = [&](const std::string& key, const std::string& name, const std::string& probe = "") {
    const std::string body =
        fmt::format("{{reinterpret_cast<AnyFunction>(&ops::{}), {}}}", name, quoted(op.schema.name));
    rows.push_back({op.index, key, sig, generated("FunctionCall"), "", probe, body});
  };
  if (def.copies_out(op)) {
    const std::string body =
        fmt::format("{{reinterpret_cast<AnyFunction>(&ops::{}), {}}}", def.function, quoted(op.schema.name));
    rows.push_back({op.index, "kCompositeDense", sig, generated("CopyOutCall"), "", stubs_probe(def), body});
    return;
  }
  switch (def.body) {
    case Body::Expr:
      rows.push_back({op.index, "kCompositeDense", sig, generated("PointwiseCall"),
                      fmt::format("&pointwise_info::{}", def.operators.front().constant),
                      "{&pointwise_serves, nullptr}"});
      break;
    case Body::Structured: {
      const std::string info = fmt::format("&structured_info::{}", def.operators.front().constant);
      rows.push_back({op.index, "kCompositeDense", sig, generated(structured_entry(op.form)), info,
                      fmt::format("{{&structured_serves, {}}}", info)});
      break;
    }
    case Body::View:
    case Body::Explicit:
      function("kCompositeDense", def.function, stubs_probe(def));
      break;
    case Body::Composite:
      function("kCompositeImplicit", def.function);
      break;
    case Body::Dispatch:
      for (const auto& [key, name] : def.dispatch) function(runtime_key(key), name);
      break;
  }
  if (is_factory(op.schema) && def.body != Body::Composite) {
    rows.push_back({op.index, "DispatchKey(Functionality::BackendSelect)", sig, generated("BackendSelect"),
                    fmt::format("&operator_entries[{}]", op.index)});
  }
}

std::string structured_header(const std::vector<OpDef>& defs) {
  std::string text = banner("StructuredInfo of each structured operator, by the name of its constant.");
  text += "#pragma once\n\n#include \"tenon/ops/structured.h\"\n\nnamespace tenon::structured_info {\n\n";
  for (const OpDef& def : defs) {
    if (def.body == Body::Structured)
      text += fmt::format("extern const StructuredInfo {};\n", def.operators.front().constant);
  }
  return text + "\n}  // namespace tenon::structured_info\n";
}

std::string structured_source(const std::vector<OpDef>& defs) {
  std::string text = banner("Structured operators as data.");
  text +=
      "#include \"tenon/generated/structured_info.h\"\n\n#include \"tenon/generated/shape_functions.h\"\n"
      "#include \"tenon/generated/stubs.h\"\n\nnamespace tenon::structured_info {\n\n";
  for (const OpDef& def : defs) {
    if (def.body != Body::Structured) continue;
    std::string arguments;
    for (const schema::Argument& a : def.schema().arguments) arguments += ", " + schema::cpp_type(a);
    text += fmt::format(
        "const StructuredInfo {}{{{}, reinterpret_cast<detail::AnyFunction>(static_cast<void "
        "(*)(ShapeResult&{})>(&ops::shape::{})),\n"
        "    &ops::{}_stub}};\n",
        def.operators.front().constant, quoted(def.schema().name), arguments, def.shape, def.function);
  }
  return text + "\n}  // namespace tenon::structured_info\n";
}

std::string rows_file(const std::vector<KernelRow>& rows, const std::string& name) {
  std::string text = banner("Kernels of operators, by signature.");
  for (const char* header :
       {"tenon/dispatch/key.h", "tenon/generated/op_bodies.h", "tenon/generated/operators.h",
        "tenon/generated/pointwise_info.h", "tenon/generated/structured_info.h",
        "tenon/iter/pointwise_device.h", "tenon/ops/copy_out.h", "tenon/ops/device_stubs.h",
        "tenon/ops/registration.h"}) {
    text += fmt::format("#include \"{}\"\n", header);
  }
  return text + "\nnamespace tenon::detail {\n\n" + print_rows(rows, name) +
         "\n}  // namespace tenon::detail\n";
}

std::string register_file(const std::vector<OperatorOf>& all) {
  std::string entries, schemas, declarations, parts;
  for (const auto& [def, op] : all) {
    entries += fmt::format("    {{\"aten::{}\", {}}},\n", op->schema.name, quoted(op->schema.overload));
    schemas += fmt::format("    {{{}, {}, {}}},\n", quoted(schema::to_string(op->schema)),
                           quoted("tenon/ops/yaml/" + def->file), def->line);
  }
  const auto part = [&](const std::string& name) {
    declarations += fmt::format("extern const std::span<const BuiltinKernel> {};\n", name);
    parts += fmt::format("{}&{}", parts.empty() ? "" : ", ", name);
  };
  for (size_t i = 0; i < kRegisterFiles; ++i) part(fmt::format("builtin_kernels_{}", i));
  for (size_t i = 0; i < kAutogradFiles; ++i) part(fmt::format("builtin_autograd_{}", i));
  return banner("Every operator: its entry, its schema, its registration.") +
         fmt::format(R"(#include "tenon/dispatch/library.h"
#include "tenon/generated/operators.h"
#include "tenon/ops/registration.h"

namespace tenon::detail {{

constinit OperatorEntry operator_entries[{}] = {{
{}}};

static const BuiltinOperator builtin_operators[] = {{
{}}};

{}
static void register_all(Library&) {{
  const std::span<const BuiltinKernel>* const parts[] = {{{}}};
  register_builtin(builtin_operators, operator_entries, parts);
}}

// Before the static initialisers of other files, which may call operators.
[[gnu::init_priority(1000)]] static LibraryBlock block(Library::Kind::Def, "aten", "", &register_all, __FILE__, __LINE__);

}}  // namespace tenon::detail
)",
                     all.size(), entries, schemas, declarations, parts);
}

}  // namespace

std::vector<GeneratedFile> print_register(const std::vector<OpDef>& defs) {
  std::vector<KernelRow> rows;
  for (const OpDef& def : defs) {
    for (const Operator& op : def.operators) add_rows(def, op, rows);
  }
  std::vector<GeneratedFile> files = {{"register.cc", register_file(all_operators(defs))},
                                      {"tenon/generated/structured_info.h", structured_header(defs)},
                                      {"structured_info.cc", structured_source(defs)}};
  const auto parts = group_by_signature(rows, kRegisterFiles);
  for (size_t i = 0; i < parts.size(); ++i) {
    files.push_back(
        {fmt::format("register_{}.cc", i), rows_file(parts[i], fmt::format("builtin_kernels_{}", i))});
  }
  return files;
}

}  // namespace tenon::opgen
