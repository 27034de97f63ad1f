// DLPack both ways: Tensor.__dlpack__, __dlpack_device__ and tenon.from_dlpack, with the versioned capsule
// and the old. Negative strides stay inside Tenon: consumers compute the extent of the memory from positive
// ones.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "python/src/call/parser.h"
#include "python/src/call/spread.h"
#include "python/src/exchange/dlpack_abi.h"
#include "python/src/module_parts.h"
#include "python/src/tensor/tensor_parts.h"

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

/// A managed tensor and what it points to, in one block; `context` of the C structure is the block.
template <class Managed>
struct Exported {
  Managed managed{};
  LentStorage memory;
  Dims sizes, strides;

  explicit Exported(const Tensor& t)
      : memory(t.storage()), sizes(t.sizes().to_dims()), strides(t.strides().to_dims()) {}

  static void free(Managed* m) { delete static_cast<Exported*>(m->manager_ctx); }
};

template <class Managed>
Managed* export_tensor(const Tensor& t) {
  auto block = std::make_unique<Exported<Managed>>(t);
  DLTensor& dl = block->managed.dl_tensor;
  dl.data = t.data_ptr();
  dl.device = {kDLCPU, 0};
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

PyObject* to_dlpack(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    static constexpr const char* kNames[] = {"stream", "max_version", "dl_device", "copy"};
    const auto [stream, max_version, dl_device, copy] = spread("__dlpack__", kNames, 0, args, n, keywords);
    Tensor t = tensor_of(o);
    if (t.requires_grad()) buffer_error("__dlpack__: the tensor requires grad; use .detach()");
    if (!t.device().is_cpu())
      buffer_error(fmt::format("__dlpack__: {} memory is not shared", to_string(t.device())));
    if (given(dl_device)) {
      int type = 0, id = 0;
      if (!PyTuple_Check(dl_device) || !PyArg_ParseTuple(dl_device, "ii", &type, &id)) {
        PyErr_Clear();
        wrong_type("__dlpack__", "dl_device", "a tuple of two ints", dl_device);
      }
      if (type != kDLCPU)
        buffer_error("__dlpack__: the tensor is in host memory; move it to the other device first");
    }
    int64_t major = 0;
    if (given(max_version) && (!PyTuple_Check(max_version) || PyTuple_GET_SIZE(max_version) != 2 ||
                               !parse_int(PyTuple_GET_ITEM(max_version, 0), major))) {
      wrong_type("__dlpack__", "max_version", "a tuple of two ints", max_version);
    }
    const bool negative =
        std::any_of(t.strides().begin(), t.strides().end(), [](int64_t s) { return s < 0; });
    bool copied = given(copy) && flag(copy);
    if (copied) {
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
    const Tensor& t = tensor_of(o);
    if (!t.device().is_cpu())
      buffer_error(fmt::format("__dlpack_device__: DLPack has no {}", to_string(t.device())));
    return Py_BuildValue("(ii)", static_cast<int>(kDLCPU), 0);
  });
}

template <class Managed>
void release_managed(void* context) noexcept {
  auto* managed = static_cast<Managed*>(context);
  // The producer's deleter may be Python's.
  if (managed->deleter) if_interpreter_lives([managed] { managed->deleter(managed); });
}

/// A tensor over a managed one, which the result owns from then on.
template <class Managed>
Tensor import_tensor(Managed* managed, bool read_only) {
  const DLTensor& dl = managed->dl_tensor;
  if (dl.device.device_type != kDLCPU && dl.device.device_type != kDLCUDAHost) {
    buffer_error(fmt::format("from_dlpack: device type {} is not host memory",
                             static_cast<int>(dl.device.device_type)));
  }
  const DType dtype = from_dl(dl.dtype);
  TENON_CHECK(dl.ndim >= 0 && dl.ndim < 256, Value, fmt::format("from_dlpack: {} dimensions", dl.ndim));
  const IntArrayRef sizes(dl.shape, static_cast<size_t>(dl.ndim));
  checked_numel(sizes, "from_dlpack");
  const Dims strides =
      dl.strides ? Dims(dl.strides, static_cast<size_t>(dl.ndim)) : contiguous_strides(sizes);
  const Extent e = extent(sizes, strides, "from_dlpack");
  const auto item = static_cast<int64_t>(item_size(dtype));
  const Address first =
      reinterpret_cast<Address>(dl.data) + dl.byte_offset + static_cast<Address>(e.low * item);
  TENON_CHECK(e.high == e.low || first % static_cast<Address>(item) == 0 || dtype == DType::Complex128, Value,
              "from_dlpack: the elements are not aligned to their size");
  Storage storage = Storage::from_foreign(first, static_cast<size_t>((e.high - e.low) * item), kCPU,
                                          &release_managed<Managed>, managed);
  storage->set_read_only(read_only);
  return Tensor(TensorImpl::make(std::move(storage), dtype, sizes, strides, -e.low));
}

Tensor import_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kNew)) {
    auto* managed = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, kNew));
    if (managed->version.major != kDLPackMajor) {
      buffer_error(fmt::format("from_dlpack: version {}.{} of DLPack, only 1.x is known",
                               managed->version.major, managed->version.minor));
    }
    Tensor t = import_tensor(managed, (managed->flags & kDLPackReadOnly) != 0);
    PyCapsule_SetName(capsule, kNewUsed);
    return t;
  }
  if (PyCapsule_IsValid(capsule, kOld)) {
    Tensor t = import_tensor(static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kOld)), false);
    PyCapsule_SetName(capsule, kOldUsed);
    return t;
  }
  if (PyCapsule_IsValid(capsule, kNewUsed) || PyCapsule_IsValid(capsule, kOldUsed)) {
    throw_error(ErrorKind::Value,
                "from_dlpack: the capsule has been used already; a capsule is consumed once");
  }
  throw_error(ErrorKind::Type, "from_dlpack: the capsule holds no DLPack tensor");
}

PyObject* from_dlpack(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&] {
    static constexpr const char* kNames[] = {"x", "device", "copy"};
    const auto [source, device, copy] = spread("from_dlpack", kNames, 1, args, n, keywords);
    TENON_CHECK(source, Type, "from_dlpack() misses argument 'x'");
    if (PyCapsule_CheckExact(source)) return wrap(import_capsule(source));
    const Ref method(PyObject_GetAttrString(source, "__dlpack__"));
    if (!method) {
      PyErr_Clear();
      wrong_type("from_dlpack", "x", "an object with __dlpack__ or a capsule", source);
    }
    const Ref none(PyTuple_New(0));
    const Ref newest(checked(Py_BuildValue("{s:(II)}", "max_version", kDLPackMajor, kDLPackMinor)));
    if (given(copy) && PyDict_SetItemString(newest.get(), "copy", copy) < 0) throw PythonError();
    Ref capsule(PyObject_Call(method.get(), none.get(), newest.get()));
    if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
      // A producer from before DLPack 1.0 knows no max_version.
      PyErr_Clear();
      capsule = Ref(PyObject_CallNoArgs(method.get()));
    }
    checked(capsule.get());
    Tensor t = import_capsule(capsule.get());
    if (given(device)) {
      const auto wanted = as_device(device);
      if (!wanted) wrong_type("from_dlpack", "device", "a device or str", device);
      t = t.to(*wanted);
    }
    return wrap(std::move(t));
  });
}

PyMethodDef g_methods[] = {
    fast_method("__dlpack__", &to_dlpack),
    {"__dlpack_device__", &dlpack_device, METH_NOARGS, nullptr},
};
PyMethodDef g_functions[] = {
    fast_method(
        "from_dlpack", &from_dlpack,
        "from_dlpack(x, *, device=None, copy=None): a tensor over the memory of another library's array."),
    {}};

}  // namespace

TensorPart dlpack_part() { return {g_methods, {}}; }
bool add_dlpack(PyObject* module) { return PyModule_AddFunctions(module, g_functions) == 0; }

}  // namespace tenon::python
