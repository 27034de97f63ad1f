// Recording of programs: what tenon.compile (python/tenon/compile.py) is made of.
#include "python/src/call/python_value.h"
#include "python/src/interpreter/errors.h"
#include "python/src/module_parts.h"
#include "tenon/record/compile.h"
#include "tenon/record/recorder.h"

namespace tenon::python {
namespace {

using record::Recorder;

PyObject* begin(PyObject*, PyObject* args) {
  unsigned long long program = 0;
  long long threshold = 0;
  int trust_shared = 0;
  if (!PyArg_ParseTuple(args, "KLp", &program, &threshold, &trust_shared)) return nullptr;
  return guarded([&] {
    Recorder::current().begin(program, {.threshold = threshold, .trust_shared = trust_shared != 0});
    return Py_NewRef(Py_None);
  });
}

PyObject* end(PyObject*, PyObject*) {
  return guarded([] {
    Recorder::current().end();
    return Py_NewRef(Py_None);
  });
}

PyObject* flush(PyObject*, PyObject*) {
  return guarded([] {
    record::flush();
    return Py_NewRef(Py_None);
  });
}

void set(const Ref& dict, const char* name, uint64_t value) {
  const Ref number(checked(PyLong_FromUnsignedLongLong(value)));
  if (PyDict_SetItemString(dict.get(), name, number.get()) < 0) throw PythonError();
}

PyObject* stats(PyObject*, PyObject*) {
  return guarded([] {
    const record::Counts& c = Recorder::current().counts();
    Ref all(checked(PyDict_New())), reasons(checked(PyDict_New()));
    set(all, "recorded", c.recorded);
    set(all, "now", c.ran_now);
    set(all, "segments", c.segments);
    set(all, "planned", c.planned);
    set(all, "new_nodes", c.new_nodes);
    for (const auto& [why, count] : Recorder::current().reasons()) set(reasons, why.c_str(), count);
    if (PyDict_SetItemString(all.get(), "reasons", reasons.get()) < 0) throw PythonError();
    return all.release();
  });
}

PyMethodDef g_functions[] = {
    {"_record_begin", &begin, METH_VARARGS, "(program, threshold, trust_shared): opens a scope."},
    {"_record_end", &end, METH_NOARGS, "Closes it; the outermost computes what was recorded."},
    {"_record_flush", &flush, METH_NOARGS, "Computes what this thread has recorded."},
    {"_record_stats", &stats, METH_NOARGS, "What this thread has recorded so far, and why it did not wait."},
    {"_record_new_program",
     [](PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(record::new_program()); }, METH_NOARGS,
     "A number for a program."},
    {}};

}  // namespace

bool add_recording(PyObject* module) { return PyModule_AddFunctions(module, g_functions) == 0; }

}  // namespace tenon::python
