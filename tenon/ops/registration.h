// What the rows of built-in operators (dispatch/builtin.h) name: entry points of hand-written bodies and of
// factories, one for each C++ signature. Used by generated files only. Knows nothing of any particular
// operator.
#pragma once

#include "tenon/dispatch/builtin.h"
#include "tenon/dispatch/stub.h"

namespace tenon::detail {

/// Probe of a body that calls stubs: `data` is a null-terminated array of StubBase pointers.
bool stubs_serve(const void* data, Backend backend) noexcept;
template <auto*... stubs>
inline constexpr const StubBase* kStubs[] = {stubs..., nullptr};

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
    } catch (Error& e) {
      e.set_operator(body.name);
      throw;
    }
  }
};
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

}  // namespace tenon::detail
