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
  explicit Buffer(PyObject* o) {
    if (PyObject_GetBuffer(o, &view_, PyBUF_SIMPLE) < 0) throw PythonError();
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
