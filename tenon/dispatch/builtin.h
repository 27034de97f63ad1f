// Built-in operators as the dispatcher finds them: rows of constant data, one table for each family. The
// dispatcher makes an operator's registrations from its row when the operator is first called or looked up,
// and parses its schema when the schema is first needed, so that loading the library costs the same however
// many operators there are. Used by generated files and by the dispatcher. Independent of any particular
// operator.
#pragma once

#include <span>

#include "tenon/dispatch/key.h"
#include "tenon/dispatch/operator.h"

namespace tenon::detail {

/// That of all built-in operators.
inline constexpr std::string_view kBuiltinNamespace = "aten";

/// What the kernels of one C++ signature share: their entry points and the description of their types.
struct BuiltinCode {
  Kernel kernel;  ///< Without data.
  SignatureTypes (*types)() = nullptr;
};
/// The Autograd kernel of an operator that has no derivative.
inline constexpr BuiltinCode code_fallthrough{{nullptr, &fallthrough_entry, nullptr}, nullptr};

/// One kernel. There are thousands: what several have is counted by its place in the family's tables, since a
/// pointer costs the library 32 bytes and the dynamic linker a step.
struct BuiltinKernel {
  DispatchKey key;
  uint8_t probe;  ///< Which of the family's.
  uint16_t code;
  const void* data;
};

/// One operator of a YAML file, and which of the family's kernels are its own.
struct BuiltinOperator {
  uint32_t schema;  ///< Where its schema begins in the family's.
  uint16_t line, first_kernel, num_kernels;
};

/// The operators of one YAML file. `entries` and `operators` are equally long.
struct BuiltinFamily {
  const char* file;
  std::span<OperatorEntry> entries;
  std::span<const BuiltinKernel> kernels;
  const BuiltinOperator* operators;
  const char* schemas;  ///< Each ends with a 0.
  const BuiltinCode* const* codes;
  const ServesProbe* probes;

  /// Where a kernel runs; a probe of several kernels, which has no data of its own, asks for theirs.
  ServesProbe probe_of(const BuiltinKernel& kernel) const {
    ServesProbe probe = probes[kernel.probe];
    if (!probe.data) probe.data = kernel.data;
    return probe;
  }
};

/// Registers all families; called once in the process.
void register_builtin(std::span<const BuiltinFamily* const> families);

}  // namespace tenon::detail
