// Recording of programs: what tenon.compile (python/tenon/_program/compile.py) is made of.
#include "python/src/call/dictionary.h"
#include "python/src/module_parts.h"
#include "tenon/expr/expression.h"
#include "tenon/record/compile.h"
#include "tenon/record/recorder.h"

namespace tenon::python {
namespace {

using record::Recorder;

PyObject* begin(PyObject*, PyObject* args) {
  unsigned long long program = 0;
  long long threshold = 0;
  int trust_shared = 0, relaxed = 0;
  double tune_ms = 0;
  if (!PyArg_ParseTuple(args, "KLp|pd", &program, &threshold, &trust_shared, &relaxed, &tune_ms))
    return nullptr;
  return guarded([&] {
    record::ScopeOptions options{
        .trust_shared = trust_shared != 0, .relaxed = relaxed != 0, .tune_ms = tune_ms};
    if (threshold >= 0) options.threshold = threshold;
    return PyLong_FromUnsignedLongLong(Recorder::current().begin(program, options));
  });
}

PyObject* end(PyObject*, PyObject* scope) {
  return guarded([&] { Recorder::current().end(PyLong_AsUnsignedLongLong(scope)); });
}

PyObject* flush(PyObject*, PyObject*) {
  return guarded([] { record::flush(); });
}

PyObject* stats(PyObject*, PyObject*) {
  return guarded([] {
    const record::Counts c = Recorder::current().counts();
    Ref all(checked(PyDict_New()));
    set(all, "recorded", c.recorded);
    set(all, "now", c.ran_now);
    set(all, "segments", c.segments);
    set(all, "planned", c.planned);
    set(all, "loaded", c.loaded);
    set(all, "new_nodes", c.new_nodes);
    put(all, "reasons", counted(Recorder::current().reasons()).release());
    return all.release();
  });
}

Ref segment_of(const record::PlannedSegment& planned) {
  Ref segment(checked(PyDict_New())), regions(checked(PyList_New(0))), opaque(checked(PyList_New(0)));
  set(segment, "event", "segment");
  set(segment, "runs", planned.runs);
  set(segment, "nodes", planned.num_calls);
  set(segment, "steps", planned.plan->num_steps());
  set(segment, "first_line", describe_source(planned.first_line));
  set(segment, "last_line", describe_source(planned.last_line));
  put(segment, "loaded", PyBool_FromLong(planned.plan->is_loaded()));
  set(segment, "ended", planned.ended);
  if (planned.ended_by) set(segment, "ended_by", planned.ended_by->op.full_name());
  set(segment, "key", expr::to_string(planned.plan->report().key));
  for (const graph::FusionReport::Fusion& fusion : planned.plan->report().fusions) {
    const Ref region(checked(PyDict_New()));
    set(region, "name", fusion.name);
    std::vector<std::string> operators;
    for (const OperatorHandle& op : fusion.operators) operators.push_back(op.full_name());
    put(region, "operators", texts(operators).release());
    set(region, "bytes", static_cast<uint64_t>(fusion.bytes));
    set(region, "bytes_apart", static_cast<uint64_t>(fusion.bytes_apart));
    set(region, "engine", fusion.engine);
    put(region, "refused", texts(fusion.refused).release());
    const Ref knobs(checked(PyDict_New())), trials(checked(PyList_New(0)));
    for (const auto& [name, value] : fusion.knobs) put(knobs, name, PyLong_FromLongLong(value));
    for (const graph::Trial& trial : fusion.trials) {
      const Ref entry(checked(PyDict_New()));
      set(entry, "name", trial.name);
      put(entry, "microseconds", PyFloat_FromDouble(trial.ns / 1000));
      set(entry, "reason", trial.reason);
      append(trials, Py_NewRef(entry.get()));
    }
    put(region, "knobs", Py_NewRef(knobs.get()));
    put(region, "timed", Py_NewRef(trials.get()));
    append(regions, Py_NewRef(region.get()));
  }
  for (const graph::FusionReport::Left& left : planned.plan->report().left)
    append(opaque, texts({left.op.full_name(), describe_source(left.line), left.reason}).release());
  put(segment, "regions", regions.release());
  put(segment, "opaque", opaque.release());
  return segment;
}

void add_events(const Ref& list, const char* event, const char* what,
                const std::vector<record::ProgramReport::Event>& events) {
  for (const record::ProgramReport::Event& e : events) {
    const Ref dict(checked(PyDict_New()));
    set(dict, "event", event);
    if (e.info) set(dict, "operator", e.info->op.full_name());
    set(dict, what, e.what);
    set(dict, "line", describe_source(e.line));
    set(dict, "count", e.count);
    append(list, Py_NewRef(dict.get()));
  }
}

PyObject* explain(PyObject*, PyObject* number) {
  return guarded([&] {
    Ref list(checked(PyList_New(0)));
    const Recorder::Summary known = Recorder::current().summary(PyLong_AsUnsignedLongLong(number));
    for (const record::PlannedSegment& planned : known.plans) append(list, segment_of(planned).release());
    if (known.num_cleared > 0) {
      const Ref forgotten(checked(PyDict_New()));
      set(forgotten, "event", "forgotten");
      set(forgotten, "count", known.num_cleared);
      append(list, Py_NewRef(forgotten.get()));
    }
    if (known.num_skipped > 0) {
      const Ref skipped(checked(PyDict_New()));
      set(skipped, "event", "skipped");
      set(skipped, "count", known.num_skipped);
      append(list, Py_NewRef(skipped.get()));
    }
    add_events(list, "now", "reason", known.report.ran_now);
    add_events(list, "left", "field", known.report.left);
    add_events(list, "forced", "reason", known.report.forced);
    return list.release();
  });
}

PyMethodDef g_recording_functions[] = {
    {"_record_begin", &begin, METH_VARARGS,
     "(program, threshold, trust_shared, relaxed, tune_ms): opens a scope and returns its number; a "
     "threshold of -1 "
     "is "
     "the default one."},
    {"_record_end", &end, METH_O, "(scope): closes it; the outermost computes what was recorded."},
    {"_record_flush", &flush, METH_NOARGS, "Computes what this thread has recorded."},
    {"_record_stats", &stats, METH_NOARGS, "What this thread has recorded so far, and why it did not wait."},
    {"_record_explain", &explain, METH_O,
     "What became of a program's calls on this thread: a list of dictionaries, one for each event."},
    {"_record_new_program",
     [](PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(record::new_program()); }, METH_NOARGS,
     "A number for a program."},
    {}};

}  // namespace

bool add_recording(PyObject* module) {
  return PyModule_AddFunctions(module, g_recording_functions) == 0 && add_compiled_function(module);
}

}  // namespace tenon::python
