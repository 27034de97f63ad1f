#include "python/src/tensor/numbers.h"

#include <cstring>

#include "python/src/tensor/tensor_object.h"

namespace tenon::python {
namespace {

enum class NumberKind : uint8_t { None, Bool, Int, Float, Complex };

/// The kind of a NumPy scalar, found from the name of its type, so that NumPy need not be imported.
NumberKind numpy_scalar_kind(PyTypeObject* type) noexcept {
  if (std::strncmp(type->tp_name, "numpy.", 6) != 0) return NumberKind::None;
  const std::string_view name(type->tp_name + 6);
  if (name.starts_with("bool")) return NumberKind::Bool;
  if (name == "longdouble") return NumberKind::Float;
  if (name == "clongdouble") return NumberKind::Complex;
  if (name.starts_with("int") || name.starts_with("uint") || name.starts_with("long")) return NumberKind::Int;
  if (name.starts_with("float") || name.starts_with("half")) return NumberKind::Float;
  if (name.starts_with("complex")) return NumberKind::Complex;
  return NumberKind::None;
}

NumberKind number_kind(PyObject* o) noexcept {
  if (PyFloat_Check(o)) return NumberKind::Float;
  if (PyBool_Check(o)) return NumberKind::Bool;
  if (PyLong_Check(o)) return NumberKind::Int;
  if (PyComplex_Check(o)) return NumberKind::Complex;
  if (is_tensor(o)) return NumberKind::None;
  return numpy_scalar_kind(Py_TYPE(o));
}

/// Whether a base of the object's type has that name: NumPy need not be imported to ask.
bool derives_from(PyObject* o, const char* name) noexcept {
  PyObject* const bases = Py_TYPE(o)->tp_mro;
  for (Py_ssize_t i = 0; bases && i < PyTuple_GET_SIZE(bases); ++i) {
    const auto* type = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(bases, i));
    if (std::strcmp(type->tp_name, name) == 0) return true;
  }
  return false;
}

int64_t int_value(PyObject* o) {
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow) throw_error(ErrorKind::Value, "an integer beyond 64 bits: " + shown_integer(o));
  if (value == -1 && PyErr_Occurred()) throw PythonError();
  return value;
}

/// Of an int, or of what has an __index__. False where that raises a TypeError, as those of other libraries'
/// tensors do, which are no numbers.
bool parse_index(PyObject* o, int64_t& out) {
  const Ref index(PyNumber_Index(o));
  if (index) {
    out = int_value(index.get());
    return true;
  }
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError();
  PyErr_Clear();
  return false;
}

double float_value(PyObject* o) {
  const double value = PyFloat_AsDouble(o);
  if (value == -1.0 && PyErr_Occurred()) throw PythonError();
  return value;
}

/// What `parse`, which says whether the object fits, refuses by its value is said of the argument.
template <class Parse>
void parse_argument(const char* function, const char* argument, const char* expected, PyObject* o,
                    Parse&& parse) {
  try {
    if (parse()) return;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::Value) throw;
    throw_error(ErrorKind::Value, std::string(function) + "(): argument '" + argument + "' is " + e.what());
  }
  wrong_type(function, argument, expected, o);
}

}  // namespace

std::string shown_integer(PyObject* o) {
  constexpr size_t kAll = 100, kFirst = 20;
  Ref text(PyObject_Str(o));
  bool hexadecimal = false;
  if (!text) {  // Python refuses decimal texts of more than 4300 digits
    PyErr_Clear();
    text = Ref(PyNumber_ToBase(o, 16));
    hexadecimal = true;
  }
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!utf8) {
    PyErr_Clear();
    return Py_TYPE(o)->tp_name;
  }
  const std::string_view all(utf8);
  if (all.size() <= kAll) return std::string(all);
  const size_t digits = all.size() - (all.starts_with('-') ? 1 : 0) - (hexadecimal ? 2 : 0);
  return std::string(all.substr(0, kFirst)) + "... (" + std::to_string(digits) +
         (hexadecimal ? " hexadecimal digits)" : " digits)");
}

bool is_numpy_array(PyObject* o) noexcept { return derives_from(o, "numpy.ndarray"); }

bool is_numpy_scalar_without_number(PyObject* o) noexcept {
  // Scalars of other packages derive from it too, as bfloat16 of ml_dtypes.
  return std::strncmp(Py_TYPE(o)->tp_name, "numpy.", 6) == 0 && derives_from(o, "numpy.generic") &&
         number_kind(o) == NumberKind::None;
}

bool parse_int(PyObject* o, int64_t& out) {
  if (PyLong_CheckExact(o)) [[likely]] {
    out = int_value(o);
    return true;
  }
  if (PyBool_Check(o)) return false;
  if (is_tensor(o)) {
    const Tensor& t = tensor_of(o);
    if (t.dim() != 0 || !is_integral(t.dtype(), false) || t.device().is_meta()) return false;
    out = t.item<int64_t>();
    return true;
  }
  if (!PyLong_Check(o) &&
      (!PyIndex_Check(o) || is_numpy_array(o) || numpy_scalar_kind(Py_TYPE(o)) == NumberKind::Bool))
    return false;
  return parse_index(o, out);
}

bool parse_float(PyObject* o, double& out) {
  if (PyFloat_CheckExact(o)) [[likely]] {
    out = PyFloat_AS_DOUBLE(o);
    return true;
  }
  Scalar value;
  if (!parse_scalar(o, value) || value.is_complex()) return false;
  out = value.to_double();
  return true;
}

bool parse_bool(PyObject* o, bool& out) {
  if (o == Py_True || o == Py_False) [[likely]] {
    out = o == Py_True;
    return true;
  }
  if (number_kind(o) != NumberKind::Bool) return false;
  const int truth = PyObject_IsTrue(o);
  if (truth < 0) throw PythonError();
  out = truth;
  return true;
}

bool parse_scalar(PyObject* o, Scalar& out) {
  switch (number_kind(o)) {
    case NumberKind::Float:
      out = Scalar(float_value(o));
      return true;
    case NumberKind::Int:
      out = Scalar(int_value(o));
      return true;
    case NumberKind::Bool: {
      bool truth = false;
      parse_bool(o, truth);
      out = Scalar(truth);
      return true;
    }
    case NumberKind::Complex: {
      const Py_complex c = PyComplex_AsCComplex(o);
      if (c.real == -1.0 && PyErr_Occurred()) throw PythonError();
      out = Scalar(std::complex<double>(c.real, c.imag));
      return true;
    }
    case NumberKind::None:
      break;
  }
  if (is_tensor(o)) {
    // A tensor with history must not lose it by becoming a number.
    const Tensor& t = tensor_of(o);
    if (t.dim() != 0 || t.requires_grad() || t.device().is_meta()) return false;
    out = t.item();
    return true;
  }
  int64_t value = 0;
  if (!PyIndex_Check(o) || is_numpy_array(o) || !parse_index(o, value)) return false;
  out = Scalar(value);
  return true;
}

bool parse_text(PyObject* o, std::string_view& out) {
  if (!PyUnicode_Check(o)) return false;
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(o, &size);
  if (!text) {
    PyErr_Clear();
    throw_error(ErrorKind::Value, "a str with lone surrogates, which has no UTF-8");
  }
  out = {text, static_cast<size_t>(size)};
  return true;
}

int64_t int_argument(const char* function, const char* argument, PyObject* o) {
  int64_t value = 0;
  parse_argument(function, argument, "int", o, [&] { return parse_int(o, value); });
  return value;
}

std::string text_argument(const char* function, const char* argument, PyObject* o) {
  std::string_view text;
  parse_argument(function, argument, "str", o, [&] { return parse_text(o, text); });
  return std::string(text);
}

}  // namespace tenon::python
