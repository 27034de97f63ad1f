// tenon._C._graphs: work of streams that is captured and replayed, for python/tenon/devices/graphs.py.
#include <memory>

#include "python/src/call/spread.h"
#include "python/src/interpreter/capsule.h"
#include "python/src/interpreter/errors.h"
#include "python/src/interpreter/gil.h"
#include "python/src/module_parts.h"
#include "python/src/tensor/attribute_types.h"
#include "tenon/core/capture.h"
#include "tenon/core/error.h"

namespace tenon::python {
namespace {

using Pool = std::shared_ptr<PrivatePool>;
constexpr const char *kGraphName = "tenon.Graph", *kPoolName = "tenon.GraphPool";

DeviceGraph& graph_argument(PyObject* o) { return from_capsule<DeviceGraph>(o, kGraphName); }

Device device_argument(const char* function, PyObject* o) {
  const auto device = as_device(o);
  if (!device) wrong_type(function, "device", "device or str", o);
  return resolved(*device);
}

/// Runs `f`, which may wait for the device, without the interpreter's lock; None.
template <class F>
PyObject* unlocked(F&& f) {
  return guarded([&] { without_gil([&] { f(); }); });
}

PyObject* new_graph(PyObject*, PyObject*) {
  return guarded([&] { return to_capsule(std::make_unique<DeviceGraph>(), kGraphName); });
}

PyObject* begin(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("capture_begin", n, 3, [&] {
    DeviceGraph& graph = graph_argument(args[0]);
    const Stream stream = current_stream(device_argument("capture_begin", args[1]));
    const Pool pool = args[2] == Py_None ? nullptr : from_capsule<Pool>(args[2], kPoolName);
    graph.capture_begin(stream, pool);
  });
}

PyObject* end(PyObject*, PyObject* o) {
  return guarded([&] {
    DeviceGraph& graph = graph_argument(o);
    return unlocked([&] { graph.capture_end(); });
  });
}
PyObject* abandon(PyObject*, PyObject* o) {
  return guarded([&] {
    DeviceGraph& graph = graph_argument(o);
    return unlocked([&] { graph.abandon(); });
  });
}
PyObject* replay(PyObject*, PyObject* o) {
  return guarded([&] {
    DeviceGraph& graph = graph_argument(o);
    return unlocked([&] { graph.replay(); });
  });
}
PyObject* reset(PyObject*, PyObject* o) {
  return guarded([&] {
    DeviceGraph& graph = graph_argument(o);
    return unlocked([&] { graph.reset(); });
  });
}

PyObject* pool(PyObject*, PyObject* o) {
  return guarded([&] {
    const Pool& used = graph_argument(o).pool();
    TENON_CHECK(used, Runtime, "pool: nothing has been captured");
    return to_capsule(std::make_unique<Pool>(used), kPoolName);
  });
}

PyObject* new_pool(PyObject*, PyObject* o) {
  return guarded([&] {
    const Device device = device_argument("graph_pool_handle", o);
    auto* allocator = dynamic_cast<CachingAllocator*>(&allocator_for(device));
    TENON_CHECK(allocator, NotImplemented, "graph_pool_handle: the device's memory has no private pools");
    return to_capsule(std::make_unique<Pool>(std::make_shared<PrivatePool>(allocator->cache(device))),
                      kPoolName);
  });
}

PyObject* capturing(PyObject*, PyObject* o) {
  return guarded([&] {
    return PyBool_FromLong(is_capturing(current_stream(device_argument("is_current_stream_capturing", o))));
  });
}

PyObject* capturing_stream(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("is_stream_capturing", n, 2, [&] {
    const Device device = device_argument("is_stream_capturing", args[0]);
    const unsigned long long id = PyLong_AsUnsignedLongLong(args[1]);
    if (PyErr_Occurred()) throw PythonError();
    return PyBool_FromLong(is_capturing(Stream{device, id}));
  });
}
PyObject* capturing_device(PyObject*, PyObject* o) {
  return guarded([&] { return PyBool_FromLong(is_capturing(device_argument("is_device_capturing", o))); });
}

PyMethodDef g_graphs_methods[] = {
    {"new", &new_graph, METH_NOARGS, "A graph that has captured nothing."},
    fast_method("begin", &begin, "begin(graph, device, pool): captures the current stream."),
    {"end", &end, METH_O, "Ends the capture."},
    {"abandon", &abandon, METH_O, "Ends the capture and throws away what was recorded."},
    {"replay", &replay, METH_O, "Queues what was captured on the current stream."},
    {"reset", &reset, METH_O, "Forgets what was captured."},
    {"pool", &pool, METH_O, "The pool of a graph."},
    {"new_pool", &new_pool, METH_O, "A pool for graphs of a device."},
    {"is_capturing", &capturing, METH_O, "Whether the current stream of a device is being captured."},
    fast_method("is_stream_capturing", &capturing_stream, "is_stream_capturing(device, id)"),
    {"is_device_capturing", &capturing_device, METH_O, "Whether any stream of a device is being captured."},
    {}};

}  // namespace

bool add_graphs(PyObject* module) { return add_submodule(module, "_graphs", g_graphs_methods); }

}  // namespace tenon::python
