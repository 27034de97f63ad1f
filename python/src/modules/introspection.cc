// Introspection as text, and switches: key sets, dispatcher tables, traces, which kernels ran, threads,
// strict mode.
#include <fmt/format.h>

#include <map>

#include "backends/cpu/cpu_target.h"
#include "python/src/call/dictionary.h"
#include "python/src/call/overload.h"
#include "python/src/call/parser.h"
#include "python/src/call/spread.h"
#include "python/src/interpreter/capsule.h"
#include "python/src/module_parts.h"
#include "python/src/modules/operator_argument.h"
#include "python/src/ops/key_set_object.h"
#include "tenon/core/copy_report.h"
#include "tenon/core/fallback_report.h"
#include "tenon/core/kernel_report.h"
#include "tenon/core/parallel.h"
#include "tenon/core/strict.h"
#include "tenon/dispatch/dispatcher.h"
#include "tenon/iter/promotion.h"
#include "tenon/record/recorder.h"

namespace tenon::python {
namespace {

const Tensor& tensor_argument(const char* function, PyObject* o) {
  if (!is_tensor(o)) wrong_type(function, "input", "a Tensor", o);
  return tensor_of(o);
}

// tenon._C.dispatch

PyObject* key_set(PyObject*, PyObject* o) {
  return guarded([&] { return to_python(to_string(tensor_argument("key_set", o).key_set())); });
}
PyObject* operators(PyObject*, PyObject*) {
  return guarded([&] { return texts(Dispatcher::singleton().operator_names()).release(); });
}
PyObject* all_operators(PyObject*, PyObject*) {
  return guarded(
      [&] { return texts(Dispatcher::singleton().operator_names(Dispatcher::Listed::No)).release(); });
}
PyObject* schema_text(PyObject*, PyObject* o) {
  return guarded([&] { return to_python(schema::to_string(operator_argument("schema", "op", o).schema())); });
}
PyObject* dump(PyObject*, PyObject* o) {
  return guarded([&] {
    return to_python(Dispatcher::singleton().dump_registrations(registered_argument("dump", "op", o)));
  });
}
PyObject* table(PyObject*, PyObject* o) {
  return guarded([&] {
    return to_python(Dispatcher::singleton().dump_table(operator_argument("dump_table", "op", o)));
  });
}
PyObject* has_kernel(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return guarded([&] {
    TENON_CHECK(n == 1 || n == 2, Type, "has_kernel() takes an operator's name and, or not, a key's name");
    if (n == 1)
      return PyBool_FromLong(
          Dispatcher::singleton().has_kernel(operator_argument("has_kernel", "op", args[0])));
    const auto key = key_asked_for(text_argument("has_kernel", "name", args[1]));
    const OperatorHandle op = operator_argument("has_kernel", "op", args[0]);
    return PyBool_FromLong(key && Dispatcher::singleton().has_kernel(op, *key));
  });
}
PyObject* trace(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&] {
    const auto [on, shapes, times] = spread("trace", {"on", "shapes", "times"}, 3, args, n, keywords);
    if (on && flag("trace", "on", on))
      set_dispatch_trace(
          TraceLines{.shapes = flag("trace", "shapes", shapes), .times = flag("trace", "times", times)});
    else
      set_dispatch_trace(false);
  });
}

constexpr const char* kRecordingName = "tenon.TraceRecording";

PyObject* start_recording(PyObject*, PyObject*) {
  return guarded([&] { return to_capsule(std::make_unique<TraceRecording>(), kRecordingName); });
}

PyObject* as_tuple(const TraceEvent& e) {
  const Ref shapes = list_of(e.shapes, [](const Dims& sizes) { return wrap_tuple(IntArrayRef(sizes)); });
  const Ref dtypes = list_of(e.dtypes, [](DType dtype) { return wrap(dtype); });
  const std::string stream = e.stream ? to_string(*e.stream) : "";
  return checked(Py_BuildValue(
      "(ssNNiLLLOOz)", e.op.c_str(), e.key.c_str(), PyBool_FromLong(e.redispatch), PyBool_FromLong(e.failed),
      static_cast<int>(e.depth), static_cast<long long>(e.thread), static_cast<long long>(e.begin_ns),
      static_cast<long long>(e.end_ns), shapes.get(), dtypes.get(), e.stream ? stream.c_str() : nullptr));
}

/// (events, JSON) of a recording, which ends with it.
PyObject* stop_recording(PyObject*, PyObject* capsule) {
  return guarded([&] {
    const std::vector<TraceEvent> events = from_capsule<TraceRecording>(capsule, kRecordingName).stop();
    const Ref list = list_of(events, as_tuple);
    const Ref json(checked(to_python(chrome_trace(events))));
    return checked(Py_BuildValue("(OO)", list.get(), json.get()));
  });
}

// Lines of diagnostics go to the function that is set, from any thread.
PyObject* g_sink = nullptr;

void write_to_sink(std::string_view line) {
  const HoldGil gil;
  if (!g_sink) return;
  // The line may be about a call that an exception is leaving.
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const Ref text(to_python(line));
  const Ref result(text ? PyObject_CallOneArg(g_sink, text.get()) : nullptr);
  if (!result) PyErr_WriteUnraisable(g_sink);
  PyErr_Restore(type, value, traceback);
}

PyObject* set_sink(PyObject*, PyObject* function) {
  return guarded([&] {
    if (function != Py_None && !PyCallable_Check(function))
      wrong_type("set_sink", "function", "callable", function);
    PyObject* old = std::exchange(g_sink, function == Py_None ? nullptr : Py_NewRef(function));
    set_diagnostic_sink(g_sink ? [](std::string_view line) { write_to_sink(line); } : DiagnosticSink{});
    return old ? old : Py_NewRef(Py_None);
  });
}

PyMethodDef g_dispatch_functions[] = {
    {"key_set", &key_set, METH_O, "The keys that a tensor brings to a call, in rising priority."},
    {"operators", &operators, METH_NOARGS, "Full names of all declared operators."},
    {"all_operators", &all_operators, METH_NOARGS,
     "The same and derivatives that were made from them at their first use (aten::silu_backward.self)."},
    {"schema", &schema_text, METH_O, "The schema of an operator."},
    {"dump", &dump, METH_O, "The registrations of an operator, with file and line."},
    {"table", &table, METH_O, "The computed table of an operator."},
    fast_method("has_kernel", &has_kernel, "has_kernel(op, key=None)"),
    fast_method("trace", &trace,
                "trace(on, shapes=False, times=False): switches the printed trace on or off."),
    {"start_recording", &start_recording, METH_NOARGS, "Records every call from now on; for stop_recording."},
    {"stop_recording", &stop_recording, METH_O, "(events, JSON) of a recording."},
    {"set_sink", &set_sink, METH_O,
     "Sends diagnostics, line by line, to a function; None for standard error. Returns the one before."},
    {}};

// tenon._C

PyObject* describe(PyObject*, PyObject* o) {
  return guarded([&] {
    const Tensor& t = tensor_argument("describe", o);
    const Storage& s = t.storage();
    const Allocator* allocator = s->allocator();
    return to_python(fmt::format(
        "Tensor of {} on {}, {}\n  sizes {}, strides {}, offset {}{}\n  keys {}\n  storage at {:#x}: {} "
        "bytes from {}, "
        "version {}, shared by {}\n  use count {}{}",
        name(t.dtype()), to_string(t.device()), name(t.layout()), to_string(t.sizes()),
        to_string(t.strides()), t.storage_offset(), t.is_contiguous() ? ", contiguous" : "",
        to_string(t.key_set()), s.address(), s.nbytes(), allocator ? allocator->name() : "outside",
        s.version(), s.use_count(), t.use_count(), t.is_view() ? ", a view" : ""));
  });
}

PyObject* set_threads(PyObject*, PyObject* o) {
  return guarded([&] {
    const int64_t n = int_argument("set_num_threads", "n", o);
    // The system ends a process that asks for more threads than it gives.
    TENON_CHECK(n >= 1 && n <= 1024, Value,
                fmt::format("set_num_threads: `n` must be from 1 to 1024, got {}", n));
    set_num_threads(static_cast<int>(n));
  });
}
PyObject* get_threads(PyObject*, PyObject*) { return PyLong_FromLong(num_threads()); }

PyObject* strict_on(PyObject*, PyObject* on) {
  return guarded([&] { set_strict(switch_of("set_strict", "mode", on)); });
}

PyObject* report_kernels(PyObject*, PyObject* on) {
  return guarded([&] { set_kernel_reporting(switch_of("set_kernel_reporting", "mode", on)); });
}
PyObject* last_kernel_run(PyObject*, PyObject*) {
  const KernelReport report = last_kernel();
  if (!report.op) Py_RETURN_NONE;
  return Py_BuildValue("(ss)", report.op, report.kernel);
}
PyObject* kernel_list(PyObject*, PyObject*) {
  return guarded([&] {
    return list_of(kernel_counts(),
                   [&](const KernelCount& c) {
                     return Py_BuildValue("(ssK)", c.report.op, c.report.kernel, c.calls);
                   })
        .release();
  });
}

PyObject* kernels_outside_calls(PyObject*, PyObject*) {
  return guarded([&] {
    Ref list(checked(PyList_New(0)));
    for (const KernelCount& c : kernel_counts()) {
      if (c.outside == 0) continue;
      append(list, Py_BuildValue("(ssK)", c.report.op, c.report.kernel, c.outside));
    }
    return list.release();
  });
}

PyObject* fallback_counts(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&] {
    const auto [device] = spread("fallbacks", {"device"}, 1, args, n, keywords);
    const std::optional<Device> only = given(device) ? as_device(device) : std::nullopt;
    if (given(device) && !only) wrong_type("fallbacks", "device", "a device or str", device);
    std::map<std::string, FallbackCount> sums;
    for (const FallbackCount& c : fallbacks()) {
      if (only && c.backend != only->backend) continue;
      FallbackCount& sum = sums[c.name];
      sum.calls += c.calls;
      sum.nbytes += c.nbytes;
    }
    Ref all(checked(PyDict_New()));
    for (const auto& [name, sum] : sums) {
      put(all, name,
          Py_BuildValue("{sLsL}", "calls", static_cast<long long>(sum.calls), "bytes",
                        static_cast<long long>(sum.nbytes)));
    }
    return all.release();
  });
}

PyObject* forget_fallbacks(PyObject*, PyObject*) {
  return guarded([&] { reset_fallbacks(); });
}

PyObject* seed(PyObject*, PyObject* o) {
  return guarded([&] {
    record::Recorder::current().refuse_capture("it seeds the default generator");
    manual_seed(seed_argument(o));
    return wrap(default_generator());
  });
}

PyObject* set_default(PyObject*, PyObject* o) {
  return guarded([&] {
    const auto dtype = as_dtype(o);
    if (!dtype) wrong_type("set_default_dtype", "d", "a dtype", o);
    set_default_dtype(*dtype);
  });
}

PyObject* argument_types() {
  return guarded([] {
    Ref types(checked(PyDict_New()));
    tenon::detail::for_each_base([&]<BaseType b>() {
      if (!PythonValue<b>::passes) return;
      const schema::BaseTypeInfo& info = schema::base_type_info(b);
      put(types, info.name, to_python(info.returned));
    });
    return types.release();
  });
}

PyObject* can_cast_to(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&] {
    const auto [from, to] = spread("can_cast", {"from_", "to"}, 2, args, n, keywords);
    TENON_CHECK(given(from) && given(to) && as_dtype(from) && as_dtype(to), Type,
                "can_cast() takes two dtypes");
    return PyBool_FromLong(can_cast(*as_dtype(from), *as_dtype(to)));
  });
}

PyObject* result_type_of(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded("result_type", [&] {
    static constexpr const char* kNames[] = {"tensor1", "tensor2"};
    const auto operands = spread("result_type", kNames, 2, args, n, keywords);
    Promotion promotion;
    for (size_t i = 0; i < 2; ++i) {
      PyObject* o = operands[i];
      Scalar number;
      if (given(o) && is_tensor(o))
        promotion.add(tensor_of(o));
      else if (given(o) && parse_scalar(o, number))
        promotion.add(number);
      else
        wrong_type("result_type", kNames[i], "a Tensor or a number", o ? o : Py_None);
    }
    return wrap(promotion.common());
  });
}

PyObject* promote(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return guarded([&] {
    TENON_CHECK(n == 2 && as_dtype(args[0]) && as_dtype(args[1]), Type, "promote_types() takes two dtypes");
    return wrap(promote_types(*as_dtype(args[0]), *as_dtype(args[1])));
  });
}

PyMethodDef g_introspection_functions[] = {
    {"describe", &describe, METH_O,
     "describe(input, /)\n--\n\n"
     "All that a tensor is: geometry, keys, storage."},
    {"set_num_threads", &set_threads, METH_O,
     "set_num_threads(n, /)\n--\n\n"
     "Threads that kernels may use."},
    {"get_num_threads", &get_threads, METH_NOARGS,
     "get_num_threads()\n--\n\n"
     "Threads that kernels may use."},
    {"set_strict", &strict_on, METH_O,
     "set_strict(on, /)\n--\n\n"
     "No vendor's library computes while it is on. Without it, oneDNN may compute parts of programs that "
     "were\n"
     "compiled with relaxed=True; all other results have the same bits anywhere."},
    {"is_strict", [](PyObject*, PyObject*) { return PyBool_FromLong(is_strict()); }, METH_NOARGS,
     "is_strict()\n--\n\n"
     "Whether set_strict keeps vendors' libraries out."},
    {"set_kernel_reporting", &report_kernels, METH_O,
     "set_kernel_reporting(on, /)\n--\n\n"
     "Records which kernels run, from now on or no longer."},
    {"last_kernel", &last_kernel_run, METH_NOARGS,
     "last_kernel()\n--\n\n"
     "(operator, kernel) of this thread's last one, or None."},
    {"kernel_counts", &kernel_list, METH_NOARGS,
     "kernel_counts()\n--\n\n"
     "(operator, kernel, calls) for all that ran while recording."},
    {"kernels_outside_calls", &kernels_outside_calls, METH_NOARGS,
     "kernels_outside_calls()\n--\n\n"
     "(operator, kernel, calls) for those that ran while no traced call was open: with the dispatch trace "
     "on, past "
     "the dispatcher."},
    {"cpu_target_name",
     [](PyObject*, PyObject*) { return guarded([] { return to_python(cpu::cpu_target_name()); }); },
     METH_NOARGS,
     "cpu_target_name()\n--\n\n"
     "The instruction set that kernels run on."},
    {"hidden_copies", [](PyObject*, PyObject*) { return PyLong_FromLongLong(hidden_copies()); }, METH_NOARGS,
     "hidden_copies()\n--\n\n"
     "Copies that operators made unasked, so far."},
    fast_method("fallbacks", &fallback_counts,
                "fallbacks(device=None)\n--\n\n"
                "What ran on host copies so far because its device has no kernel: by name, its calls and the "
                "bytes that they copied. Of one device's backend, or of all."),
    {"reset_fallbacks", &forget_fallbacks, METH_NOARGS,
     "reset_fallbacks()\n--\n\n"
     "Forgets what has fallen back so far."},
    {"manual_seed", &seed, METH_O,
     "manual_seed(seed, /)\n--\n\n"
     "Seeds the default generator and returns it."},
    {"_argument_types", [](PyObject*, PyObject*) { return argument_types(); }, METH_NOARGS,
     "The schema language's types of arguments, each with the name of its type here."},
    {"get_default_dtype", [](PyObject*, PyObject*) { return wrap(default_dtype()); }, METH_NOARGS,
     "get_default_dtype()\n--\n\n"
     "The dtype of Python floats."},
    {"set_default_dtype", &set_default, METH_O,
     "set_default_dtype(d, /)\n--\n\n"
     "Sets the dtype of Python floats."},
    fast_method("result_type", &result_type_of,
                "result_type(tensor1, tensor2)\n--\n\n"
                "The dtype of an operation on two tensors or numbers."),
    fast_method("can_cast", &can_cast_to,
                "can_cast(from_, to)\n--\n\n"
                "Whether values of a dtype may be stored in another."),
    fast_method("promote_types", &promote,
                "promote_types(a, b)\n--\n\n"
                "The smallest dtype that holds two others."),
    {}};

}  // namespace

bool add_introspection(PyObject* module) {
  return add_submodule(module, "dispatch", g_dispatch_functions) &&
         PyModule_AddFunctions(module, g_introspection_functions) == 0;
}

}  // namespace tenon::python
