// Entry points of hand-written bodies and of factories, one for each C++ signature; the rows of built-in
// operators (dispatch/builtin.h) refer to them. Used by generated files only. Independent of any particular
// operator.
#pragma once

#include <tuple>
#include <type_traits>
#include <vector>

#include "tenon/dispatch/builtin.h"
#include "tenon/dispatch/stub.h"
#include "tenon/ops/forms/structured.h"

namespace tenon::detail {

/// The probe (ServesProbe) of a body that calls stubs; `data` is a null-terminated array of StubBase
/// pointers.
bool stubs_serve(const void* data, Backend backend) noexcept;
template <auto*... stubs>
inline constexpr const StubBase* kStubs[] = {stubs..., nullptr};

/// A hand-written body and its operator.
struct BuiltinFunction {
  AnyFunction function;
  const char* name;  ///< "zeros"
  /// For each result, a letter for the argument that the schema declares it an alias of ('a' is the first),
  /// or '-' if it is new. Null if results may be either.
  const char* aliases = nullptr;
  OutRule out_rule = OutRule::Cast;  ///< Of an out form.
};

/// In builds with assertions, checks that the results of a body alias exactly the arguments that its schema
/// declares.
class AliasCheck {
 public:
  template <class... A>
  explicit AliasCheck(const BuiltinFunction& body, const A&... args) : body_(body) {
    size_t position = 0;
    (add(position++, args), ...);
  }

  /// Throws Error{Internal} naming the operator.
  template <class R>
  void check(const R& results) const {
    if (!body_.aliases) return;
    if constexpr (IsTuple<R>::value)
      std::apply([&](const auto&... result) { check_each(result...); }, results);
    else
      check_each(results);
  }

 private:
  struct Argument {
    size_t position;
    const TensorImpl* tensor;
  };
  void add(size_t position, const Tensor& t) {
    if (t.defined()) arguments_.push_back({position, t.impl()});
  }
  void add(size_t position, const TensorList& list) {
    for (const Tensor& t : list) add(position, t);
  }
  template <class T>
  void add(size_t, const T&) noexcept {}

  template <class... R>
  void check_each(const R&... results) const {
    size_t i = 0;
    (check_one(body_.aliases[i++], results), ...);
  }
  void check_one(char alias, const Tensor& result) const;
  void check_one(char alias, const std::vector<Tensor>& results) const {
    for (const Tensor& t : results) check_one(alias, t);
  }
  template <class T>
  void check_one(char, const T&) const noexcept {}

  const BuiltinFunction& body_;
  std::vector<Argument> arguments_;
};

/// Calls a body of exactly this signature; errors name its operator.
template <class Sig>
struct FunctionCall;
template <class R, class... A>
struct FunctionCall<R(A...)> {
  static R call(const Kernel& kernel, DispatchKeySet, A... args) {
    const auto& body = *static_cast<const BuiltinFunction*>(kernel.data);
    try {
      if constexpr (kCheckOutputs && !std::is_void_v<R>) {
        const AliasCheck aliases(body, args...);
        R result = reinterpret_cast<R (*)(A...)>(body.function)(std::forward<A>(args)...);
        aliases.check(result);
        return result;
      } else {
        return reinterpret_cast<R (*)(A...)>(body.function)(std::forward<A>(args)...);
      }
    } catch (Error& e) {
      e.set_operator(body.name);
      throw;
    }
  }
};
/// Redispatches a factory to the kernel for the requested device and layout; `data` is the operator's entry.
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
