// Operators whose result is `self` with some elements changed: a shape function that checks the arguments,
// and a body that writes `self`. The functional and out forms call it on a copy. Used by generated
// registrations. Independent of particular operators.
#pragma once

#include "tenon/ops/forms/structured.h"

namespace tenon::detail {

/// A... are the arguments after `self`. The StructuredInfo's body is void(*)(Tensor& self, A...).
template <class... A>
struct UpdateRun {
  using Shape = void (*)(OutputSpecs&, HeaderRef, typename ShapeArgument<A>::Type...);

  static void shape(const StructuredInfo& info, OutputSpecs out, const Tensor& self, const A&... args) {
    reinterpret_cast<Shape>(info.shape)(out, self, ShapeArgument<A>::from(args)...);
  }
  static void update(const StructuredInfo& info, Tensor& self, const A&... args) {
    if (self.is_meta()) return;
    reinterpret_cast<void (*)(Tensor&, A...)>(info.body)(self, args...);
  }
  static Tensor updated_copy(const StructuredInfo& info, Device device, const Tensor& self,
                             const A&... args) {
    Tensor result;
    shape(info, OutputSpecs(&result, device), self, args...);
    if (!result.defined()) throw_not_set(info.name);
    structured_finish(result, self);
    update(info, result, args...);
    return result;
  }
};

template <class Sig>
struct UpdateCall;
template <class... A>
struct UpdateCall<Tensor(const Tensor&, A...)> {
  static Tensor call(const Kernel& kernel, DispatchKeySet, const Tensor& self, A... args) {
    const auto& info = *static_cast<const StructuredInfo*>(kernel.data);
    const StructuredArguments arguments(info, self, args...);
    try {
      return UpdateRun<A...>::updated_copy(info, arguments.device(), self, args...);
    } catch (Error& e) {
      e.set_operator(info.name);
      throw;
    }
  }
};

template <class Sig>
struct UpdateInplaceCall;
template <class... A>
struct UpdateInplaceCall<Tensor&(Tensor&, A...)> {
  static Tensor& call(const Kernel& kernel, DispatchKeySet, Tensor& self, A... args) {
    const auto& info = *static_cast<const StructuredInfo*>(kernel.data);
    const StructuredArguments arguments(info, self, args...);
    try {
      OutputSpec spec;
      UpdateRun<A...>::shape(info, OutputSpecs(std::span(&spec, 1)), self, args...);
      structured_check(info, spec, arguments, self, true);
      UpdateRun<A...>::update(info, self, args...);
    } catch (Error& e) {
      e.set_operator(info.name);
      throw;
    }
    return self;
  }
};

/// Writes `out` when the result is there: a body may find that an argument is wrong.
template <class Sig>
struct UpdateOutCall;
template <class... A>
struct UpdateOutCall<Tensor&(const Tensor&, A...)> {
  static Tensor& call(const Kernel& kernel, DispatchKeySet, const Tensor& self, A... args) {
    return write(kernel, self, std::make_index_sequence<sizeof...(A) - 1>(), std::forward_as_tuple(args...));
  }

 private:
  template <size_t... I, class All>
  static Tensor& write(const Kernel& kernel, const Tensor& self, std::index_sequence<I...>, All all) {
    using Run = UpdateRun<std::tuple_element_t<I, std::tuple<A...>>...>;
    const auto& info = *static_cast<const StructuredInfo*>(kernel.data);
    Tensor& out = std::get<sizeof...(I)>(all);
    const StructuredArguments arguments(info, self, std::get<I>(all)...);
    try {
      OutputSpec spec;
      Run::shape(info, OutputSpecs(std::span(&spec, 1)), self, std::get<I>(all)...);
      structured_check(info, spec, arguments, out, false);
      const Tensor result = Run::updated_copy(info, arguments.device(), self, std::get<I>(all)...);
      resize_structured(spec, out);
      structured_finish(out, result);
    } catch (Error& e) {
      e.set_operator(info.name);
      throw;
    }
    return out;
  }
};

}  // namespace tenon::detail
