#include <cstring>
#include <vector>

#include "python/src/call/parser.h"
#include "python/src/interpreter/errors.h"
#include "python/src/tensor/tensor_parts.h"

namespace tenon::python {
namespace {

/// Adds the entries of a part whose names no earlier part has.
template <class T>
void merge(std::vector<T>& all, std::span<T> part, const char* T::*name) {
  for (const T& entry : part) {
    bool known = false;
    for (const T& other : all) known |= std::strcmp(other.*name, entry.*name) == 0;
    if (!known && entry.*name) all.push_back(entry);
  }
}

/// PyTorch's old constructor: Tensor() and Tensor(2, 3) give uninitialised floats, Tensor([...]) copies.
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    if (type != &tensor_type || (kwargs && PyDict_GET_SIZE(kwargs) > 0)) {
      throw_error(ErrorKind::Type,
                  "Tensor(): use tenon.tensor(data), tenon.empty(sizes) or nn.Parameter(tensor)");
    }
    Dims sizes;
    const Py_ssize_t n = PyTuple_GET_SIZE(args);
    if (n == 1 && !PyLong_Check(PyTuple_GET_ITEM(args, 0))) {
      const Ref module(checked(PyImport_ImportModule("tenon._C")));
      const Ref dtype(wrap(default_dtype()));
      return PyObject_CallMethod(module.get(), "as_tensor", "OO", PyTuple_GET_ITEM(args, 0), dtype.get());
    }
    TENON_CHECK(parse_ints(args, sizes), Type, "Tensor(): expected sizes or data");
    return wrap(make_empty(n == 0 ? IntArrayRef{0} : IntArrayRef(sizes), default_dtype()));
  });
}

}  // namespace

bool add_tensor_type(PyObject* module) {
  static auto& methods = *new std::vector<PyMethodDef>;
  static auto& attributes = *new std::vector<PyGetSetDef>;
  for (const auto part : {&object_part, &number_part, &index_part, &property_part, &conversion_part,
                          &dlpack_part, &buffer_part, &autograd_part, &operator_part}) {
    const TensorPart p = part();
    merge(methods, p.methods, &PyMethodDef::ml_name);
    merge(attributes, p.attributes, &PyGetSetDef::name);
  }
  methods.push_back({});
  attributes.push_back({});
  tensor_type.tp_methods = methods.data();
  tensor_type.tp_getset = attributes.data();
  tensor_type.tp_new = &tensor_new;
  tensor_type.tp_doc = "A view of elements of one type: sizes, strides and an offset over a shared storage.";
  if (PyType_Ready(&tensor_type) < 0) return false;
  // NumPy's arrays leave mixed operators to us.
  const Ref priority(PyLong_FromLong(1000));
  if (!priority || PyDict_SetItemString(tensor_type.tp_dict, "__array_priority__", priority.get()) < 0)
    return false;
  // Users give it methods of their own, as they give them to PyTorch's: tenon.Tensor.f = ...
  tensor_type.tp_flags &= ~Py_TPFLAGS_IMMUTABLETYPE;
  PyType_Modified(&tensor_type);
  return PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(&tensor_type)) == 0;
}

}  // namespace tenon::python
