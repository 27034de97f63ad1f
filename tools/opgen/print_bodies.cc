// Declarations of what people write by hand: bodies, shape functions, kernels and their stubs. A definition
// whose types differ from the schema's does not link, and one that includes its header does not compile.
#include <fmt/format.h>

#include <map>
#include <set>

#include "tools/opgen/printers.h"
#include "tools/opgen/text.h"

namespace tenon::opgen {

namespace {

std::string arguments(const FunctionSchema& schema) {
  std::string text;
  for (const schema::Argument& a : schema.arguments) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", schema::cpp_type(a), schema::cpp_name(a));
  }
  return text;
}

std::string bodies_header(const std::vector<OpDef>& defs) {
  std::string text = banner("C++ bodies of operators, defined in tenon/ops.");
  text += "#pragma once\n\n#include \"tenon/core/tensor.h\"\n\nnamespace tenon::ops {\n\n";
  std::set<std::string> printed;
  for (const OpDef& def : defs) {
    std::vector<std::string> names;
    if (def.body == Body::View || def.body == Body::Explicit || def.body == Body::Composite)
      names = {def.function};
    for (const auto& [key, function] : def.dispatch) names.push_back(function);
    for (const std::string& name : names) {
      const std::string line =
          fmt::format("{} {}({});\n", schema::cpp_return_type(def.schema()), name, arguments(def.schema()));
      if (printed.insert(line).second)
        text += fmt::format("/// {}\n{}", schema::to_string(def.schema()), line);
    }
  }
  return text + "\n}  // namespace tenon::ops\n";
}

std::string shapes_header(const std::vector<OpDef>& defs) {
  std::string text = banner("Shape functions of structured operators, defined in tenon/ops/shape.");
  text +=
      "#pragma once\n\n#include \"tenon/core/tensor.h\"\n#include \"tenon/ops/shape_result.h\"\n\n"
      "namespace tenon::ops::shape {\n\n";
  std::set<std::string> printed;
  for (const OpDef& def : defs) {
    if (def.body != Body::Structured) continue;
    const std::string line =
        fmt::format("void {}(ShapeResult& out, {});\n", def.shape, arguments(def.schema()));
    if (printed.insert(line).second) text += fmt::format("/// {}\n{}", schema::to_string(def.schema()), line);
  }
  return text + "\n}  // namespace tenon::ops::shape\n";
}

std::string kernel_parameters(const FunctionSchema& schema, bool names) {
  std::string text;
  for (const schema::Argument& a : schema.arguments) {
    text += (text.empty() ? "" : ", ") + schema::cpp_type(a) + (names ? " " + schema::cpp_name(a) : "");
  }
  for (size_t i = 0; i < schema.returns.size(); ++i) {
    text += fmt::format(", Tensor&{}",
                        names ? schema.returns.size() == 1 ? " out" : fmt::format(" out{}", i) : "");
  }
  return text;
}

// By kernel name, the entry that declares it; two entries may share one.
std::map<std::string, const OpDef*> kernels(const std::vector<OpDef>& defs) {
  std::map<std::string, const OpDef*> found;
  for (const OpDef& def : defs) {
    if (def.body != Body::Structured) continue;
    const auto [it, inserted] = found.emplace(def.function, &def);
    TENON_CHECK(
        inserted || kernel_parameters(it->second->schema(), false) == kernel_parameters(def.schema(), false),
        Value,
        fmt::format("{}: kernel {} has other arguments at {}", def.where(), def.function,
                    it->second->where()));
  }
  return found;
}

std::string kernels_header(const std::vector<OpDef>& defs) {
  std::string text =
      banner("CPU kernels of structured operators, defined in backends/cpu; they are what stubs start with.");
  text += "#pragma once\n\n#include \"tenon/core/tensor.h\"\n\nnamespace tenon::cpu {\n\n";
  for (const auto& [name, def] : kernels(defs)) {
    text += fmt::format("/// {}\nvoid {}({});\n", schema::to_string(def->schema()), name,
                        kernel_parameters(def->schema(), true));
  }
  return text + "\n}  // namespace tenon::cpu\n";
}

std::string stubs_header(const std::vector<OpDef>& defs) {
  std::string text =
      banner("Stubs of structured operators: a device adds its kernel with `NAME_stub.set(backend, &f)`.");
  text += "#pragma once\n\n#include \"tenon/dispatch/stub.h\"\n\nnamespace tenon::ops {\n\n";
  for (const auto& [name, def] : kernels(defs)) {
    text += fmt::format("extern Stub<void({})> {}_stub;\n", kernel_parameters(def->schema(), false), name);
  }
  return text + "\n}  // namespace tenon::ops\n";
}

std::string stubs_source(const std::vector<OpDef>& defs) {
  std::string text = banner("Stubs of structured operators.");
  text +=
      "#include \"tenon/generated/stubs.h\"\n\n#include \"tenon/generated/cpu_kernels.h\"\n\nnamespace "
      "tenon::ops {\n\n";
  for (const auto& [name, def] : kernels(defs)) {
    text += fmt::format(
        "constinit Stub<void({0})> {1}_stub({2});\n"
        "static const tenon::detail::StubListing {1}_listing({1}_stub, &cpu::{1});\n",
        kernel_parameters(def->schema(), false), name, quoted(name));
  }
  return text + "\n}  // namespace tenon::ops\n";
}

}  // namespace

std::vector<GeneratedFile> print_bodies(const std::vector<OpDef>& defs) {
  return {{"tenon/generated/op_bodies.h", bodies_header(defs)},
          {"tenon/generated/shape_functions.h", shapes_header(defs)},
          {"tenon/generated/cpu_kernels.h", kernels_header(defs)},
          {"tenon/generated/stubs.h", stubs_header(defs)},
          {"stubs.cc", stubs_source(defs)}};
}

}  // namespace tenon::opgen
