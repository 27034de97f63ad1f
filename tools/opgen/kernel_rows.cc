#include "tools/opgen/kernel_rows.h"

#include <fmt/format.h>

#include <map>

#include "tenon/core/error.h"
#include "tools/opgen/families.h"
#include "tools/opgen/text.h"
#include "tools/opgen/typed_signatures.h"

namespace tenon::opgen {
namespace {

// An array of the stubs that a body calls, as the data of a probe.
std::string stubs_probe(const OpDef& def) {
  return def.stubs.empty() ? "" : fmt::format("{{&stubs_serve, kStubs<{}>}}", stub_names(def));
}

// The entry of a form of a structured operator: its own schema's, or one that follows from it.
std::string structured_entry(const OpDef& def, const Operator& op) {
  if (def.updates) {
    return op.form == Form::Functional ? "UpdateCall"
           : op.form == Form::Out      ? "UpdateOutCall"
                                       : "UpdateInplaceCall";
  }
  const bool own = &op == &def.operators.front();
  return op.form == Form::Functional    ? "StructuredCall"
         : def.takes_options_of_out(op) ? "StructuredFactoryOutCall"
         : op.form == Form::Out         ? "StructuredOutCall"
         : own                          ? "StructuredWriteCall"
                                        : "StructuredInplaceCall";
}

// By result, the argument that it is an alias of, as AliasCheck reads it; empty where it may be either.
std::string aliases_of(const OpDef& def) {
  if (def.undeclared_alias || (def.body != Body::View && def.body != Body::Explicit)) return "";
  const FunctionSchema& schema = def.schema();
  std::string text;
  for (const schema::Return& r : schema.returns) {
    char alias = '-';
    for (size_t i = 0; r.alias && i < schema.arguments.size(); ++i) {
      const auto& of = schema.arguments[i].alias;
      if (of && of->before == r.alias->before) alias = static_cast<char>('a' + i);
    }
    text += alias;
  }
  return text;
}

std::string runtime_key(const std::string& key) {
  if (key == "CPU") return "DispatchKey(Functionality::Dense, kCpuBackend)";
  if (key == "Meta") return "DispatchKey(Functionality::Dense, kMetaBackend)";
  if (key == "CompositeDense") return "kCompositeDense";
  if (key == "CompositeExplicit") return "kCompositeExplicit";
  if (key == "CompositeImplicit") return "kCompositeImplicit";
  return fmt::format("key_parse({})", quote(key));
}

}  // namespace

std::string stub_names(const OpDef& def) {
  std::string names;
  for (const std::string& stub : def.stubs)
    names += fmt::format("{}&ops::{}_stub", names.empty() ? "" : ", ", stub);
  return names;
}

void add_kernel_rows(const OpDef& def, const Operator& op, std::vector<KernelRow>& rows) {
  const auto body = [&](const std::string& function) {
    const std::string aliases = def.copies_out(op) ? "" : aliases_of(def);
    const std::string rule = def.copies_out(op) ? def.out_dtype : "Cast";
    return fmt::format("{{reinterpret_cast<AnyFunction>(&ops::{}), {}{}{}}}", function, quote(op.schema.name),
                       aliases.empty() ? "" : ", " + quote(aliases),
                       rule == "Cast" ? "" : ", nullptr, OutRule::" + rule);
  };
  const auto function = [&](const std::string& key, const std::string& name, const std::string& probe = "") {
    rows.push_back({&op, key, "FunctionCall", "", probe, body(name)});
  };
  if (def.copies_out(op)) {
    const char* entry = def.takes_options_of_out(op) ? "FactoryCopyOutCall" : "CopyOutCall";
    rows.push_back({&op, "kCompositeDense", entry, "", stubs_probe(def), body(def.function)});
    return;
  }
  switch (def.body) {
    case Body::Expr: {
      const std::string info = fmt::format("&pointwise_info::{}", def.operators.front().constant);
      rows.push_back({&op, "kCompositeDense", "PointwiseCall", info, "{&pointwise_serves}"});
      break;
    }
    case Body::Structured: {
      const std::string info = fmt::format("&structured_info::{}", def.operators.front().constant);
      rows.push_back({&op, "kCompositeDense", structured_entry(def, op), info, "{&structured_serves}"});
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
    rows.push_back({&op, "DispatchKey(Functionality::BackendSelect)", "BackendSelect",
                    fmt::format("&{}", entry_of(def, op))});
  }
}

void add_record_rows(const OpDef& def, const Operator& op, std::vector<KernelRow>& rows) {
  // Composites and views step aside.
  if (def.body == Body::Composite || def.body == Body::View || op.schema.is_view()) return;
  if (!has_typed_code(signature(op.schema))) return;
  rows.push_back(
      {&op, "DispatchKey(Functionality::Record)", "RecordCall", fmt::format("&{}", entry_of(def, op))});
}

std::string code_name(const std::string& entry, const FunctionSchema& schema) {
  return fmt::format("code_{}_{}", entry, signature_word(schema));
}

std::vector<SignatureCode> signature_code(const std::vector<OpDef>& defs) {
  std::map<std::string, SignatureCode> found;
  for (const auto& [def, op] : all_operators(defs)) {
    const std::string word = signature_word(op->schema);
    SignatureCode& code = found[word];
    const std::string sig = signature(op->schema);
    TENON_CHECK(code.signature.empty() || code.signature == sig, Internal,
                fmt::format("signatures `{}` and `{}` have the same name {}", code.signature, sig, word));
    if (code.signature.empty()) {
      code.word = word;
      code.signature = sig;
      code.returns = schema::cpp_return_type(op->schema);
      for (const schema::Argument& a : op->schema.arguments) code.parameters.push_back(schema::cpp_type(a));
    }
    std::vector<KernelRow> rows;
    add_kernel_rows(*def, *op, rows);
    add_autograd_rows(*def, *op, rows);
    add_record_rows(*def, *op, rows);
    for (const KernelRow& row : rows) {
      if (!row.entry.empty() && row.entry != "cells") code.entries.insert(row.entry);
    }
  }
  std::vector<SignatureCode> all;
  for (const auto& [word, code] : found) all.push_back(code);
  return all;
}

}  // namespace tenon::opgen
