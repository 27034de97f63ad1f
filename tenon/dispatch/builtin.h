// Built-in operators as the dispatcher finds them: rows of constant data, family by family. What is
// registered for an operator is made from its row when the operator is first called, looked up or asked
// about, and its schema is parsed when somebody wants it: how many operators there are costs nothing when the
// library is loaded. Used by generated files and by the dispatcher. Knows nothing of any particular operator.
#pragma once

#include <span>

#include "tenon/dispatch/key.h"
#include "tenon/dispatch/operator.h"

namespace tenon::detail {

/// What kernels of one C++ signature share: their entry points, and how the dispatcher knows the types.
struct BuiltinCode {
  Kernel kernel;  ///< Without data.
  SignatureTypes (*types)() = nullptr;
};
/// For an operator that has no derivative.
inline constexpr BuiltinCode code_fallthrough{{nullptr, &fallthrough_entry, nullptr}, nullptr};

/// One kernel.
struct BuiltinKernel {
  DispatchKey key;
  const BuiltinCode* code;
  const void* data;
  ServesProbe probe = {};
};

/// One operator of a YAML file, and which of the family's kernels are its own.
struct BuiltinOperator {
  const char* schema;
  int line;
  uint16_t first_kernel, num_kernels;
};

/// The operators of one YAML file. `entries` and `operators` are equally long.
struct BuiltinFamily {
  const char* file;
  std::span<OperatorEntry> entries;
  std::span<const BuiltinKernel> kernels;
  std::span<const BuiltinOperator> operators;
};

/// Makes them known. Once a process.
void register_builtin(std::span<const BuiltinFamily* const> families);

}  // namespace tenon::detail
