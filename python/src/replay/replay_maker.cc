// The type _C._ReplayMaker: one call of a program that is captured, which becomes a replay. Used by
// python/tenon/_replay/program.py.
#include <fmt/format.h>

#include "python/src/call/optimizer_updates.h"
#include "python/src/interpreter/errors.h"
#include "python/src/interpreter/sequences.h"
#include "python/src/interpreter/source_lines.h"
#include "python/src/replay/replay.h"
#include "python/src/tensor/tensor_object.h"
#include "tenon/autograd/autograd.h"
#include "tenon/core/error.h"

namespace tenon::python::replay {
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
  TensorGuards tensors;
  Modes modes = Modes::now();
  PhiloxState before = default_generator()->state(), after = {};
  record::RecordedSegment capture;
  uint64_t num_cleared = 0;  // how often the recorder had forgotten what it knows of the program
  OptimizerUpdates updates;
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
    // That the program writes to shared memory by its operators alone is part of its promise.
    const uint64_t scope = Recorder::current().begin(
        s.program, {.threshold = 0, .trust_shared = true, .relaxed = s.relaxed, .tune_ms = s.tune_ms});
    s.num_cleared = Recorder::current().trie(s.program)->num_cleared();
    s.capture.set_place(&mark_of_program);
    s.tensors.watch();
    Recorder::current().capture(&s.capture);
    OptimizerUpdates::current = &s.updates;
    return PyLong_FromUnsignedLongLong(scope);
  });
}

PyObject* end(PyObject* self, PyObject* scope) {
  return guarded([&] {
    State& s = state_of(self);
    struct Detach {
      State& state;
      ~Detach() {
        state.tensors.stop_watching();
        Recorder::current().capture(nullptr);
        OptimizerUpdates::current = nullptr;
      }
    } const detach{s};
    Recorder::current().end(PyLong_AsUnsignedLongLong(scope));
    s.capture.set_place(nullptr);
    s.after = default_generator()->state();
    if (const char* const mode = Modes::now().difference(s.modes))
      s.capture.refuse(fmt::format("it changes {}", mode));
    if (s.after.seed != s.before.seed || s.after.offset < s.before.offset)
      s.capture.refuse("it seeds the default generator");
    if (!s.capture.is_refused() && !s.capture.is_taken()) s.capture.refuse("it records no operator");
  });
}

PyObject* refused(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const record::RecordedSegment& capture = state_of(self).capture;
    if (!capture.is_refused()) return Py_NewRef(Py_None);
    const Ref reason(checked(to_python(capture.reason())));
    const Ref line(checked(to_python(capture.line() ? describe_source(capture.line()) : "")));
    return PyTuple_Pack(2, reason.get(), line.get());
  });
}

using Result = PureReplay::Result;

/// Throws Error{Runtime} with the reason where a result cannot be made again. Its base, if it is a view, goes
/// to `results` first.
Result result_of(State& s, const Tensor& t, std::vector<std::pair<const TensorImpl*, Result>>& results) {
  Result result{.noted = s.tensors.find(t)};
  if (result.noted != SIZE_MAX) return result;
  result.gradient_of = s.tensors.find_gradient(t);
  if (result.gradient_of != SIZE_MAX) return result;
  const auto& slots = s.capture.slots();
  for (size_t i = 0; i < slots.size() && !result.made; ++i) {
    if (slots[i].storage && slots[i].storage == t.storage()) result.made.emplace(t, static_cast<uint32_t>(i));
  }
  TENON_CHECK(result.made.has_value(), Runtime, "it returns a tensor that no recorded operator has computed");
  TENON_CHECK(is_plain(t), Runtime, "it returns a tensor of a subclass, or with attributes");
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
        std::ranges::find(slots, tensor_of(tensor).storage(), &record::RecordedSegment::Slot::storage);
    return found == slots.end() ? Py_NewRef(Py_None) : PyLong_FromSsize_t(found - slots.begin());
  });
}

/// (params): how many steps of optimizers have updated each parameter of a group's list.
PyObject* updates_of(PyObject* self, PyObject* params) {
  return guarded([&] {
    TENON_CHECK(PyList_CheckExact(params), Type, "updates_of takes the list of parameters of a group");
    const auto count = [&](Py_ssize_t i) {
      return PyLong_FromLongLong(state_of(self).updates.count(params, static_cast<size_t>(i)));
    };
    return list_of(std::views::iota(Py_ssize_t{0}, PyList_GET_SIZE(params)), count).release();
  });
}

/// How many parameters steps of optimizers have updated, each as often as they did.
PyObject* num_updates(PyObject* self, PyObject*) { return PyLong_FromSize_t(state_of(self).updates.size()); }

/// Of tensors and containers among the arguments. `named` are objects that the program names.
std::pair<Identities, Identities> identities_of(const Structure& arguments, PyObject* given,
                                                PyObject* named) {
  Structure::Call call;
  TENON_CHECK(arguments.matches(given, call), Runtime, "it changes an argument");
  call.containers.erase(call.containers.begin());  // the tuple of them all
  return {Identities(call.tensors, named), Identities(call.containers, named)};
}

/// The results, by the tensors that they are, and the number of each tensor of `list` among them.
std::vector<Result> results_of(State& s, PyObject* list, std::vector<size_t>& numbers) {
  std::vector<std::pair<const TensorImpl*, Result>> known;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    const Tensor& t = tensor_of(PyList_GET_ITEM(list, i));
    const auto found = std::ranges::find(known, t.impl(), &std::pair<const TensorImpl*, Result>::first);
    numbers.push_back(static_cast<size_t>(found - known.begin()));
    if (found != known.end()) continue;
    Result made = result_of(s, t, known);
    numbers.back() = known.size();
    known.emplace_back(t.impl(), std::move(made));
  }
  std::vector<Result> made;
  for (auto& [impl, one] : known) made.push_back(std::move(one));
  return made;
}

/// (description of the arguments, they themselves in a tuple, num_positional, names or None, objects that the
/// program names, guards, result, result tensors, live numbers): the replay in a capsule. None where the
/// recorder has just forgotten the calls.
PyObject* finish(PyObject* self, PyObject* args) {
  PyObject *description, *given, *names, *named, *guards, *result, *results, *live;
  unsigned long long num_positional = 0;
  if (!PyArg_ParseTuple(args, "OO!KOO!O!OO!O!", &description, &PyTuple_Type, &given, &num_positional, &names,
                        &PyList_Type, &named, &PyList_Type, &guards, &result, &PyList_Type, &results,
                        &PyList_Type, &live))
    return nullptr;
  return guarded([&]() -> PyObject* {
    State& s = state_of(self);
    if (s.num_cleared != Recorder::current().trie(s.program)->num_cleared()) return Py_NewRef(Py_None);
    const std::string why = s.tensors.resolve(s.capture);
    TENON_CHECK(why.empty(), Runtime, why);
    std::vector<size_t> numbers_of_results;
    std::vector<Result> made = results_of(s, results, numbers_of_results);
    Guards comparisons(guards);
    Structure arguments(description);
    auto [same_tensors, same_containers] = identities_of(arguments, given, named);
    std::vector<bool> slots(s.capture.slots().size());
    s.tensors.add_gradients(slots);
    for (const Result& one : made) {
      if (!one.made) continue;
      slots[one.made->slot] = true;
      s.tensors.keep_offsets(one.made->slot);
    }
    record::Replay replay(s.capture, slots, s.before, s.after);
    TENON_CHECK(!s.capture.is_refused(), Runtime, s.capture.reason());
    LiveNumbers numbers(live, replay);
    s.tensors.forget_arguments();
    return wrap_replay(std::make_unique<PureReplay>(
        PureReplay::Parts{.program = s.program,
                          .modes = s.modes,
                          .arguments = std::move(arguments),
                          .num_positional = num_positional,
                          .names = Ref::borrow(names == Py_None ? nullptr : names),
                          .same_tensors = std::move(same_tensors),
                          .same_containers = std::move(same_containers),
                          .tensors = std::move(s.tensors),
                          .guards = std::move(comparisons),
                          .results = std::move(made),
                          .result = Structure(result, numbers_of_results),
                          .replay = std::move(replay),
                          .live = std::move(numbers)}));
  });
}

/// (tensor): its header, as mismatches describe the header of then.
PyObject* header(PyObject*, PyObject* tensor) {
  return guarded([&] {
    TENON_CHECK(is_tensor(tensor), Type, "a tensor is expected");
    return checked(to_python(describe(HeaderSnapshot(tensor_of(tensor)))));
  });
}

PyMethodDef g_replay_maker_methods[] = {
    {"begin", &begin, METH_NOARGS, "Opens a scope, and returns its number."},
    {"end", &end, METH_O, "(scope): closes it, and computes what was recorded."},
    {"refused", &refused, METH_NOARGS, "Why there is nothing to replay, and the line; None if there is."},
    {"slot_of", &slot_of, METH_O, "The number of a tensor's storage in the segment; None if it has none."},
    {"updates_of", &updates_of, METH_O, "How many steps have updated each parameter of a group's list."},
    {"num_updates", &num_updates, METH_NOARGS, "How many updates of parameters there were."},
    {"finish", &finish, METH_VARARGS,
     "A replay, for the compiled function. Raises RuntimeError with the reason why there is none."},
    {}};
PyType_Slot g_slots[] = {{Py_tp_doc, const_cast<char*>("One call that is captured.")},
                         {Py_tp_new, reinterpret_cast<void*>(&make)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(&destroy)},
                         {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                         {Py_tp_methods, g_replay_maker_methods},
                         {0, nullptr}};
PyType_Spec g_spec{"tenon._C._ReplayMaker", sizeof(CaptureObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                   g_slots};
PyMethodDef g_replay_maker_functions[] = {
    {"_replay_header", &header, METH_O, "A tensor's header: float32[4]."}, {}};

}  // namespace

bool add_replay_maker(PyObject* module) {
  PyObject* const type = PyType_FromSpec(&g_spec);
  return type && PyModule_AddObject(module, "_ReplayMaker", type) == 0 &&
         PyModule_AddFunctions(module, g_replay_maker_functions) == 0;
}

}  // namespace tenon::python::replay
