// Converts C++ exceptions to Python exceptions. Used by every entry point of the extension module.
#pragma once

#include "python/src/interpreter/reference.h"

namespace tenon::python {

/// Thrown where a Python exception is already set: unwinds C++ up to the entry point, which returns null.
struct PythonError {};

/// Sets the Python exception for the C++ exception that is being handled. To be called in a catch block.
void set_python_error() noexcept;
/// The same for a call of an operator: an error of Tenon that names no operator gets its name.
void set_python_error(const char* called) noexcept;

/// Runs `f` and returns what it returns; null (or -1) with a Python exception set when it throws.
template <class F>
auto guarded(F&& f) noexcept -> decltype(f()) {
  try {
    return f();
  } catch (...) {
    set_python_error();
    if constexpr (std::is_pointer_v<decltype(f())>)
      return nullptr;
    else
      return -1;
  }
}

/// The same for a function that is no operator's: an error that names none gets the function's name.
template <class F>
PyObject* guarded(const char* called, F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    set_python_error(called);
    return nullptr;
  }
}

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
