// PythonValue: what each base type of the schema language is in Python: which objects fit, the value if the
// argument is left out, and the object of a result. The argument parser (parser.h) and the schemas of
// operators that Python calls or defines (op_schema.h) are derived from these rows. dispatch/value_types.h
// says what the types are in C++.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "python/src/call/overload.h"
#include "python/src/interpreter/errors.h"
#include "python/src/tensor/attribute_types.h"
#include "python/src/tensor/numbers.h"
#include "python/src/tensor/tensor_object.h"
#include "tenon/dispatch/stack.h"
#include "tenon/schema/words.h"

namespace tenon::python {

using schema::BaseType;

/// One row:
///   Storage         keeps the value for a call
///   parse(o, s)     fills it from an object; false where that does not fit
///   missing(d, s)   fills it where the argument is left out; false where it must be given
///   get(s)          the argument as a typed call borrows it
///   object(o)       the object that a kernel written in Python sees for `o`; nothing where that does not fit
///   value(o)        what C++ owns of an object that `object` gave
///   wrap(v)         the object of a value; a new reference
///   word(text)      the object of a default that is a word
/// PlainValue has the members that are the same for most types.
template <class Owned>
struct PlainValue {
  using Storage = Owned;
  static const Owned& get(Storage& s) noexcept { return s; }
  static Ref word(BaseType, const std::string& text) { return Ref(checked(to_python(text))); }
  /// Whether kernels written in Python take and return it.
  static constexpr bool passes = true;
  /// Whether a Default holds a word as the number of an enumerator.
  static constexpr bool numbered = false;
};

template <BaseType base>
struct PythonValue;

template <>
struct PythonValue<BaseType::Tensor> : PlainValue<Tensor> {
  static Ref object(PyObject* o) { return is_tensor(o) ? Ref::borrow(o) : Ref(); }
  static Tensor value(PyObject* o) { return o == Py_None ? Tensor() : tensor_of(o); }
  static PyObject* wrap(const Tensor& v) { return python::wrap(v); }
};

template <>
struct PythonValue<BaseType::Int> : PlainValue<int64_t> {
  static bool parse(PyObject* o, Storage& s) { return parse_int(o, s); }
  static bool missing(const Default& d, Storage& s) {
    s = d.i;
    return true;
  }
  static Ref object(PyObject* o) {
    int64_t value = 0;
    if (!parse_int(o, value)) return {};
    return PyLong_CheckExact(o) ? Ref::borrow(o) : Ref(checked(wrap(value)));
  }
  static int64_t value(PyObject* o) {
    int64_t v = 0;
    parse_int(o, v);
    return v;
  }
  static PyObject* wrap(int64_t v) { return PyLong_FromLongLong(v); }
};

template <>
struct PythonValue<BaseType::Float> : PlainValue<double> {
  static bool parse(PyObject* o, Storage& s) { return parse_float(o, s); }
  static bool missing(const Default& d, Storage& s) {
    s = d.d;
    return true;
  }
  static Ref object(PyObject* o) {
    double value = 0;
    if (!parse_float(o, value)) return {};
    return PyFloat_CheckExact(o) ? Ref::borrow(o) : Ref(checked(wrap(value)));
  }
  static double value(PyObject* o) { return PyFloat_AsDouble(o); }
  static PyObject* wrap(double v) { return PyFloat_FromDouble(v); }
};

template <>
struct PythonValue<BaseType::Bool> : PlainValue<bool> {
  static bool parse(PyObject* o, Storage& s) { return parse_bool(o, s); }
  static bool missing(const Default& d, Storage& s) {
    s = d.i != 0;
    return true;
  }
  static Ref object(PyObject* o) {
    bool value = false;
    return parse_bool(o, value) ? Ref::borrow(value ? Py_True : Py_False) : Ref();
  }
  static bool value(PyObject* o) { return o == Py_True; }
  static PyObject* wrap(bool v) { return PyBool_FromLong(v); }
};

template <>
struct PythonValue<BaseType::Str> : PlainValue<std::string_view> {
  static bool parse(PyObject* o, Storage& s) { return parse_text(o, s); }
  static bool missing(const Default& d, Storage& s) {
    s = d.text;
    return true;
  }
  static Ref object(PyObject* o) { return PyUnicode_Check(o) ? Ref::borrow(o) : Ref(); }
  static std::string value(PyObject* o) {
    std::string_view text;
    parse_text(o, text);
    return std::string(text);
  }
  static PyObject* wrap(const CellList<char>& v) { return to_python({v.data(), v.size()}); }
  static PyObject* wrap(const std::string& v) { return to_python(v); }
};

template <>
struct PythonValue<BaseType::Scalar> : PlainValue<Scalar> {
  static bool parse(PyObject* o, Storage& s) { return parse_scalar(o, s); }
  static bool missing(const Default& d, Storage& s) {
    s = d.kind == Default::Kind::Float  ? Scalar(d.d)
        : d.kind == Default::Kind::Bool ? Scalar(d.i != 0)
                                        : Scalar(d.i);
    return true;
  }
  static Ref object(PyObject* o) {
    Scalar value;
    if (!parse_scalar(o, value)) return {};
    const bool plain = PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o);
    return plain ? Ref::borrow(o) : Ref(checked(wrap(value)));
  }
  static Scalar value(PyObject* o) {
    Scalar v;
    parse_scalar(o, v);
    return v;
  }
  static PyObject* wrap(const Scalar& v) { return python::wrap(v); }
};

/// Enumerations, whose objects exist once each; their defaults are numbers of the enumeration.
template <class T, std::optional<T> (*from)(PyObject*) noexcept>
struct EnumValue : PlainValue<T> {
  static constexpr bool numbered = true;
  static bool parse(PyObject* o, T& s) {
    const std::optional<T> value = from(o);
    if (value) s = *value;
    return value.has_value();
  }
  static bool missing(const Default& d, T& s) {
    s = static_cast<T>(d.i);
    return true;
  }
  static Ref object(PyObject* o) {
    const std::optional<T> value = from(o);
    return value ? Ref(checked(wrap(*value))) : Ref();
  }
  static T value(PyObject* o) { return *from(o); }
  static PyObject* wrap(T v) { return python::wrap(v); }
  static Ref word(BaseType base, const std::string& text) {
    return Ref(checked(wrap(static_cast<T>(schema::word_number(base, text)))));
  }
};
template <>
struct PythonValue<BaseType::ScalarType> : EnumValue<DType, &as_dtype> {};
template <>
struct PythonValue<BaseType::Layout> : EnumValue<Layout, &as_layout> {};
template <>
struct PythonValue<BaseType::MemoryFormat> : EnumValue<MemoryFormat, &as_memory_format> {};

template <>
struct PythonValue<BaseType::Device> : PlainValue<Device> {
  static bool parse(PyObject* o, Storage& s) {
    const std::optional<Device> value = as_device(o);
    if (value) s = *value;
    return value.has_value();
  }
  static bool missing(const Default& d, Storage& s) {
    s = Device(d.text);
    return true;
  }
  static Ref object(PyObject* o) {
    const std::optional<Device> device = as_device(o);
    if (!device) return {};
    return PyUnicode_Check(o) ? Ref(checked(wrap(*device))) : Ref::borrow(o);
  }
  static Device value(PyObject* o) { return *as_device(o); }
  static PyObject* wrap(Device v) { return python::wrap(v); }
  static Ref word(BaseType, const std::string& text) { return Ref(checked(wrap(Device(text)))); }
};

template <>
struct PythonValue<BaseType::Generator> : PlainValue<Generator> {
  static bool parse(PyObject* o, Storage& s) {
    const Generator* generator = as_generator(o);
    if (generator) s = *generator;
    return generator != nullptr;
  }
  static bool missing(const Default&, Storage&) { return false; }
  static Ref object(PyObject* o) { return as_generator(o) ? Ref::borrow(o) : Ref(); }
  static Generator value(PyObject* o) { return *as_generator(o); }
  static PyObject* wrap(const Generator& v) { return python::wrap(v); }
};

template <>
struct PythonValue<BaseType::Storage> : PlainValue<tenon::Storage> {
  static bool parse(PyObject* o, tenon::Storage& s) {
    const tenon::Storage* storage = as_storage(o);
    if (storage) s = *storage;
    return storage != nullptr;
  }
  static bool missing(const Default&, tenon::Storage&) { return false; }
  static Ref object(PyObject*) { return {}; }
  static tenon::Storage value(PyObject* o) { return *as_storage(o); }
  static PyObject* wrap(const tenon::Storage& v) { return python::wrap(v); }
  static constexpr bool passes = false;
};

}  // namespace tenon::python
