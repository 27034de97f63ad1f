// spread: arguments of functions that are written by hand. Operators are called through typed_call.h instead.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "python/src/interpreter/errors.h"
#include "tenon/core/error.h"

namespace tenon::python {

namespace detail {
void spread(const char* function, const char* const* names, size_t count, size_t positional, PyObject** out,
            PyObject* const* args, Py_ssize_t num_args, PyObject* keywords);
}

/// Returns a call's arguments in the order of `names`, null for those that were not passed. The first
/// `positional` names may be passed by position. Throws Error{Type} for an unknown keyword, for an argument
/// passed twice, and for too many arguments.
template <size_t N>
std::array<PyObject*, N> spread(const char* function, const char* const (&names)[N], size_t positional,
                                PyObject* const* args, Py_ssize_t num_args, PyObject* keywords) {
  std::array<PyObject*, N> out{};
  detail::spread(function, names, N, positional, out.data(), args, num_args, keywords);
  return out;
}

[[noreturn]] inline void wrong_type(const char* function, const char* argument, const char* expected,
                                    PyObject* got) {
  throw_error(ErrorKind::Type, std::string(function) + "(): argument '" + argument + "' must be " + expected +
                                   ", not " + Py_TYPE(got)->tp_name);
}

bool parse_bool(PyObject* o, bool& out);  // parser.h

/// An optional flag: True, False or None for the fallback. Throws Error{Type} for anything else.
inline bool flag(const char* function, const char* argument, PyObject* o, bool fallback = false) {
  if (!o || o == Py_None) return fallback;
  bool on = false;
  if (!parse_bool(o, on)) wrong_type(function, argument, "a bool", o);
  return on;
}

inline bool given(PyObject* o) noexcept { return o && o != Py_None; }

/// An int argument. Throws Error{Type} for anything else, Error{Value} for one beyond 64 bits.
int64_t int_argument(const char* function, const char* argument, PyObject* o);
/// A str argument. Throws Error{Type} for anything else, Error{Value} for one that has no UTF-8.
std::string text_argument(const char* function, const char* argument, PyObject* o);

/// Throws Error{Type} unless a function got the number of arguments that it takes.
void check_count(const char* function, Py_ssize_t given, Py_ssize_t expected);

}  // namespace tenon::python
