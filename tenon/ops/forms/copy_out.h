// The out forms of operators with a hand-written body: the body makes the result, which is then copied to
// `out`. Used by generated registrations. Independent of particular operators.
#pragma once

#include <span>
#include <tuple>

#include "tenon/ops/forms/registration.h"
#include "tenon/ops/forms/structured.h"

namespace tenon::detail {

/// Copies `result` to `out`, which is resized if it has no elements. Throws before it writes anything unless
/// `out` is on the result's device, has the result's shape or no elements, and has a dtype that the body's
/// OutRule admits.
void copy_out(const BuiltinFunction& body, const Tensor& result, Tensor& out);

/// The same for several results, which must not share memory.
void copy_out(const BuiltinFunction& body, std::span<const Tensor> results, std::span<Tensor* const> outs);

/// Throws where a factory's result of the sizes and dtype of `expected`, on the device of `out`, could not be
/// copied to it.
void check_factory_out(const BuiltinFunction& body, const Tensor& expected, const Tensor& out);

/// What a functional body returns for the first `kIns` of A.
template <class Result, size_t kIns, class... A>
struct BodyResult {
  template <class All>
  static Result of(const BuiltinFunction& body, All& all) {
    return run(body, all, typename FirstTypes<kIns, std::tuple<A...>>::type());
  }

 private:
  template <class All, class... In>
  static Result run(const BuiltinFunction& body, All& all, TypeList<In...>) {
    const auto f = reinterpret_cast<Result (*)(In...)>(body.function);
    return [&]<size_t... I>(std::index_sequence<I...>) { return f(std::get<I>(all)...); }
    (std::make_index_sequence<kIns>());
  }
};

/// The functional arguments, then a `Tensor&` for each result; `data` is the BuiltinFunction of the
/// functional body.
template <class Sig>
struct CopyOutCall;
template <class... A>
struct CopyOutCall<Tensor&(A...)> {
  static constexpr size_t kIns = sizeof...(A) - 1;

  static Tensor& call(const Kernel& kernel, DispatchKeySet, A... args) {
    auto all = std::forward_as_tuple(args...);
    Tensor& out = std::get<kIns>(all);
    const auto& body = *static_cast<const BuiltinFunction*>(kernel.data);
    try {
      if constexpr ((std::is_same_v<A, std::optional<DType>> || ...)) {
        const StructuredInfo info{.name = body.name, .out_rule = body.out_rule};
        (take_dtype(info, out, out, args), ...);
      }
      copy_out(body, BodyResult<Tensor, kIns, A...>::of(body, all), out);
    } catch (Error& e) {
      e.set_operator(body.name);
      throw;
    }
    return out;
  }
};
template <class... R, class... A>
struct CopyOutCall<std::tuple<R...>(A...)> {
  static constexpr size_t kOuts = sizeof...(R), kIns = sizeof...(A) - kOuts;

  static std::tuple<R...> call(const Kernel& kernel, DispatchKeySet, A... args) {
    auto all = std::forward_as_tuple(args...);
    const auto& body = *static_cast<const BuiltinFunction*>(kernel.data);
    return [&]<size_t... I>(std::index_sequence<I...>) {
      try {
        const auto made = BodyResult<std::tuple<std::remove_reference_t<R>...>, kIns, A...>::of(body, all);
        const Tensor results[] = {std::get<I>(made)...};
        Tensor* const outs[] = {&std::get<kIns + I>(all)...};
        copy_out(body, results, outs);
      } catch (Error& e) {
        e.set_operator(body.name);
        throw;
      }
      return std::tuple<R...>(std::get<kIns + I>(all)...);
    }
    (std::make_index_sequence<kOuts>());
  }
};

}  // namespace tenon::detail
