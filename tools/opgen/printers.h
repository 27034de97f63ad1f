// The printers: each prints some generated files, whose names are relative to build/generated. main.cc calls
// them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tools/opgen/families.h"

namespace tenon::opgen {

/// A part of a family's file.
struct FamilyText {
  std::set<std::string> headers;
  std::string text;
};

/// The C++ API: tenon/generated/FAMILY/{functions.h, operators.h}, headers of all families,
/// tensor_methods.inc.
std::vector<GeneratedFile> print_functions(const std::vector<OpDef>& defs);
/// The definitions of a family's functions and methods.
std::string function_definitions(const Family& family);
/// Declarations of hand-written bodies: tenon/generated/FAMILY/{bodies.h, shapes.h, kernels.h, stubs.h}.
std::vector<GeneratedFile> print_bodies(const std::vector<OpDef>& defs);
/// The definitions of a family's stubs.
std::string stub_definitions(const std::vector<OpDef>& defs, const Family& family);
/// The headers of the stubs with these names.
std::set<std::string> stub_headers(const std::vector<OpDef>& defs, const std::vector<std::string>& names);
/// The functions and tables of each family, FAMILY/operators.cc, and the code of each signature,
/// signatures_*.cc and rare_signatures_*.cc.
std::vector<GeneratedFile> print_register(const std::vector<OpDef>& defs);
/// The functions of entries that give C++ in place of a function's name.
FamilyText cpp_bodies(const std::vector<OpDef>& defs, const Family& family);
/// PointwiseInfo of every expression and of its derivatives, and their SIMD kernels.
std::vector<GeneratedFile> print_pointwise(const std::vector<OpDef>& defs);
/// An expression as constant data, ID_written.
std::string expression_data(const std::string& id, const expr::Expression& e);
/// By dtype code, the dtypes that words name: "bool", "floating", "integral".
uint32_t refused_mask(const std::vector<std::string>& words);
/// DerivativeInfo of a family's operators, and the backward functions of formulas.
FamilyText derivatives_of(const std::vector<OpDef>& defs, const Family& family);
/// docs/operators.md.
std::vector<GeneratedFile> print_docs(const std::vector<OpDef>& defs);

/// The tables and signatures of the Python binding: python/functions.inc and python/signatures_*.inc.
std::vector<GeneratedFile> print_python(const std::vector<OpDef>& defs);
/// What `tenon where` knows beyond the dispatcher: python/operators.json.
std::vector<GeneratedFile> print_index(const std::vector<OpDef>& defs);
/// The stubs of functions and methods: python/functions.pyi and python/methods.pyi.
std::vector<GeneratedFile> print_stubs(const std::vector<OpDef>& defs);

}  // namespace tenon::opgen
