// tenon._C._devices: loading devices, their streams and events, for tenon.devices.
#include <fmt/core.h>

#include <memory>

#include "python/src/call/parser.h"
#include "python/src/call/spread.h"
#include "python/src/exchange/from_data.h"
#include "python/src/interpreter/capsule.h"
#include "python/src/interpreter/errors.h"
#include "python/src/interpreter/gil.h"
#include "python/src/interpreter/sequences.h"
#include "python/src/module_parts.h"
#include "python/src/tensor/attribute_types.h"
#include "tenon/core/allocator.h"
#include "tenon/core/device_runtime.h"
#include "tenon/core/memory_snapshot.h"
#include "tenon/plugin/load.h"

namespace tenon::python {
namespace {

constexpr const char *kEventName = "tenon.Event", *kStreamName = "tenon.Stream";

Device device_argument(const char* function, PyObject* o) {
  const auto device = as_device(o);
  if (!device) wrong_type(function, "device", "device or str", o);
  check_device_index(*device, function);
  return *device;
}

uint64_t number_argument(const char* function, const char* name, PyObject* o) {
  return static_cast<uint64_t>(int_argument(function, name, o));
}

Stream stream_argument(const char* function, PyObject* device, PyObject* id) {
  const Stream stream{resolved(device_argument(function, device)),
                      number_argument(function, "stream_id", id)};
  check_stream(stream, function);
  return stream;
}

Event& event_argument(PyObject* o) {
  void* const event = PyCapsule_GetPointer(o, kEventName);
  if (!event) throw PythonError();
  return *static_cast<Event*>(event);
}

PyObject* load(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("load_device", n, 3, [&] {
    const std::string path = text_argument("load_device", "path", args[0]);
    const std::string name = args[1] == Py_None ? "" : text_argument("load_device", "name", args[1]);
    DeviceOptions options;
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(args[2], &at, &key, &value);)
      options.emplace_back(text_argument("load_device", "options", key),
                           text_argument("load_device", "options", value));
    auto device = without_gil([&] { return load_device(path, name, options); });
    return to_python(std::string(backend_name(device.backend)));
  });
}

PyObject* find(PyObject*, PyObject* o) {
  return guarded([&] {
    const std::string name = text_argument("find_device", "name", o);
    const ReleaseGil released;
    find_device(name);
  });
}

PyObject* unload(PyObject*, PyObject* o) {
  return guarded([&] {
    const std::string name = text_argument("unload_device", "name", o);
    const ReleaseGil released;
    unload_device(name);
  });
}

PyObject* g_finder = nullptr;

/// What the package's finder says; on any thread.
std::string find_file(std::string_view name) {
  if (!Py_IsInitialized()) return {};
  const HoldGil gil;
  const Ref text(to_python(name));
  const Ref found(checked(PyObject_CallOneArg(g_finder, text.get())));
  return found.get() == Py_None ? std::string()
                                : text_argument("find_device", "the plug-in's path", found.get());
}

PyObject* set_finder(PyObject*, PyObject* finder) {
  g_finder = Py_NewRef(finder);  // for the process
  set_plugin_finder(&find_file);
  return Py_NewRef(Py_None);
}

PyObject* loaded(PyObject*, PyObject*) {
  return guarded([&] {
    return list_of(loaded_devices(),
                   [&](const LoadedDevice& d) {
                     return Py_BuildValue("(sss)", d.name.c_str(), d.path.c_str(), d.description.c_str());
                   })
        .release();
  });
}

PyObject* device_count(PyObject*, PyObject* o) {
  return guarded([&] {
    const DeviceRuntime* runtime = device_runtime(device_argument("device_count", o).backend);
    return PyLong_FromLong(runtime ? runtime->device_count() : 1);
  });
}

PyObject* current_device(PyObject*, PyObject* o) {
  return guarded(
      [&] { return PyLong_FromLong(resolved(Device(device_argument("current_device", o).backend)).index); });
}

PyObject* set_device(PyObject*, PyObject* o) {
  return guarded([&] { set_current_device(device_argument("set_device", o)); });
}

PyObject* new_stream(PyObject*, PyObject* o) {
  return guarded([&] {
    auto stream = std::make_unique<Stream>(Stream::create(device_argument("Stream", o)));
    const auto release = [](PyObject* capsule) {
      const std::unique_ptr<Stream> owned(static_cast<Stream*>(PyCapsule_GetPointer(capsule, kStreamName)));
      owned->release();
    };
    Ref owner(checked(PyCapsule_New(stream.get(), kStreamName, release)));
    const Stream made = *stream.release();
    return Py_BuildValue("(NKN)", wrap(made.device), static_cast<unsigned long long>(made.id),
                         owner.release());
  });
}

PyObject* check(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("Stream", n, 2, [&] { stream_argument("Stream", args[0], args[1]); });
}

PyObject* current(PyObject*, PyObject* o) {
  return guarded([&] {
    const Stream stream = current_stream(device_argument("current_stream", o));
    return Py_BuildValue("(NK)", wrap(stream.device), static_cast<unsigned long long>(stream.id));
  });
}

PyObject* set_stream(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("set_stream", n, 2,
                 [&] { set_current_stream(stream_argument("set_stream", args[0], args[1])); });
}

PyObject* synchronize_stream(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("synchronize", n, 2, [&] {
    const Stream stream = stream_argument("synchronize", args[0], args[1]);
    without_gil([&] { stream.synchronize(); });
  });
}

PyObject* synchronize(PyObject*, PyObject* o) {
  return guarded([&] {
    const Device device = device_argument("synchronize", o);
    without_gil([&] { synchronize_device(device); });
  });
}

PyObject* new_event(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("Event", n, 2, [&] {
    const Device device = device_argument("Event", args[0]);
    return to_capsule(std::make_unique<Event>(device, flag("Event", "enable_timing", args[1])), kEventName);
  });
}

PyObject* record_event(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("record", n, 3,
                 [&] { event_argument(args[0]).record(stream_argument("record", args[1], args[2])); });
}

PyObject* wait_event(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("wait", n, 3,
                 [&] { event_argument(args[0]).wait(stream_argument("wait", args[1], args[2])); });
}

PyObject* query_event(PyObject*, PyObject* event) {
  return guarded([&] { return PyBool_FromLong(event_argument(event).query()); });
}

PyObject* synchronize_event(PyObject*, PyObject* o) {
  return guarded([&] {
    const Event& event = event_argument(o);
    without_gil([&] { event.synchronize(); });
  });
}

PyObject* elapsed(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("elapsed_time", n, 2, [&] {
    return PyFloat_FromDouble(event_argument(args[0]).elapsed_until(event_argument(args[1])));
  });
}

Device memory_device(const char* function, PyObject* o) { return resolved(device_argument(function, o)); }

PyObject* figures_of(const MemoryStats& stats) {
  Ref dict(checked(PyDict_New()));
  for (const auto& [name, figure] : named_memory_stats(stats)) {
    const auto number = [](auto v) {
      if constexpr (std::is_same_v<decltype(v), double>)
        return PyFloat_FromDouble(v);
      else
        return PyLong_FromLongLong(v);
    };
    put(dict, name, std::visit(number, figure));
  }
  return dict.release();
}

PyObject* memory_stats(PyObject*, PyObject* o) {
  return guarded([&] {
    const Device device = memory_device("memory_stats", o);
    return figures_of(allocator_for(device).memory_stats(device));
  });
}

PyObject* host_memory_stats(PyObject*, PyObject* o) {
  return guarded([&] {
    const Device device = device_argument("host_memory_stats", o);
    DeviceRuntime* const runtime = device_runtime(device.backend);
    Allocator* const pinned = runtime ? runtime->pinned_memory() : nullptr;
    TENON_CHECK(pinned, Device,
                fmt::format("host_memory_stats: device {} has no pinned memory", to_string(device)));
    return figures_of(pinned->memory_stats(kCPU));
  });
}

PyObject* set_expandable(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("set_allocator_settings", n, 2, [&] {
    const Device device = memory_device("set_allocator_settings", args[0]);
    allocator_for(device).set_expandable_segments(
        device, flag("set_allocator_settings", "expandable_segments", args[1]));
  });
}

PyObject* summary(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("memory_summary", n, 2, [&] {
    const Device device = memory_device("memory_summary", args[0]);
    return to_python(memory_summary(to_string(device), allocator_for(device).memory_stats(device),
                                    flag("memory_summary", "abbreviated", args[1])));
  });
}

PyObject* snapshot(PyObject*, PyObject* o) {
  return guarded([&] {
    const Device device = memory_device("memory_snapshot", o);
    const MemorySnapshot taken = allocator_for(device).memory_snapshot(device);
    return Py_BuildValue("(NN)", to_python(segments_as_json(taken)), to_python(events_as_json(taken)));
  });
}

PyObject* record_history(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("record_memory_history", n, 2, [&] {
    const Device device = memory_device("record_memory_history", args[0]);
    allocator_for(device).record_memory_history(
        device, number_argument("record_memory_history", "max_entries", args[1]));
  });
}

PyObject* reset_peaks(PyObject*, PyObject* o) {
  return guarded([&] {
    const Device device = memory_device("reset_peak_memory_stats", o);
    allocator_for(device).reset_peak_memory_stats(device);
  });
}

PyObject* reset_sums(PyObject*, PyObject* o) {
  return guarded([&] {
    const Device device = memory_device("reset_accumulated_memory_stats", o);
    allocator_for(device).reset_accumulated_memory_stats(device);
  });
}

PyObject* empty(PyObject*, PyObject* o) {
  return guarded([&] {
    const Device device = memory_device("empty_cache", o);
    auto emptied = without_gil([&] { return allocator_for(device).empty_cache(device); });
    if (DeviceRuntime* runtime = device_runtime(device.backend)) runtime->throw_unreported();
    return PyLong_FromSize_t(emptied);
  });
}

PyObject* properties(PyObject*, PyObject* o) {
  return guarded([&] {
    const DeviceClaims claims = device_claims(memory_device("get_device_properties", o));
    const Ref dtypes = list_of(claims.dtypes, [&](const DType dtype) { return wrap(dtype); });
    return Py_BuildValue(
        "(sKKOOKK)", claims.description.c_str(), static_cast<unsigned long long>(claims.total_memory),
        static_cast<unsigned long long>(claims.granularity), dtypes.get(),
        claims.pointwise ? Py_True : Py_False, static_cast<unsigned long long>(claims.ops_printed),
        static_cast<unsigned long long>(claims.map_granularity));
  });
}

PyObject* memory_info(PyObject*, PyObject* o) {
  return guarded([&] {
    const auto [free, total] = device_memory_info(memory_device("mem_get_info", o));
    return Py_BuildValue("(KK)", static_cast<unsigned long long>(free),
                         static_cast<unsigned long long>(total));
  });
}

PyObject* record_stream(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("record_stream", n, 3, [&] {
    if (!is_tensor(args[0])) wrong_type("record_stream", "input", "a Tensor", args[0]);
    const Storage& storage = tensor_of(args[0]).storage();
    const Device device = resolved(storage->device());
    const Stream user = stream_argument("record_stream", args[1], args[2]);
    TENON_CHECK(user.device == device, Device,
                fmt::format("record_stream: the tensor is on {}, and the stream is one of {}",
                            to_string(device), to_string(user.device)));
    if (storage->allocator()) storage->allocator()->record_stream(storage.address(), device, user);
  });
}

PyMethodDef g_devices_methods[] = {
    fast_method("load", &load, "load(path, name, options): the name that the device got."),
    {"unload", &unload, METH_O, "Unloads a device."},
    {"set_finder", &set_finder, METH_O, "finder(name): the path of a device's file, or None."},
    {"find", &find, METH_O, "Loads a device by its name, unless it is loaded."},
    {"loaded", &loaded, METH_NOARGS, "(name, path, description) of each loaded device."},
    {"device_count", &device_count, METH_O, "How many devices a backend has."},
    {"current_device", &current_device, METH_O, "The index of the thread's current device of a backend."},
    {"set_device", &set_device, METH_O, "Makes a device the thread's current one of its backend."},
    {"new_stream", &new_stream, METH_O, "(device, id, owner) of a new stream."},
    fast_method("check_stream", &check, "check_stream(device, id): raises if there is no such stream."),
    {"current_stream", &current, METH_O, "(device, id) of the thread's current stream of a device."},
    fast_method("set_stream", &set_stream, "set_stream(device, id)"),
    fast_method("synchronize_stream", &synchronize_stream, "synchronize_stream(device, id)"),
    {"synchronize", &synchronize, METH_O, "Waits for all streams of a device."},
    fast_method("new_event", &new_event, "new_event(device, timed): an event of a device, as a capsule."),
    fast_method("elapsed", &elapsed, "elapsed(begin, end): milliseconds."),
    fast_method("record_event", &record_event, "record_event(event, device, id)"),
    fast_method("wait_event", &wait_event, "wait_event(event, device, id)"),
    {"query_event", &query_event, METH_O, "Whether the marked work has run."},
    {"memory_stats", &memory_stats, METH_O, "The statistics of a device's allocator, by PyTorch's keys."},
    {"host_memory_stats", &host_memory_stats, METH_O, "The same of a device's pinned host memory."},
    fast_method("set_expandable", &set_expandable, "set_expandable(device, on): of segments from now on."),
    fast_method("memory_summary", &summary, "memory_summary(device, abbreviated)"),
    {"memory_snapshot", &snapshot, METH_O, "(segments, events) as JSON."},
    fast_method("record_memory_history", &record_history, "record_memory_history(device, max_entries)"),
    {"reset_peak_memory_stats", &reset_peaks, METH_O, "Peaks start again from what is current."},
    {"reset_accumulated_memory_stats", &reset_sums, METH_O, "Sums start again from zero."},
    {"empty_cache", &empty, METH_O, "Gives kept blocks back; how many bytes that were."},
    {"properties", &properties, METH_O,
     "(description, total memory, granularity, dtypes, pointwise, operations, map granularity) of a device."},
    {"mem_get_info", &memory_info, METH_O, "(free, total) bytes of a device."},
    fast_method("record_stream", &record_stream, "record_stream(tensor, device, id)"),
    {"synchronize_event", &synchronize_event, METH_O, "Waits for the marked work."},
    {}};

}  // namespace

bool add_devices(PyObject* module) {
  // Waits of calls that hold the interpreter's lock give it up; see core/stream.h.
  static constexpr tenon::detail::WaitHooks kHooks{
      []() noexcept -> void* { return holds_gil() && !is_finalizing() ? new ReleaseGil : nullptr; },
      [](void* released) noexcept { delete static_cast<ReleaseGil*>(released); }};
  tenon::detail::wait_hooks.store(&kHooks, std::memory_order_release);
  return add_submodule(module, "_devices", g_devices_methods);
}

}  // namespace tenon::python
