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
  return guarded("Tensor", [&] {
    if (type != &tensor_type || (kwargs && PyDict_GET_SIZE(kwargs) > 0)) {
      throw_error(ErrorKind::Type,
                  "Tensor(): use tenon.tensor(data), tenon.empty(sizes) or nn.Parameter(tensor)");
    }
    Dims sizes;
    const Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyObject* const first = n == 1 ? PyTuple_GET_ITEM(args, 0) : nullptr;
    if (first && (!PyIndex_Check(first) || is_tensor(first) || is_numpy_array(first))) {
      const Ref module(checked(PyImport_ImportModule("tenon._C")));
      return PyObject_CallMethod(module.get(), "as_tensor", "OO", first, Ref(wrap(default_dtype())).get());
    }
    TENON_CHECK(parse_ints(args, sizes), Type, "Tensor(): expected sizes or data");
    return wrap(make_empty(n == 0 ? IntArrayRef{0} : IntArrayRef(sizes), default_dtype()));
  });
}

// The base of Tensor has what PyTorch's tensors have and Tenon's do not: absent.py puts descriptors there
// that say so. The class of the base shows an empty __dict__, so that dir(Tensor) lists only what is there.
// Tensor's own class stays `type`, which isinstance() has a fast path for.
PyTypeObject g_absent_names = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject g_class_of_absent_names = {PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject* no_names(PyObject*, void*) {
  const Ref names(PyDict_New());
  return names ? PyDictProxy_New(names.get()) : nullptr;
}
PyGetSetDef g_attributes_of_class[] = {{"__dict__", &no_names, nullptr, nullptr, nullptr}, {}};

bool add_absent_names(PyObject* module) {
  PyTypeObject& c = g_class_of_absent_names;
  c.tp_name = "tenon._C._ClassOfAbsentNames";
  c.tp_flags = Py_TPFLAGS_DEFAULT;
  c.tp_base = &PyType_Type;
  c.tp_getset = g_attributes_of_class;
  if (PyType_Ready(&c) < 0) return false;
  PyTypeObject& t = g_absent_names;
  Py_SET_TYPE(&t, &c);
  t.tp_name = "tenon._C._AbsentNames";
  t.tp_basicsize = sizeof(PyObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  t.tp_doc = "Attributes of PyTorch's tensors that Tenon's do not have.";
  if (PyType_Ready(&t) < 0) return false;
  t.tp_flags &= ~Py_TPFLAGS_IMMUTABLETYPE;  // absent.py fills it
  return PyModule_AddObjectRef(module, "_AbsentNames", reinterpret_cast<PyObject*>(&t)) == 0;
}

}  // namespace

bool add_tensor_type(PyObject* module) {
  if (!add_absent_names(module)) return false;
  tensor_type.tp_base = &g_absent_names;
  Py_SET_TYPE(&tensor_type, &PyType_Type);

  static auto& methods = *new std::vector<PyMethodDef>;
  static auto& attributes = *new std::vector<PyGetSetDef>;
  for (const auto part : {&object_part, &number_part, &index_part, &property_part, &conversion_part,
                          &copying_part, &dlpack_part, &buffer_part, &autograd_part, &operator_part}) {
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
