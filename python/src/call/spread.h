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

bool parse_bool(PyObject* o, bool& out);  // parser.h

/// An optional flag: True, False or None for the fallback. Throws Error{Type} for anything else.
inline bool flag(PyObject* o, bool fallback = false) {
  if (!o || o == Py_None) return fallback;
  bool on = false;
  TENON_CHECK(parse_bool(o, on), Type, std::string("expected a bool, not ") + Py_TYPE(o)->tp_name);
  return on;
}

inline bool given(PyObject* o) noexcept { return o && o != Py_None; }

[[noreturn]] inline void wrong_type(const char* function, const char* argument, const char* expected,
                                    PyObject* got) {
  throw_error(ErrorKind::Type, std::string(function) + "(): argument '" + argument + "' must be " + expected +
                                   ", not " + Py_TYPE(got)->tp_name);
}

/// A str argument. Throws Error{Type} for anything else.
std::string text_argument(const char* function, const char* argument, PyObject* o);

/// Throws Error{Type} unless a function got the number of arguments that it takes.
void check_count(const char* function, Py_ssize_t given, Py_ssize_t expected);

}  // namespace tenon::python
