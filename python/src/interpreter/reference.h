// Ref: an owning Python reference.
// Used by every file of the extension module. Independent of tensors.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "python/src/interpreter/gil.h"

namespace tenon::python {

/// An owned reference; null means "no object" or "an exception is set".
class Ref {
 public:
  Ref() = default;
  /// Takes over a reference that the caller owns.
  explicit Ref(PyObject* owned) noexcept : object_(owned) {}
  static Ref borrow(PyObject* o) noexcept { return Ref(Py_XNewRef(o)); }
  Ref(const Ref& other) noexcept : object_(Py_XNewRef(other.object_)) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  PyObject* get() const noexcept { return object_; }
  PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

inline PyObject* to_python(std::string_view text) noexcept {
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

/// Adds a type to a module by `name`; false with an exception set.
inline bool add_type(PyObject* module, const char* name, PyTypeObject& type) noexcept {
  return PyType_Ready(&type) == 0 &&
         PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(&type)) == 0;
}

/// The tp_dealloc of a type whose objects have one value of C++, which `of` finds.
template <auto of>
void destroy_value(PyObject* o) noexcept {
  std::destroy_at(&of(o));
  Py_TYPE(o)->tp_free(o);
}

using FastFunction = PyObject* (*)(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                                   PyObject* kwnames);

/// A method table's entry for a METH_FASTCALL | METH_KEYWORDS function.
inline PyMethodDef fast_method(const char* name, FastFunction f, const char* doc = nullptr,
                               int flags = 0) noexcept {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f)),
          METH_FASTCALL | METH_KEYWORDS | flags, doc};
}

}  // namespace tenon::python
