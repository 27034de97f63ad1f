// tenon._C.CachedPlan: what tenon.cached_plan returns. A call finds the plan for its arguments and runs it,
// in C++, as a frame of Python around that would cost more than small kernels do.
#include "tenon/builder/cached_plan.h"

#include <structmember.h>

#include <algorithm>
#include <array>
#include <bit>
#include <list>
#include <memory>
#include <string>

#include "python/src/call/parser.h"
#include "python/src/call/python_value.h"
#include "python/src/interpreter/errors.h"
#include "python/src/interpreter/sequences.h"
#include "python/src/module_parts.h"
#include "python/src/modules/builder_graph.h"
#include "python/src/tensor/attribute_types.h"
#include "python/src/tensor/tensor_object.h"
#include "tenon/core/error.h"

namespace tenon::python {
namespace {

using builder::PlanArgument;
using builder::PlanBinding;

struct CachedPlanObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* names;     ///< A tuple of interned names of parameters.
  PyObject* defaults;  ///< A tuple of the same length; absent ones are `missing`.
  PyObject* missing;
  PyObject* build;  ///< build(graph, inputs, arguments): the numbers of the results' tensors.
  PyObject* dict;
  PyObject* weak_references;
  builder::CachedPlan* plans;
  PyObject* reads;  ///< What a plan depends on besides arguments: a tuple of (name, holder, key, attributes).
};

CachedPlanObject* as_cached(PyObject* o) { return reinterpret_cast<CachedPlanObject*>(o); }

constexpr size_t kMostParameters = 16;
constexpr size_t kMostResults = 8;

/// The arguments of a call, and after them the values of `reads`: as objects, and as plans see them.
struct Call {
  size_t count = 0, num_reads = 0;
  std::array<PyObject*, kMostParameters> objects;  // `count` of them are set
  std::array<PlanArgument, kMostParameters> arguments;
  std::array<int64_t, 16> ints;  // of lists that are arguments: most are short
  size_t num_ints = 0;
  std::list<Dims> lists;         // the others
  std::list<std::string> texts;  // of reads, whose objects may go
  PyObject* out = nullptr;

  std::span<const PlanArgument> span() const { return {arguments.data(), count + num_reads}; }
};

/// The call that is being planned on this thread: what `build` is asked for takes its objects.
thread_local const Call* planned_call = nullptr;

[[noreturn]] void refuse(CachedPlanObject* self, PyObject* exception, const char* format, PyObject* name) {
  const Ref own(checked(to_python(self->plans->name())));
  PyErr_Format(exception, format, own.get(), name);
  throw PythonError();
}

size_t place_of(CachedPlanObject* self, PyObject* name) {
  const Py_ssize_t n = PyTuple_GET_SIZE(self->names);
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (PyTuple_GET_ITEM(self->names, i) == name) return static_cast<size_t>(i);
  }
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (PyUnicode_Compare(PyTuple_GET_ITEM(self->names, i), name) == 0) return static_cast<size_t>(i);
  }
  return static_cast<size_t>(n);
}

void take_objects(CachedPlanObject* self, PyObject* const* args, size_t n, PyObject* keywords, Call& call) {
  call.count = static_cast<size_t>(PyTuple_GET_SIZE(self->names));
  if (n > call.count) {
    const Ref most(checked(PyLong_FromSize_t(call.count)));
    refuse(self, PyExc_TypeError, "%S() takes at most %S arguments", most.get());
  }
  std::fill(std::copy_n(args, n, call.objects.begin()), call.objects.begin() + call.count, nullptr);
  const Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* const name = PyTuple_GET_ITEM(keywords, i);
    PyObject* const value = args[n + static_cast<size_t>(i)];
    const size_t place = place_of(self, name);
    if (place < call.count) {
      if (call.objects[place]) refuse(self, PyExc_TypeError, "%S() got argument '%U' twice", name);
      call.objects[place] = value;
    } else if (PyUnicode_CompareWithASCIIString(name, "out") == 0) {
      call.out = value == Py_None ? nullptr : value;
    } else {
      refuse(self, PyExc_TypeError, "%S() got an unexpected argument '%U'", name);
    }
  }
  for (size_t i = 0; i < call.count; ++i) {
    if (call.objects[i]) continue;
    call.objects[i] = PyTuple_GET_ITEM(self->defaults, static_cast<Py_ssize_t>(i));
    if (call.objects[i] == self->missing)
      refuse(self, PyExc_TypeError, "%S() is missing argument '%U'",
             PyTuple_GET_ITEM(self->names, static_cast<Py_ssize_t>(i)));
  }
}

/// A tuple or list of ints, where there is room for it.
bool take_short_list(PyObject* o, Call& call, PlanArgument& argument) {
  if (!PyTuple_CheckExact(o) && !PyList_CheckExact(o)) return false;
  const auto count = static_cast<size_t>(PySequence_Fast_GET_SIZE(o));
  if (call.num_ints + count > call.ints.size()) return false;
  int64_t* const first = call.ints.data() + call.num_ints;
  for (size_t i = 0; i < count; ++i) {
    PyObject* const item = PySequence_Fast_GET_ITEM(o, static_cast<Py_ssize_t>(i));
    if (!PyLong_CheckExact(item) || !parse_int(item, first[i])) return false;
  }
  call.num_ints += count;
  argument = PlanArgument(IntArrayRef(first, count));
  return true;
}

/// What is rare, and takes a look at the classes that an object's own derives from.
void take_other(CachedPlanObject* self, Call& call, size_t i) {
  PyObject* const o = call.objects[i];
  PlanArgument& argument = call.arguments[i];
  std::string_view text;
  int64_t whole = 0;
  if (PyFloat_Check(o))
    argument = PlanArgument(PyFloat_AS_DOUBLE(o));
  else if (parse_text(o, text))
    argument = PlanArgument(text);
  else if (PyLong_Check(o) && parse_int(o, whole))
    argument = PlanArgument(whole);
  else if (parse_ints(o, call.lists.emplace_back()))
    argument = PlanArgument(IntArrayRef(call.lists.back()));
  else if (const auto dtype = as_dtype(o))
    argument = PlanArgument(*dtype);
  else {
    PyErr_Format(
        PyExc_TypeError,
        "%s: argument '%U' is a %s; a plan depends on tensors, numbers, str, bool, None, dtypes and lists "
        "of ints",
        self->plans->name().c_str(), PyTuple_GET_ITEM(self->names, static_cast<Py_ssize_t>(i)),
        type_name(o).c_str());
    throw PythonError();
  }
}

void take_argument(CachedPlanObject* self, Call& call, size_t i) {
  PyObject* const o = call.objects[i];
  PlanArgument& argument = call.arguments[i];
  if (o == Py_None || take_short_list(o, call, argument)) return;
  if (PyFloat_CheckExact(o))
    argument = PlanArgument(PyFloat_AS_DOUBLE(o));
  else if (PyBool_Check(o))
    argument = PlanArgument(o == Py_True);
  else if (is_tensor(o))
    argument = PlanArgument(tensor_of(o));
  else
    take_other(self, call, i);
}

/// The value of a global or of a closure's variable, or of an attribute of it. `key` is None for a variable.
Ref read_value(PyObject* holder, PyObject* key, PyObject* attributes) {
  Ref value = Ref::borrow(key == Py_None ? PyCell_GET(holder) : PyDict_GetItemWithError(holder, key));
  for (Py_ssize_t i = 0; value && i < PyTuple_GET_SIZE(attributes); ++i)
    value = Ref(checked(PyObject_GetAttr(value.get(), PyTuple_GET_ITEM(attributes, i))));
  if (PyErr_Occurred()) throw PythonError();
  return value;
}

/// `build` reads the value itself, so a float is part of the key: as a list of 1 and its bits, where the
/// lists of ints begin with 0.
PlanArgument take_read(CachedPlanObject* self, PyObject* o, PyObject* name, Call& call) {
  if (o == Py_None) return {};
  if (PyBool_Check(o)) return PlanArgument(o == Py_True);
  int64_t whole = 0;
  if (PyLong_Check(o) && parse_int(o, whole)) return PlanArgument(whole);
  std::string_view text;
  if (parse_text(o, text)) return PlanArgument(std::string_view(call.texts.emplace_back(text)));
  if (const auto dtype = as_dtype(o)) return PlanArgument(*dtype);
  Dims& list = call.lists.emplace_back();
  Dims ints;
  if (PyFloat_Check(o)) {
    list.push_back(1);
    list.push_back(std::bit_cast<int64_t>(PyFloat_AS_DOUBLE(o)));
  } else if ((PyTuple_Check(o) || PyList_Check(o)) && parse_ints(o, ints)) {
    list.push_back(0);
    for (const int64_t i : ints) list.push_back(i);
  } else {
    refuse(self, PyExc_TypeError,
           "%S: `reads` names '%U', which is no number, str, bool, None, dtype or list of ints; name an "
           "attribute of it, or pass it as an argument",
           name);
  }
  return PlanArgument(IntArrayRef(list));
}

/// Adds the values of `reads` to what the plan depends on.
void take_reads(CachedPlanObject* self, Call& call) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->reads); ++i) {
    PyObject* const read = PyTuple_GET_ITEM(self->reads, i);
    PyObject* const name = PyTuple_GET_ITEM(read, 0);
    const Ref value =
        read_value(PyTuple_GET_ITEM(read, 1), PyTuple_GET_ITEM(read, 2), PyTuple_GET_ITEM(read, 3));
    if (!value)
      refuse(self, PyExc_NameError, "%S: `reads` names '%U', which is neither a global nor a variable", name);
    call.arguments[call.count + call.num_reads++] = take_read(self, value.get(), name, call);
  }
}

/// Writes the graph down, by Python's `build`.
builder::PlanResults build(PyObject* function, const builder::PlanInputs& inputs, const Call& call) {
  const builder::Graph& graph = *inputs.graph();
  const Ref capsule(wrap_graph(inputs.graph()));
  size_t next = 0;  // inputs are the graph's first tensors, in order
  const Ref numbers = tuple_by_place(call.count, [&](size_t i) {
    return inputs.tensors()[i] ? PyLong_FromSize_t(next++) : Py_NewRef(Py_None);
  });
  const Ref objects = tuple_by_place(call.count, [&](size_t i) { return Py_NewRef(call.objects[i]); });
  const Ref made(
      checked(PyObject_CallFunctionObjArgs(function, capsule.get(), numbers.get(), objects.get(), nullptr)));
  builder::PlanResults results;
  Dims places;
  if (!parse_ints(made.get(), places))
    throw_error(ErrorKind::Internal, "cached_plan: results have no numbers");
  for (const int64_t place : places) results.push_back(graph.tensors().at(static_cast<size_t>(place)).get());
  return results;
}

std::shared_ptr<const PlanBinding> find(CachedPlanObject* self, PyObject* const* args, size_t n,
                                        PyObject* keywords, Call& call) {
  take_objects(self, args, n, keywords, call);
  for (size_t i = 0; i < call.count; ++i) take_argument(self, call, i);
  call.num_reads = 0;
  take_reads(self, call);
  struct Planned {
    const Call* before = std::exchange(planned_call, nullptr);
    ~Planned() { planned_call = before; }
  } const scope;
  planned_call = &call;
  return self->plans->find(call.span(), call.out != nullptr);
}

/// `out`: a tensor, or a tuple with one for each result.
void take_out(CachedPlanObject* self, PyObject* out, std::span<Tensor> results) {
  if (!out) return;
  const auto take = [&](PyObject* o, Tensor& result) {
    if (o == Py_None) return;
    if (!is_tensor(o))
      refuse(self, PyExc_TypeError, "%S: `out` is a tensor, or a tuple of one for each result, not %R", o);
    result = tensor_of(o);
  };
  if (!PyTuple_Check(out) && !PyList_Check(out) && results.size() == 1) return take(out, results[0]);
  const bool listed = PyTuple_Check(out) || PyList_Check(out);
  if (!listed || static_cast<size_t>(PySequence_Fast_GET_SIZE(out)) != results.size())
    refuse(self, PyExc_TypeError, "%S: `out` is a tuple of one tensor for each result, not %R", out);
  for (size_t i = 0; i < results.size(); ++i)
    take(PySequence_Fast_GET_ITEM(out, static_cast<Py_ssize_t>(i)), results[i]);
}

PyObject* wrap_results(std::span<Tensor> results) {
  if (results.size() == 1) return checked(wrap(std::move(results[0])));
  return tuple_of(results, [](Tensor& t) { return wrap(std::move(t)); }).release();
}

PyObject* call(PyObject* callable, PyObject* const* args, size_t nargs, PyObject* keywords) {
  CachedPlanObject* const self = as_cached(callable);
  return guarded(self->plans->name().c_str(), [&]() -> PyObject* {
    Call call;
    const auto plan = find(self, args, static_cast<size_t>(PyVectorcall_NARGS(nargs)), keywords, call);
    std::array<Tensor, kMostResults> few;
    std::vector<Tensor> many(plan->num_results() > kMostResults ? plan->num_results() : 0);
    const std::span<Tensor> results =
        many.empty() ? std::span<Tensor>(few.data(), plan->num_results()) : many;
    take_out(self, call.out, results);
    without_gil(plan->traffic() > kLongPlanBytes, [&] { plan->run(call.span(), results); });
    return wrap_results(results);
  });
}

PyObject* find_graph(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&] {
    Call call;
    return wrap_graph(find(as_cached(o), args, static_cast<size_t>(n), keywords, call)->graph());
  });
}

/// _until(step, ...): a call up to a step: 0, its plan is found; 1, its results are there; 2, so are the
/// addresses of the plan's UIDs. For reports of what a call costs: each step is the difference of two.
PyObject* call_until(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    int64_t step = -1;
    if (n < 1 || !parse_int(args[0], step) || step < 0 || step > 2)
      throw_error(ErrorKind::Value, "_until() takes a step, 0 to 2, then the arguments of a call");
    Call call;
    const auto plan = find(as_cached(o), args + 1, static_cast<size_t>(n - 1), keywords, call);
    if (step == 0) return Py_NewRef(Py_None);
    std::array<Tensor, kMostResults> few;
    std::vector<Tensor> many(plan->num_results() > kMostResults ? plan->num_results() : 0);
    const std::span<Tensor> results =
        many.empty() ? std::span<Tensor>(few.data(), plan->num_results()) : many;
    plan->prepare(call.span(), results, step == 1);
    return wrap_results(results);
  });
}

/// (hits, misses, capacity, size)
PyObject* counts(PyObject* o, PyObject*) {
  return guarded([&] {
    const auto counts = as_cached(o)->plans->counts();
    return Py_BuildValue("KKnn", static_cast<unsigned long long>(counts.hits),
                         static_cast<unsigned long long>(counts.misses),
                         static_cast<Py_ssize_t>(counts.capacity), static_cast<Py_ssize_t>(counts.size));
  });
}

PyObject* clear_plans(PyObject* o, PyObject*) {
  return guarded([&] { as_cached(o)->plans->clear(); });
}

/// (name, names, defaults, missing, build, reads, capacity, io type, intermediate type, compute type)
PyObject* make(PyTypeObject* type, PyObject* args, PyObject*) {
  const char* name;
  PyObject *names, *defaults, *missing, *function, *reads;
  Py_ssize_t capacity;
  std::array<PyObject*, 3> types;
  if (!PyArg_ParseTuple(args, "sO!O!OOO!nOOO:CachedPlan", &name, &PyTuple_Type, &names, &PyTuple_Type,
                        &defaults, &missing, &function, &PyTuple_Type, &reads, &capacity, &types[0],
                        &types[1], &types[2]))
    return nullptr;
  return guarded([&]() -> PyObject* {
    TENON_CHECK(static_cast<size_t>(PyTuple_GET_SIZE(names) + PyTuple_GET_SIZE(reads)) <= kMostParameters,
                Value, std::string(name) + ": a plan has at most 16 arguments and reads together");
    TENON_CHECK(capacity > 0, Value, "cached_plan: maxsize is at least 1");
    Ref object(checked(type->tp_alloc(type, 0)));
    auto* const self = as_cached(object.get());
    self->vectorcall = &call;
    self->names = Py_NewRef(names);
    self->defaults = Py_NewRef(defaults);
    self->missing = Py_NewRef(missing);
    self->build = Py_NewRef(function);
    self->reads = Py_NewRef(reads);
    const auto dtype = [&](size_t i) { return types[i] == Py_None ? std::nullopt : as_dtype(types[i]); };
    self->plans = new builder::CachedPlan(name,
                                          [self](builder::Graph&, const builder::PlanInputs& inputs) {
                                            return build(self->build, inputs, *planned_call);
                                          },
                                          static_cast<size_t>(capacity),
                                          {.io = dtype(0), .intermediate = dtype(1), .compute = dtype(2)});
    return object.release();
  });
}

int traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(as_cached(o)->names);
  Py_VISIT(as_cached(o)->defaults);
  Py_VISIT(as_cached(o)->missing);
  Py_VISIT(as_cached(o)->build);
  Py_VISIT(as_cached(o)->dict);
  Py_VISIT(as_cached(o)->reads);
  Py_VISIT(Py_TYPE(o));
  return 0;
}
int clear(PyObject* o) {
  Py_CLEAR(as_cached(o)->names);
  Py_CLEAR(as_cached(o)->defaults);
  Py_CLEAR(as_cached(o)->missing);
  Py_CLEAR(as_cached(o)->build);
  Py_CLEAR(as_cached(o)->reads);
  Py_CLEAR(as_cached(o)->dict);
  return 0;
}
void destroy(PyObject* o) {
  PyTypeObject* const type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  if (as_cached(o)->weak_references) PyObject_ClearWeakRefs(o);
  clear(o);
  delete as_cached(o)->plans;
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* show(PyObject* o) {
  return PyUnicode_FromFormat("<cached plan %s>", as_cached(o)->plans->name().c_str());
}

PyMethodDef g_cached_plan_methods[] = {
    fast_method("_find", &find_graph, "The graph whose plan runs such arguments, built if there is none."),
    fast_method("_until", &call_until, "A call up to a step: 0 look-up, 1 results, 2 addresses."),
    {"_counts", &counts, METH_NOARGS, "(hits, misses, capacity, size)"},
    {"cache_clear", &clear_plans, METH_NOARGS, "Forgets all plans, and what was counted."},
    {}};
PyMemberDef g_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CachedPlanObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(CachedPlanObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CachedPlanObject, weak_references), READONLY, nullptr},
    {}};
PyGetSetDef g_cached_plan_attributes[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {}};
PyType_Slot g_slots[] = {{Py_tp_doc, const_cast<char*>("Plans of a graph, one for each kind of arguments.")},
                         {Py_tp_new, reinterpret_cast<void*>(&make)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&destroy)},
                         {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                         {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                         {Py_tp_repr, reinterpret_cast<void*>(&show)},
                         {Py_tp_methods, g_cached_plan_methods},
                         {Py_tp_members, g_members},
                         {Py_tp_getset, g_cached_plan_attributes},
                         {0, nullptr}};
PyType_Spec g_spec{"tenon._C.CachedPlan", sizeof(CachedPlanObject), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, g_slots};

}  // namespace

bool add_cached_plan(PyObject* module) {
  PyObject* const type = PyType_FromSpec(&g_spec);
  return type && PyModule_AddObject(module, "CachedPlan", type) == 0;
}

}  // namespace tenon::python
