// Structured operators: a shape function and a kernel, from which the functional, in-place and out forms
// follow. Used by generated registrations: one call path for each C++ signature, constant data for each
// operator. Independent of particular operators.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "tenon/core/tensor.h"
#include "tenon/dispatch/kernel.h"
#include "tenon/dispatch/stub.h"
#include "tenon/ops/forms/output_spec.h"

namespace tenon {

struct RowsInfo;

/// Everything known about one structured operator. Its arguments A... are those of the functional form, or
/// those of a schema that writes its first argument and returns it; its outputs are the results that are new.
struct StructuredInfo {
  const char* name;                     ///< "softmax", as error messages show it
  const char* arguments = "";           ///< "self dim index", the names
  detail::AnyFunction shape = nullptr;  ///< void(*)(OutputSpecs&, A...), where tensors are headers
  /// The kernel: a Stub<void(A..., Tensor&...)> with the outputs last. Not used if `body` is set.
  const StubBase* stub = nullptr;
  /// void(*)(A..., Tensor&...): one function for every backend that has filled in `stubs`; or no_elements.
  detail::AnyFunction body = nullptr;
  const StubBase* const* stubs = nullptr;  ///< Null-terminated; null: every backend.
  bool mixed_devices = false;              ///< Arguments may be on several devices.
  const RowsInfo* rows = nullptr;          ///< Of an expression over rows.
  OutRule out_rule = OutRule::Cast;        ///< The dtypes that `out=` may have.
};

namespace detail {

/// The body of an operator that allocates and writes nothing.
void no_elements();

/// Whether a backend can run structured operators with this StructuredInfo; meta runs them all.
bool structured_serves(const void* info, Backend backend) noexcept;

/// Checks that a call's tensors share a device; collects them for the overlap test of `out`.
class StructuredArguments {
 public:
  template <class... A>
  explicit StructuredArguments(const StructuredInfo& info, const A&... args) : info_(info) {
    ((add(args), ++position_), ...);
  }

  /// The device of the outputs: that of a `Device?` argument if given, else that of the tensors, else the
  /// host.
  Device device() const noexcept { return wanted_.value_or(device_); }
  /// Whether an operand shares memory with `t`.
  bool share_storage(const Tensor& t) const noexcept;
  /// Whether `t` is an operand itself.
  bool has(const Tensor& t) const noexcept;

 private:
  void add(const Tensor& t);
  void add(const TensorList& list) {
    for (const Tensor& t : list) add(t);
  }
  void add(const std::optional<Device>& wanted) noexcept {
    if (wanted) wanted_ = wanted;
  }
  template <class T>
  void add(const T&) noexcept {}

  [[noreturn]] void throw_other_device(const Tensor& t) const;

  const StructuredInfo& info_;
  size_t position_ = 0, first_ = 0;  // of the argument that is added, and of the first tensor
  SmallVector<const Tensor*, 12> tensors_;
  Device device_;  // of the tensors
  std::optional<Device> wanted_;
};

/// Throws Error{Internal} because a shape function has not set an output.
[[noreturn]] void throw_not_set(const char* op);
/// Throws unless `out` can take the result. Every output is checked before any is resized.
void structured_check(const StructuredInfo& info, const OutputSpec& wanted,
                      const StructuredArguments& arguments, const Tensor& out, bool in_place);
/// Throws Error{Runtime} where two checked outputs are one tensor, or will share memory once they have the
/// results' shapes.
void check_apart(const char* op, std::span<const OutputSpec> wanted, Tensor* const* outs);
/// Gives a checked `out` that is empty the result's shape.
void resize_structured(const OutputSpec& wanted, Tensor& out);
/// The tensor that the kernel writes for a checked `out` argument: `out` itself, resized if it was empty, or
/// a temporary if `out` has other strides or another dtype, or shares memory with an operand.
Tensor structured_target(const OutputSpec& wanted, const StructuredArguments& arguments, Tensor& out);
/// The dtype of a reduction or scan with `out` is that of `out`, which a given one must equal. Other
/// arguments stay. A mean between integers and other numbers keeps its own, which structured_check refuses.
void take_dtype(const StructuredInfo& info, const Tensor& self, const Tensor& out,
                std::optional<DType>& dtype);
template <class T>
void take_dtype(const StructuredInfo&, const Tensor&, const Tensor&, const T&) noexcept {}
/// Copies `target` to `out` unless they are one tensor.
void structured_finish(Tensor& out, const Tensor& target);

// Checks in builds with assertions: that the parts of an operator agree with each other.

/// Throws an Error{Internal} that names `op` unless a kernel has kept the sizes, strides, dtype and storage
/// of `t`.
void check_left(const char* op, const TensorHeader& given, const Storage& storage, const Tensor& t);

#ifdef NDEBUG
inline constexpr bool kCheckOutputs = false;
#else
inline constexpr bool kCheckOutputs = true;
#endif

template <class... A>
struct TypeList {};

/// How a shape function takes an argument of type A: tensors as headers, everything else unchanged.
template <class A>
struct ShapeArgument {
  using Type = A;
  static const A& from(const A& a) noexcept { return a; }
};
template <>
struct ShapeArgument<const Tensor&> {
  using Type = HeaderRef;
  static HeaderRef from(const Tensor& t) noexcept { return t; }
};
template <>
struct ShapeArgument<Tensor&> : ShapeArgument<const Tensor&> {};
/// Headers of a list of tensors, for the length of a call.
class Headers {
 public:
  Headers(TensorList list) : headers_(list.size()) { std::copy(list.begin(), list.end(), headers_.begin()); }
  operator HeaderList() const noexcept { return {headers_.data(), headers_.size()}; }

 private:
  SmallVector<HeaderRef, 8> headers_;
};
template <>
struct ShapeArgument<TensorList> {
  using Type = HeaderList;
  static Headers from(TensorList list) { return list; }
};

/// Runs shape and kernel for arguments A... and new results in `outs`.
template <class List, class Indices>
struct StructuredRun;
template <class... A, size_t... I>
struct StructuredRun<TypeList<A...>, std::index_sequence<I...>> {
  static constexpr size_t kOuts = sizeof...(I);
  using Shape = void (*)(OutputSpecs&, typename ShapeArgument<A>::Type...);

  // Operators share shape functions and kernels, so errors are given the name of this one. Arguments go by
  // reference, and what calls make() becomes one function with it: an argument is copied once, for the shape
  // function, and once for the kernel.

  [[gnu::always_inline]] static void shape(const StructuredInfo& info, OutputSpecs out, const A&... args) {
    reinterpret_cast<Shape>(info.shape)(out, ShapeArgument<A>::from(args)...);
  }
  [[gnu::always_inline]] static void kernel(const StructuredInfo& info, Device device, Tensor* outs,
                                            const A&... args) {
    if (device.is_meta() || info.body == &no_elements) return;
    if (info.body)
      reinterpret_cast<void (*)(A..., decltype(outs[I])...)>(info.body)(args..., outs[I]...);
    else
      info.stub->call<void, A..., decltype(outs[I])...>(device, args..., outs[I]...);
  }
  /// Runs the kernel; with assertions, checks that it has not replaced or reshaped the outputs.
  [[gnu::always_inline]] static void checked_kernel(const StructuredInfo& info, Device device, Tensor* outs,
                                                    const A&... args) {
    if constexpr (kCheckOutputs) {
      const TensorHeader given[] = {*outs[I].impl()...};
      const Storage storages[] = {outs[I].storage()...};
      kernel(info, device, outs, args...);
      (check_left(info.name, given[I], storages[I], outs[I]), ...);
    } else {
      kernel(info, device, outs, args...);
    }
  }
  /// Allocates the outputs and returns them as the call does: one tensor, or a tuple.
  [[gnu::always_inline]] static auto make(const StructuredInfo& info, const A&... args) {
    const StructuredArguments arguments(info, args...);
    Tensor outs[kOuts];
    const Device device = arguments.device();
    try {
      shape(info, OutputSpecs(outs, device), args...);
      if (!(outs[I].defined() && ...)) [[unlikely]]
        throw_not_set(info.name);
      checked_kernel(info, device, outs, args...);
      // A body may call operators that write; their versions do not count.
      if (info.body) (outs[I].storage()->forget_versions(), ...);
    } catch (Error& e) {
      e.set_operator(info.name);
      throw;
    }
    if constexpr (kOuts == 1)
      return std::move(outs[0]);
    else
      return std::tuple(std::move(outs[I])...);
  }
  static void write(const StructuredInfo& info, bool in_place, Tensor* const* given, const A&... args) {
    const StructuredArguments arguments(info, args...);
    try {
      OutputSpec specs[kOuts];
      shape(info, OutputSpecs(specs), args...);
      (structured_check(info, specs[I], arguments, *given[I], in_place), ...);
      if constexpr (kOuts > 1) check_apart(info.name, specs, given);
      Tensor outs[] = {structured_target(specs[I], arguments, *given[I])...};
      checked_kernel(info, arguments.device(), outs, args...);
      (structured_finish(*given[I], outs[I]), ...);
    } catch (Error& e) {
      e.set_operator(info.name);
      throw;
    }
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

/// An operator whose own schema writes `self` and returns it. Its shape function only checks the arguments,
/// since the result is `self`.
template <class Sig>
struct StructuredWriteCall;
template <class... A>
struct StructuredWriteCall<Tensor&(Tensor&, A...)> {
  using Run = StructuredRun<TypeList<Tensor&, A...>, std::index_sequence<>>;
  static Tensor& call(const Kernel& kernel, DispatchKeySet, Tensor& self, A... args) {
    const auto& info = *static_cast<const StructuredInfo*>(kernel.data);
    const StructuredArguments arguments(info, self, args...);
    try {
      Run::shape(info, OutputSpecs(std::span<OutputSpec>()), self, std::forward<A>(args)...);
      if constexpr (kCheckOutputs) {
        const TensorHeader given(self.checked_impl());
        const Storage storage = self.storage();
        Run::kernel(info, self.device(), nullptr, self, std::forward<A>(args)...);
        check_left(info.name, given, storage, self);
      } else {
        Run::kernel(info, self.device(), nullptr, self, std::forward<A>(args)...);
      }
    } catch (Error& e) {
      e.set_operator(info.name);
      throw;
    }
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
    if constexpr ((std::is_same_v<A, std::optional<DType>> || ...))
      (take_dtype(*static_cast<const StructuredInfo*>(kernel.data), std::get<0>(all), std::get<kIns>(all),
                  args),
       ...);
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
