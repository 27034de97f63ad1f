// Tensor's methods that copy and pickle: elements, dtype, requires_grad and attributes. The copy has a
// storage of its own.
#include <fmt/format.h>

#include <cstring>

#include "python/src/call/parser.h"
#include "python/src/call/spread.h"
#include "python/src/module_parts.h"
#include "python/src/tensor/tensor_parts.h"
#include "tenon/generated/view/functions.h"

namespace tenon::python {
namespace {

/// The copy of a storage, made once for all tensors of one deepcopy that share it.
Storage copy_of_storage(const Storage& storage, PyObject* memo) {
  const Ref key(
      checked(Py_BuildValue("(sN)", "tenon.UntypedStorage", PyLong_FromVoidPtr(storage.operator->()))));
  if (PyObject* known = PyDict_GetItemWithError(memo, key.get()))
    return *as_storage(PyTuple_GET_ITEM(known, 1));
  const Dims bytes{static_cast<int64_t>(storage.nbytes())};
  const Tensor copy = Tensor(TensorImpl::make(storage, DType::UInt8, bytes)).clone();
  // The old one is kept too: its address is the key.
  const Ref both(checked(Py_BuildValue("(NN)", wrap(storage), wrap(copy.storage()))));
  if (PyDict_SetItem(memo, key.get(), both.get()) < 0) throw PythonError();
  return copy.storage();
}

Tensor copy_of(const Tensor& self, PyObject* memo, bool alone) {
  TENON_CHECK(self.is_leaf() || !self.requires_grad(), Runtime,
              "deepcopy: only leaf tensors can be copied with their history; use .detach() first");
  Tensor copy;
  if (alone || self.layout() != Layout::Strided) {
    copy = self.detach().clone();
  } else {
    copy = Tensor(TensorImpl::make(copy_of_storage(self.storage(), memo), self.dtype(), self.sizes(),
                                   self.strides(), self.storage_offset()));
  }
  if (self.requires_grad()) copy.requires_grad_();
  return copy;
}

/// Gives `copy` the attributes of `o`, deep-copied.
void copy_attributes(PyObject* o, PyObject* copy, PyObject* memo) {
  PyObject* dict = reinterpret_cast<TensorObject*>(o)->dict;
  if (!dict || PyDict_GET_SIZE(dict) == 0) return;
  const Ref module(checked(PyImport_ImportModule("copy")));
  const Ref copied(checked(PyObject_CallMethod(module.get(), "deepcopy", "OO", dict, memo)));
  const Ref own(checked(PyObject_GetAttrString(copy, "__dict__")));
  if (PyDict_Update(own.get(), copied.get()) < 0) throw PythonError();
}

PyObject* deep_copy(PyObject* o, PyObject* memo) {
  return guarded([&] {
    if (!PyDict_Check(memo)) wrong_type("__deepcopy__", "memo", "a dict", memo);
    const Ref key(checked(PyLong_FromVoidPtr(o)));
    if (PyObject* known = PyDict_GetItemWithError(memo, key.get())) return Py_NewRef(known);
    if (PyErr_Occurred()) throw PythonError();
    // As in PyTorch, tensors that share memory share it in the copy, and gradients come along; a Parameter
    // is apart.
    const bool alone = PyObject_HasAttrString(o, "_copies_alone");
    Ref copy(checked(wrap_as(Py_TYPE(o), copy_of(tensor_of(o), memo, alone))));
    if (PyDict_SetItem(memo, key.get(), copy.get()) < 0) throw PythonError();
    if (const Tensor grad = tensor_of(o).grad(); grad.defined() && !alone) {
      const Ref object(checked(wrap(grad)));
      const Ref twin(checked(PyObject_CallMethod(object.get(), "__deepcopy__", "O", memo)));
      if (!is_tensor(twin.get())) wrong_type("__deepcopy__", "memo", "of tensors", twin.get());
      tensor_of(copy.get()).set_grad(tensor_of(twin.get()));
    }
    copy_attributes(o, copy.get(), memo);
    return copy.release();
  });
}

PyObject* shallow_copy(PyObject* o, PyObject*) {
  return guarded([&] {
    Tensor copy = alias_of(tensor_of(o));
    if (tensor_of(o).requires_grad()) copy.requires_grad_();
    return wrap_as(Py_TYPE(o), std::move(copy));
  });
}

PyObject* reduce(PyObject* o, PyObject*) {
  return guarded([&] {
    const Tensor& self = tensor_of(o);
    TENON_CHECK(!self.is_meta(), Device, "pickle: a tensor on meta has no elements to save");
    TENON_CHECK(self.is_leaf() || !self.requires_grad(), Runtime,
                "pickle: only leaf tensors can be saved; use .detach() first");
    const bool on_host = self.device().is_cpu();
    Tensor dense = self.detach();
    if (on_host) {
      dense = dense.contiguous();
    } else {
      const ReleaseGil waits;
      dense = dense.to(kCPU).contiguous();
    }
    const Ref module(checked(PyImport_ImportModule("tenon._C")));
    const Ref rebuild(checked(PyObject_GetAttrString(module.get(), "_rebuild_tensor")));
    const Ref sizes(checked(wrap_tuple(dense.sizes())));
    const Ref dtype(wrap(dense.dtype()));
    PyObject* dict = reinterpret_cast<TensorObject*>(o)->dict;
    PyObject* grad = self.requires_grad() ? Py_True : Py_False;
    PyObject* attributes = dict ? dict : Py_None;
    const char* bytes = static_cast<const char*>(dense.data_ptr());
    const auto nbytes = static_cast<Py_ssize_t>(dense.nbytes());
    if (on_host)
      return Py_BuildValue("O(Oy#OOO)O", rebuild.get(), Py_TYPE(o), bytes, nbytes, sizes.get(), dtype.get(),
                           grad, attributes);
    return Py_BuildValue("O(Oy#OOOs)O", rebuild.get(), Py_TYPE(o), bytes, nbytes, sizes.get(), dtype.get(),
                         grad, to_string(self.device()).c_str(), attributes);
  });
}

/// Of (type, bytes, sizes, dtype, requires_grad), and the device unless it is the host.
PyObject* rebuild_tensor(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return guarded([&] {
    Dims sizes;
    TENON_CHECK((n == 5 || n == 6) && PyType_Check(args[0]) && PyBytes_Check(args[1]) &&
                    parse_ints(args[2], sizes) && as_dtype(args[3]),
                Value, "unpickle: the data of a tensor are malformed");
    auto* type = reinterpret_cast<PyTypeObject*>(args[0]);
    TENON_CHECK(PyType_IsSubtype(type, &tensor_type), Value, "unpickle: the type is no Tensor");
    checked_numel(sizes, "unpickle");
    Tensor out = make_empty(sizes, *as_dtype(args[3]));
    TENON_CHECK(
        out.nbytes() == static_cast<size_t>(PyBytes_GET_SIZE(args[1])), Value,
        fmt::format("unpickle: {} bytes for a tensor of {}", PyBytes_GET_SIZE(args[1]), out.nbytes()));
    if (out.nbytes() > 0) std::memcpy(out.data_ptr(), PyBytes_AS_STRING(args[1]), out.nbytes());
    if (n == 6) {
      const auto device = as_device(args[5]);
      if (!device) wrong_type("unpickle", "device", "a device or str", args[5]);
      const ReleaseGil waits;
      out = out.to(*device);
    }
    if (args[4] == Py_True) out.requires_grad_();
    return wrap_as(type, std::move(out));
  });
}

PyMethodDef g_copying_methods[] = {
    {"__copy__", &shallow_copy, METH_NOARGS, nullptr},
    {"__deepcopy__", &deep_copy, METH_O, nullptr},
    {"__reduce_ex__", &reduce, METH_O, nullptr},
};

PyMethodDef g_copying_functions[] = {fast_method("_rebuild_tensor", &rebuild_tensor), {}};

}  // namespace

TensorPart copying_part() { return {g_copying_methods, {}}; }

bool add_copying(PyObject* module) { return PyModule_AddFunctions(module, g_copying_functions) == 0; }

}  // namespace tenon::python
