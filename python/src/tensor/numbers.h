// Numbers and texts that Python passes: which objects fit, their values, and messages for those that do not.
// Used by the parser of arguments and by functions that are written by hand. NumPy need not be imported.
#pragma once

#include <string>
#include <string_view>

#include "python/src/interpreter/errors.h"
#include "tenon/core/error.h"
#include "tenon/core/scalar.h"

namespace tenon::python {

// Numbers: Python's own, NumPy's scalars, objects with __index__, and 0-dim tensors where PyTorch accepts
// them.

/// An int but not a bool. Throws Error{Value} for one beyond int64.
bool parse_int(PyObject* o, int64_t& out);
bool parse_float(PyObject* o, double& out);
bool parse_bool(PyObject* o, bool& out);
bool parse_scalar(PyObject* o, Scalar& out);
bool parse_text(PyObject* o, std::string_view& out);

bool is_numpy_array(PyObject* o) noexcept;
/// A scalar of NumPy's that is no number: a date, a time span, a text, a record.
bool is_numpy_scalar_without_number(PyObject* o) noexcept;
/// An int's digits for a message: the first ones where it has more than a hundred.
std::string shown_integer(PyObject* o);

[[noreturn]] inline void wrong_type(const char* function, const char* argument, const char* expected,
                                    PyObject* got) {
  throw_error(ErrorKind::Type, std::string(function) + "(): argument '" + argument + "' must be " + expected +
                                   ", not " + Py_TYPE(got)->tp_name);
}
/// An int argument. Throws Error{Type} for anything else, Error{Value} for one beyond 64 bits.
int64_t int_argument(const char* function, const char* argument, PyObject* o);
/// A str argument. Throws Error{Type} for anything else, Error{Value} for one that has no UTF-8.
std::string text_argument(const char* function, const char* argument, PyObject* o);

}  // namespace tenon::python
