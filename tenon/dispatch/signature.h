// Signature: what the dispatcher knows about each C++ argument and return type: its schema type, its keys,
// its cell. Used by the wrappers of kernels and by typed calls. value_types.h has the rows for each base
// type.
#pragma once

#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "tenon/dispatch/stack.h"
#include "tenon/schema/schema.h"

namespace tenon::detail {

using schema::Type;

/// ArgTraits<T> for each canonical argument type:
///   type()       its schema type (`writes` where the type itself says that it is written)
///   keys(v)      the dispatch keys that it brings
///   push(s, v)   puts it on a stack
///   pull(s, i)   takes it from a stack as something convertible to T that lives as long as the stack's value
/// This one is for a single value of a base type; below are written tensors, texts, lists and optional
/// values.
template <class T>
struct ArgTraits {
  static_assert(kBorrowedBase<T>.found, "no argument of the schema language has this C++ type");
  static constexpr BaseType kBase = kBorrowedBase<T>.base;
  using Value = ValueType<kBase>;
  using Owned = typename Value::Owned;

  static constexpr bool writes = false;
  static Type type() { return {.base = kBase}; }
  static constexpr DispatchKeySet keys([[maybe_unused]] const Owned& v) noexcept {
    if constexpr (Value::brings_keys)
      return Value::argument_keys | Value::keys(v);
    else
      return Value::argument_keys;
  }
  static void push(Stack& s, const Owned& v) { s.push(v); }
  static T pull(Stack& s, size_t i) {
    if constexpr (kHasUndefined<Owned>) {
      static const Owned undefined;
      return s.is_none(i) ? undefined : s.at<Owned>(i);
    } else {
      return s.at<Owned>(i);
    }
  }
};
template <>
struct ArgTraits<Tensor&> : ArgTraits<const Tensor&> {
  static constexpr bool writes = true;
  static Tensor& pull(Stack& s, size_t i) {
    // An undefined tensor cannot be written, so that all calls may share one.
    static Tensor undefined;
    return s.is_none(i) ? undefined : s.at<Tensor>(i);
  }
};
template <>
struct ArgTraits<std::string_view> {
  using Value = ValueType<BaseType::Str>;
  static constexpr bool writes = false;
  static Type type() { return {.base = BaseType::Str}; }
  static constexpr DispatchKeySet keys(std::string_view) noexcept { return {}; }
  static void push(Stack& s, std::string_view v) { s.push(CellList<char>(std::span<const char>(v))); }
  static std::string_view pull(Stack& s, size_t i) {
    const auto& v = s.at<CellList<char>>(i);
    return {v.data(), v.size()};
  }
};
template <class T>
requires(kListBase<T>.found) struct ArgTraits<T> {
  static constexpr BaseType kBase = kListBase<T>.base;
  using Value = ValueType<kBase>;
  static_assert(std::is_same_v<T, typename Value::BorrowedList>, "an argument does not own a list");

  static constexpr bool writes = false;
  static Type type() { return {.base = kBase, .list = true}; }
  static DispatchKeySet keys([[maybe_unused]] const T& list) noexcept {
    DispatchKeySet keys = Value::argument_keys;
    if constexpr (Value::brings_keys) {
      for (const auto& v : list) keys |= Value::keys(v);
    }
    return keys;
  }
  static void push(Stack& s, const T& v) { s.push(std::span<const typename Value::Owned>(v)); }
  static T pull(Stack& s, size_t i) { return s.at<CellList<typename Value::Owned>>(i).span(); }
};

/// How an argument borrows what a T owns: a value, a text or a list.
template <class T>
struct Borrowing {
  using type = T;
};
template <class T>
requires(kOwnedBase<T>.found) struct Borrowing<T> {
  using type = typename ValueType<kOwnedBase<T>.base>::Borrowed;
};
template <class T>
requires(kListBase<T>.found) struct Borrowing<T> {
  using type = typename ValueType<kListBase<T>.base>::BorrowedList;
};

template <class T>
struct ArgTraits<std::optional<T>> {
  using Inner = ArgTraits<typename Borrowing<T>::type>;
  static constexpr bool writes = false;
  static Type type() {
    Type t = Inner::type();
    t.optional = true;
    return t;
  }
  static constexpr DispatchKeySet keys(const std::optional<T>& v) noexcept {
    return v ? Inner::keys(*v) : Inner::Value::argument_keys;
  }
  static void push(Stack& s, const std::optional<T>& v) {
    if (v)
      Inner::push(s, *v);
    else
      s.push_none();
  }
  static std::optional<T> pull(Stack& s, size_t i) {
    if (s.is_none(i)) return std::nullopt;
    return std::optional<T>(Inner::pull(s, i));
  }
};

/// Canonical<T>: the argument type under which the dispatcher passes a kernel's parameter of type T.
template <class T>
struct CanonicalValue : Borrowing<T> {};
template <class T>
struct CanonicalValue<std::optional<T>> {
  using Inner = typename Borrowing<T>::type;
  // A type with an undefined value needs no optional; a type that owns a text or a list is passed as a
  // borrowed one.
  using type = std::conditional_t<kHasUndefined<T>, Inner, std::optional<std::remove_cvref_t<Inner>>>;
};
template <class T>
struct CanonicalArg : CanonicalValue<std::remove_cvref_t<T>> {};
template <>
struct CanonicalArg<Tensor&> {
  using type = Tensor&;
};
template <class T>
using Canonical = typename CanonicalArg<T>::type;

/// Turns a canonical argument into the type that a kernel declared.
template <class Wanted, class Given>
decltype(auto) adapt_arg(Given&& given) {
  using W = std::remove_cvref_t<Wanted>;
  using G = std::remove_cvref_t<Given>;
  if constexpr (std::is_same_v<W, G>) {
    return std::forward<Given>(given);
  } else if constexpr (kHasUndefined<G>) {
    return given.defined() ? W(given) : W(std::nullopt);
  } else if constexpr (kListBase<G>.found) {
    return W(given.begin(), given.end());
  } else if constexpr (requires { given->begin(); }) {
    return given ? W(std::in_place, given->begin(), given->end()) : W(std::nullopt);
  } else {
    return W(given);
  }
}

/// ReturnTraits<R>: pushing a call's results and taking them back.
template <class R>
struct ReturnTraits {
  static constexpr size_t count = 1;
  static void push(Stack& s, R v) { s.push(std::remove_cvref_t<R>(std::forward<R>(v))); }
  static R take(Stack& s, size_t first) { return s.take<std::remove_cvref_t<R>>(first); }
};
template <>
struct ReturnTraits<void> {
  static constexpr size_t count = 0;
};
template <class... R>
struct ReturnTraits<std::tuple<R...>> {
  static constexpr size_t count = sizeof...(R);
  static void push(Stack& s, std::tuple<R...> v) {
    std::apply([&](auto&... each) { (s.push(std::remove_cvref_t<R>(std::move(each))), ...); }, v);
  }
  static std::tuple<R...> take(Stack& s, size_t first) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple<R...>(s.take<std::remove_cvref_t<R>>(first + I)...);
    }
    (std::index_sequence_for<R...>());
  }
};

/// The type of a result without references, as it goes onto a stack.
template <class R>
struct OwnedReturn {
  using type = std::remove_reference_t<R>;
};
template <class... R>
struct OwnedReturn<std::tuple<R...>> {
  using type = std::tuple<std::remove_reference_t<R>...>;
};

template <class R>
struct ReturnsReference : std::is_reference<R> {};
template <class... R>
struct ReturnsReference<std::tuple<R...>> : std::bool_constant<(std::is_reference_v<R> || ...)> {};

/// The results of an in-place or out call are its written arguments; this collects them in order.
template <class R, class... A>
R written_arguments(A&&... args) {
  auto written = std::tuple_cat([&]<class T>(T&& arg) {
    if constexpr (std::is_same_v<T, Tensor&>)
      return std::tuple<Tensor&>(arg);
    else
      return std::tuple<>();
  }(std::forward<A>(args))...);
  if constexpr (std::is_reference_v<R>) {
    static_assert(std::tuple_size_v<decltype(written)> >= 1,
                  "a kernel that returns Tensor& must take a Tensor&");
    return std::get<0>(written);
  } else {
    return written;
  }
}

/// A C++ signature in the schema's types, to be checked against a schema. Equal schemas give equal C++
/// signatures, so a typed caller and an unboxed kernel that both passed the check agree on every argument and
/// result.
struct SignatureTypes {
  struct Value {
    Type type;
    bool writes = false;
  };
  std::vector<Value> arguments;
  std::vector<Value> returns;
};

template <class R>
struct ReturnTypes {
  static void add(std::vector<SignatureTypes::Value>& out) {
    static_assert(!std::is_reference_v<R> || std::is_same_v<R, Tensor&>,
                  "the one reference to return is Tensor&");
    using Owned = std::remove_cvref_t<R>;
    if constexpr (kOwnedBase<Owned>.found)
      out.push_back({{.base = kOwnedBase<Owned>.base}, std::is_reference_v<R>});
    else if constexpr (kListBase<Owned>.found)
      out.push_back({{.base = kListBase<Owned>.base, .list = true}});
    else
      out.push_back({ArgTraits<R>::type()});
  }
};
template <>
struct ReturnTypes<void> {
  static void add(std::vector<SignatureTypes::Value>&) {}
};
template <class... R>
struct ReturnTypes<std::tuple<R...>> {
  static_assert(sizeof...(R) >= 2, "return void or the one value itself, not a tuple of them");
  static void add(std::vector<SignatureTypes::Value>& out) { (ReturnTypes<R>::add(out), ...); }
};

template <class Sig>
struct SignatureOf;
template <class R, class... A>
struct SignatureOf<R(A...)> {
  /// Compiled for size, because every signature has one.
  [[gnu::cold]] static SignatureTypes types() {
    SignatureTypes t;
    (t.arguments.push_back({ArgTraits<A>::type(), ArgTraits<A>::writes}), ...);
    ReturnTypes<R>::add(t.returns);
    return t;
  }
};

}  // namespace tenon::detail

namespace tenon {

/// Checks that a C++ signature can serve a schema. Throws Error{Type} naming the first argument that does not
/// fit.
void check_signature(const schema::FunctionSchema& schema, const detail::SignatureTypes& types);
/// The schema of a kernel that was registered without one; its arguments are called _0, _1, ...
schema::FunctionSchema infer_schema(std::string_view ns, std::string_view name,
                                    const detail::SignatureTypes& types);

}  // namespace tenon
