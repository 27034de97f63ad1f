// Parser<A>: one Python argument as the C++ argument type A. All per-type knowledge of Python's side is here.
// Used by call.h. Says only whether a value fits; the message for one that does not is made in overload.cc.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "python/src/errors.h"
#include "python/src/overload.h"
#include "python/src/tensor_object.h"
#include "python/src/types.h"

namespace tenon::python {

/// Stands for "the remaining positional arguments are the list".
extern PyObject* const kRest;

/// One value on its way from Python: the object (null: left out), the parameter it is for, and all arguments.
struct Given {
  PyObject* object;
  const Param& param;
  const Arguments& all;

  bool missing() const noexcept { return object == nullptr; }
  bool none() const noexcept {
    return object ? object == Py_None : param.fallback.kind == Default::Kind::None;
  }
};

// Numbers: Python's own, NumPy's scalars, anything with __index__, and 0-dim tensors where PyTorch takes
// them.

bool is_numpy_array(PyObject* o) noexcept;
/// An int but not a bool. Throws Error{Value} for one beyond int64.
bool parse_int(PyObject* o, int64_t& out);
bool parse_float(PyObject* o, double& out);
bool parse_bool(PyObject* o, bool& out);
bool parse_scalar(PyObject* o, Scalar& out);
bool parse_text(PyObject* o, std::string_view& out);
/// A list or tuple of ints, a Size, a NumPy array of ints.
bool parse_ints(PyObject* o, Dims& out);
bool parse_floats(PyObject* o, std::vector<double>& out);
bool parse_scalars(PyObject* o, std::vector<Scalar>& out);
bool parse_tensors(PyObject* o, bool allow_none, std::vector<Tensor>& out);
bool parse_rest(const Given& given, Dims& out);

/// Parser<A>: `Storage` keeps the value for the call, `parse` fills it (false: does not fit), `get` is the
/// argument.
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
    if (!g.object || !is_tensor(g.object)) return false;
    s = &tensor_of(g.object);
    return true;
  }
  static Tensor& get(Storage& s) noexcept { return *s; }
  static int64_t elements(Storage& s) noexcept { return s->numel(); }
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

template <>
struct Parser<const Generator&> {
  using Storage = Generator;
  static bool parse(const Given& g, Storage& s) {
    if (g.missing() || g.object == Py_None) return g.none() || g.param.optional;
    const Generator* generator = as_generator(g.object);
    if (generator) s = *generator;
    return generator != nullptr;
  }
  static const Generator& get(Storage& s) noexcept { return s; }
};

template <>
struct Parser<const Storage&> {
  using Storage = const tenon::Storage*;
  static bool parse(const Given& g, Storage& s) {
    s = g.object ? as_storage(g.object) : nullptr;
    return s != nullptr;
  }
  static const tenon::Storage& get(Storage& s) noexcept { return *s; }
};

template <>
struct Parser<const Scalar&> {
  using Storage = Scalar;
  static bool parse(const Given& g, Storage& s) {
    if (!g.missing()) return parse_scalar(g.object, s);
    const Default& d = g.param.fallback;
    if (d.kind == Default::Kind::Float)
      s = Scalar(d.d);
    else if (d.kind == Default::Kind::Bool)
      s = Scalar(d.i != 0);
    else
      s = Scalar(d.i);
    return true;
  }
  static const Scalar& get(Storage& s) noexcept { return s; }
};
template <>
struct Parser<Scalar> : Parser<const Scalar&> {
  static Scalar get(Storage& s) noexcept { return s; }
};

template <>
struct Parser<int64_t> {
  using Storage = int64_t;
  static bool parse(const Given& g, Storage& s) {
    if (!g.missing()) return parse_int(g.object, s);
    s = g.param.fallback.i;
    return true;
  }
  static int64_t get(Storage& s) noexcept { return s; }
};

template <>
struct Parser<double> {
  using Storage = double;
  static bool parse(const Given& g, Storage& s) {
    if (!g.missing()) return parse_float(g.object, s);
    s = g.param.fallback.d;
    return true;
  }
  static double get(Storage& s) noexcept { return s; }
};

template <>
struct Parser<bool> {
  using Storage = bool;
  static bool parse(const Given& g, Storage& s) {
    if (!g.missing()) return parse_bool(g.object, s);
    s = g.param.fallback.i != 0;
    return true;
  }
  static bool get(Storage& s) noexcept { return s; }
};

template <>
struct Parser<std::string_view> {
  using Storage = std::string_view;
  static bool parse(const Given& g, Storage& s) {
    if (!g.missing()) return parse_text(g.object, s);
    s = g.param.fallback.text;
    return true;
  }
  static std::string_view get(Storage& s) noexcept { return s; }
};

/// dtype, layout, memory_format: their defaults are numbers of the enumeration.
template <class T, std::optional<T> (*from)(PyObject*) noexcept>
struct EnumParser {
  using Storage = T;
  static bool parse(const Given& g, Storage& s) {
    if (g.missing()) {
      s = static_cast<T>(g.param.fallback.i);
      return true;
    }
    const std::optional<T> value = from(g.object);
    if (value) s = *value;
    return value.has_value();
  }
  static T get(Storage& s) noexcept { return s; }
};
template <>
struct Parser<DType> : EnumParser<DType, &as_dtype> {};
template <>
struct Parser<Layout> : EnumParser<Layout, &as_layout> {};
template <>
struct Parser<MemoryFormat> : EnumParser<MemoryFormat, &as_memory_format> {};

template <>
struct Parser<Device> {
  using Storage = Device;
  static bool parse(const Given& g, Storage& s) {
    if (g.missing()) {
      s = Device(g.param.fallback.text);
      return true;
    }
    const std::optional<Device> value = as_device(g.object);
    if (value) s = *value;
    return value.has_value();
  }
  static Device get(Storage& s) noexcept { return s; }
};

template <>
struct Parser<IntArrayRef> {
  using Storage = Dims;
  static bool parse(const Given& g, Storage& s) {
    if (g.missing()) {
      s = Dims(g.param.fallback.ints);
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
  static std::span<const T> get(Storage& s) noexcept { return s; }
};
template <>
struct Parser<std::span<const double>> : ListParser<double, std::vector<double>, &parse_floats> {};
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
