// Converts C++ exceptions to Python exceptions. Used by every entry point of the extension module.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "python/src/interpreter/reference.h"

namespace tenon::python {

/// Thrown where a Python exception is already set: unwinds C++ up to the entry point, which returns null.
struct PythonError {};

/// Sets the Python exception for the C++ exception that is being handled, of a call by the name `called`,
/// which an error of Tenon that names no operator gets. To be called in a catch block. Where `called` is an
/// alias, an error of `original`, the operator's own name, gets it too.
void set_python_error(const char* called, std::string_view original = {}) noexcept;

/// Runs `f` and returns what it returns, None if that is nothing; null (or -1) with a Python exception set
/// when it throws. An error that names no function gets the name `called`.
template <class F>
auto guarded(const char* called, F&& f) noexcept {
  using Result = std::invoke_result_t<F>;
  constexpr bool kNothing = std::is_void_v<Result>;
  using Returned = std::conditional_t<kNothing, PyObject*, Result>;
  try {
    if constexpr (kNothing) {
      f();
      return Py_NewRef(Py_None);
    } else {
      return f();
    }
  } catch (...) {
    set_python_error(called);
    if constexpr (std::is_pointer_v<Returned>)
      return Returned(nullptr);
    else
      return Returned(-1);
  }
}
template <class F>
auto guarded(F&& f) noexcept {
  return guarded("", std::forward<F>(f));
}

/// Clears the Python exception that is set, and returns its text.
std::string take_error_text();

/// Throws PythonError when `o` is null.
inline PyObject* checked(PyObject* o) {
  if (!o) throw PythonError();
  return o;
}

/// Throws the Python exception that is set as a C++ exception: for C++ code that calls back into Python.
[[noreturn]] void throw_python_error();
/// The same, for one that ends interrupted work.
[[noreturn]] void throw_python_interruption();

/// Adds ShapeError, DeviceError and OutOfMemoryError to the module.
bool add_exceptions(PyObject* module);

}  // namespace tenon::python
