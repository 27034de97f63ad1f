// Out forms of factories: their functional forms take dtype, layout, device and pin_memory, which are those
// of `out` here. Used by generated registrations. Independent of particular operators.
#pragma once

#include "tenon/ops/forms/copy_out.h"

namespace tenon::detail {

/// The arguments of an out form, as its functional form takes them: the options come after all others but a
/// memory format.
template <class Sig>
struct FactoryArguments;
template <class... A>
struct FactoryArguments<Tensor&(A...)> {
  static constexpr size_t kIns = sizeof...(A) - 1;
  static constexpr bool kHasFormat =
      std::is_same_v<std::tuple_element_t<kIns - 1, std::tuple<A...>>, std::optional<MemoryFormat>>;
  static constexpr size_t kBefore = kIns - kHasFormat;

  template <class Before, class After>
  struct Join;
  template <size_t... I, size_t... J>
  struct Join<std::index_sequence<I...>, std::index_sequence<J...>> {
    template <size_t i>
    using Argument = std::tuple_element_t<i, std::tuple<A...>>;
    using type = TypeList<Argument<I>..., std::optional<DType>, std::optional<Layout>, std::optional<Device>,
                          std::optional<bool>, Argument<kBefore + J>...>;

    /// Calls `f` with the functional arguments, for a tensor on `device` of the dtype of `out`, the last of
    /// `all`.
    template <class All, class F>
    static decltype(auto) call(All& all, Device device, F&& f) {
      const DType dtype = std::get<kIns>(all).dtype();
      return f(std::get<I>(all)..., std::optional<DType>(dtype), std::optional<Layout>(),
               std::optional<Device>(device), std::optional<bool>(), std::get<kBefore + J>(all)...);
    }
  };
  using Functional = Join<std::make_index_sequence<kBefore>, std::make_index_sequence<kHasFormat>>;
};

/// `data` is the StructuredInfo of the functional form.
template <class Sig>
struct StructuredFactoryOutCall;
template <class... A>
struct StructuredFactoryOutCall<Tensor&(A...)> {
  using Functional = typename FactoryArguments<Tensor&(A...)>::Functional;
  using Run = StructuredRun<typename Functional::type, std::index_sequence<0>>;

  static Tensor& call(const Kernel& kernel, DispatchKeySet, A... args) {
    auto all = std::forward_as_tuple(args...);
    Tensor& out = std::get<sizeof...(A) - 1>(all);
    Tensor* given[] = {&out};
    Functional::call(all, out.device(), [&](const auto&... functional) {
      Run::write(*static_cast<const StructuredInfo*>(kernel.data), false, given, functional...);
    });
    return out;
  }
};

/// `data` is the BuiltinFunction of the functional body, which makes the result, and it is copied. What the
/// result will be is asked on the meta device first, so that a call that fails draws no random numbers.
template <class Sig>
struct FactoryCopyOutCall;
template <class... A>
struct FactoryCopyOutCall<Tensor&(A...)> {
  using Functional = typename FactoryArguments<Tensor&(A...)>::Functional;

  static Tensor& call(const Kernel& kernel, DispatchKeySet, A... args) {
    auto all = std::forward_as_tuple(args...);
    Tensor& out = std::get<sizeof...(A) - 1>(all);
    const auto& body = *static_cast<const BuiltinFunction*>(kernel.data);
    const auto run = [&](Device device) {
      return Functional::call(all, device, [&](const auto&... functional) {
        return make(body.function, typename Functional::type(), functional...);
      });
    };
    try {
      check_factory_out(body, run(kMeta), out);
      copy_out(body, run(out.device()), out);
    } catch (Error& e) {
      e.set_operator(body.name);
      throw;
    }
    return out;
  }

 private:
  template <class... In, class... Given>
  static Tensor make(AnyFunction function, TypeList<In...>, const Given&... args) {
    return reinterpret_cast<Tensor (*)(In...)>(function)(args...);
  }
};

}  // namespace tenon::detail
