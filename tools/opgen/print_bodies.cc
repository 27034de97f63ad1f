// Declarations of what people write by hand: bodies, shape functions, kernels and their stubs. A definition
// whose types differ from the schema's does not link, and one that includes its header does not compile.
#include <fmt/format.h>

#include <map>
#include <set>

#include "tools/opgen/pointwise_forms.h"
#include "tools/opgen/printers.h"
#include "tools/opgen/text.h"

namespace tenon::opgen {

namespace {

/// "Tensor name(const Tensor& self)".
std::string declaration(const OpDef& def, const std::string& name) {
  if (def.body == Body::Structured) return fmt::format("void {}({})", name, body_parameters(def, true));
  std::string arguments;
  for (const schema::Argument& a : def.schema().arguments) {
    arguments +=
        fmt::format("{}{} {}", arguments.empty() ? "" : ", ", schema::cpp_type(a), schema::cpp_name(a));
  }
  return fmt::format("{} {}({})", schema::cpp_return_type(def.schema()), name, arguments);
}

std::string bodies_header(const Family& family) {
  std::string text =
      banner(fmt::format("C++ bodies of the operators of {}.yaml, defined in tenon/ops.", family.name));
  text += "#pragma once\n\n#include \"tenon/core/tensor.h\"\n\nnamespace tenon::ops {\n\n";
  std::set<std::string> printed;
  for (const OpDef* def : family.defs) {
    std::vector<std::string> names;
    if (!def->function.empty() && def->function != "none" && def->cpp.empty()) names = {def->function};
    for (const auto& [key, function] : def->dispatch) names.push_back(function);
    for (const std::string& name : names) {
      const std::string line = declaration(*def, name) + ";\n";
      if (printed.insert(line).second)
        text += fmt::format("/// {}\n{}", schema::to_string(def->schema()), line);
    }
  }
  return text + "\n}  // namespace tenon::ops\n";
}

/// "void name(OutputSpecs& out, HeaderRef self)".
std::string shape_declaration(const OpDef& def) {
  std::string parameters = "OutputSpecs& out";
  for (const schema::Argument& a : def.schema().arguments)
    parameters += fmt::format(", {} {}", shape_type(a), schema::cpp_name(a));
  return fmt::format("void {}({})", def.shape, parameters);
}

std::string shapes_header(const Family& family) {
  std::string text = banner(fmt::format(
      "Shape functions of the structured operators of {0}.yaml, defined in tenon/ops/{0}/shapes.cc.",
      family.name));
  text +=
      "#pragma once\n\n#include \"tenon/core/tensor.h\"\n#include \"tenon/ops/forms/output_spec.h\"\n\n"
      "namespace tenon::ops::shape {\n\n";
  std::set<std::string> printed;
  for (const OpDef* def : family.defs) {
    if (def->body != Body::Structured || def->rows || !def->shape_cpp.empty()) continue;
    const std::string line = shape_declaration(*def) + ";\n";
    if (printed.insert(line).second)
      text += fmt::format("/// {}\n{}", schema::to_string(def->schema()), line);
  }
  return text + "\n}  // namespace tenon::ops::shape\n";
}

// By kernel name, the entry that declares it. Two entries may share one: it belongs to the first.
std::map<std::string, const OpDef*> kernels(const std::vector<OpDef>& defs) {
  std::map<std::string, const OpDef*> found;
  for (const OpDef& def : defs) {
    if (def.body != Body::Structured || def.kernel.empty()) continue;
    const auto [it, inserted] = found.emplace(def.kernel, &def);
    TENON_CHECK(
        inserted || kernel_parameters(it->second->schema(), false) == kernel_parameters(def.schema(), false),
        Value,
        fmt::format("{}: kernel {} has other arguments at {}", def.where(), def.kernel, it->second->where()));
  }
  return found;
}
std::map<std::string, const OpDef*> kernels(const std::vector<OpDef>& defs, const Family& family) {
  auto found = kernels(defs);
  std::erase_if(found, [&](const auto& kernel) { return family_name(*kernel.second) != family.name; });
  return found;
}

std::string kernels_header(const std::vector<OpDef>& defs, const Family& family) {
  std::string text = banner(fmt::format(
      "CPU kernels of the structured operators of {}.yaml, defined in backends/cpu; they are what "
      "stubs start with.",
      family.name));
  text += "#pragma once\n\n#include \"tenon/core/tensor.h\"\n\nnamespace tenon::cpu {\n\n";
  for (const auto& [name, def] : kernels(defs, family)) {
    text += fmt::format("/// {}\nvoid {}({});\n", schema::to_string(def->schema()), name,
                        kernel_parameters(def->schema(), true));
  }
  return text + "\n}  // namespace tenon::cpu\n";
}

std::string stubs_header(const std::vector<OpDef>& defs, const Family& family) {
  std::string text = banner(
      fmt::format("Stubs of the structured and pointwise operators of {}.yaml: a device adds its kernel with "
                  "`NAME_stub.set(backend, &f)`.",
                  family.name));
  text += "#pragma once\n\n#include \"tenon/iter/pointwise_stub.h\"\n\nnamespace tenon::ops {\n\n";
  for (const auto& [name, def] : kernels(defs, family)) {
    text += fmt::format("/// {}\nextern Stub<void({})> {}_stub;\n", kernel_signature(def->schema()),
                        kernel_parameters(def->schema(), false), name);
  }
  for (const OpDef* def : family.defs) {
    if (def->body != Body::Expr) continue;
    text += fmt::format("/// {}\nextern Stub<{}> {}_stub;\n", pointwise_signature(*def),
                        pointwise_stub_type(*def), pointwise_stub_name(*def, family.defs));
  }
  return text + "\n}  // namespace tenon::ops\n";
}

}  // namespace

std::string stub_definitions(const std::vector<OpDef>& defs, const Family& family) {
  std::string text;
  for (const auto& [name, def] : kernels(defs, family)) {
    text += fmt::format(
        "constinit Stub<void({0})> {1}_stub({2}, {3});\n"
        "static const tenon::detail::StubListing {1}_listing({1}_stub, &cpu::{1});\n",
        kernel_parameters(def->schema(), false), name, quote(name), quote(kernel_signature(def->schema())));
  }
  return text;
}

FamilyText cpp_bodies(const std::vector<OpDef>& defs, const Family& family) {
  const FunctionFamilies functions(defs);
  FamilyText out;
  for (const OpDef* def : family.defs) {
    if (def->cpp.empty() && def->shape_cpp.empty()) continue;
    out.headers.insert(def->includes.begin(), def->includes.end());
    for (const std::string& called : functions.called_in(def->cpp))
      out.headers.insert(Family{called, {}}.header("functions"));
    if (!def->shape_cpp.empty()) {
      out.text += fmt::format("namespace shape {{\nstatic {} {{ {}; }}\n}}  // namespace shape\n",
                              shape_declaration(*def), def->shape_cpp);
    }
    if (!def->cpp.empty()) {
      out.text += fmt::format("static {} {{ {}{}; }}\n", declaration(*def, def->function),
                              def->body == Body::Structured ? "" : "return ", def->cpp);
    }
  }
  return out;
}

std::set<std::string> stub_headers(const std::vector<OpDef>& defs, const std::vector<std::string>& names) {
  const auto all = kernels(defs);
  std::set<std::string> headers;
  for (const std::string& name : names) {
    // One that is no kernel of an entry is written by hand: tenon/ops/device_stubs.h.
    const auto found = all.find(name);
    if (found != all.end()) headers.insert(Family{family_name(*found->second), {}}.header("stubs"));
  }
  return headers;
}

std::vector<GeneratedFile> print_bodies(const std::vector<OpDef>& defs) {
  std::vector<GeneratedFile> files;
  for (const Family& family : families_of(defs)) {
    files.push_back({family.header("bodies"), bodies_header(family)});
    files.push_back({family.header("shapes"), shapes_header(family)});
    files.push_back({family.header("kernels"), kernels_header(defs, family)});
    files.push_back({family.header("stubs"), stubs_header(defs, family)});
  }
  return files;
}

}  // namespace tenon::opgen
