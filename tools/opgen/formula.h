// Formula: which arguments and results a C++ derivative formula uses, and whether it uses their elements.
// Used by print_derivatives.cc.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tools/opgen/model.h"

namespace tenon::opgen {

/// One formula, read against its operator's schema.
struct Formula {
  std::vector<size_t> of;      ///< The arguments whose gradients it is: several, if it is a tuple of them.
  std::string text;            ///< C++, with `results[1]` as `results_1`.
  std::set<size_t> arguments;  ///< Arguments that it uses, tensors for their elements.
  std::set<size_t> metas;      ///< Tensor arguments whose sizes, dtype or options alone it uses.
  std::set<size_t> results;    ///< Results that it uses, by `result`, their name or `results[i]`.
};

/// Reads the formula of an argument, or of several: "query, key". `grad` always means the incoming gradient,
/// even if an argument has that name. Throws Error{Value} for a result that does not exist.
Formula read_formula(const FunctionSchema& schema, const std::string& arguments, const std::string& text);
/// The names of "query, key".
std::vector<std::string> formula_arguments(const std::string& arguments);
/// The name under which result `i` is declared: "result", "indices", "results_1".
std::string result_variable(const FunctionSchema& schema, size_t i);

}  // namespace tenon::opgen
