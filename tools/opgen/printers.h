// The printers: each turns the operators into the texts of some files, named from build/generated. Listed in
// main.cc.
#pragma once

#include <string>
#include <vector>

#include "tools/opgen/model.h"

namespace tenon::opgen {

/// The C++ API: tenon/generated/{functions.h, operators.h, tensor_methods.inc} and functions_*.cc.
std::vector<GeneratedFile> print_functions(const std::vector<OpDef>& defs);
/// Declarations of hand-written bodies: tenon/generated/{op_bodies.h, shape_functions.h, stubs.h}.
std::vector<GeneratedFile> print_bodies(const std::vector<OpDef>& defs);
/// operator_entries and the table of kernels: register_*.cc.
std::vector<GeneratedFile> print_register(const std::vector<OpDef>& defs);
/// PointwiseInfo of every expression and of its derivatives, and their SIMD kernels.
std::vector<GeneratedFile> print_pointwise(const std::vector<OpDef>& defs);
/// DerivativeInfo and backward functions of formulas: derivatives_*.cc.
std::vector<GeneratedFile> print_derivatives(const std::vector<OpDef>& defs);
/// docs/operators.md.
std::vector<GeneratedFile> print_docs(const std::vector<OpDef>& defs);

/// The tables and signatures of the Python binding: python/functions.inc and python/signatures_*.inc.
std::vector<GeneratedFile> print_python(const std::vector<OpDef>& defs);
/// What `tenon where` knows beyond the dispatcher: python/operators.json.
std::vector<GeneratedFile> print_index(const std::vector<OpDef>& defs);
/// The stubs of functions and methods: python/functions.pyi and python/methods.pyi.
std::vector<GeneratedFile> print_stubs(const std::vector<OpDef>& defs);

}  // namespace tenon::opgen
