// spread: arguments of functions that are written by hand. Operators are called through typed_call.h instead.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include "python/src/interpreter/errors.h"
#include "python/src/tensor/numbers.h"
#include "tenon/core/error.h"

namespace tenon::python {

/// What the function below calls.
void spread_into(PyObject** out, const char* function, const char* const* names, size_t count,
                 size_t positional, PyObject* const* args, Py_ssize_t num_args, PyObject* keywords);

/// Returns a call's arguments in the order of `names`, null for those that were not passed. The first
/// `positional` names may be passed by position. Throws Error{Type} for an unknown keyword, for an argument
/// passed twice, and for too many arguments.
template <size_t N>
std::array<PyObject*, N> spread(const char* function, const char* const (&names)[N], size_t positional,
                                PyObject* const* args, Py_ssize_t num_args, PyObject* keywords) {
  std::array<PyObject*, N> out{};
  spread_into(out.data(), function, names, N, positional, args, num_args, keywords);
  return out;
}

/// An optional flag: True, False or None for the fallback. Throws Error{Type} for anything else.
inline bool flag(const char* function, const char* argument, PyObject* o, bool fallback = false) {
  if (!o || o == Py_None) return fallback;
  bool on = false;
  if (!parse_bool(o, on)) wrong_type(function, argument, "a bool", o);
  return on;
}

/// A switch that has to be named: None is none.
inline bool switch_of(const char* function, const char* argument, PyObject* o) {
  if (o == Py_None) wrong_type(function, argument, "a bool", o);
  return flag(function, argument, o);
}

inline bool given(PyObject* o) noexcept { return o && o != Py_None; }

/// Throws Error{Type} unless a function got the number of arguments that it takes.
void check_count(const char* function, Py_ssize_t given, Py_ssize_t expected);
/// `guarded(f)` of a function that takes so many arguments.
template <class F>
auto counted(const char* function, Py_ssize_t given, Py_ssize_t expected, F&& f) noexcept {
  return guarded([&]() -> std::invoke_result_t<F> {
    check_count(function, given, expected);
    return f();
  });
}

}  // namespace tenon::python
