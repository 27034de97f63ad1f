// Kernels of a plug-in with C++ types, and PyTorch's registration macros for them:
//
//     TENON_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("abs", &my_abs); }
//
// where my_abs is a function such as `Tensor my_abs(Call&, const Tensor& self)`; the Call may be left out. A
// plug-in passes `register_blocks` on as its `register_kernels`. Header-only.
#pragma once

#include "tenon/abi/values.h"

namespace tenon::abi {

/// The call that a kernel serves.
class Call {
 public:
  Call(void* self, const TenonCall& call) noexcept : self_(self), call_(call) {}

  /// The plug-in's instance.
  template <class T>
  T& self() const noexcept {
    return *static_cast<T*>(self_);
  }
  /// The stream that the kernel's work belongs to.
  TenonStream stream() const noexcept { return call_.stream; }
  const TenonCall& raw() const noexcept { return call_; }
  /// Leaves the call to the CPU: nothing may have been written.
  [[noreturn]] void decline() const { throw Declined(); }

 private:
  void* self_;
  const TenonCall& call_;
};

namespace detail {

/// Whether a result may be of type T, or of each of a tuple.
template <class T, class = void>
struct HasPut : std::false_type {};
template <class T>
struct HasPut<T, std::void_t<decltype(&Value<T>::put)>> : std::true_type {};
template <class T>
struct IsResult : HasPut<T> {};
template <>
struct IsResult<void> : std::true_type {};
template <class... T>
struct IsResult<std::tuple<T...>> : std::conjunction<HasPut<std::decay_t<T>>...> {};

/// Stores a kernel's result, or results.
template <class R>
struct Results {
  static void put(const TenonCall& c, R value) {
    Value<std::decay_t<R>>::put(c.results[0], c.result_tags[0], std::move(value));
  }
};
template <>
struct Results<Tensor&> {
  static void put(const TenonCall& c, const Tensor& value) {
    Value<Tensor>::put(c.results[0], c.result_tags[0], value);
  }
};
template <class... T>
struct Results<std::tuple<T...>> {
  static void put(const TenonCall& c, std::tuple<T...> values) {
    put_each(c, values, std::index_sequence_for<T...>());
  }

 private:
  template <size_t... I>
  static void put_each(const TenonCall& c, std::tuple<T...>& values, std::index_sequence<I...>) {
    (Value<std::decay_t<T>>::put(c.results[I], c.result_tags[I], std::move(std::get<I>(values))), ...);
  }
};

/// What a function returns: "()", "Tensor", "(Tensor, int)".
template <class R>
struct ResultType {
  static std::string text() { return SchemaType<std::decay_t<R>>::text(); }
};
template <>
struct ResultType<void> {
  static std::string text() { return "()"; }
};
template <class... T>
struct ResultType<std::tuple<T...>> {
  static std::string text() {
    std::string list;
    ((list += (list.empty() ? "" : ", ") + SchemaType<std::decay_t<T>>::text()), ...);
    return "(" + list + ")";
  }
};

/// "(Tensor, Scalar) -> ()": what a function takes besides its Call, and returns.
template <class R, class... A>
std::string signature_of() {
  std::string text;
  const auto add = [&](auto* parameter) {
    using T = std::remove_pointer_t<decltype(parameter)>;
    if constexpr (!std::is_same_v<T, Call>) text += (text.empty() ? "" : ", ") + SchemaType<T>::text();
  };
  (add(static_cast<std::decay_t<A>*>(nullptr)), ...);
  return "(" + text + ") -> " + ResultType<R>::text();
}

/// How many values a result is.
template <class R>
constexpr uint32_t kCount = std::is_void_v<R> ? 0 : 1;
template <class... T>
constexpr uint32_t kCount<std::tuple<T...>> = sizeof...(T);

/// The TenonKernel whose `data` is a function of that type.
template <class R, class... A>
struct Boxed {
  static constexpr bool takes_call = [] {
    if constexpr (sizeof...(A) > 0)
      return std::is_same_v<std::tuple_element_t<0, std::tuple<A...>>, Call&>;
    else
      return false;
  }();

  static TenonStatus* call(void* self, void* data, const TenonCall* c) {
    return guarded(
        [&] { run(self, reinterpret_cast<R (*)(A...)>(data), *c, std::index_sequence_for<A...>()); });
  }

 private:
  template <size_t... I>
  static void run(void* self, R (*f)(A...), const TenonCall& c, std::index_sequence<I...>) {
    constexpr size_t kArgs = sizeof...(A) - (takes_call ? 1 : 0);
    if (c.num_args != kArgs)
      throw Error(TENON_ERROR_TYPE, "the kernel takes " + std::to_string(kArgs) +
                                        " arguments and the operator has " + std::to_string(c.num_args));
    // A stub that returns nothing may be called with more room than that.
    if (c.op && c.num_results != kCount<R>)
      throw Error(TENON_ERROR_TYPE, "the kernel returns " + std::to_string(kCount<R>) +
                                        " results and the operator has " + std::to_string(c.num_results));
    Call call(self, c);
    // Values live until the call has returned, so that references to them do.
    auto values = std::make_tuple(value<A>(call, c, I)...);
    static_assert(IsResult<std::decay_t<R>>::value,
                  "a kernel cannot return the R of this Boxed<R, ...>; it may be void, Tensor, Tensor&, "
                  "int64_t, double, "
                  "bool, TenonDevice, or a std::tuple of them (docs/backends.md)");
    if constexpr (std::is_void_v<R>)
      f(pass<A>(std::get<I>(values))...);
    else if constexpr (IsResult<std::decay_t<R>>::value)
      Results<R>::put(c, f(pass<A>(std::get<I>(values))...));
  }
  template <class P>
  static auto value(Call& call, const TenonCall& c, size_t i) {
    if constexpr (std::is_same_v<P, Call&>)
      return &call;
    else
      return argument<std::decay_t<P>>(c, i - (takes_call ? 1 : 0));
  }
  template <class T>
  static T argument(const TenonCall& c, size_t i) {
    return Value<T>::get({c.args[i], c.arg_tags[i], i});
  }
  template <class P, class V>
  static P pass(V& value) {
    if constexpr (std::is_same_v<P, Call&>)
      return *value;
    else
      return static_cast<P>(value);
  }
};

}  // namespace detail

/// What a registration block fills in; the names are PyTorch's.
class Library {
 public:
  Library(TenonRegistrar* registrar, const char* ns, const char* key)
      : registrar_(registrar), ns_(ns), key_(key) {}

  /// Declares an operator. Hosts before 1.3 ignore tags.
  Library& def(const std::string& schema, std::initializer_list<TenonTag> tags = {}) {
    const std::string text = ns_ + schema;
    check(has(&TenonHost::register_operator)
              ? host().register_operator(registrar_, text.c_str(), tags.begin(),
                                         static_cast<uint32_t>(tags.size()))
              : host().register_schema(registrar_, text.c_str()));
    return *this;
  }
  /// Declares an operator and registers a kernel for all keys without one.
  template <class R, class... A>
  Library& def(const std::string& schema, R (*f)(A...), const char* file = __builtin_FILE(),
               int line = __builtin_LINE()) {
    def(schema);
    return implement(schema.substr(0, schema.find('(')), nullptr, f, file, line);
  }
  /// Registers a kernel for the block's key. Loading fails if its types are not those of the schema.
  template <class R, class... A>
  Library& impl(const std::string& name, R (*f)(A...), const char* file = __builtin_FILE(),
                int line = __builtin_LINE()) {
    return implement(name, key_, f, file, line);
  }
  /// Fills in a stub for this device: `tenon stubs` lists them with their signatures, which `f` must have.
  /// The name is that of the list, or PyTorch's ("abs_stub").
  template <class R, class... A>
  Library& stub(std::string name, R (*f)(A...)) {
    constexpr std::string_view kEnd = "_stub";
    if (name.size() > kEnd.size() && name.compare(name.size() - kEnd.size(), kEnd.size(), kEnd) == 0)
      name.resize(name.size() - kEnd.size());
    check(host().register_stub(registrar_, name.c_str(), detail::signature_of<R, A...>().c_str(),
                               &detail::Boxed<R, A...>::call, reinterpret_cast<void*>(f)));
    return *this;
  }
  /// Whether an operator of this device runs on host copies where it has no kernel: without a call, it does.
  Library& fall_back(const std::string& name, bool on) {
    check(host().register_fallback(registrar_, (ns_ + name).c_str(), on));
    return *this;
  }
  /// The same for all operators without an answer of their own; in a block of namespace `_`.
  Library& fallback(bool on) {
    check(host().register_fallback(registrar_, nullptr, on));
    return *this;
  }

 private:
  template <class R, class... A>
  Library& implement(const std::string& name, const char* key, R (*f)(A...), const char* file, int line) {
    return implement(name, key, detail::signature_of<R, A...>(), &detail::Boxed<R, A...>::call,
                     reinterpret_cast<void*>(f), file, line);
  }
  Library& implement(const std::string& name, const char* key, const std::string& signature,
                     TenonKernel kernel, void* data, const char* file, int line) {
    const std::string op = ns_ + name;
    check(has(&TenonHost::register_typed_kernel)
              ? host().register_typed_kernel(registrar_, op.c_str(), key, signature.c_str(), kernel, data,
                                             file, line)
              : host().register_kernel(registrar_, op.c_str(), key, kernel, data, file, line));
    return *this;
  }

  TenonRegistrar* registrar_;
  std::string ns_;  // With its colons.
  const char* key_;
};

/// The blocks of a plug-in's files, which each instance registers for itself.
struct Block {
  using Fill = void (*)(Library&);
  Block(const char* ns, const char* key, Fill fill) noexcept : ns(ns), key(key), fill(fill), next(first()) {
    first() = this;
  }
  static Block*& first() noexcept {
    static Block* block = nullptr;
    return block;
  }
  const char* ns;
  const char* key;  // Null in a block that declares operators.
  Fill fill;
  Block* next;
};

/// TenonPlugin.register_kernels of a plug-in that uses the macros below.
inline TenonStatus* register_blocks(void*, TenonRegistrar* registrar) {
  return guarded([&] {
    std::vector<const Block*> blocks;
    for (const Block* b = Block::first(); b; b = b->next) blocks.insert(blocks.begin(), b);
    for (const Block* b : blocks) {
      Library library(registrar, b->ns, b->key);
      b->fill(library);
    }
  });
}

}  // namespace tenon::abi

#define TENON_ABI_CONCAT_(a, b) a##b
#define TENON_ABI_CONCAT(a, b) TENON_ABI_CONCAT_(a, b)
#define TENON_ABI_BLOCK_(ns, key, m, id)                                       \
  static void TENON_ABI_CONCAT(tenon_block_fill_, id)(::tenon::abi::Library&); \
  static const ::tenon::abi::Block TENON_ABI_CONCAT(tenon_block_, id)(         \
      #ns "::", key, &TENON_ABI_CONCAT(tenon_block_fill_, id));                \
  static void TENON_ABI_CONCAT(tenon_block_fill_, id)([[maybe_unused]] ::tenon::abi::Library & m)

/// Declares operators of a namespace.
#define TENON_LIBRARY(ns, m) TENON_ABI_BLOCK_(ns, nullptr, m, __COUNTER__)
#define TENON_LIBRARY_FRAGMENT(ns, m) TENON_ABI_BLOCK_(ns, nullptr, m, __COUNTER__)
/// Registers kernels of a namespace for one key; PrivateUse1 is the plug-in's own device.
#define TENON_LIBRARY_IMPL(ns, key, m) TENON_ABI_BLOCK_(ns, #key, m, __COUNTER__)

/// Says what functions of one of Tenon's stubs are like, as PyTorch's headers do: `fn` is their pointer type.
#define DECLARE_DISPATCH(fn, name) [[maybe_unused]] typedef fn name##_function
/// The definition is Tenon's; here it is checked that the stub is declared.
#define DEFINE_DISPATCH(name) \
  static_assert(std::is_pointer<name##_function>::value, "declare " #name " first")
/// Fills in one of Tenon's stubs for the plug-in's own device: REGISTER_PRIVATEUSE1_DISPATCH(abs_stub,
/// &my_abs).
#define REGISTER_PRIVATEUSE1_DISPATCH(name, fn) \
  TENON_ABI_BLOCK_(aten, "PrivateUse1", tenon_m, __COUNTER__) { tenon_m.stub(#name, fn); }
#define REGISTER_DISPATCH(name, fn) REGISTER_PRIVATEUSE1_DISPATCH(name, fn)
