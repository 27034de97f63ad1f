// Structured operators: a shape function and a kernel; the functional, in-place and out forms follow from
// them. Used by generated registrations: one call path for each C++ signature, constant data for each
// operator. Knows nothing of any particular operator.
#pragma once

#include <tuple>
#include <utility>

#include "tenon/core/tensor.h"
#include "tenon/dispatch/kernel.h"
#include "tenon/dispatch/stub.h"
#include "tenon/ops/shape_result.h"

namespace tenon {

/// All that is known of one structured operator.
struct StructuredInfo {
  const char* name;           ///< "softmax", as error messages show it
  detail::AnyFunction shape;  ///< void(*)(ShapeResult&, A...) over the functional form's arguments
  const StubBase* stub;       ///< Stub<void(A..., Tensor&...)>: those arguments, then the outputs
};

namespace detail {

/// Whether a backend can run structured operators with this StructuredInfo; meta runs them all.
bool structured_serves(const void* info, Backend backend) noexcept;

/// Checks that a call's tensors share a device; collects them for the overlap test of `out`.
class StructuredArguments {
 public:
  template <class... A>
  explicit StructuredArguments(const char* op, const A&... args) : op_(op) {
    (add(args), ...);
  }

  Device device() const noexcept { return device_; }
  /// Whether an operand shares memory with `t`.
  bool share_storage(const Tensor& t) const noexcept;
  /// Whether `t` is an operand itself.
  bool has(const Tensor& t) const noexcept;

 private:
  void add(const Tensor& t);
  void add(const TensorList& list) {
    for (const Tensor& t : list) add(t);
  }
  template <class T>
  void add(const T&) noexcept {}

  const char* op_;
  SmallVector<const Tensor*, 12> tensors_;
  Device device_;
};

/// A new contiguous output.
Tensor structured_output(const ShapeResult::Output& wanted, Device device);
/// Throws unless `out` can take the result. Every output is checked before any is resized.
void structured_check(const char* op, const ShapeResult::Output& wanted, const StructuredArguments& arguments,
                      const Tensor& out, bool in_place);
/// Gives a checked `out` that is empty the result's shape.
void resize_structured(const ShapeResult::Output& wanted, Tensor& out);
/// What the kernel writes for a checked `out` argument: `out` itself, resized when it was empty, or a
/// temporary where it has other strides or another dtype, or shares memory with an operand.
Tensor structured_target(const ShapeResult::Output& wanted, const StructuredArguments& arguments,
                         Tensor& out);
/// Copies the temporary back, if it was one.
void structured_finish(Tensor& out, const Tensor& target);

template <class... A>
struct TypeList {};

/// Runs shape and kernel for functional arguments A... and results in `outs`.
template <class List, class Indices>
struct StructuredRun;
template <class... A, size_t... I>
struct StructuredRun<TypeList<A...>, std::index_sequence<I...>> {
  using Shape = void (*)(ShapeResult&, A...);
  /// Operators share shape functions and kernels, so errors are given the name of this one.
  static void shape(const StructuredInfo& info, ShapeResult& result, A... args) {
    try {
      reinterpret_cast<Shape>(info.shape)(result, std::forward<A>(args)...);
    } catch (Error& e) {
      e.set_operator(info.name);
      throw;
    }
  }
  static void kernel(const StructuredInfo& info, Device device, Tensor* outs, A... args) {
    if (device.is_meta()) return;
    try {
      info.stub->call<void, A..., decltype(outs[I])...>(device, std::forward<A>(args)..., outs[I]...);
    } catch (Error& e) {
      e.set_operator(info.name);
      throw;
    }
  }
  /// The outputs' forms: one tensor, or a tuple.
  static auto make(const StructuredInfo& info, A... args) {
    const StructuredArguments arguments(info.name, args...);
    ShapeResult result;
    shape(info, result, std::forward<A>(args)...);
    Tensor outs[] = {structured_output(result[I], arguments.device())...};
    kernel(info, arguments.device(), outs, std::forward<A>(args)...);
    if constexpr (sizeof...(I) == 1)
      return std::move(outs[0]);
    else
      return std::tuple(std::move(outs[I])...);
  }
  static void write(const StructuredInfo& info, bool in_place, Tensor* const* given, A... args) {
    const StructuredArguments arguments(info.name, args...);
    ShapeResult result;
    shape(info, result, std::forward<A>(args)...);
    (structured_check(info.name, result[I], arguments, *given[I], in_place), ...);
    Tensor outs[] = {structured_target(result[I], arguments, *given[I])...};
    kernel(info, arguments.device(), outs, std::forward<A>(args)...);
    (structured_finish(*given[I], outs[I]), ...);
  }
};

template <class T>
struct IsTuple : std::false_type {};
template <class... T>
struct IsTuple<std::tuple<T...>> : std::true_type {};
template <class R>
constexpr size_t num_results() {
  if constexpr (IsTuple<R>::value)
    return std::tuple_size_v<R>;
  else
    return 1;
}

/// The first N types of a list.
template <size_t N, class Tuple, class Indices = std::make_index_sequence<N>>
struct FirstTypes;
template <size_t N, class Tuple, size_t... I>
struct FirstTypes<N, Tuple, std::index_sequence<I...>> {
  using type = TypeList<std::tuple_element_t<I, Tuple>...>;
};

/// The kernel entries by canonical signature of each form; `data` is the operator's StructuredInfo.
template <class Sig>
struct StructuredCall;
template <class R, class... A>
struct StructuredCall<R(A...)> {
  using Run = StructuredRun<TypeList<A...>, std::make_index_sequence<num_results<R>()>>;
  static R call(const Kernel& kernel, DispatchKeySet, A... args) {
    return Run::make(*static_cast<const StructuredInfo*>(kernel.data), std::forward<A>(args)...);
  }
};

/// In-place form: `self` first, then the other arguments.
template <class Sig>
struct StructuredInplaceCall;
template <class... A>
struct StructuredInplaceCall<Tensor&(Tensor&, A...)> {
  using Run = StructuredRun<TypeList<const Tensor&, A...>, std::make_index_sequence<1>>;
  static Tensor& call(const Kernel& kernel, DispatchKeySet, Tensor& self, A... args) {
    Tensor* given[] = {&self};
    Run::write(*static_cast<const StructuredInfo*>(kernel.data), true, given, self, std::forward<A>(args)...);
    return self;
  }
};

/// Out form: the functional arguments, then one `Tensor&` for each result.
template <class Sig>
struct StructuredOutCall;
template <class R, class... A>
struct StructuredOutCall<R(A...)> {
  static constexpr size_t kOuts = num_results<R>();
  static constexpr size_t kIns = sizeof...(A) - kOuts;
  using Run =
      StructuredRun<typename FirstTypes<kIns, std::tuple<A...>>::type, std::make_index_sequence<kOuts>>;

  static R call(const Kernel& kernel, DispatchKeySet, A... args) {
    auto all = std::forward_as_tuple(args...);
    return [&]<size_t... I, size_t... O>(std::index_sequence<I...>, std::index_sequence<O...>)->R {
      Tensor* given[] = {&std::get<kIns + O>(all)...};
      Run::write(*static_cast<const StructuredInfo*>(kernel.data), false, given, std::get<I>(all)...);
      if constexpr (kOuts == 1)
        return *given[0];
      else
        return R(*given[O]...);
    }
    (std::make_index_sequence<kIns>(), std::make_index_sequence<kOuts>());
  }
};

}  // namespace detail
}  // namespace tenon
