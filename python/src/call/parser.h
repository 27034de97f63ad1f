// Parser<A>: converts one Python argument to the C++ argument type A. Single values follow the rows of
// python_value.h; tensors and lists are here. Used by typed_call.h and boxed_call.cc. Says only whether a
// value fits; overload.cc writes the message if it does not.
#pragma once

#include <optional>
#include <vector>

#include "python/src/call/python_value.h"

namespace tenon::python {

/// Says "the remaining positional arguments are the list".
extern PyObject* const kRest;

/// One argument to be parsed: its object (null if left out), its parameter, and all arguments of the call.
struct Given {
  PyObject* object;
  const Param& param;
  const Arguments& all;

  bool missing() const noexcept { return object == nullptr; }
  bool none() const noexcept {
    return object ? object == Py_None : param.fallback.kind == Default::Kind::None;
  }
};

inline bool is_sequence(PyObject* o) noexcept { return PyTuple_Check(o) || PyList_Check(o); }
/// A list or tuple of ints, a Size, a NumPy array of ints.
bool parse_ints(PyObject* o, Dims& out);
bool parse_floats(PyObject* o, std::vector<double>& out);
bool parse_bools(PyObject* o, SmallVector<bool, 8>& out);
bool parse_scalars(PyObject* o, std::vector<Scalar>& out);
bool parse_tensors(PyObject* o, bool allow_none, std::vector<Tensor>& out);
bool parse_rest(const Given& given, Dims& out);

/// Parser<A>: `Storage` keeps the value during the call, `parse` fills it in (false if the object does not
/// fit), `get` returns the argument.
template <class A>
struct Parser;

template <>
struct Parser<const Tensor&> {
  struct Storage {
    const Tensor* tensor = nullptr;
    Tensor made;
  };
  static bool parse(const Given& g, Storage& s) {
    if (g.object && is_tensor(g.object)) [[likely]] {
      s.tensor = &tensor_of(g.object);
      return true;
    }
    return parse_other(g, s);
  }
  static const Tensor& get(Storage& s) noexcept { return *s.tensor; }
  static int64_t elements(Storage& s) noexcept { return s.tensor->defined() ? s.tensor->numel() : 0; }

 private:
  static bool parse_other(const Given& g, Storage& s);
};

template <>
struct Parser<Tensor&> {
  using Storage = Tensor*;
  static bool parse(const Given& g, Storage& s) {
    if (!g.object || !is_tensor(g.object)) return parse_absent(g, s);
    s = &tensor_of(g.object);
    return true;
  }
  static Tensor& get(Storage& s) noexcept { return *s; }
  static int64_t elements(Storage& s) noexcept { return s->defined() ? s->numel() : 0; }

 private:
  /// None in the place of an optional tensor, which is not written then.
  static bool parse_absent(const Given& g, Storage& s);
};

template <>
struct Parser<TensorList> {
  using Storage = std::vector<Tensor>;
  static bool parse(const Given& g, Storage& s) {
    return g.missing() ? g.param.fallback.kind == Default::Kind::Ints : parse_tensors(g.object, true, s);
  }
  static TensorList get(Storage& s) noexcept { return s; }
  static int64_t elements(Storage& s) noexcept {
    int64_t n = 0;
    for (const Tensor& t : s) n += t.defined() ? t.numel() : 0;
    return n;
  }
};

/// One value of a base type, borrowed or, inside std::optional, owned.
template <class A>
requires(tenon::detail::kBorrowedBase<A>.found || tenon::detail::kOwnedBase<A>.found) struct Parser<A> {
  static constexpr BaseType kBase = tenon::detail::kBorrowedBase<A>.found
                                        ? tenon::detail::kBorrowedBase<A>.base
                                        : tenon::detail::kOwnedBase<A>.base;
  using Value = PythonValue<kBase>;
  using Storage = typename Value::Storage;

  static bool parse(const Given& g, Storage& s) {
    if constexpr (schema::base_type_info(kBase).has_undefined) {
      // None is an undefined value.
      if (g.missing() || g.object == Py_None) return g.none() || g.param.optional;
    }
    return g.missing() ? Value::missing(g.param.fallback, s) : Value::parse(g.object, s);
  }
  static A get(Storage& s) noexcept { return Value::get(s); }
};

template <>
struct Parser<IntArrayRef> {
  using Storage = Dims;
  static bool parse(const Given& g, Storage& s) {
    // In Python, None means a default of no numbers.
    const Default& fallback = g.param.fallback;
    const bool none = g.object == Py_None && fallback.kind == Default::Kind::Ints && fallback.ints.empty();
    if (g.missing() || none) {
      s = Dims(fallback.ints);
      return true;
    }
    if (g.object == kRest) return parse_rest(g, s);
    int64_t one = 0;
    if (g.param.list_size > 0 && !PyTuple_Check(g.object) && parse_int(g.object, one)) {
      s = Dims(static_cast<size_t>(g.param.list_size), one);
      return true;
    }
    return parse_ints(g.object, s);
  }
  static IntArrayRef get(Storage& s) noexcept { return s; }
  /// The elements of a tensor of these sizes; of no account where they are something else.
  static int64_t elements(Storage& s) noexcept {
    int64_t n = s.empty() ? 0 : 1;
    for (const int64_t v : s) {
      if (__builtin_mul_overflow(n, v, &n)) return 0;
    }
    return n;
  }
};

template <class T, class Owned, bool (*from)(PyObject*, Owned&)>
struct ListParser {
  using Storage = Owned;
  static bool parse(const Given& g, Storage& s) { return g.missing() || from(g.object, s); }
  static std::span<const T> get(Storage& s) noexcept { return {s.data(), s.size()}; }
};
template <>
struct Parser<std::span<const double>> : ListParser<double, std::vector<double>, &parse_floats> {};
template <>
struct Parser<std::span<const bool>> : ListParser<bool, SmallVector<bool, 8>, &parse_bools> {};
template <>
struct Parser<std::span<const Scalar>> : ListParser<Scalar, std::vector<Scalar>, &parse_scalars> {};

template <class T>
struct Parser<std::optional<T>> {
  using Inner = Parser<T>;
  struct Storage {
    typename Inner::Storage value{};
    bool given = false;
  };
  static bool parse(const Given& g, Storage& s) {
    if (g.none()) return true;
    s.given = true;
    return Inner::parse(g, s.value);
  }
  static std::optional<T> get(Storage& s) noexcept {
    if (!s.given) return std::nullopt;
    return std::optional<T>(Inner::get(s.value));
  }
};

}  // namespace tenon::python
