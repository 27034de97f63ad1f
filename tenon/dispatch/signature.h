// Signature: what the dispatcher must know of each C++ argument and return type: its schema type, its keys,
// its cell. Used by kernels' wrappers and typed calls. All per-type knowledge of boxing is here and in
// stack.h.
#pragma once

#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "tenon/dispatch/stack.h"
#include "tenon/schema/schema.h"

namespace tenon::detail {

using schema::BaseType;
using schema::Type;

/// ArgTraits<T> for each canonical argument type:
///   type()       its schema type (`writes` where the type itself says that it is written)
///   keys(v)      the dispatch keys that it brings
///   push(s, v)   puts it on a stack
///   pull(s, i)   takes it from a stack as something convertible to T that lives as long as the stack's value
template <class T>
struct ArgTraits;

struct NoKeys {
  static constexpr bool writes = false;
  template <class V>
  static constexpr DispatchKeySet keys(const V&) noexcept {
    return {};
  }
};

template <>
struct ArgTraits<const Tensor&> {
  static constexpr bool writes = false;
  static Type type() { return {.base = BaseType::Tensor}; }
  static DispatchKeySet keys(const Tensor& t) noexcept { return t.key_set(); }
  static void push(Stack& s, const Tensor& t) { s.push(t); }
  static const Tensor& pull(Stack& s, size_t i) {
    static const Tensor undefined;
    return s.is_none(i) ? undefined : s.at<Tensor>(i);
  }
};
template <>
struct ArgTraits<Tensor&> {
  static constexpr bool writes = true;
  static Type type() { return {.base = BaseType::Tensor}; }
  static DispatchKeySet keys(const Tensor& t) noexcept { return t.key_set(); }
  static void push(Stack& s, const Tensor& t) { s.push(t); }
  static Tensor& pull(Stack& s, size_t i) {
    // An undefined tensor cannot be written, so that all calls may share one.
    static Tensor undefined;
    return s.is_none(i) ? undefined : s.at<Tensor>(i);
  }
};
template <>
struct ArgTraits<TensorList> {
  static constexpr bool writes = false;
  static Type type() { return {.base = BaseType::Tensor, .list = true}; }
  static DispatchKeySet keys(TensorList list) noexcept {
    DispatchKeySet keys;
    for (const Tensor& t : list) keys |= t.key_set();
    return keys;
  }
  static void push(Stack& s, TensorList list) { s.push(std::span<const Tensor>(list)); }
  static TensorList pull(Stack& s, size_t i) { return s.at<CellList<Tensor>>(i).span(); }
};
template <>
struct ArgTraits<const Generator&> : NoKeys {
  static Type type() { return {.base = BaseType::Generator}; }
  static void push(Stack& s, const Generator& g) { s.push(g); }
  static const Generator& pull(Stack& s, size_t i) {
    static const Generator undefined;
    return s.is_none(i) ? undefined : s.at<Generator>(i);
  }
};
template <>
struct ArgTraits<const Storage&> : NoKeys {
  static Type type() { return {.base = BaseType::Storage}; }
  static void push(Stack& s, const Storage& v) { s.push(v); }
  static const Storage& pull(Stack& s, size_t i) { return s.at<Storage>(i); }
};
template <>
struct ArgTraits<const Scalar&> : NoKeys {
  static Type type() { return {.base = BaseType::Scalar}; }
  static void push(Stack& s, const Scalar& v) { s.push(v); }
  static const Scalar& pull(Stack& s, size_t i) { return s.at<Scalar>(i); }
};
template <>
struct ArgTraits<std::string_view> : NoKeys {
  static Type type() { return {.base = BaseType::Str}; }
  static void push(Stack& s, std::string_view v) { s.push(std::span<const char>(v)); }
  static std::string_view pull(Stack& s, size_t i) {
    const auto& v = s.at<CellList<char>>(i);
    return {v.data(), v.size()};
  }
};
template <>
struct ArgTraits<IntArrayRef> : NoKeys {
  static Type type() { return {.base = BaseType::Int, .list = true}; }
  static void push(Stack& s, IntArrayRef v) { s.push(std::span<const int64_t>(v)); }
  static IntArrayRef pull(Stack& s, size_t i) { return s.at<CellList<int64_t>>(i).span(); }
};
template <class T, BaseType kBase>
struct ListArg : NoKeys {
  static Type type() { return {.base = kBase, .list = true}; }
  static void push(Stack& s, std::span<const T> v) { s.push(v); }
  static std::span<const T> pull(Stack& s, size_t i) { return s.at<CellList<T>>(i).span(); }
};
template <>
struct ArgTraits<std::span<const double>> : ListArg<double, BaseType::Float> {};
template <>
struct ArgTraits<std::span<const bool>> : ListArg<bool, BaseType::Bool> {};
template <>
struct ArgTraits<std::span<const Scalar>> : ListArg<Scalar, BaseType::Scalar> {};

template <class T, BaseType kBase>
struct PlainArg : NoKeys {
  static Type type() { return {.base = kBase}; }
  static void push(Stack& s, T v) { s.push(v); }
  static T pull(Stack& s, size_t i) { return s.at<T>(i); }
};
template <>
struct ArgTraits<int64_t> : PlainArg<int64_t, BaseType::Int> {};
template <>
struct ArgTraits<double> : PlainArg<double, BaseType::Float> {};
template <>
struct ArgTraits<bool> : PlainArg<bool, BaseType::Bool> {};
template <>
struct ArgTraits<DType> : PlainArg<DType, BaseType::ScalarType> {};
template <>
struct ArgTraits<Device> : PlainArg<Device, BaseType::Device> {};
template <>
struct ArgTraits<Layout> : PlainArg<Layout, BaseType::Layout> {};
template <>
struct ArgTraits<MemoryFormat> : PlainArg<MemoryFormat, BaseType::MemoryFormat> {};

template <class T>
using BorrowedArg = std::conditional_t<std::is_same_v<T, Scalar>, const Scalar&, T>;

template <class T>
struct ArgTraits<std::optional<T>> : NoKeys {
  using Inner = ArgTraits<BorrowedArg<T>>;
  static Type type() {
    Type t = Inner::type();
    t.optional = true;
    return t;
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
struct CanonicalArg {
  using type = std::remove_cvref_t<T>;
};
template <>
struct CanonicalArg<Tensor&> {
  using type = Tensor&;
};
template <>
struct CanonicalArg<const Tensor&> {
  using type = const Tensor&;
};
template <>
struct CanonicalArg<Tensor> {
  using type = const Tensor&;
};
template <>
struct CanonicalArg<const std::optional<Tensor>&> {
  using type = const Tensor&;
};
template <>
struct CanonicalArg<std::optional<Tensor>> {
  using type = const Tensor&;
};
template <>
struct CanonicalArg<const Generator&> {
  using type = const Generator&;
};
template <>
struct CanonicalArg<Generator> {
  using type = const Generator&;
};
template <>
struct CanonicalArg<std::optional<Generator>> {
  using type = const Generator&;
};
template <>
struct CanonicalArg<const Storage&> {
  using type = const Storage&;
};
template <>
struct CanonicalArg<Storage> {
  using type = const Storage&;
};
template <>
struct CanonicalArg<const Scalar&> {
  using type = const Scalar&;
};
template <>
struct CanonicalArg<Scalar> {
  using type = const Scalar&;
};
template <>
struct CanonicalArg<std::string> {
  using type = std::string_view;
};
template <>
struct CanonicalArg<const std::string&> {
  using type = std::string_view;
};
template <>
struct CanonicalArg<std::vector<int64_t>> {
  using type = IntArrayRef;
};
template <>
struct CanonicalArg<const std::vector<int64_t>&> {
  using type = IntArrayRef;
};
template <>
struct CanonicalArg<std::vector<Tensor>> {
  using type = TensorList;
};
template <>
struct CanonicalArg<const std::vector<Tensor>&> {
  using type = TensorList;
};
template <>
struct CanonicalArg<std::optional<std::string>> {
  using type = std::optional<std::string_view>;
};
template <>
struct CanonicalArg<const std::optional<std::string>&> {
  using type = std::optional<std::string_view>;
};
template <>
struct CanonicalArg<std::optional<std::vector<int64_t>>> {
  using type = std::optional<IntArrayRef>;
};
template <>
struct CanonicalArg<const std::optional<std::vector<int64_t>>&> {
  using type = std::optional<IntArrayRef>;
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
  } else if constexpr (std::is_same_v<G, Tensor> || std::is_same_v<G, Generator>) {
    return given.defined() ? W(given) : W(std::nullopt);
  } else if constexpr (std::is_same_v<G, IntArrayRef> || std::is_same_v<G, TensorList>) {
    return W(given.begin(), given.end());
  } else if constexpr (std::is_same_v<G, std::optional<IntArrayRef>>) {
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

/// A result without references: what goes onto a stack.
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

/// The results of an in-place or out call are its written arguments: gathers those in order.
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
    if constexpr (std::is_same_v<R, Tensor&>)
      out.push_back({{.base = BaseType::Tensor}, true});
    else if constexpr (std::is_same_v<R, Tensor>)
      out.push_back({{.base = BaseType::Tensor}});
    else if constexpr (std::is_same_v<R, std::vector<Tensor>>)
      out.push_back({{.base = BaseType::Tensor, .list = true}});
    else if constexpr (std::is_same_v<R, Scalar>)
      out.push_back({{.base = BaseType::Scalar}});
    else if constexpr (std::is_same_v<R, std::string>)
      out.push_back({{.base = BaseType::Str}});
    else if constexpr (std::is_same_v<R, Generator>)
      out.push_back({{.base = BaseType::Generator}});
    else if constexpr (std::is_same_v<R, Storage>)
      out.push_back({{.base = BaseType::Storage}});
    else if constexpr (std::is_same_v<R, Dims> || std::is_same_v<R, std::vector<int64_t>>)
      out.push_back({{.base = BaseType::Int, .list = true}});
    else if constexpr (std::is_same_v<R, std::vector<double>>)
      out.push_back({{.base = BaseType::Float, .list = true}});
    else if constexpr (std::is_same_v<R, std::vector<Scalar>>)
      out.push_back({{.base = BaseType::Scalar, .list = true}});
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
  static SignatureTypes types() {
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
/// The schema of a kernel that came without one: arguments are called _0, _1, ...
schema::FunctionSchema infer_schema(std::string_view ns, std::string_view name,
                                    const detail::SignatureTypes& types);

}  // namespace tenon
