// Buffer: the bytes of a Python object. Of the functions here that read bytes.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "python/src/interpreter/errors.h"

namespace tenon::python {

/// The bytes of an object with the buffer protocol, for as long as this lives.
class Buffer {
 public:
  /// Throws PythonError, a BufferError that names the argument, where they are not contiguous.
  Buffer(PyObject* o, const char* function, const char* argument) {
    if (PyObject_GetBuffer(o, &view_, PyBUF_SIMPLE) == 0) return;
    if (PyErr_ExceptionMatches(PyExc_BufferError))
      PyErr_Format(PyExc_BufferError,
                   "%s: %s must be contiguous bytes, got a %s: its bytes are not contiguous", function,
                   argument, Py_TYPE(o)->tp_name);
    throw PythonError();
  }
  Buffer(Buffer&& other) noexcept : view_(std::exchange(other.view_, {})) {}
  ~Buffer() {
    if (view_.obj) PyBuffer_Release(&view_);
  }
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(view_.buf), static_cast<size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

}  // namespace tenon::python
