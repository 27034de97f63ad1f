// The type of compiled functions: what tenon.compile returns. A call opens a scope, calls the function, and
// ends the scope; in C++, as a frame of Python around each call would cost as much as three small operators.
// With pure=True, it first looks for a replay that fits.
#include <structmember.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

#include "python/src/interpreter/errors.h"
#include "python/src/interpreter/sequences.h"
#include "python/src/module_parts.h"
#include "python/src/replay/replay.h"
#include "python/src/tensor/tensor_object.h"
#include "tenon/autograd/anomaly.h"
#include "tenon/autograd/saved_hooks.h"
#include "tenon/record/recorder.h"

namespace tenon::python {
namespace {

using record::Recorder;

/// Of a function that was compiled with pure=True.
struct Pure {
  static constexpr size_t kMaxReplays = 64;

  Ref capture;  ///< Called as capture(args, kwargs, checked); null once it has given up.
  bool checks;  ///< The program runs where a replay fits, too, and has to record what the replay has.
  std::vector<std::unique_ptr<replay::PureReplay>> replays;  ///< The latest first.
  uint64_t num_replayed = 0;
};

struct Compiled {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* end_after;  ///< Called with a scope and the exception that leaves it: ends the scope.
  PyObject* dict;
  PyObject* weak_references;
  uint64_t program;
  record::ScopeOptions options;
  Pure* pure;  ///< Null for most.
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

/// The function's result by a replay, or of a call that is captured. Null without an exception: neither is to
/// be had.
PyObject* call_pure(Pure& pure, PyObject* const* args, size_t n, PyObject* keywords) {
  if (Recorder::current().is_open()) return nullptr;             // part of another program
  if (autograd::is_anomaly_enabled()) return nullptr;            // which looks at what is computed
  if (autograd::detail::has_saved_tensor_hooks) return nullptr;  // which run Python for every saved tensor
  uint64_t fits = 0;                                             // the number of the replay to compare with
  for (size_t i = 0; i < pure.replays.size() && fits == 0; ++i) {
    if (!pure.replays[i]->matches(args, n, keywords)) continue;
    if (!pure.checks) {
      ++pure.num_replayed;
      return checked(pure.replays[i]->run());
    }
    pure.replays[i]->expect();
    fits = pure.replays[i]->number();
  }
  if (!pure.capture) return nullptr;
  const auto named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  const Ref positional = tuple_of(std::span(args, n), Py_NewRef), by_name(checked(PyDict_New()));
  for (Py_ssize_t i = 0; i < named; ++i) {
    if (PyDict_SetItem(by_name.get(), PyTuple_GET_ITEM(keywords, i), args[n + static_cast<size_t>(i)]) < 0)
      throw PythonError();
  }
  const Ref capture = pure.capture;
  return checked(PyObject_CallFunction(capture.get(), "OOK", positional.get(), by_name.get(),
                                       static_cast<unsigned long long>(fits)));
}

/// How large what a function is given is: elements of tensors, and numbers, which may be sizes. -1 where it
/// is given containers.
int64_t size_of(PyObject* const* args, size_t n, PyObject* keywords) {
  const size_t named = keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : 0;
  int64_t size = 0;
  for (PyObject* const o : std::span(args, n + named)) {
    int64_t own = 0;
    if (is_tensor(o)) {
      own = tensor_of(o).numel();
    } else if (PyLong_CheckExact(o)) {
      int overflow = 0;
      own = PyLong_AsLongLongAndOverflow(o, &overflow);
      if (overflow != 0 || own == INT64_MIN) return -1;
      own = std::abs(own);
    } else if (PyList_Check(o) || PyTuple_Check(o) || PyDict_Check(o)) {
      return -1;
    }
    if (__builtin_add_overflow(size, own, &size)) return -1;
  }
  return size;
}

PyObject* call(PyObject* callable, PyObject* const* args, size_t nargs, PyObject* keywords) {
  Compiled* const self = as_compiled(callable);
  const auto n = static_cast<size_t>(PyVectorcall_NARGS(nargs));
  return guarded([&]() -> PyObject* {
    if (self->pure) {
      if (PyObject* result = call_pure(*self->pure, args, n, keywords)) return result;
    }
    Recorder& recorder = Recorder::current();
    const uint64_t scope = recorder.begin(self->program, self->options, size_of(args, n, keywords));
    Ref result(PyObject_Vectorcall(self->function, args, nargs, keywords));
    if (!result) {
      end_after_error(self, scope);
      return nullptr;
    }
    recorder.end(scope);
    // Now, as no code of the program may follow but some that ignores exceptions, such as a finalizer's.
    return PyErr_CheckSignals() < 0 ? nullptr : result.release();
  });
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *function, *end_after, *capture = Py_None;
  unsigned long long program = 0;
  long long threshold = 0;
  int trust_shared = 0, relaxed = 0, checks = 0;
  double tune_ms = 0;
  if (!PyArg_ParseTuple(args, "OOKLppd|Op:CompiledFunction", &function, &end_after, &program, &threshold,
                        &trust_shared, &relaxed, &tune_ms, &capture, &checks))
    return nullptr;
  auto* const self = as_compiled(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  self->vectorcall = &call;
  self->function = Py_NewRef(function);
  self->end_after = Py_NewRef(end_after);
  self->program = program;
  self->options = {.trust_shared = trust_shared != 0, .relaxed = relaxed != 0, .tune_ms = tune_ms};
  if (threshold >= 0) self->options.threshold = threshold;
  if (capture != Py_None)
    self->pure = new Pure{.capture = Ref::borrow(capture), .checks = checks != 0, .replays = {}};
  return reinterpret_cast<PyObject*>(self);
}

int traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(as_compiled(o)->function);
  Py_VISIT(as_compiled(o)->end_after);
  Py_VISIT(as_compiled(o)->dict);
  Py_VISIT(Py_TYPE(o));
  if (const Pure* const pure = as_compiled(o)->pure) {
    Py_VISIT(pure->capture.get());
    for (const auto& replay : pure->replays) {
      if (const int stop = replay->traverse(visit, arg)) return stop;
    }
  }
  return 0;
}
int clear(PyObject* o) {
  Py_CLEAR(as_compiled(o)->function);
  Py_CLEAR(as_compiled(o)->end_after);
  Py_CLEAR(as_compiled(o)->dict);
  delete std::exchange(as_compiled(o)->pure, nullptr);
  return 0;
}
void destroy(PyObject* o) {
  PyTypeObject* const type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  if (as_compiled(o)->weak_references) PyObject_ClearWeakRefs(o);
  const uint64_t program = as_compiled(o)->program;
  clear(o);
  Recorder::current().forget(program);
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

/// Captures no more: from now on calls that no replay fits are recorded.
PyObject* stop_capturing(PyObject* o, PyObject*) {
  if (Pure* const pure = as_compiled(o)->pure) pure->capture = {};
  return Py_NewRef(Py_None);
}

/// (capsule): the first replay that a call tries; the oldest goes where there are too many.
PyObject* add_replay(PyObject* o, PyObject* capsule) {
  return guarded([&] {
    std::unique_ptr<replay::PureReplay> made = replay::take_replay(capsule);
    Pure* const pure = as_compiled(o)->pure;
    if (!pure) return;
    if (pure->replays.size() >= Pure::kMaxReplays) {
      const auto is_idle = [](const auto& other) { return !other->is_running(); };
      const auto oldest = std::find_if(pure->replays.rbegin(), pure->replays.rend(), is_idle);
      if (oldest != pure->replays.rend()) pure->replays.erase(std::next(oldest).base());
    }
    pure->replays.insert(pure->replays.begin(), std::move(made));
  });
}

/// (number, capsule): how a call that the replay of this number fits differs from it: what and the line. None
/// if it does not, or if the replay is gone.
PyObject* difference(PyObject* o, PyObject* args) {
  unsigned long long number = 0;
  PyObject* capsule;
  if (!PyArg_ParseTuple(args, "KO", &number, &capsule)) return nullptr;
  return guarded([&]() -> PyObject* {
    const std::unique_ptr<replay::PureReplay> now = replay::take_replay(capsule);
    Pure* const pure = as_compiled(o)->pure;
    if (!pure) return Py_NewRef(Py_None);
    const auto found =
        std::ranges::find(pure->replays, number, [](const auto& one) { return one->number(); });
    if (found == pure->replays.end()) return Py_NewRef(Py_None);
    const replay::PureReplay::Difference differs = (*found)->difference(*now);
    if (differs.what.empty()) {
      ++pure->num_replayed;
      return Py_NewRef(Py_None);
    }
    return Py_BuildValue("ss", differs.what.c_str(), differs.line.c_str());
  });
}

/// The number of replays, and how often one ran.
PyObject* replays(PyObject* o, PyObject*) {
  const Pure* const pure = as_compiled(o)->pure;
  return Py_BuildValue("nK", pure ? static_cast<Py_ssize_t>(pure->replays.size()) : 0,
                       static_cast<unsigned long long>(pure ? pure->num_replayed : 0));
}

/// Why the latest replay did not fit the latest call that none did: what differed, the number of the tensor
/// that it is about or -1, that tensor's header then, the value now and then of something that the program
/// reads or `...`. None where there is no replay.
PyObject* mismatch(PyObject* o, PyObject*) {
  return guarded([&]() -> PyObject* {
    const Pure* const pure = as_compiled(o)->pure;
    if (!pure || pure->replays.empty()) return Py_NewRef(Py_None);
    const replay::PureReplay::Mismatch found = pure->replays.front()->mismatch();
    if (found.what.empty()) return Py_NewRef(Py_None);
    const Ref now = replay::value_now(found.guard);
    PyObject* const then = now ? found.guard.entry->expected.get() : nullptr;
    return Py_BuildValue("snsOO", found.what.c_str(), static_cast<Py_ssize_t>(found.tensor),
                         found.was.c_str(), then ? now.get() : Py_Ellipsis, then ? then : Py_Ellipsis);
  });
}

PyMethodDef g_compiled_function_methods[] = {
    {"__reduce__", &reduce, METH_NOARGS, "The name that it is pickled by."},
    {"_stop_capturing", &stop_capturing, METH_NOARGS, nullptr},
    {"_add_replay", &add_replay, METH_O, nullptr},
    {"_difference", &difference, METH_VARARGS, nullptr},
    {"_replays", &replays, METH_NOARGS, nullptr},
    {"_mismatch", &mismatch, METH_NOARGS, nullptr},
    {}};
PyMemberDef g_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Compiled, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Compiled, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Compiled, weak_references), READONLY, nullptr},
    {}};
PyGetSetDef g_compiled_function_attributes[] = {
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
    {Py_tp_methods, g_compiled_function_methods},
    {Py_tp_members, g_members},
    {Py_tp_getset, g_compiled_function_attributes},
    {0, nullptr}};
PyType_Spec g_spec{"tenon._C.CompiledFunction", sizeof(Compiled), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, g_slots};

}  // namespace

bool add_compiled_function(PyObject* module) {
  PyObject* const type = PyType_FromSpec(&g_spec);
  return type && PyModule_AddObject(module, "CompiledFunction", type) == 0 &&
         replay::add_replay_maker(module);
}

}  // namespace tenon::python
