// TensorObject: the Python object of a tensor. At most one exists for a tensor, so that `x.grad is x.grad`.
// Used by every file that takes tensors from Python or gives them back.
#pragma once

#include "python/src/interpreter/reference.h"
#include "tenon/core/tensor.h"

namespace tenon::python {

/// While `value` is defined, Python owns the object and the object owns the tensor. When Python lets go of an
/// object with state of its own (attributes, a subclass, weak references) whose tensor C++ still holds,
/// ownership turns round: the tensor then owns the object, `value` is undefined and `owner` is the tensor,
/// until Python asks for the object again, also through a weak reference, or the tensor dies.
struct TensorObject {
  PyObject_HEAD Tensor value;
  TensorImpl* owner;
  PyObject* dict;
  PyObject* weak_references;
};

extern PyTypeObject tensor_type;

inline bool is_tensor(PyObject* o) noexcept {
  return Py_IS_TYPE(o, &tensor_type) || PyType_IsSubtype(Py_TYPE(o), &tensor_type);
}
/// The name of an object's type in error messages: "Tensor", "list".
inline const char* type_name(PyObject* o) noexcept { return is_tensor(o) ? "Tensor" : Py_TYPE(o)->tp_name; }

/// Has the object own its tensor again; the caller holds a reference to the object.
void take_back(TensorObject* self) noexcept;

/// The tensor inside an object for which `is_tensor` holds.
inline Tensor& tensor_of(PyObject* o) noexcept {
  auto* self = reinterpret_cast<TensorObject*>(o);
  if (self->owner) [[unlikely]]
    take_back(self);
  return self->value;
}

/// The object of a tensor, made when it has none; None for an undefined tensor. A new reference, or null with
/// an exception set.
PyObject* wrap(Tensor tensor) noexcept;
/// A new object of a subclass of Tensor for a tensor that has no object yet.
PyObject* wrap_as(PyTypeObject* type, Tensor tensor);
/// A fresh tensor over the same storage and geometry that takes no part in autograd: what a subclass instance
/// such as Parameter is made from.
Tensor alias_of(const Tensor& tensor);

}  // namespace tenon::python
