// ctx: the object in which a custom operator's setup_context keeps what its backward needs.
#include <cstddef>

#include "python/src/autograd/garbage_collection.h"
#include "python/src/call/spread.h"
#include "python/src/ops/python_node.h"

namespace tenon::python {
namespace {

PyTypeObject g_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject* save_for_backward(PyObject* o, PyObject* tensors) {
  return guarded([&] {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors); ++i) {
      PyObject* t = PyTuple_GET_ITEM(tensors, i);
      if (t != Py_None && !is_tensor(t)) wrong_type("save_for_backward", "tensors", "Tensors or None", t);
    }
    Py_XSETREF(context_of(o).to_save, Py_NewRef(tensors));
  });
}

PyObject* mark_non_differentiable(PyObject* o, PyObject* tensors) {
  Py_XSETREF(context_of(o).non_differentiable, Py_NewRef(tensors));
  Py_RETURN_NONE;
}

PyObject* set_materialize_grads(PyObject* o, PyObject* on) {
  return guarded([&] { context_of(o).materialize_grads = flag("set_materialize_grads", "value", on); });
}

const PythonNode& node_of(PyObject* o) {
  const PythonNode* node = context_of(o).node;
  TENON_CHECK(node, Runtime, "ctx: the graph that it belongs to was freed");
  return *node;
}

PyObject* saved_tensors(PyObject* o, void*) {
  return guarded([&] {
    // Inside setup_context nothing is saved yet.
    if (context_of(o).to_save) return Py_NewRef(context_of(o).to_save);
    return node_of(o).saved_tensors().release();
  });
}

PyObject* needs_input_grad(PyObject* o, void*) {
  return guarded([&] { return node_of(o).needs_input_grad().release(); });
}

/// A ctx is left to reference counting until it gets attributes: only those can make a cycle.
int set_attribute(PyObject* o, PyObject* name, PyObject* value) {
  const int status = PyObject_GenericSetAttr(o, name, value);
  if (value && is_tensor(value)) track(value);
  if (context_of(o).dict && !PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);
  return status;
}

int traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(context_of(o).dict);
  Py_VISIT(context_of(o).to_save);
  Py_VISIT(context_of(o).non_differentiable);
  return 0;
}
int clear(PyObject* o) {
  Py_CLEAR(context_of(o).dict);
  Py_CLEAR(context_of(o).to_save);
  Py_CLEAR(context_of(o).non_differentiable);
  return 0;
}
void dealloc(PyObject* o) {
  if (PyObject_GC_IsTracked(o)) PyObject_GC_UnTrack(o);
  clear(o);
  PyObject_GC_Del(o);
}

PyMethodDef g_python_context_methods[] = {
    {"save_for_backward", &save_for_backward, METH_VARARGS,
     "save_for_backward($self, *tensors)\n--\n\n"
     "Keeps tensors (arguments, results, others) for backward, which finds them in saved_tensors."},
    {"mark_non_differentiable", &mark_non_differentiable, METH_VARARGS,
     "mark_non_differentiable($self, *tensors)\n--\n\n"
     "Says which results get no history."},
    {"set_materialize_grads", &set_materialize_grads, METH_O,
     "set_materialize_grads($self, value, /)\n--\n\n"
     "Whether backward gets zeros (the default) or None for a result that no gradient reached."},
    {}};
PyGetSetDef g_python_context_attributes[] = {
    {"saved_tensors", &saved_tensors, nullptr, "What save_for_backward was given. A tuple.", nullptr},
    {"needs_input_grad", &needs_input_grad, nullptr,
     "For each positional argument, whether its gradient is wanted.", nullptr},
    {"__dict__", &PyObject_GenericGetDict, &PyObject_GenericSetDict, nullptr, nullptr},
    {}};

}  // namespace

Ref make_context(PythonNode& node) {
  auto* self = PyObject_GC_New(ContextObject, &g_type);
  if (!self) throw PythonError();
  self->dict = self->to_save = self->non_differentiable = nullptr;
  self->node = &node;
  self->materialize_grads = true;
  return Ref(reinterpret_cast<PyObject*>(self));
}

bool add_op_context(PyObject* module) {
  PyTypeObject& t = g_type;
  t.tp_name = "tenon.library.Context";
  t.tp_basicsize = sizeof(ContextObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  t.tp_dealloc = &dealloc;
  t.tp_traverse = &traverse;
  t.tp_clear = &clear;
  t.tp_setattro = &set_attribute;
  t.tp_methods = g_python_context_methods;
  t.tp_getset = g_python_context_attributes;
  t.tp_dictoffset = offsetof(ContextObject, dict);
  return add_type(module, "_OpContext", t);
}

}  // namespace tenon::python
