// The type _C._PureCapture: one call of a program under observation, which becomes a replay of its compiled
// function. Used by python/tenon/pure.py.
#include <fmt/format.h>

#include <new>

#include "python/src/interpreter/errors.h"
#include "python/src/interpreter/source_lines.h"
#include "python/src/module_parts.h"
#include "python/src/modules/compiled_function.h"
#include "python/src/pure/optimizer_updates.h"
#include "python/src/pure/replay.h"
#include "python/src/tensor/tensor_object.h"
#include "tenon/autograd/autograd.h"
#include "tenon/core/error.h"

namespace tenon::python {
namespace {

using record::Recorder;

/// Whether a backward pass from `node` fails, because one has been there.
bool is_used_up(const Node* node) {
  struct Nothing : autograd::SavedVisitor {
    void tensor(std::string_view, const Tensor&) override {}
    void list(std::string_view, const std::vector<Tensor>&) override {}
  } nothing;
  std::vector<const Node*> seen, left{node};
  while (!left.empty()) {
    const Node* const next = left.back();
    left.pop_back();
    if (std::ranges::find(seen, next) != seen.end()) continue;
    seen.push_back(next);
    try {
      next->visit_saved(nothing);
    } catch (const Error&) {
      return true;
    }
    for (const Edge& edge : next->next_edges()) {
      if (edge) left.push_back(edge.node.get());
    }
  }
  return false;
}

struct State {
  State(uint64_t number, bool relax, double tune, PyObject* list, size_t num_arguments)
      : program(number), relaxed(relax), tune_ms(tune), tensors(list, num_arguments) {}

  uint64_t program;
  bool relaxed;
  double tune_ms;
  pure::NotedTensors tensors;
  pure::Modes modes = pure::Modes::now();
  PhiloxState before = default_generator()->state(), after = {};
  record::SegmentCopy capture;
  pure::OptimizerUpdates updates;
};

struct CaptureObject {
  PyObject_HEAD State* state;
};

State& state_of(PyObject* o) { return *reinterpret_cast<CaptureObject*>(o)->state; }

PyObject* make(PyTypeObject* type, PyObject* args, PyObject*) {
  unsigned long long program = 0, num_arguments = 0;
  int relaxed = 0;
  double tune_ms = 0;
  PyObject* tensors = nullptr;
  if (!PyArg_ParseTuple(args, "KpdO!K", &program, &relaxed, &tune_ms, &PyList_Type, &tensors, &num_arguments))
    return nullptr;
  return guarded([&] {
    auto state = std::make_unique<State>(program, relaxed != 0, tune_ms, tensors, num_arguments);
    PyObject* const self = checked(type->tp_alloc(type, 0));
    reinterpret_cast<CaptureObject*>(self)->state = state.release();
    return self;
  });
}

void destroy(PyObject* o) {
  PyTypeObject* const type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  delete reinterpret_cast<CaptureObject*>(o)->state;
  type->tp_free(o);
  Py_DECREF(type);
}

int traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  return reinterpret_cast<CaptureObject*>(o)->state ? state_of(o).tensors.traverse(visit, arg) : 0;
}

PyObject* begin(PyObject* self, PyObject*) {
  return guarded([&] {
    State& s = state_of(self);
    // Whoever runs the program writes to shared memory only by its operators: guards know no arrays.
    const uint64_t scope = Recorder::current().begin(
        s.program, {.threshold = 0, .trust_shared = true, .relaxed = s.relaxed, .tune_ms = s.tune_ms});
    s.capture.set_place(&line_of_program);
    Recorder::current().capture(&s.capture);
    pure::OptimizerUpdates::current = &s.updates;
    return PyLong_FromUnsignedLongLong(scope);
  });
}

PyObject* end(PyObject* self, PyObject* scope) {
  return guarded([&] {
    State& s = state_of(self);
    struct Detach {
      ~Detach() {
        Recorder::current().capture(nullptr);
        pure::OptimizerUpdates::current = nullptr;
      }
    } const detach;
    Recorder::current().end(PyLong_AsUnsignedLongLong(scope));
    s.capture.set_place(nullptr);
    s.after = default_generator()->state();
    if (const char* const mode = pure::Modes::now().difference(s.modes))
      s.capture.refuse(fmt::format("it changes {}", mode));
    if (s.after.seed != s.before.seed || s.after.offset < s.before.offset)
      s.capture.refuse("it seeds the default generator");
    if (!s.capture.is_refused() && !s.capture.is_taken()) s.capture.refuse("it records no operator");
    return Py_NewRef(Py_None);
  });
}

PyObject* refused(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const record::SegmentCopy& capture = state_of(self).capture;
    if (!capture.is_refused()) return Py_NewRef(Py_None);
    const Ref reason(checked(to_python(capture.reason())));
    std::string where = capture.place();
    if (where.empty() && capture.line()) where = describe_source(capture.line());
    const Ref line(checked(to_python(where)));
    return PyTuple_Pack(2, reason.get(), line.get());
  });
}

using Result = pure::PureReplay::Result;

/// Throws Error{Runtime} with the reason where a result cannot be made again. Its base, if it is a view, goes
/// to `results` first.
Result result_of(const State& s, const Tensor& t,
                 std::vector<std::pair<const TensorImpl*, Result>>& results) {
  Result result{.noted = s.tensors.find(t)};
  if (result.noted != SIZE_MAX) return result;
  result.gradient_of = s.tensors.find_gradient(t);
  if (result.gradient_of != SIZE_MAX) return result;
  const auto& slots = s.capture.slots();
  for (size_t i = 0; i < slots.size() && !result.made; ++i) {
    if (slots[i].storage && slots[i].storage == t.storage()) result.made.emplace(t, static_cast<uint32_t>(i));
  }
  TENON_CHECK(result.made.has_value(), Runtime, "it returns a tensor that no recorded operator has computed");
  TENON_CHECK(pure::is_plain(t), Runtime, "it returns a tensor of a subclass, or with attributes");
  TENON_CHECK(t.grad_fn() || !t.grad().defined(), Runtime, "it returns a tensor that has a gradient");
  if (const IntrusivePtr<TensorImpl>& base = t.impl()->base()) {
    const Tensor whole(base);
    TENON_CHECK(!whole.requires_grad(), Runtime,
                "it returns a view of a tensor that requires grad: clone() it");
    const auto known = std::ranges::find(results, base.get(), &std::pair<const TensorImpl*, Result>::first);
    result.base = static_cast<size_t>(known - results.begin());
    if (known == results.end()) {
      Result made = result_of(s, whole, results);
      result.base = results.size();
      results.emplace_back(base.get(), std::move(made));
    }
  }
  if (!t.requires_grad()) return result;
  TENON_CHECK(
      t.grad_fn() && is_used_up(t.grad_fn().get()), Runtime,
      "it returns a tensor with history, which a replay does not have: return it detached, or run under "
      "no_grad()");
  result.history = autograd::gradient_edge(t);
  return result;
}

/// (tensor): the number of its storage in the segment, None if it has none.
PyObject* slot_of(PyObject* self, PyObject* tensor) {
  return guarded([&]() -> PyObject* {
    TENON_CHECK(is_tensor(tensor), Type, "slot_of takes a Tensor");
    const auto& slots = state_of(self).capture.slots();
    const auto found =
        std::ranges::find(slots, tensor_of(tensor).storage(), &record::SegmentCopy::Slot::storage);
    return found == slots.end() ? Py_NewRef(Py_None) : PyLong_FromSsize_t(found - slots.begin());
  });
}

/// (params): how many steps of optimizers have updated each parameter of a group's list.
PyObject* updates_of(PyObject* self, PyObject* params) {
  return guarded([&] {
    TENON_CHECK(PyList_CheckExact(params), Type, "updates_of takes the list of parameters of a group");
    Ref counts(checked(PyList_New(PyList_GET_SIZE(params))));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(params); ++i) {
      const int64_t count = state_of(self).updates.count(params, static_cast<size_t>(i));
      PyList_SET_ITEM(counts.get(), i, checked(PyLong_FromLongLong(count)));
    }
    return counts.release();
  });
}

/// Of tensors and containers among the arguments, and of those captured.
std::pair<pure::Identities, pure::Identities> identities_of(const pure::Structure& arguments, PyObject* given,
                                                            PyObject* tensors, PyObject* containers) {
  pure::Structure::Call call;
  TENON_CHECK(arguments.matches(given, call), Runtime, "it changes an argument");
  call.containers.erase(call.containers.begin());  // the tuple of them all
  return {pure::Identities(call.tensors, tensors), pure::Identities(call.containers, containers)};
}

/// (compiled, description of the arguments, they themselves in a tuple, num_positional, names or None,
/// captured tensors and containers, guards, exact, result, result tensors, live numbers)
PyObject* finish(PyObject* self, PyObject* args) {
  PyObject *compiled, *description, *given, *names, *tensors, *containers, *guards, *result, *results, *live;
  unsigned long long num_positional = 0;
  int exact = 0;
  if (!PyArg_ParseTuple(args, "OOO!KOO!O!O!pOO!O!", &compiled, &description, &PyTuple_Type, &given,
                        &num_positional, &names, &PyList_Type, &tensors, &PyList_Type, &containers,
                        &PyList_Type, &guards, &exact, &result, &PyList_Type, &results, &PyList_Type, &live))
    return nullptr;
  return guarded([&] {
    State& s = state_of(self);
    const std::string why = s.tensors.resolve(s.capture);
    TENON_CHECK(why.empty(), Runtime, why);
    std::vector<std::pair<const TensorImpl*, Result>> known;
    std::vector<size_t> numbers_of_results;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(results); ++i) {
      const Tensor& t = tensor_of(PyList_GET_ITEM(results, i));
      const auto found = std::ranges::find(known, t.impl(), &std::pair<const TensorImpl*, Result>::first);
      numbers_of_results.push_back(static_cast<size_t>(found - known.begin()));
      if (found != known.end()) continue;
      Result made = result_of(s, t, known);
      numbers_of_results.back() = known.size();
      known.emplace_back(t.impl(), std::move(made));
    }
    std::vector<Result> made;
    for (auto& [impl, one] : known) made.push_back(std::move(one));
    pure::Guards comparisons(guards, exact != 0);
    pure::Structure arguments(description);
    auto [same_tensors, same_containers] = identities_of(arguments, given, tensors, containers);
    std::vector<bool> slots(s.capture.slots().size());
    s.tensors.add_gradients(slots);
    for (const Result& one : made) {
      if (one.made) slots[one.made->slot] = true;
    }
    record::Replay replay(s.capture, slots, s.before, s.after);
    TENON_CHECK(!s.capture.is_refused(), Runtime, s.capture.reason());
    pure::LiveNumbers numbers(live, replay);
    s.tensors.forget_arguments();
    auto whole = std::make_unique<pure::PureReplay>(
        pure::PureReplay::Parts{.program = s.program,
                                .modes = s.modes,
                                .arguments = std::move(arguments),
                                .num_positional = num_positional,
                                .names = Ref::borrow(names == Py_None ? nullptr : names),
                                .same_tensors = std::move(same_tensors),
                                .same_containers = std::move(same_containers),
                                .tensors = std::move(s.tensors),
                                .guards = std::move(comparisons),
                                .results = std::move(made),
                                .result = pure::Structure(result, numbers_of_results),
                                .replay = std::move(replay),
                                .live = std::move(numbers)});
    add_replay(compiled, std::move(whole));
    return Py_NewRef(Py_None);
  });
}

/// Of comparisons in the form that _PureCapture.finish takes: what the first that fails is about, or None.
PyObject* broken_guard(PyObject*, PyObject* list) {
  return guarded([&] {
    pure::Guards guards(list);
    const pure::Guard* const broken = guards.broken();
    return Py_NewRef(broken ? broken->path.get() : Py_None);
  });
}

/// (tensor): its header, as mismatches describe the header of then.
PyObject* header(PyObject*, PyObject* tensor) {
  return guarded([&] {
    TENON_CHECK(is_tensor(tensor), Type, "a tensor is expected");
    return checked(to_python(describe(pure::Look(tensor_of(tensor)))));
  });
}

PyObject* class_version(PyObject*, PyObject* type) {
  return guarded([&] {
    TENON_CHECK(PyType_Check(type), Type, "a class is expected");
    return checked(PyLong_FromLongLong(pure::version_of_class(type)));
  });
}

PyMethodDef g_methods[] = {
    {"begin", &begin, METH_NOARGS, "Opens a scope, and returns its number."},
    {"end", &end, METH_O, "(scope): closes it, and computes what was recorded."},
    {"refused", &refused, METH_NOARGS, "Why there is nothing to replay, and the line; None if there is."},
    {"slot_of", &slot_of, METH_O, "The number of a tensor's storage in the segment; None if it has none."},
    {"updates_of", &updates_of, METH_O, "How many steps have updated each parameter of a group's list."},
    {"finish", &finish, METH_VARARGS,
     "Gives the compiled function a replay. Raises RuntimeError with the reason."},
    {}};
PyType_Slot g_slots[] = {{Py_tp_doc, const_cast<char*>("One call under observation.")},
                         {Py_tp_new, reinterpret_cast<void*>(&make)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&destroy)},
                         {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                         {Py_tp_methods, g_methods},
                         {0, nullptr}};
PyType_Spec g_spec{"tenon._C._PureCapture", sizeof(CaptureObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                   g_slots};
PyMethodDef g_functions[] = {
    {"_pure_broken_guard", &broken_guard, METH_O, "The first comparison that fails."},
    {"_pure_header", &header, METH_O, "A tensor's header: float32[4]."},
    {"_pure_class_version", &class_version, METH_O,
     "A number that changes with every change of a class or of its bases; -1 if it has none."},
    {}};

}  // namespace

bool add_pure_capture(PyObject* module) {
  PyObject* const type = PyType_FromSpec(&g_spec);
  return type && PyModule_AddObject(module, "_PureCapture", type) == 0 &&
         PyModule_AddFunctions(module, g_functions) == 0;
}

}  // namespace tenon::python
