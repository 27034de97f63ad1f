// How generated registrations reach the dispatcher: rows of constant data, and one maker for each C++
// signature. Used by generated register_*.cc only. Knows nothing of any particular operator.
#pragma once

#include <span>

#include "tenon/dispatch/dispatcher.h"
#include "tenon/dispatch/stub.h"
#include "tenon/ops/error_name.h"

namespace tenon::detail {

/// One operator of the YAML files.
struct BuiltinOperator {
  const char* schema;
  const char* file;
  int line;
};

/// One kernel: `make(data)` gives it its types.
struct BuiltinKernel {
  uint16_t op;  ///< Position in operator_entries.
  DispatchKey key;
  CppFunction (*make)(const void* data);
  const void* data;
  ServesProbe probe = {};
};

/// Probe of a body that calls stubs: `data` is a null-terminated array of StubBase pointers.
bool stubs_serve(const void* data, Backend backend) noexcept;
template <auto*... stubs>
inline constexpr const StubBase* kStubs[] = {stubs..., nullptr};

/// A kernel of generated code: `Entry::call` with constant data.
template <class Sig, class Entry>
CppFunction make_generated(const void* data) {
  return CppFunction::from_data<Sig>(reinterpret_cast<AnyFunction>(&Entry::call), data);
}
/// A hand-written body, and the operator that it is of.
struct BuiltinFunction {
  AnyFunction function;
  const char* name;  ///< "zeros"
};
/// Calls a body of exactly that signature; what it throws names its operator.
template <class Sig>
struct FunctionCall;
template <class R, class... A>
struct FunctionCall<R(A...)> {
  static R call(const Kernel& kernel, DispatchKeySet, A... args) {
    const auto& body = *static_cast<const BuiltinFunction*>(kernel.data);
    try {
      return reinterpret_cast<R (*)(A...)>(body.function)(std::forward<A>(args)...);
    } catch (const Error&) {
      rethrow_naming(body.name);
    }
  }
};
/// For an operator that has no derivative.
inline CppFunction make_fallthrough(const void*) { return CppFunction::make_fallthrough(); }

/// Sends a factory to the kernel of the device and layout that it is asked for; `data` is the operator's
/// entry.
template <class Sig>
struct BackendSelect;
template <class R, class... A>
struct BackendSelect<R(A...)> {
  static R call(const Kernel& kernel, DispatchKeySet keys, A... args) {
    Device device = kCPU;
    Functionality functionality = Functionality::Dense;
    (pick(device, functionality, args), ...);
    auto* entry = static_cast<OperatorEntry*>(const_cast<void*>(kernel.data));
    const DispatchKeySet below =
        keys.below(Functionality::BackendSelect) | DispatchKeySet(functionality, device.backend);
    return TypedOperator<R(A...)>(*entry).redispatch(below, std::forward<A>(args)...);
  }

 private:
  template <class T>
  static void pick(Device&, Functionality&, const T&) noexcept {}
  static void pick(Device& device, Functionality&, const std::optional<Device>& wanted) noexcept {
    if (wanted) device = *wanted;
  }
  static void pick(Device&, Functionality& functionality, const std::optional<Layout>& wanted) noexcept {
    if (wanted) functionality = functionality_of(*wanted);
  }
};

/// Declares the operators, and registers their kernels, whose rows come in several parts.
void register_builtin(std::span<const BuiltinOperator> operators, std::span<OperatorEntry> entries,
                      std::span<const std::span<const BuiltinKernel>* const> kernels);

}  // namespace tenon::detail
