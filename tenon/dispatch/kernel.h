// Kernel: one implementation of an operator, which can be called boxed and, if its types are known, unboxed.
// Used by registration, tables and calls. Independent of the operator and key that it serves.
#pragma once

#include <memory>
#include <string_view>

#include "tenon/dispatch/signature.h"

namespace tenon {

class OperatorHandle;
struct Kernel;

/// A kernel on boxed values: takes its arguments from the top of the stack, and leaves its results there.
using BoxedFunction = void(const OperatorHandle& op, DispatchKeySet keys, Stack& stack);

namespace detail {
using BoxedEntry = void (*)(const Kernel&, const OperatorHandle&, DispatchKeySet, Stack&);
using AnyFunction = void (*)();
}  // namespace detail

/// What a table slot holds. `unboxed` has the type R(*)(const Kernel&, DispatchKeySet, A...) of the
/// operator's canonical signature; null for a kernel that exists only boxed. `data` is what the entry points
/// need: the user's function, constant data of a generated kernel, or a closure.
struct Kernel {
  detail::AnyFunction unboxed = nullptr;
  detail::BoxedEntry boxed = nullptr;
  const void* data = nullptr;

  bool valid() const noexcept { return boxed != nullptr; }
};

namespace detail {

/// The base of a kernel that was registered as a closure and may be removed. Each running call holds a
/// reference; removal does not wait for calls.
struct ClosureBase {
  virtual ~ClosureBase() = default;
};

/// Tells on which of its backends a kernel can run, if that depends on what a backend provides (its stubs).
struct ServesProbe {
  bool (*serves)(const void* data, Backend backend) = nullptr;  ///< Null: all of them.
  const void* data = nullptr;
};

template <class F>
struct FunctionTraits;
template <class R, class... A>
struct FunctionTraits<R(A...)> {
  static constexpr bool takes_keys = false;
  using Return = R;
  using CanonicalSignature = R(Canonical<A>...);
  using Parameters = std::tuple<A...>;
};
template <class R, class... A>
struct FunctionTraits<R(DispatchKeySet, A...)> {
  static constexpr bool takes_keys = true;
  using Return = R;
  using CanonicalSignature = R(Canonical<A>...);
  using Parameters = std::tuple<A...>;
};
template <class F>
struct FunctionTraits<F*> : FunctionTraits<F> {};
template <class R, class... A>
struct FunctionTraits<R(A...) noexcept> : FunctionTraits<R(A...)> {};

/// Calls the user's function in `data`, of function type `F`, with canonical arguments.
template <class F, class Sig, class Parameters>
struct CallFunction;
template <class F, class R, class... A, class... P>
struct CallFunction<F, R(A...), std::tuple<P...>> {
  static R call(const Kernel& kernel, DispatchKeySet keys, A... args) {
    auto* f = reinterpret_cast<F*>(const_cast<void*>(kernel.data));
    if constexpr (FunctionTraits<F>::takes_keys) {
      return f(keys, adapt_arg<P>(std::forward<A>(args))...);
    } else {
      return f(adapt_arg<P>(std::forward<A>(args))...);
    }
  }
};

/// The boxed entry of a kernel whose unboxed entry has the canonical signature R(A...).
template <class Sig>
struct BoxedFromUnboxed;
template <class R, class... A>
struct BoxedFromUnboxed<R(A...)> {
  using Unboxed = R (*)(const Kernel&, DispatchKeySet, A...);

  static void call(const Kernel& kernel, const OperatorHandle&, DispatchKeySet keys, Stack& stack) {
    const size_t first = stack.size() - sizeof...(A);
    [&]<size_t... I>(std::index_sequence<I...>) {
      const auto f = reinterpret_cast<Unboxed>(kernel.unboxed);
      if constexpr (std::is_void_v<R>) {
        f(kernel, keys, ArgTraits<A>::pull(stack, first + I)...);
      } else {
        // Results that refer to arguments are copied before the arguments move on the stack.
        using Owned = typename OwnedReturn<R>::type;
        ReturnTraits<Owned>::push(stack, Owned(f(kernel, keys, ArgTraits<A>::pull(stack, first + I)...)));
      }
    }
    (std::index_sequence_for<A...>());
    stack.erase(first, sizeof...(A));
  }
};

/// An argument for code that does not depend on the signature: where it is, and what is done with its type.
struct Argument {
  struct Type {
    void (*push)(Stack& stack, const void* value);
    DispatchKeySet (*keys)(const void* value) noexcept;
    std::span<const Tensor> (*tensors)(const void* value) noexcept;
  };
  const Type* type;
  const void* value;
};

template <class A>
struct ArgumentType {
  using T = std::remove_reference_t<A>;
  static const T& of(const void* value) noexcept { return *static_cast<const T*>(value); }
  static void push(Stack& stack, const void* value) { ArgTraits<A>::push(stack, of(value)); }
  static DispatchKeySet keys(const void* value) noexcept { return ArgTraits<A>::keys(of(value)); }
  static std::span<const Tensor> tensors([[maybe_unused]] const void* value) noexcept {
    using V = std::remove_const_t<T>;
    if constexpr (std::is_same_v<V, Tensor>) return {&of(value), 1};
    if constexpr (std::is_same_v<V, TensorList>) return of(value);
    if constexpr (std::is_same_v<V, std::optional<Tensor>>) {
      if (of(value)) return {&*of(value), 1};
    }
    return {};
  }
  static constexpr Argument::Type type{&push, &keys, &tensors};
};

template <class A>
Argument argument(const std::remove_reference_t<A>& value) noexcept {
  return {&ArgumentType<A>::type, &value};
}

/// Calls a boxed kernel, and leaves its results on the empty `stack`; throws Error{Type} unless there are
/// `results` of them. `frame` is the frame of the function that the user's code called.
void call_boxed(const Kernel& kernel, const OperatorHandle& op, DispatchKeySet keys, void* frame,
                std::span<const Argument> arguments, size_t results, Stack& stack);

template <class R, class... A>
R call_boxed(const Kernel& kernel, const OperatorHandle& op, DispatchKeySet keys, void* frame,
             std::span<const Argument> arguments, A... args) {
  Stack stack;
  call_boxed(kernel, op, keys, frame, arguments, ReturnTraits<R>::count, stack);
  if constexpr (std::is_void_v<R>)
    return;
  else if constexpr (ReturnsReference<R>::value)
    return written_arguments<R>(std::forward<A>(args)...);
  else
    return ReturnTraits<R>::take(stack, 0);
}

/// Calls the user's boxed function, whose pointer is in `data`.
inline void call_boxed_function(const Kernel& kernel, const OperatorHandle& op, DispatchKeySet keys,
                                Stack& stack) {
  reinterpret_cast<BoxedFunction*>(const_cast<void*>(kernel.data))(op, keys, stack);
}
/// These mark registrations without code: a key that calls fall through, and an operator that fallbacks must
/// not serve.
void fallthrough_entry(const Kernel&, const OperatorHandle&, DispatchKeySet, Stack&);
void not_implemented_entry(const Kernel&, const OperatorHandle&, DispatchKeySet, Stack&);

}  // namespace detail

/// The kernel that `m.impl` and `m.fallback` take: made from a function, or by one of the static functions.
/// The name is PyTorch's.
class CppFunction {
 public:
  /// From a pointer to any function whose parameter types the schema language knows.
  template <class F>
  requires std::is_function_v<F> CppFunction(F* f) {
    using Traits = detail::FunctionTraits<F>;
    using Sig = typename Traits::CanonicalSignature;
    kernel_.unboxed = reinterpret_cast<detail::AnyFunction>(
        &detail::CallFunction<F, Sig, typename Traits::Parameters>::call);
    kernel_.boxed = &detail::BoxedFromUnboxed<Sig>::call;
    kernel_.data = reinterpret_cast<const void*>(f);
    types_ = &detail::SignatureOf<Sig>::types;
  }
  /// From a lambda without captures.
  template <class L>
  requires(std::is_class_v<L>&& requires(L l) { +l; }) CppFunction(L lambda) : CppFunction(+lambda) {}

  /// A kernel on boxed values, which serves any operator.
  template <BoxedFunction* f>
  static CppFunction make_from_boxed_function() {
    return from_boxed(f);
  }
  static CppFunction from_boxed(BoxedFunction* f) {
    CppFunction c;
    c.kernel_.boxed = &detail::call_boxed_function;
    c.kernel_.data = reinterpret_cast<const void*>(f);
    return c;
  }
  /// A boxed kernel with state. The closure lives until the last call that began before its removal has
  /// returned.
  static CppFunction from_closure(std::shared_ptr<detail::ClosureBase> closure, detail::BoxedEntry entry) {
    CppFunction c;
    c.kernel_.boxed = entry;
    c.kernel_.data = closure.get();
    c.closure_ = std::move(closure);
    return c;
  }
  /// A generated kernel: code for a canonical signature, constant data for one operator.
  static CppFunction from_parts(const Kernel& kernel, detail::SignatureTypes (*types)()) {
    CppFunction c;
    c.kernel_ = kernel;
    c.types_ = types;
    return c;
  }
  template <class Sig>
  static CppFunction from_data(detail::AnyFunction unboxed, const void* data) {
    return from_parts({unboxed, &detail::BoxedFromUnboxed<Sig>::call, data},
                      &detail::SignatureOf<Sig>::types);
  }
  /// Restricts the kernel to the backends that `probe` accepts; it is called whenever tables are computed.
  CppFunction serving(detail::ServesProbe probe) && {
    probe_ = probe;
    return std::move(*this);
  }
  /// Calls at the key fall through to the next key.
  static CppFunction make_fallthrough() {
    CppFunction c;
    c.kernel_.boxed = &detail::fallthrough_entry;
    return c;
  }
  /// The operator is not implemented for the key, and no fallback runs: calls throw Error{NotImplemented}.
  static CppFunction make_not_implemented() {
    CppFunction c;
    c.kernel_.boxed = &detail::not_implemented_entry;
    return c;
  }

  /// Restricts a fallback to the operators that `takes` accepts; it is called whenever tables are computed.
  CppFunction taking(bool (*takes)(Backend backend, std::string_view full_name)) && {
    takes_ = takes;
    return std::move(*this);
  }

  const Kernel& kernel() const noexcept { return kernel_; }
  bool is_fallthrough() const noexcept { return kernel_.boxed == &detail::fallthrough_entry; }
  bool is_not_implemented() const noexcept { return kernel_.boxed == &detail::not_implemented_entry; }
  const detail::ServesProbe& probe() const noexcept { return probe_; }
  bool serves(Backend backend) const { return !probe_.serves || probe_.serves(probe_.data, backend); }
  bool takes(Backend backend, std::string_view full_name) const {
    return !takes_ || takes_(backend, full_name);
  }
  /// Null for a boxed kernel, which fits every schema.
  detail::SignatureTypes (*types() const noexcept)() { return types_; }
  const std::shared_ptr<detail::ClosureBase>& closure() const noexcept { return closure_; }

 private:
  CppFunction() = default;

  Kernel kernel_;
  detail::SignatureTypes (*types_)() = nullptr;
  detail::ServesProbe probe_;
  bool (*takes_)(Backend, std::string_view) = nullptr;
  std::shared_ptr<detail::ClosureBase> closure_;
};

}  // namespace tenon
