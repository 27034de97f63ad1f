// C++ objects that Python owns. Used by modules of the extension whose objects have no type of their own.
#pragma once

#include <memory>

#include "python/src/interpreter/errors.h"

namespace tenon::python {

/// A Python object that owns `value`; `name`, which must stay, tells its kind.
template <class T>
PyObject* to_capsule(std::unique_ptr<T> value, const char* name) {
  const auto destroy = [](PyObject* capsule) {
    delete static_cast<T*>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
  };
  PyObject* const capsule = checked(PyCapsule_New(value.get(), name, destroy));
  (void)value.release();
  return capsule;
}

/// What a capsule of this name owns. Throws PythonError for any other object.
template <class T>
T& from_capsule(PyObject* capsule, const char* name) {
  void* const value = PyCapsule_GetPointer(capsule, name);
  if (!value) throw PythonError();
  return *static_cast<T*>(value);
}

}  // namespace tenon::python
