// The out forms of operators with a hand-written body: the body makes the result, which is then copied to
// `out`. Used by generated registrations. Independent of particular operators.
#pragma once

#include "tenon/ops/forms/registration.h"
#include "tenon/ops/forms/structured.h"

namespace tenon::detail {

/// Copies `result` to `out`, which is resized if it has no elements. Throws before it writes anything unless
/// `out` is on the result's device, has the result's shape or no elements, and has a dtype that the body's
/// OutRule admits.
void copy_out(const BuiltinFunction& body, const Tensor& result, Tensor& out);

/// The same for two results, which must not share memory.
void copy_out(const BuiltinFunction& body, const std::tuple<Tensor, Tensor>& results, Tensor& first,
              Tensor& second);

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
      copy_out(body, BodyResult<Tensor, kIns, A...>::of(body, all), out);
    } catch (Error& e) {
      e.set_operator(body.name);
      throw;
    }
    return out;
  }
};
template <class... A>
struct CopyOutCall<std::tuple<Tensor&, Tensor&>(A...)> {
  static constexpr size_t kIns = sizeof...(A) - 2;

  static std::tuple<Tensor&, Tensor&> call(const Kernel& kernel, DispatchKeySet, A... args) {
    auto all = std::forward_as_tuple(args...);
    Tensor &first = std::get<kIns>(all), &second = std::get<kIns + 1>(all);
    const auto& body = *static_cast<const BuiltinFunction*>(kernel.data);
    try {
      copy_out(body, BodyResult<std::tuple<Tensor, Tensor>, kIns, A...>::of(body, all), first, second);
    } catch (Error& e) {
      e.set_operator(body.name);
      throw;
    }
    return {first, second};
  }
};

}  // namespace tenon::detail
