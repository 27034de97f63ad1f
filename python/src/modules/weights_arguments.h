// Arguments of the functions of tenon._C._weights, and those that have files of their own.
#pragma once

#include <string>
#include <utility>

#include "python/src/interpreter/errors.h"
#include "tenon/io/replace_file.h"

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
  io::Bytes bytes() const {
    return {static_cast<const std::byte*>(view_.buf), static_cast<size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

/// What os.fsencode returned. Errors name the function of the package.
std::string path_argument(const char* function, PyObject* o);

/// The first of `attributes` that would hide an attribute of the type of `object`, which has none of its own;
/// empty if there is none.
std::string hiding_attribute(PyObject* object, PyObject* attributes);

/// load(path or file, name, place or None, mmap): the value, and how many bytes of the file were read after
/// it.
PyObject* load(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*);
/// save(value, path or file)
PyObject* save(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*);

}  // namespace tenon::python
