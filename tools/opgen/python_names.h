// The names of operators in Python: which overloads a function and a method have, in the order in which a
// call tries them. Used by the printers of the binding and of the stubs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/opgen/printers.h"

namespace tenon::opgen {

struct PythonOverload {
  const OpDef* def;
  const Operator* op;
  /// "add(input: Tensor, other: Tensor, *, alpha: Number = 1) -> Tensor".
  std::string text;

  /// The first parameter after `self` is a list of ints and the last positional one: x.view(2, 3).
  bool variadic() const;
  /// A factory that may mark its result.
  bool takes_requires_grad() const;
  /// The schema with the arguments that only Python takes: a factory with `out` may be given the options of
  /// `out`.
  FunctionSchema shown_schema() const;
  bool named_results() const { return named_results(op->schema); }
  static bool named_results(const FunctionSchema& schema);
};

/// Whether numbers may replace tensors where no overload fits: none, all but one, or all.
enum class NumbersAsTensors : uint8_t { None, Mixed, All };

struct PythonName {
  std::string name;
  std::vector<const PythonOverload*> functions;
  std::vector<const PythonOverload*> methods;
  NumbersAsTensors numbers_as_tensors = NumbersAsTensors::None;
  /// What help() prints, after the line that inspect.signature reads.
  std::string function_doc, method_doc;

  std::vector<PythonOverload> overloads;  ///< What the two lists point to.
};

/// Sorted by name.
std::vector<PythonName> python_names(const std::vector<OpDef>& defs);

}  // namespace tenon::opgen
