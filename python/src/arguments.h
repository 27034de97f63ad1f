// spread: the arguments of the functions that are written by hand. Operators have call.h instead.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "python/src/errors.h"
#include "tenon/core/error.h"

namespace tenon::python {

namespace detail {
void spread(const char* function, const char* const* names, size_t count, size_t positional, PyObject** out,
            PyObject* const* args, Py_ssize_t num_args, PyObject* keywords);
}

/// Puts a call's arguments into one place for each name, null where nothing came. The first `positional`
/// names may be given by position. Throws Error{Type} for a keyword that is unknown or given twice, and for
/// too many arguments.
template <size_t N>
std::array<PyObject*, N> spread(const char* function, const char* const (&names)[N], size_t positional,
                                PyObject* const* args, Py_ssize_t num_args, PyObject* keywords) {
  std::array<PyObject*, N> out{};
  detail::spread(function, names, N, positional, out.data(), args, num_args, keywords);
  return out;
}

/// Whether an optional flag is set. Throws PythonError when its truth cannot be told.
inline bool flag(PyObject* o, bool fallback = false) {
  if (!o) return fallback;
  const int truth = PyObject_IsTrue(o);
  if (truth < 0) throw PythonError();
  return truth != 0;
}

inline bool given(PyObject* o) noexcept { return o && o != Py_None; }

[[noreturn]] inline void wrong_type(const char* function, const char* argument, const char* expected,
                                    PyObject* got) {
  throw_error(ErrorKind::Type, std::string(function) + "(): argument '" + argument + "' must be " + expected +
                                   ", not " + Py_TYPE(got)->tp_name);
}

}  // namespace tenon::python
