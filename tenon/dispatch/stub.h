// Stub: a second level of dispatch, inside an operator: a name with one function for each backend. Used by
// structured operators, whose checks and allocation all devices share: a new device fills in the stub and
// gets the whole operator. A device that shares no C++ types with this library fills it in with a function on
// boxed values. A call that a device has no function for, or declines, runs on host copies if the device's
// fallback policy says so. Independent of what the function does.
#pragma once

#include <array>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tenon/core/generator.h"
#include "tenon/core/stream.h"
#include "tenon/dispatch/fallback_policy.h"
#include "tenon/dispatch/host_copies.h"
#include "tenon/dispatch/kernel.h"
#include "tenon/dispatch/stub_signature.h"

namespace tenon {

/// A stub's function on boxed values: finds the arguments on the stack in order, and replaces them by its
/// result, if it has one. It queues its work on `stream`. False: it declines this call (a dtype that the
/// device lacks), has written nothing, and leaves the stack as it was.
using BoxedStubFunction = bool (*)(void* data, Stream stream, Stack& stack);

namespace detail {

struct BoxedStub {
  BoxedStubFunction call;
  void* data;
  const BoxedStub* replaced;  ///< Kept for the process: a call may still be reading it.
};

/// How a stub's arguments and results are boxed: as those of operators, with more types that no schema has.
/// `types` are those of the cells.
template <class T>
struct StubArg : ArgTraits<T> {
  static constexpr std::array<StubType, 1> types{stub_type_of<T>()};
};
template <>
struct StubArg<uint64_t> {
  static constexpr std::array<StubType, 1> types{{{"int"}}};
  static void push(Stack& s, uint64_t v) { s.push(static_cast<int64_t>(v)); }
};
/// As [seed, offset, at].
template <>
struct StubArg<PhiloxState> {
  static constexpr std::array<StubType, 1> types{{{"int", true}}};
  static void push(Stack& s, PhiloxState v) {
    s.push(Dims{static_cast<int64_t>(v.seed), static_cast<int64_t>(v.offset), static_cast<int64_t>(v.at)});
  }
};

/// Whether a stub of these arguments can be filled in with a function on boxed values.
template <class T>
concept BoxedStubArg = requires {
  StubArg<T>::types;
};

/// The types of a stub's cells.
template <class Sig>
struct StubTypesOf;
template <class R, class... A>
struct StubTypesOf<R(A...)> {
  static constexpr StubSignature value = [] {
    StubSignature types;
    if constexpr ((BoxedStubArg<A> && ...)) {
      const auto add = [&](const auto& cells) {
        for (const StubType& t : cells) types.add(t);
      };
      (add(StubArg<A>::types), ...);
      types.result = stub_type_of<R>();
      types.valid = true;
    }
    return types;
  }();
};

struct StubListing;
class StubRegistration;
struct PointwiseStubListing;

}  // namespace detail

/// A stub without its types: a name and a slot for each backend. Always a global variable that exists before
/// any static initialiser runs, because those fill in its slots; lives as long as the process.
class StubBase {
 public:
  StubBase(const StubBase&) = delete;
  StubBase& operator=(const StubBase&) = delete;

  std::string_view name() const noexcept { return name_; }
  /// "(Tensor self, Tensor(a!) out) -> ()": what its functions on boxed values get and leave, in the schema
  /// language. Empty where there are none: it is filled in with C++ functions only.
  std::string signature() const;
  /// Whether a function on boxed values with this signature fits: types are compared, and not names.
  bool accepts(std::string_view signature) const noexcept;
  /// Sets or replaces the function of a backend; null removes it.
  void set_boxed(Backend backend, BoxedStubFunction f, void* data);
  /// Whether a backend has a function of its own, or a substitute.
  bool has(Backend backend) const noexcept {
    return has_own(backend) || (otherwise_serves_ && otherwise_serves_(backend));
  }
  bool has_own(Backend backend) const noexcept { return get(backend) || get_boxed(backend); }
  /// The C++ function of a backend, of the stub's type; null if it has none.
  detail::AnyFunction own(Backend backend) const noexcept { return get(backend); }
  /// Calls the boxed function of a device on the arguments on the stack, on its current stream. False: it has
  /// none, or it declines, and the stack is as it was. `results`: how many values it leaves.
  bool call_boxed(Device device, Stack& stack, size_t results) const;
  /// Calls the function for `device`, whose type is R(A...), on the device's current stream. A call that the
  /// device has no function for, or declines, runs on host copies; then the tensors that it may write are
  /// those of type Tensor&, or, if there are none and it returns nothing, the first. Throws
  /// Error{NotImplemented} where the backend's fallback policy forbids that.
  template <class R, class... A>
  R call(Device device, A... args) const {
    if (const auto f = reinterpret_cast<R (*)(A...)>(get(device.backend))) [[likely]]
      return f(std::forward<A>(args)...);
    return call_otherwise<R, A...>(device, std::forward<A>(args)...);
  }
  /// Throws an Error{NotImplemented} that names the stub, the device, and the backends that have a function.
  [[noreturn]] void missing(Device device) const;
  /// The backends that have a function.
  std::vector<Backend> backends() const;

  /// Every stub of the process, by name.
  static std::vector<const StubBase*> all();

 protected:
  constexpr StubBase(const char* name, std::string_view text, const detail::StubSignature& types) noexcept
      : name_(name), text_(text), types_(types) {}
  void set(Backend backend, detail::AnyFunction f) noexcept;
  void set_otherwise(detail::AnyFunction f, bool (*serves)(Backend)) noexcept;

 private:
  friend detail::StubListing;
  friend detail::StubRegistration;
  friend detail::PointwiseStubListing;
  /// Adds the stub to the list of all stubs. False if it is there already, because a second copy of its
  /// library, whose symbols are bound to the first, lists it again.
  bool list() noexcept;

  detail::AnyFunction get(Backend backend) const noexcept {
    return __atomic_load_n(&functions_[backend], __ATOMIC_ACQUIRE);
  }
  /// The boxed function of a backend; null if it has none or it was removed.
  const detail::BoxedStub* get_boxed(Backend backend) const noexcept {
    const detail::BoxedStub* boxed = __atomic_load_n(&boxed_[backend], __ATOMIC_ACQUIRE);
    return boxed && boxed->call ? boxed : nullptr;
  }
  template <class R, class... A>
  [[gnu::noinline]] R call_otherwise(Device device, A... args) const {
    if constexpr ((detail::BoxedStubArg<A> && ...)) {
      if (get_boxed(device.backend)) {
        Stack stack;
        (detail::StubArg<A>::push(stack, args), ...);
        if (call_boxed(device, stack, detail::ReturnTraits<R>::count)) {
          if constexpr (std::is_void_v<R>)
            return;
          else
            return detail::ReturnTraits<R>::take(stack, 0);
        }
      }
    }
    if (otherwise_ && otherwise_serves_(device.backend))
      return reinterpret_cast<R (*)(A...)>(otherwise_)(std::forward<A>(args)...);
    return call_on_host<R, A...>(device, std::forward<A>(args)...);
  }

  /// Compiled for size, because every signature has one.
  template <class R, class... A>
  [[gnu::cold]] R call_on_host(Device device, A... args) const {
    const auto f = reinterpret_cast<R (*)(A...)>(get(kCpuBackend));
    if (!f || device.is_cpu() || !part_falls_back(device.backend, name_)) missing(device);
    const std::string text = "stub " + std::string(name_);
    HostCopies copies(device, text);
    std::tuple<detail::HostArgument<A>...> kept{detail::HostArgument<A>(args)...};
    constexpr bool kNamesWritten = !std::is_void_v<R> || (std::is_same_v<A, Tensor&> || ...);
    return std::apply(
        [&](auto&... each) -> R {
          bool first = !kNamesWritten;
          (each.add(copies, std::exchange(first, false) ? Access::ReadWrite : Access::Read), ...);
          copies.fetch();
          if constexpr (std::is_void_v<R>) {
            copies.run([&] { f(each.get()...); });
            copies.put_back();
            copies.report();
          } else {
            R result = copies.run([&] { return f(each.get()...); });
            copies.put_back();
            if constexpr (std::is_same_v<R, Tensor>) copies.move(result);
            copies.report();
            return result;
          }
        },
        kept);
  }
  [[noreturn]] void wrong_results(size_t count) const;

  const char* name_;
  std::string_view text_;
  const detail::StubSignature& types_;
  StubBase* next_ = nullptr;
  bool listed_ = false;
  // Read and written atomically.
  detail::AnyFunction functions_[32] = {};
  const detail::BoxedStub* boxed_[32] = {};
  detail::AnyFunction otherwise_ = nullptr;
  bool (*otherwise_serves_)(Backend) = nullptr;
  /// Called with `of_host_` when a function of the host's comes or goes; may be null.
  void (*host_changed_)(const StubBase&, const void* of_host) = nullptr;
  const void* of_host_ = nullptr;
};

template <class Sig>
class Stub;

/// A stub whose functions have type R(A...).
template <class R, class... A>
class Stub<R(A...)> : public StubBase {
 public:
  using Function = R (*)(A...);

  /// `signature` is its type in the schema language, "(Tensor self, Tensor(a!) out) -> ()", without which
  /// arguments have no names. It does not compile if it does not fit the C++ type.
  explicit constexpr Stub(const char* name, std::string_view signature = {})
      : StubBase(name, signature, detail::StubTypesOf<R(A...)>::value) {
    if (!signature.empty() &&
        !detail::same_types(detail::parse_stub_signature(signature), detail::StubTypesOf<R(A...)>::value))
      throw "the signature of a stub does not fit its C++ type";
  }

  void set(Backend backend, Function f) noexcept {
    StubBase::set(backend, reinterpret_cast<detail::AnyFunction>(f));
  }
  /// Sets what runs on the backends for which `serves` is true and that have no function of their own. For a
  /// static initialiser.
  void set_otherwise(Function f, bool (*serves)(Backend)) noexcept {
    StubBase::set_otherwise(reinterpret_cast<detail::AnyFunction>(f), serves);
  }
  /// As StubBase::call.
  R operator()(Device device, A... args) const {
    return this->template call<R, A...>(device, std::forward<A>(args)...);
  }
};

namespace detail {

/// Lists a stub from a static initialiser, and fills in the CPU's function where there is one.
struct StubListing {
  template <class S>
  explicit StubListing(S& stub, typename S::Function cpu = nullptr) noexcept {
    if (static_cast<StubBase&>(stub).list() && cpu) stub.set(kCpuBackend, cpu);
  }
};

/// A library's function for a stub, filled in by a static initialiser for as long as the library stays: then
/// what it replaced serves the backend again. Nothing here throws or allocates.
class StubRegistration {
 public:
  template <class S>
  StubRegistration(S& stub, Backend backend, typename S::Function f) noexcept
      : StubRegistration(static_cast<StubBase&>(stub), backend, reinterpret_cast<AnyFunction>(f)) {}
  StubRegistration(const StubRegistration&) = delete;
  StubRegistration& operator=(const StubRegistration&) = delete;
  ~StubRegistration();

  /// The addresses of all.
  static std::vector<const void*> all();
  /// Fills the function of one in, or takes it back; false if it is so already, or if there is no such one
  /// any more.
  static bool set(const void* registration, bool filled_in) noexcept;

 private:
  StubRegistration(StubBase& stub, Backend backend, AnyFunction f) noexcept;
  StubRegistration(const std::unique_lock<std::mutex>& list, StubBase& stub, Backend backend,
                   AnyFunction f) noexcept;
  void fill_in() noexcept;
  void take_back() noexcept;

  StubBase& stub_;
  const Backend backend_;
  const AnyFunction function_;
  AnyFunction replaced_ = nullptr;
  bool filled_in_ = false;
  // All registrations, in the order in which they were last filled in.
  StubRegistration* previous_ = nullptr;
  StubRegistration* next_ = nullptr;
};

}  // namespace detail
}  // namespace tenon

/// In a header: declares a stub called `name` for functions of pointer type `fn`.
#define DECLARE_DISPATCH(fn, name) extern ::tenon::Stub<std::remove_pointer_t<fn>> name
/// In one source file, in the same namespace: defines the stub, as DEFINE_DISPATCH(name) or with its
/// signature, DEFINE_DISPATCH(name, "(Tensor self, Tensor(a!) out) -> ()").
#define DEFINE_DISPATCH(name, ...)                                 \
  constinit decltype(name) name(#name __VA_OPT__(, ) __VA_ARGS__); \
  static const ::tenon::detail::StubListing name##_listing(name)
/// Fills in the CPU's function. That of an expression operator runs in place of the expression, for operands
/// of any dtypes: the iterator's common_dtype() says what is computed in, and cpu_kernel (iter/cpu_kernel.h)
/// converts. Calls without an operand that may be absent stay expressions.
#define REGISTER_DISPATCH(name, fn) \
  static const ::tenon::detail::StubRegistration name##_cpu_registration(name, ::tenon::kCpuBackend, fn)
/// Fills in the function of the first plug-in's device; others call `name.set(backend, fn)`.
#define REGISTER_PRIVATEUSE1_DISPATCH(name, fn)                                   \
  static const ::tenon::detail::StubRegistration name##_privateuse1_registration( \
      name, ::tenon::private_use_backend(), fn)
