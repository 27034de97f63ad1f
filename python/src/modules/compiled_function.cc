// The type of compiled functions: what tenon.compile returns. A call opens a scope, calls the function, and
// ends the scope; in C++, as a frame of Python around each call would cost as much as three small operators.
#include <structmember.h>

#include "python/src/interpreter/errors.h"
#include "python/src/module_parts.h"
#include "tenon/record/recorder.h"

namespace tenon::python {
namespace {

using record::Recorder;

struct Compiled {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* end_after;  ///< Called with a scope and the exception that leaves it: ends the scope.
  PyObject* dict;
  PyObject* weak_references;
  uint64_t program;
  record::Options options;
};

Compiled* as_compiled(PyObject* o) { return reinterpret_cast<Compiled*>(o); }

// The function has raised: the scope ends, and what was raised stays.
void end_after_error(Compiled* self, uint64_t scope) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  Py_XDECREF(PyObject_CallFunction(self->end_after, "KO", static_cast<unsigned long long>(scope), value));
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
}

PyObject* call(PyObject* callable, PyObject* const* args, size_t n, PyObject* keywords) {
  Compiled* const self = as_compiled(callable);
  return guarded([&]() -> PyObject* {
    Recorder& recorder = Recorder::current();
    const uint64_t scope = recorder.begin(self->program, self->options);
    Ref result(PyObject_Vectorcall(self->function, args, n, keywords));
    if (!result) {
      end_after_error(self, scope);
      return nullptr;
    }
    recorder.end(scope);
    return result.release();
  });
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *function, *end_after;
  unsigned long long program = 0;
  long long threshold = 0;
  int trust_shared = 0, relaxed = 0;
  if (!PyArg_ParseTuple(args, "OOKLpp", &function, &end_after, &program, &threshold, &trust_shared, &relaxed))
    return nullptr;
  auto* const self = as_compiled(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  self->vectorcall = &call;
  self->function = Py_NewRef(function);
  self->end_after = Py_NewRef(end_after);
  self->program = program;
  self->options = {.trust_shared = trust_shared != 0, .relaxed = relaxed != 0};
  if (threshold >= 0) self->options.threshold = threshold;
  return reinterpret_cast<PyObject*>(self);
}

int traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(as_compiled(o)->function);
  Py_VISIT(as_compiled(o)->end_after);
  Py_VISIT(as_compiled(o)->dict);
  Py_VISIT(Py_TYPE(o));
  return 0;
}
int clear(PyObject* o) {
  Py_CLEAR(as_compiled(o)->function);
  Py_CLEAR(as_compiled(o)->end_after);
  Py_CLEAR(as_compiled(o)->dict);
  return 0;
}
void destroy(PyObject* o) {
  PyTypeObject* const type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  if (as_compiled(o)->weak_references) PyObject_ClearWeakRefs(o);
  clear(o);
  type->tp_free(o);
  Py_DECREF(type);
}

// As an attribute of a class it is a method.
PyObject* bind(PyObject* o, PyObject* instance, PyObject*) {
  if (!instance || instance == Py_None) return Py_NewRef(o);
  return PyMethod_New(o, instance);
}

PyObject* show(PyObject* o) { return PyUnicode_FromFormat("<compiled %R>", as_compiled(o)->function); }

// Pickled as functions are, by its name.
PyObject* reduce(PyObject* o, PyObject*) { return PyObject_GetAttrString(o, "__qualname__"); }

PyMethodDef g_methods[] = {{"__reduce__", &reduce, METH_NOARGS, "The name that it is pickled by."}, {}};
PyMemberDef g_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Compiled, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Compiled, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Compiled, weak_references), READONLY, nullptr},
    {}};
PyGetSetDef g_attributes[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {}};
PyType_Slot g_slots[] = {
    {Py_tp_doc, const_cast<char*>("A function whose operators are recorded while it runs.")},
    {Py_tp_new, reinterpret_cast<void*>(&make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(&destroy)},
    {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(&clear)},
    {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void*>(&bind)},
    {Py_tp_repr, reinterpret_cast<void*>(&show)},
    {Py_tp_methods, g_methods},
    {Py_tp_members, g_members},
    {Py_tp_getset, g_attributes},
    {0, nullptr}};
PyType_Spec g_spec{"tenon._C.CompiledFunction", sizeof(Compiled), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, g_slots};

}  // namespace

bool add_compiled_function(PyObject* module) {
  PyObject* const type = PyType_FromSpec(&g_spec);
  return type && PyModule_AddObject(module, "CompiledFunction", type) == 0;
}

}  // namespace tenon::python
