// tenon._C._builder: graphs that are written down, for tenon.graph. Tensors of a graph are numbers here, in
// the order in which they were made.
#include <memory>
#include <string>

#include "python/src/call/parser.h"
#include "python/src/call/python_value.h"
#include "python/src/call/spread.h"
#include "python/src/interpreter/capsule.h"
#include "python/src/interpreter/gil.h"
#include "python/src/interpreter/sequences.h"
#include "python/src/module_parts.h"
#include "python/src/modules/buffer.h"
#include "python/src/modules/builder_graph.h"
#include "python/src/tensor/attribute_types.h"
#include "python/src/tensor/tensor_object.h"
#include "tenon/builder/graph.h"
#include "tenon/core/error.h"
#include "tenon/dispatch/writes.h"

namespace tenon::python {
namespace {

using builder::Graph;
using builder::TensorAttributes;
using namespace std::string_literals;

// Arguments, as the wrapper in tenon/graph.py passes them; what users passed wrongly is refused here.

std::optional<DType> dtype_or_none(const char* argument, PyObject* o) {
  if (!given(o)) return std::nullopt;
  const auto dtype = as_dtype(o);
  if (!dtype) wrong_type("graph", argument, "a dtype", o);
  return dtype;
}
std::string text_of(PyObject* o) { return text_argument("graph", "name", o); }
int64_t int_of(const char* argument, PyObject* o) { return int_argument("graph", argument, o); }
template <class F>
void each(PyObject* sequence, F&& f) {
  const Ref list(checked(PySequence_Fast(sequence, "expected a list")));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i)
    f(PySequence_Fast_GET_ITEM(list.get(), i));
}
Dims dims_of(const char* argument, PyObject* o) {
  Dims dims;
  if (parse_ints(o, dims)) return dims;
  if (PyList_Check(o) || PyTuple_Check(o)) each(o, [&](PyObject* element) { int_of(argument, element); });
  wrong_type("graph", argument, "a list of ints", o);
  return dims;
}
uint64_t uid_of(PyObject* o) {
  if (PyBool_Check(o) || PyFloat_Check(o)) wrong_type("graph", "uid", "an int", o);
  const int64_t uid = int_of("uid", o);
  TENON_CHECK(uid > 0, Value, "graph: a UID is at least 1, not " + std::to_string(uid));
  return static_cast<uint64_t>(uid);
}
TensorAttributes& tensor_at(Graph& g, PyObject* number) {
  const int64_t i = int_of("tensor", number);
  TENON_CHECK(i >= 0 && static_cast<size_t>(i) < g.tensors().size(), Index, "graph: there is no such tensor");
  return *g.tensors()[static_cast<size_t>(i)];
}
PyObject* number_of(const Graph& g, const TensorAttributes& t) {
  for (size_t i = g.tensors().size(); i-- > 0;) {
    if (g.tensors()[i].get() == &t) return checked(PyLong_FromSize_t(i));
  }
  throw_error(ErrorKind::Internal, "graph: a tensor of no graph");
}

/// Calls f(args...) with the entry point's arguments.
#define TENON_BUILDER_FUNCTION(name) PyObject* name(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*)

TENON_BUILDER_FUNCTION(new_graph) {
  return counted("graph", n, 5, [&] {
    builder::Handle handle;
    if (given(args[4])) {
      const auto device = as_device(args[4]);
      if (!device) wrong_type("pygraph", "handle", "a handle", args[4]);
      handle.device = *device;
    }
    return wrap_graph(std::make_shared<Graph>(
        builder::GraphOptions{.name = text_of(args[0]),
                              .io = dtype_or_none("io_data_type", args[1]),
                              .intermediate = dtype_or_none("intermediate_data_type", args[2]),
                              .compute = dtype_or_none("compute_data_type", args[3])},
        &handle));
  });
}

TENON_BUILDER_FUNCTION(tensor) {
  return counted("tensor", n, 8, [&] {
    Graph& g = graph_of(args[0]);
    builder::TensorDescription options{.name = text_of(args[1])};
    if (given(args[2])) options.dim = dims_of("dim", args[2]);
    if (given(args[3])) options.stride = dims_of("stride", args[3]);
    options.data_type = dtype_or_none("data_type", args[4]);
    if (given(args[5])) options.uid = uid_of(args[5]);
    options.is_virtual = flag("tensor", "is_virtual", args[6]);
    options.is_pass_by_value = flag("tensor", "is_pass_by_value", args[7]);
    return number_of(g, g.tensor(std::move(options)));
  });
}
TENON_BUILDER_FUNCTION(tensor_like) {
  return counted("tensor_like", n, 3, [&] {
    Graph& g = graph_of(args[0]);
    if (!is_tensor(args[1])) wrong_type("tensor_like", "like", "a tensor or an array", args[1]);
    return number_of(g, g.tensor_like(tensor_of(args[1]), text_of(args[2])));
  });
}
TENON_BUILDER_FUNCTION(tensor_like_other) {
  return counted("tensor_like", n, 4, [&] {
    Graph& g = graph_of(args[0]);
    return number_of(g, g.tensor_like(tensor_at(graph_of(args[1]), args[2]), text_of(args[3])));
  });
}
TENON_BUILDER_FUNCTION(scalar) {
  return counted("tensor_scalar", n, 4, [&] {
    Graph& g = graph_of(args[0]);
    Scalar value;
    if (!parse_scalar(args[1], value)) wrong_type("tensor_scalar", "value", "a number", args[1]);
    return number_of(g, g.tensor_scalar(value, dtype_or_none("data_type", args[2]), text_of(args[3])));
  });
}

builder::Attribute attribute_of(const char* name, PyObject* o) {
  if (PyBool_Check(o)) return o == Py_True;
  std::string_view text;
  if (parse_text(o, text)) return std::string(text);
  int64_t whole;
  if (parse_int(o, whole)) return whole;
  double real;
  if (parse_float(o, real)) return real;
  Dims dims;
  if (parse_ints(o, dims)) return dims;
  wrong_type("graph", name, "a number, a bool, a str or a list of ints", o);
}

TENON_BUILDER_FUNCTION(node) {
  return counted("node", n, 6, [&] {
    Graph& g = graph_of(args[0]);
    std::vector<TensorAttributes*> inputs;
    each(args[2], [&](PyObject* o) { inputs.push_back(o == Py_None ? nullptr : &tensor_at(g, o)); });
    builder::Attributes attributes;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(args[3], &at, &key, &value);) {
      const std::string name = text_of(key);
      attributes.emplace(name, attribute_of(name.c_str(), value));
    }
    const auto outputs = g.node(text_of(args[1]), inputs, std::move(attributes), text_of(args[4]),
                                dtype_or_none("compute_data_type", args[5]));
    return list_of(outputs, [&](const TensorAttributes* t) { return number_of(g, *t); }).release();
  });
}

TENON_BUILDER_FUNCTION(set) {
  return counted("set", n, 4, [&] {
    TensorAttributes& t = tensor_at(graph_of(args[0]), args[1]);
    const std::string what = text_of(args[2]);
    PyObject* const value = args[3];
    if (what == "uid")
      t.set_uid(uid_of(value));
    else if (what == "name")
      t.set_name(text_of(value));
    else if (what == "dim")
      t.set_dim(dims_of("dim", value));
    else if (what == "stride")
      t.set_stride(dims_of("stride", value));
    else if (what == "output")
      t.set_output(flag("set_output", "value", value));
    else if (what == "is_virtual")
      t.set_is_virtual(flag("set_is_virtual", "value", value));
    else if (what == "is_pass_by_value")
      t.set_is_pass_by_value(flag("set_is_pass_by_value", "value", value));
    else
      t.set_data_type(dtype_or_none("data_type", value));
  });
}

/// (uid, name, dim, stride, dtype, is output, is virtual, is passed by value, whether the user gave the UID)
TENON_BUILDER_FUNCTION(get) {
  return counted("get", n, 2, [&] {
    const TensorAttributes& t = tensor_at(graph_of(args[0]), args[1]);
    const Ref dim = list_of(t.dim(), PyLong_FromLongLong), stride = list_of(t.stride(), PyLong_FromLongLong);
    const Ref dtype(t.data_type() ? checked(wrap(*t.data_type())) : Py_NewRef(Py_None));
    const auto is = [](bool on) { return on ? Py_True : Py_False; };
    return Py_BuildValue("KsOOOOOOO", static_cast<unsigned long long>(t.uid()), t.name().c_str(), dim.get(),
                         stride.get(), dtype.get(), is(t.is_output()), is(t.is_virtual()),
                         is(t.is_pass_by_value()), is(t.has_own_uid()));
  });
}

// The steps

template <void (Graph::*kStep)()>
PyObject* step(PyObject*, PyObject* o) {
  return guarded([&] { (graph_of(o).*kStep)(); });
}

TENON_BUILDER_FUNCTION(create_plans) {
  return counted("create_execution_plans", n, 2, [&] {
    std::vector<builder::HeuristicMode> modes;
    each(args[1], [&](PyObject* o) {
      const std::string mode = text_of(o);
      TENON_CHECK(mode == "A" || mode == "B" || mode == "FALLBACK", Value,
                  "create_execution_plans: a mode is A, B or FALLBACK, not " + mode);
      modes.push_back(mode == "A"   ? builder::HeuristicMode::A
                      : mode == "B" ? builder::HeuristicMode::B
                                    : builder::HeuristicMode::Fallback);
    });
    graph_of(args[0]).create_execution_plans(modes);
  });
}
TENON_BUILDER_FUNCTION(create_plan) {
  return counted("create_execution_plan", n, 3, [&] {
    builder::Knobs knobs;
    PyObject *key, *value;
    const std::string engine = text_of(args[1]);
    for (Py_ssize_t at = 0; PyDict_Next(args[2], &at, &key, &value);) {
      const std::string name = text_of(key);
      std::string_view word;
      knobs.emplace_back(name, parse_text(value, word)
                                   ? builder::knob_value(engine, name, word)
                                   : int_argument("create_execution_plan", name.c_str(), value));
    }
    graph_of(args[0]).create_execution_plan(engine, knobs);
  });
}
TENON_BUILDER_FUNCTION(build_plans) {
  return counted("build_plans", n, 2, [&] {
    graph_of(args[0]).build_plans(flag("build_plans", "all", args[1])
                                      ? builder::BuildPolicy::All
                                      : builder::BuildPolicy::HeuristicsChoice);
  });
}

size_t index_of(const char* function, PyObject* o) {
  const int64_t index = int_argument(function, "index", o);
  TENON_CHECK(index >= 0, Index, fmt::format("{}: index must be at least 0, got {}", function, index));
  return static_cast<size_t>(index);
}
TENON_BUILDER_FUNCTION(build_plan) {
  return counted("build_plan_at_index", n, 2,
                 [&] { graph_of(args[0]).build_plan_at_index(index_of("build_plan_at_index", args[1])); });
}
PyObject* count(PyObject*, PyObject* o) {
  return guarded([&] { return checked(PyLong_FromSize_t(graph_of(o).execution_plan_count())); });
}
TENON_BUILDER_FUNCTION(plan_name) {
  return counted("get_plan_name_at_index", n, 2, [&] {
    return checked(
        to_python(graph_of(args[0]).plan_name_at_index(index_of("get_plan_name_at_index", args[1]))));
  });
}
TENON_BUILDER_FUNCTION(deselect) {
  return counted("deselect_engines", n, 2, [&] {
    std::vector<std::string> names;
    each(args[1], [&](PyObject* o) { names.push_back(text_of(o)); });
    graph_of(args[0]).deselect_engines(names);
  });
}
TENON_BUILDER_FUNCTION(deselect_workspace) {
  return counted("deselect_workspace_greater_than", n, 2, [&] {
    const int64_t nbytes = int_argument("deselect_workspace_greater_than", "nbytes", args[1]);
    TENON_CHECK(nbytes >= 0, Value,
                fmt::format("deselect_workspace_greater_than: nbytes must be at least 0, got {}", nbytes));
    graph_of(args[0]).deselect_workspace_greater_than(static_cast<size_t>(nbytes));
  });
}
TENON_BUILDER_FUNCTION(workspace_size) {
  return counted("get_workspace_size", n, 2, [&] {
    const Graph& g = graph_of(args[0]);
    return checked(PyLong_FromSize_t(given(args[1])
                                         ? g.workspace_size_at_index(index_of("get_workspace_size", args[1]))
                                         : g.workspace_size()));
  });
}
PyObject* autotune_workspace_size(PyObject*, PyObject* o) {
  return guarded([&] { return checked(PyLong_FromSize_t(graph_of(o).autotune_workspace_size())); });
}
PyObject* key(PyObject*, PyObject* o) {
  return guarded([&] { return checked(to_python(graph_of(o).key())); });
}
PyObject* text(PyObject*, PyObject* o) {
  return guarded([&] { return checked(to_python(graph_of(o).to_string())); });
}
PyObject* uids(PyObject*, PyObject* o) {
  return guarded([&] {
    return list_of(graph_of(o).variant_pack_uids_sorted(),
                   [&](const uint64_t uid) { return PyLong_FromUnsignedLongLong(uid); })
        .release();
  });
}
PyObject* allocating(PyObject*, PyObject* o) {
  return guarded([&] {
    return list_of(graph_of(o).plan()->allocating_steps(),
                   [&](const std::string& name) { return to_python(name); })
        .release();
  });
}

PyObject* serialize(PyObject*, PyObject* o) {
  return guarded([&] {
    const std::vector<std::byte> bytes = graph_of(o).serialize();
    return checked(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(bytes.data()),
                                             static_cast<Py_ssize_t>(bytes.size())));
  });
}
TENON_BUILDER_FUNCTION(deserialize) {
  return counted("deserialize", n, 2, [&] {
    Graph& graph = graph_of(args[0]);
    if (!PyObject_CheckBuffer(args[1]))
      wrong_type("deserialize", "data", "bytes, as serialize() returns them", args[1]);
    graph.deserialize(Buffer(args[1], "deserialize", "data").bytes());
  });
}

// Running

/// name_of(graph, uid): the name of a tensor; None if there is none.
TENON_BUILDER_FUNCTION(name_of_tensor) {
  return counted("name_of", n, 2, [&] {
    int64_t uid = 0;
    const bool known = parse_int(args[1], uid) && uid > 0;
    const TensorAttributes* const t =
        known ? graph_of(args[0]).find_tensor(static_cast<uint64_t>(uid)) : nullptr;
    return t ? checked(to_python(t->name())) : Py_NewRef(Py_None);
  });
}

/// `what()` names it for a message.
template <class F>
Address address_of(PyObject* o, F&& what) {
  if (!PyLong_Check(o) || PyBool_Check(o))
    throw_error(ErrorKind::Type,
                "execute: " + what() + " is a " + Py_TYPE(o)->tp_name + ", expected an address");
  const unsigned long long address = PyLong_AsUnsignedLongLong(o);
  if (!PyErr_Occurred()) return address;
  PyErr_Clear();
  throw_error(ErrorKind::Value,
              "execute: " + what() + " is an int that is no address: negative, or beyond 64 bits");
}

/// Of a call's handle, (device, id of the stream or None); else the graph's.
Stream stream_of(const Graph& g, PyObject* handle) {
  if (!given(handle)) return g.stream();
  PyObject *device, *id;
  if (!PyArg_ParseTuple(handle, "OO", &device, &id)) throw PythonError();
  const Device on = resolved(as_device(device).value());
  return given(id) ? Stream{on, address_of(id, [] { return "the stream's id"s; })} : current_stream(on);
}

/// A tensor, or an address, whose size is not known and taken to be enough.
std::span<std::byte> workspace_of(const Graph& g, PyObject* o, size_t needed) {
  if (!given(o)) return {};
  if (!is_tensor(o))
    return {reinterpret_cast<std::byte*>(address_of(o, [] { return "the workspace"s; })), needed};
  const Tensor& t = tensor_of(o);
  TENON_CHECK(same_device(t.device(), g.device()), Device,
              "execute: the workspace is on " + to_string(t.device()) + "; the plan runs on " +
                  (g.device().is_cpu() ? "the host" : to_string(g.device())));
  TENON_CHECK(t.is_contiguous(), Value, "execute: the workspace is not contiguous");
  TENON_CHECK(!tenon::detail::is_read_only(t), Runtime,
              "execute: the workspace is read-only, and the plan writes it; pass one that may be written");
  return {static_cast<std::byte*>(t.data_ptr()), t.nbytes()};
}

void run(const graph::Plan& plan, std::span<const Address> sorted, std::span<std::byte> workspace,
         Stream stream) {
  const ReleaseGil released(plan.report().bytes > kLongPlanBytes || plan.report().steps == 0);
  plan.execute(sorted, workspace, stream);
}

/// {uid: tensor or address}; `outputs` gets the tensors that are outputs.
std::unordered_map<uint64_t, Address> pack_of(const Graph& g, PyObject* dict,
                                              std::vector<const Tensor*>& outputs) {
  std::unordered_map<uint64_t, Address> pack;
  PyObject *uid_object, *value;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &uid_object, &value);) {
    const uint64_t uid = uid_of(uid_object);
    if (!is_tensor(value)) {
      pack[uid] = address_of(value, [&] { return "the value for UID " + std::to_string(uid); });
      continue;
    }
    const Tensor& t = tensor_of(value);
    g.check_tensor(uid, t);
    if (const TensorAttributes& own = *g.find_tensor(uid); own.is_output()) {
      TENON_CHECK(!tenon::detail::is_read_only(t), Runtime,
                  "execute: the tensor for UID " + std::to_string(uid) + " ('" + own.name() +
                      "') is read-only, and the graph writes it; pass one that may be written");
      outputs.push_back(&t);
    }
    pack[uid] = reinterpret_cast<Address>(t.data_ptr());
  }
  return pack;
}

/// execute(graph, {uid: tensor or address}, workspace, index, handle)
TENON_BUILDER_FUNCTION(execute) {
  return counted("execute", n, 5, [&] {
    const Graph& g = graph_of(args[0]);
    const graph::Plan& plan = given(args[3]) ? *g.plan_at_index(index_of("execute", args[3])) : *g.plan();
    std::vector<const Tensor*> written;
    const auto pack = pack_of(g, args[1], written);
    for (const Tensor* t : written) {
      t->storage()->bump_version();
    }
    run(plan, g.sorted(plan, pack), workspace_of(g, args[2], plan.workspace_size()), stream_of(g, args[4]));
  });
}
/// autotune(graph, {uid: tensor or address}, workspace, milliseconds, handle): [(name, nanoseconds, reason)]
TENON_BUILDER_FUNCTION(autotune) {
  return counted("autotune", n, 5, [&] {
    Graph& g = graph_of(args[0]);
    double budget = 0;
    if (!parse_float(args[3], budget)) wrong_type("autotune", "budget_ms", "a number", args[3]);
    const std::span<std::byte> workspace = workspace_of(g, args[2], g.autotune_workspace_size("autotune"));
    std::vector<const Tensor*> outputs;
    const auto pack = pack_of(g, args[1], outputs);
    const Stream stream = stream_of(g, args[4]);
    const builder::Handle handle{.device = stream.device, .stream = stream};
    auto trials = without_gil([&] { return g.autotune(pack, workspace, budget, &handle); });
    return list_of(trials,
                   [&](const graph::Trial& t) {
                     return Py_BuildValue("sds", t.name.c_str(), t.ns, t.reason.c_str());
                   })
        .release();
  });
}
/// execute_ptrs(graph, addresses, workspace, handle)
TENON_BUILDER_FUNCTION(execute_ptrs) {
  return counted("_execute_with_ptrs", n, 4, [&] {
    const Graph& g = graph_of(args[0]);
    SmallVector<Address, 16> sorted;
    const graph::Plan& plan = *g.plan();
    const auto of_uid = [&] {
      const auto uids = plan.uids_sorted();
      const size_t at = sorted.size();
      return at < uids.size() ? "the address of UID " + std::to_string(uids[at]) : "an address too many"s;
    };
    if (!PyList_Check(args[1]) && !PyTuple_Check(args[1]))
      wrong_type("_execute_with_ptrs", "ptrs", "a list of addresses", args[1]);
    each(args[1], [&](PyObject* o) { sorted.push_back(address_of(o, of_uid)); });
    run(plan, sorted, workspace_of(g, args[2], plan.workspace_size()), stream_of(g, args[3]));
  });
}

// What there is

/// [(name, inputs, attributes, outputs)] of all kinds of nodes.
PyObject* kinds(PyObject*, PyObject*) {
  return guarded([&] {
    const auto row = [](std::string_view name) {
      const builder::NodeKind& kind = builder::find_kind(name);
      const auto text = [](std::string_view t) { return Ref(checked(to_python(t))); };
      const Ref own = text(kind.name), in = text(kind.inputs), attributes = text(kind.attributes),
                out = text(kind.outputs);
      return PyTuple_Pack(4, own.get(), in.get(), attributes.get(), out.get());
    };
    return list_of(builder::kind_names(), row).release();
  });
}
PyObject* engines(PyObject*, PyObject*) {
  return guarded([&] {
    return list_of(builder::engine_names(), [&](const std::string_view name) { return to_python(name); })
        .release();
  });
}
/// {name: [values]}
PyObject* knobs(PyObject*, PyObject* engine) {
  return guarded([&] {
    const Ref dict(checked(PyDict_New()));
    for (const builder::Knob& knob : builder::knobs_of(text_of(engine))) {
      put(dict, knob.name, list_of(knob.values, PyLong_FromLongLong).release());
    }
    return Py_NewRef(dict.get());
  });
}

#undef TENON_BUILDER_FUNCTION

PyMethodDef g_builder_methods[] = {
    fast_method("new", &new_graph, "new(name, io, intermediate, compute, device): a graph."),
    fast_method("tensor", &tensor, "tensor(graph, name, dim, stride, dtype, uid, is_virtual, by_value)"),
    fast_method("tensor_like", &tensor_like, "tensor_like(graph, tensor, name)"),
    fast_method("tensor_like_other", &tensor_like_other, "tensor_like_other(graph, other, tensor, name)"),
    fast_method("scalar", &scalar, "scalar(graph, value, dtype, name)"),
    fast_method("node", &node, "node(graph, kind, inputs, attributes, name, compute_type): its outputs."),
    fast_method("name_of", &name_of_tensor, "name_of(graph, uid): the name of a tensor, or None."),
    fast_method("set", &set, "set(graph, tensor, what, value)"),
    fast_method("get", &get, "get(graph, tensor): all that is known of it."),
    {"validate", &step<&Graph::validate>, METH_O, "Checks the graph."},
    {"build_operation_graph", &step<&Graph::build_operation_graph>, METH_O, "Makes its operators."},
    {"check_support", &step<&Graph::check_support>, METH_O, "Whether a plan runs it."},
    fast_method("create_plans", &create_plans, "create_plans(graph, modes)"),
    fast_method("create_plan", &create_plan, "create_plan(graph, engine, knobs)"),
    fast_method("build_plans", &build_plans, "build_plans(graph, all)"),
    fast_method("build_plan", &build_plan, "build_plan(graph, index)"),
    {"count", &count, METH_O, "The number of plans."},
    fast_method("plan_name", &plan_name, "plan_name(graph, index)"),
    fast_method("deselect", &deselect, "deselect(graph, engines)"),
    fast_method("deselect_workspace", &deselect_workspace, "deselect_workspace(graph, nbytes)"),
    fast_method("workspace_size", &workspace_size, "workspace_size(graph, index)"),
    {"key", &key, METH_O, "The key of its operators."},
    {"text", &text, METH_O, "Its operators as text."},
    {"uids", &uids, METH_O, "The UIDs that a run needs, sorted."},
    {"allocating", &allocating, METH_O, "The steps of its plan that may allocate."},
    {"serialize", &serialize, METH_O, "Its plan as bytes."},
    fast_method("deserialize", &deserialize, "deserialize(graph, bytes)"),
    fast_method("execute", &execute, "execute(graph, variant_pack, workspace, index, handle)"),
    fast_method("autotune", &autotune, "autotune(graph, variant_pack, workspace, milliseconds, handle)"),
    {"autotune_workspace_size", &autotune_workspace_size, METH_O, "The largest workspace of its plans."},
    fast_method("execute_ptrs", &execute_ptrs, "execute_ptrs(graph, addresses, workspace, handle)"),
    {"kinds", &kinds, METH_NOARGS, "All kinds of nodes."},
    {"engines", &engines, METH_NOARGS, "The engines of whole graphs."},
    {"knobs", &knobs, METH_O, "The knobs of an engine."},
    {}};

constexpr const char* kName = "tenon.graph";

}  // namespace

PyObject* wrap_graph(std::shared_ptr<Graph> graph) {
  const auto destroy = [](PyObject* o) {
    delete static_cast<std::shared_ptr<Graph>*>(PyCapsule_GetContext(o));
  };
  auto owned = std::make_unique<std::shared_ptr<Graph>>(std::move(graph));
  Ref capsule(checked(PyCapsule_New(owned->get(), kName, destroy)));
  if (PyCapsule_SetContext(capsule.get(), owned.get()) != 0) throw PythonError();
  (void)owned.release();
  return capsule.release();
}

Graph& graph_of(PyObject* capsule) { return from_capsule<Graph>(capsule, kName); }

bool add_builder(PyObject* module) { return add_submodule(module, "_builder", g_builder_methods); }

}  // namespace tenon::python
