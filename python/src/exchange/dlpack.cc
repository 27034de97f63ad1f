// DLPack both ways: Tensor.__dlpack__, __dlpack_device__ and tenon.from_dlpack, with the versioned capsule
// and the old. Negative strides stay inside Tenon: consumers compute the extent of the memory from positive
// ones. Devices are known by the number that their plug-in has for DLPack; where several have one, a capsule
// of Tenon's own says which it is.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "python/src/call/parser.h"
#include "python/src/call/spread.h"
#include "python/src/exchange/dlpack_abi.h"
#include "python/src/exchange/foreign.h"
#include "python/src/interpreter/gil.h"
#include "python/src/module_parts.h"
#include "python/src/tensor/tensor_parts.h"
#include "tenon/core/device_runtime.h"
#include "tenon/core/stream.h"
#include "tenon/plugin/load.h"

namespace tenon::python {
namespace {

constexpr const char* kNew = "dltensor_versioned";
constexpr const char* kNewUsed = "used_dltensor_versioned";
constexpr const char* kOld = "dltensor";
constexpr const char* kOldUsed = "used_dltensor";

[[noreturn]] void buffer_error(const std::string& message) {
  PyErr_SetString(PyExc_BufferError, message.c_str());
  throw PythonError();
}

DLDataType to_dl(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  if (info.dlpack == DLPackCode::None) buffer_error(fmt::format("__dlpack__: DLPack has no {}", name(dtype)));
  return {static_cast<uint8_t>(info.dlpack), info.bits, 1};
}

DType from_dl(DLDataType type) {
  for (const DType t : kDTypes) {
    const DTypeInfo& info = dtype_info(t);
    const bool shared = info.dlpack != DLPackCode::None;
    if (shared && static_cast<uint8_t>(info.dlpack) == type.code && info.bits == type.bits && type.lanes == 1)
      return t;
  }
  buffer_error(fmt::format("from_dlpack: no dtype has code {}, {} bits and {} lanes", type.code, type.bits,
                           type.lanes));
}

DLDevice host() { return {kDLCPU, 0}; }

/// What DLPack calls a device. Raises BufferError for one that it has no number for.
DLDevice to_dl(const char* function, Device device) {
  if (device.is_cpu()) return host();
  const int32_t type = device.is_meta() ? 0 : device_claims(resolved(device)).dlpack_type;
  if (type == 0) buffer_error(fmt::format("{}: DLPack has no {}", function, to_string(device)));
  return {static_cast<DLDeviceType>(type), std::max<int32_t>(resolved(device).index, 0)};
}

/// A managed tensor and what it points to, in one block; `context` of the C structure is the block.
template <class Managed>
struct Exported {
  Managed managed{};
  Tensor tensor;  ///< For imports of our own.
  LentStorage memory;
  Dims sizes, strides;

  explicit Exported(const Tensor& t)
      : tensor(t.detach()), memory(t.storage()), sizes(t.sizes().to_dims()), strides(t.strides().to_dims()) {}

  static void free(Managed* m) { delete static_cast<Exported*>(m->manager_ctx); }
};

template <class Managed>
Managed* export_tensor(const Tensor& t) {
  auto block = std::make_unique<Exported<Managed>>(t);
  DLTensor& dl = block->managed.dl_tensor;
  dl.device = to_dl("__dlpack__", t.device());
  if (t.device().is_cpu()) {
    dl.data = t.data_ptr();
  } else {
    // What others call the memory may be a handle, which only an offset can be added to.
    DeviceRuntime::Handle begin{nullptr, 0};
    if (const Address address = t.storage().address())
      begin = device_runtime(t.device().backend)->export_memory(resolved(t.device()), address);
    dl.data = begin.memory;
    dl.byte_offset = begin.offset + static_cast<uint64_t>(t.storage_offset()) * item_size(t.dtype());
  }
  dl.ndim = static_cast<int32_t>(t.dim());
  dl.dtype = to_dl(t.dtype());
  dl.shape = block->sizes.data();
  dl.strides = block->strides.data();
  block->managed.manager_ctx = block.get();
  block->managed.deleter = &Exported<Managed>::free;
  return &block.release()->managed;
}

/// Frees the tensor of a capsule that no consumer has taken.
template <class Managed>
void free_capsule(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed->deleter) managed->deleter(managed);
}

/// Makes the consumer's stream, a number that Tenon gave it, wait for what the current stream has; None means
/// the device's default stream, and -1 that the consumer sees to it. Where others have queues of their own
/// for the memory, the host waits for None.
void order_after_producer(const Tensor& t, PyObject* consumer) {
  const Device device = resolved(t.device());
  int64_t id = 0;
  if (given(consumer) && consumer != Py_None && !parse_int(consumer, id))
    wrong_type("__dlpack__", "stream", "int or None", consumer);
  if (id == -1) return;
  if ((!given(consumer) || consumer == Py_None) && device_runtime(device.backend)->has_handles())
    return current_stream(device).synchronize();
  if (id < 0) buffer_error(fmt::format("__dlpack__: {} has no stream {}", to_string(device), id));
  const Stream theirs{device, static_cast<uint64_t>(id)};
  const Stream ours = current_stream(device);
  if (theirs == ours) return;
  Event ready(device);
  ready.record(ours);
  ready.wait(theirs);
  const Storage& storage = t.storage();
  if (storage->allocator()) storage->allocator()->record_stream(storage.address(), device, theirs);
}

PyObject* to_dlpack(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    const auto [stream, max_version, dl_device, copy] =
        spread("__dlpack__", {"stream", "max_version", "dl_device", "copy"}, 0, args, n, keywords);
    Tensor t = tensor_of(o);
    if (t.requires_grad()) buffer_error("__dlpack__: the tensor requires grad; use .detach()");
    const DLDevice own = to_dl("__dlpack__", t.device());
    bool copied = given(copy) && flag("__dlpack__", "copy", copy);
    const bool may_copy = !given(copy) || copied;
    if (given(dl_device)) {
      int type = 0, id = 0;
      if (!PyTuple_Check(dl_device) || !PyArg_ParseTuple(dl_device, "ii", &type, &id)) {
        PyErr_Clear();
        wrong_type("__dlpack__", "dl_device", "a tuple of two ints", dl_device);
      }
      if (type == kDLCPU && own.device_type != kDLCPU) {
        if (!may_copy)
          buffer_error(
              fmt::format("__dlpack__: the tensor is on {}, and copy=False forbids to copy it to the host",
                          to_string(t.device())));
        const ReleaseGil waits;
        t = t.to(kCPU);
        copied = true;
      } else if (type != own.device_type || id != own.device_id) {
        buffer_error(fmt::format("__dlpack__: the tensor is on {}; move it to the other device first",
                                 t.device().is_cpu() ? "the host" : to_string(t.device())));
      }
    }
    if (!t.device().is_cpu()) order_after_producer(t, stream);
    int64_t major = 0;
    if (given(max_version) && (!PyTuple_Check(max_version) || PyTuple_GET_SIZE(max_version) != 2 ||
                               !parse_int(PyTuple_GET_ITEM(max_version, 0), major))) {
      wrong_type("__dlpack__", "max_version", "a tuple of two ints", max_version);
    }
    const bool negative =
        std::any_of(t.strides().begin(), t.strides().end(), [](int64_t s) { return s < 0; });
    if (copied && t.is_same(tensor_of(o))) {
      t = t.contiguous().is_same(t) ? t.clone() : t.contiguous();
    } else if (negative && t.numel() > 0) {
      buffer_error("__dlpack__: DLPack takes no negative strides; pass copy=True or use .contiguous()");
    }
    if (major < 1) {
      if (t.storage()->read_only()) buffer_error("__dlpack__: a read-only tensor needs max_version (1, 0)");
      auto* managed = export_tensor<DLManagedTensor>(t);
      return PyCapsule_New(managed, kOld, [](PyObject* c) { free_capsule<DLManagedTensor>(c, kOld); });
    }
    auto* managed = export_tensor<DLManagedTensorVersioned>(t);
    managed->version = {kDLPackMajor, kDLPackMinor};
    managed->flags = (copied ? kDLPackIsCopied : 0) | (t.storage()->read_only() ? kDLPackReadOnly : 0);
    return PyCapsule_New(managed, kNew, [](PyObject* c) { free_capsule<DLManagedTensorVersioned>(c, kNew); });
  });
}

PyObject* dlpack_device(PyObject* o, PyObject*) {
  return guarded([&] {
    const DLDevice device = to_dl("__dlpack_device__", tensor_of(o).device());
    return Py_BuildValue("(ii)", static_cast<int>(device.device_type), static_cast<int>(device.device_id));
  });
}

/// The device that a producer means. `asked` decides where several have the number.
Device from_dl(DLDevice dl, std::optional<Device> asked) {
  if (dl.device_type == kDLCPU || dl.device_type == kDLCUDAHost) return kCPU;
  std::vector<Device> found;
  std::string names;
  for (const LoadedDevice& loaded : loaded_devices()) {
    const Device device(loaded.backend, static_cast<int8_t>(dl.device_id));
    if (device_claims(Device(loaded.backend, 0)).dlpack_type != dl.device_type) continue;
    if (asked && asked->backend != loaded.backend) continue;
    found.push_back(device);
    names += (names.empty() ? "" : ", ") + loaded.name;
  }
  if (found.empty())
    buffer_error(
        fmt::format("from_dlpack: no loaded device has DLPack's type {}", static_cast<int>(dl.device_type)));
  if (found.size() > 1)
    buffer_error(fmt::format("from_dlpack: several devices have DLPack's type {} ({}); say which by device=",
                             static_cast<int>(dl.device_type), names));
  const DeviceRuntime* runtime = device_runtime(found[0].backend);
  if (dl.device_id < 0 || dl.device_id >= (runtime ? runtime->device_count() : 1))
    buffer_error(fmt::format("from_dlpack: {} has no device {}", names, dl.device_id));
  return found[0];
}

template <class Managed>
void release_managed(void* context) noexcept {
  auto* managed = static_cast<Managed*>(context);
  // The producer's deleter may be Python's.
  if (managed->deleter) if_interpreter_lives([managed] { managed->deleter(managed); });
}

/// The same for memory of a device, whose work the host does not see the end of.
template <class Managed>
struct OnDevice {
  Managed* managed;
  Device device;
  Address address;

  static void release(void* context) noexcept {
    const std::unique_ptr<OnDevice> self(static_cast<OnDevice*>(context));
    try {
      synchronize_device(self->device);
    } catch (const Error&) {  // a device that has failed runs nothing any more
    }
    if (DeviceRuntime* const runtime = self->address ? device_runtime(self->device.backend) : nullptr)
      runtime->forget_memory(self->device, self->address);
    release_managed<Managed>(self->managed);
  }
};

/// A storage over a producer's memory of a device, from this byte of it on.
template <class Managed>
Storage import_storage(Managed* managed, uint64_t offset, size_t nbytes, Device device) {
  Address address = 0;
  try {
    if (nbytes > 0)
      address =
          device_runtime(device.backend)->import_memory(device, {managed->dl_tensor.data, offset}, nbytes);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::Value) throw;
    buffer_error(fmt::format("from_dlpack{}", e.what()));
  }
  return Storage::from_foreign(address, nbytes, device, &OnDevice<Managed>::release,
                               new OnDevice<Managed>{managed, device, address});
}

/// A tensor over a managed one, which the result owns from then on.
template <class Managed>
Tensor import_tensor(Managed* managed, bool read_only, std::optional<Device> asked) {
  const DLTensor& dl = managed->dl_tensor;
  const bool on_host = dl.device.device_type == kDLCPU || dl.device.device_type == kDLCUDAHost;
  if (!on_host && managed->deleter == &Exported<Managed>::free) {
    // Our own: the storage knows its device, allocator and streams.
    auto* const own = static_cast<Exported<Managed>*>(managed->manager_ctx);
    Tensor t = own->tensor;
    Exported<Managed>::free(managed);
    return t;
  }
  const Device device = from_dl(dl.device, asked);
  const DType dtype = from_dl(dl.dtype);
  TENON_CHECK(dl.ndim >= 0 && dl.ndim < 256, Value, fmt::format("from_dlpack: {} dimensions", dl.ndim));
  const IntArrayRef sizes(dl.shape, static_cast<size_t>(dl.ndim));
  checked_numel(sizes, "from_dlpack");
  const Dims strides =
      dl.strides ? Dims(dl.strides, static_cast<size_t>(dl.ndim)) : contiguous_strides(sizes);
  const Extent e = extent(sizes, strides, "from_dlpack");
  const auto item = static_cast<int64_t>(item_size(dtype));
  const uint64_t offset = dl.byte_offset + static_cast<uint64_t>(e.low * item);
  const Address first = reinterpret_cast<Address>(dl.data) + offset;
  TENON_CHECK(e.high == e.low || first % static_cast<Address>(item) == 0 || dtype == DType::Complex128, Value,
              "from_dlpack: the elements are not aligned to their size");
  const auto nbytes = static_cast<size_t>((e.high - e.low) * item);
  Storage storage = on_host ? Storage::from_foreign(first, nbytes, kCPU, &release_managed<Managed>, managed)
                            : import_storage(managed, offset, nbytes, device);
  storage->set_read_only(read_only);
  return Tensor(TensorImpl::make(std::move(storage), dtype, sizes, strides, -e.low));
}

Tensor import_capsule(PyObject* capsule, std::optional<Device> asked) {
  if (PyCapsule_IsValid(capsule, kNew)) {
    auto* managed = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, kNew));
    if (managed->version.major != kDLPackMajor) {
      buffer_error(fmt::format("from_dlpack: version {}.{} of DLPack, only 1.x is known",
                               managed->version.major, managed->version.minor));
    }
    Tensor t = import_tensor(managed, (managed->flags & kDLPackReadOnly) != 0, asked);
    PyCapsule_SetName(capsule, kNewUsed);
    return t;
  }
  if (PyCapsule_IsValid(capsule, kOld)) {
    Tensor t =
        import_tensor(static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kOld)), false, asked);
    PyCapsule_SetName(capsule, kOldUsed);
    return t;
  }
  if (PyCapsule_IsValid(capsule, kNewUsed) || PyCapsule_IsValid(capsule, kOldUsed)) {
    throw_error(ErrorKind::Value,
                "from_dlpack: the capsule has been used already; a capsule is consumed once");
  }
  throw_error(ErrorKind::Type, "from_dlpack: the capsule holds no DLPack tensor");
}

/// The number of the stream that will read a producer's tensor; null for one on the host, and for another
/// library's that has queues of its own.
std::optional<uint64_t> consumer_stream(PyObject* producer, std::optional<Device> asked) {
  if (is_tensor(producer)) {
    const Device device = tensor_of(producer).device();
    if (device.is_cpu() || device.is_meta()) return std::nullopt;
    return current_stream(device).id;
  }
  const Ref place(PyObject_CallMethod(producer, "__dlpack_device__", nullptr));
  int type = kDLCPU, id = 0;
  if (!place || !PyTuple_Check(place.get()) || !PyArg_ParseTuple(place.get(), "ii", &type, &id)) {
    PyErr_Clear();  // a producer that says nothing has host memory
    return std::nullopt;
  }
  if (type == kDLCPU || type == kDLCUDAHost) return std::nullopt;
  const Device device = from_dl(DLDevice{static_cast<DLDeviceType>(type), id}, asked);
  if (device_runtime(device.backend)->has_handles()) return std::nullopt;
  return current_stream(device).id;
}

/// The tensor of an object with `__dlpack__`.
Tensor import_object(PyObject* source, PyObject* copy, std::optional<Device> asked) {
  const Ref method(PyObject_GetAttrString(source, "__dlpack__"));
  if (!method) {
    PyErr_Clear();
    wrong_type("from_dlpack", "x", "an object with __dlpack__ or a capsule", source);
  }
  const Ref none(PyTuple_New(0));
  const Ref newest(checked(Py_BuildValue("{s:(II)}", "max_version", kDLPackMajor, kDLPackMinor)));
  if (given(copy) && PyDict_SetItemString(newest.get(), "copy", copy) < 0) throw PythonError();
  if (const auto stream = consumer_stream(source, asked)) {
    const Ref id(checked(PyLong_FromUnsignedLongLong(*stream)));
    if (PyDict_SetItemString(newest.get(), "stream", id.get()) < 0) throw PythonError();
  }
  Ref capsule(PyObject_Call(method.get(), none.get(), newest.get()));
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
    // A producer from before DLPack 1.0 knows no max_version.
    PyErr_Clear();
    capsule = Ref(PyObject_CallNoArgs(method.get()));
  }
  checked(capsule.get());
  return import_capsule(capsule.get(), asked);
}

PyObject* from_dlpack(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&] {
    const auto [source, device, copy] = spread("from_dlpack", {"x", "device", "copy"}, 1, args, n, keywords);
    TENON_CHECK(source, Type, "from_dlpack() misses argument 'x'");
    std::optional<Device> asked;
    if (given(device)) {
      asked = as_device(device);
      if (!asked) wrong_type("from_dlpack", "device", "a device or str", device);
    }
    if (PyCapsule_CheckExact(source)) return wrap(import_capsule(source, asked));
    Tensor t = import_object(source, copy, asked);
    if (asked) t = t.to(*asked);
    return wrap(std::move(t));
  });
}

PyMethodDef g_dlpack_methods[] = {
    fast_method("__dlpack__", &to_dlpack),
    {"__dlpack_device__", &dlpack_device, METH_NOARGS, nullptr},
};
PyMethodDef g_dlpack_functions[] = {fast_method("from_dlpack", &from_dlpack,
                                                "from_dlpack(x, *, device=None, copy=None)\n--\n\n"
                                                "A tensor over the memory of another library's array."),
                                    {}};

}  // namespace

Tensor tensor_from_dlpack(PyObject* object) { return import_object(object, nullptr, std::nullopt); }

TensorPart dlpack_part() { return {g_dlpack_methods, {}}; }
bool add_dlpack(PyObject* module) { return PyModule_AddFunctions(module, g_dlpack_functions) == 0; }

}  // namespace tenon::python
