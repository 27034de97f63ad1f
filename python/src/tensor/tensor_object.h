// TensorObject: the Python object of a tensor. A tensor has at most one, so that `x.grad is x.grad`. Used by
// every file that takes tensors from Python or returns them.
#pragma once

#include <string>

#include "python/src/interpreter/reference.h"
#include "tenon/core/tensor.h"

namespace tenon::python {

/// While `value` is defined, Python owns the object and the object owns the tensor. When Python releases an
/// object that has state (attributes, a subclass, weak references) while C++ still holds its tensor,
/// ownership is reversed: the tensor then owns the object, `value` is undefined, and `owner` is the tensor,
/// until Python needs the object again, also through a weak reference, or the tensor is destroyed.
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
/// The name of an object's type in error messages: "Tensor", "list"; "torch.Tensor" of another library's.
std::string type_name(PyObject* o);

/// Whether the graph has ever referred to a Python object; from then on, the collector tracks the objects of
/// tensors with a history. Guarded by the interpreter lock.
extern bool g_graph_has_python;
/// Has the collector track a tensor's object, which may be part of a cycle.
void track(PyObject* tensor) noexcept;

/// Makes the object own its tensor again; the caller holds a reference to the object.
void take_back(TensorObject* self) noexcept;

/// The tensor of an object for which `is_tensor` is true.
inline Tensor& tensor_of(PyObject* o) noexcept {
  auto* self = reinterpret_cast<TensorObject*>(o);
  if (self->owner) [[unlikely]]
    take_back(self);
  return self->value;
}

/// The object of a tensor, made if it has none; None for an undefined tensor. A new reference, or null with
/// an exception set.
PyObject* wrap(Tensor tensor) noexcept;
/// A new object of a subclass of Tensor for a tensor that has no object yet.
PyObject* wrap_as(PyTypeObject* type, Tensor tensor);
/// A new tensor with the same storage, sizes and strides that takes no part in autograd. An instance of a
/// subclass such as Parameter is made from it.
Tensor alias_of(const Tensor& tensor);

}  // namespace tenon::python
