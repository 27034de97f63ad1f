// Tensor's attributes and small methods: shape, dtype, strides, storage, repr; and UntypedStorage.
#include <fmt/format.h>

#include <algorithm>

#include "python/src/call/parser.h"
#include "python/src/call/spread.h"
#include "python/src/module_parts.h"
#include "python/src/tensor/tensor_parts.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/ops/print.h"
#include "tenon/record/recorder.h"

namespace tenon::python {
namespace {

/// An attribute or a method without arguments that is a plain function of the tensor.
template <auto f>
PyObject* get(PyObject* o, void*) {
  return guarded([&] { return f(tensor_of(o)); });
}
template <auto f>
PyObject* call_plain(PyObject* o, PyObject*) {
  return guarded([&] { return f(tensor_of(o)); });
}

PyObject* from_int(int64_t v) { return PyLong_FromLongLong(v); }
PyObject* from_size(size_t v) { return PyLong_FromSize_t(v); }

constexpr auto kShape = [](const Tensor& t) { return wrap_size(t.sizes()); };
constexpr auto kDtype = [](const Tensor& t) { return wrap(t.dtype()); };
constexpr auto kDevice = [](const Tensor& t) { return wrap(t.device()); };
constexpr auto kLayout = [](const Tensor& t) { return wrap(t.layout()); };
constexpr auto kNdim = [](const Tensor& t) { return from_int(t.dim()); };
constexpr auto kNumel = [](const Tensor& t) { return from_int(t.numel()); };
constexpr auto kItemsize = [](const Tensor& t) { return from_size(t.itemsize()); };
// In Python's integers: an expanded tensor may have more bytes than 64 bits count.
constexpr auto kNbytes = [](const Tensor& t) -> PyObject* {
  const Ref numel(from_int(t.numel())), size(from_size(t.itemsize()));
  return numel && size ? PyNumber_Multiply(numel.get(), size.get()) : nullptr;
};
constexpr auto kOffset = [](const Tensor& t) {
  record::Recorder::current().note_offset_read();
  return from_int(t.storage_offset());
};
constexpr auto kDataPtr = [](const Tensor& t) { return from_size(reinterpret_cast<size_t>(t.data_ptr())); };
constexpr auto kStrides = [](const Tensor& t) { return wrap_tuple(t.strides()); };
constexpr auto kIsMeta = [](const Tensor& t) { return PyBool_FromLong(t.is_meta()); };
constexpr auto kIsCpu = [](const Tensor& t) { return PyBool_FromLong(t.device().is_cpu()); };
/// The name of a device, as a parameter of a template.
template <size_t N>
struct DeviceName {
  constexpr DeviceName(const char (&name)[N]) { std::copy_n(name, N, text); }
  char text[N];
};
template <DeviceName kName>
constexpr auto kIsOn =
    [](const Tensor& t) { return PyBool_FromLong(backend_name(t.device().backend) == kName.text); };
constexpr auto kNever = [](const Tensor&) { return Py_NewRef(Py_False); };
constexpr auto kIsFloat = [](const Tensor& t) { return PyBool_FromLong(t.is_floating_point()); };
constexpr auto kIsComplex = [](const Tensor& t) { return PyBool_FromLong(t.is_complex()); };
constexpr auto kIsSigned = [](const Tensor& t) { return PyBool_FromLong(t.is_signed()); };
constexpr auto kTransposed = [](const Tensor& t) { return wrap(t.numpy_T()); };
constexpr auto kMatrixTransposed = [](const Tensor& t) { return wrap(t.mT()); };
constexpr auto kVersion = [](const Tensor& t) {
  TENON_CHECK(!t.impl()->is_inference(), Runtime,
              "_version: Inference tensors do not track version counter.");
  return PyLong_FromUnsignedLongLong(t._version());
};
constexpr auto kReal = [](const Tensor& t) { return wrap(tenon::real(t)); };
constexpr auto kImag = [](const Tensor& t) { return wrap(tenon::imag(t)); };
constexpr auto kMatrixAdjoint = [](const Tensor& t) { return wrap(tenon::conj(t.mT())); };

/// x.real = values writes through the view.
int set_real(PyObject* o, PyObject* value, void* imaginary) {
  return guarded([&] {
    const char* name = imaginary ? "imag" : "real";
    Tensor part = imaginary ? tenon::imag(tensor_of(o)) : tenon::real(tensor_of(o));
    Scalar number;
    if (given(value) && is_tensor(value))
      part.copy_(tensor_of(value));
    else if (given(value) && parse_scalar(value, number))
      part.fill_(number);
    else
      wrong_type(name, "value", "a Tensor or a number", value ? value : Py_None);
    return 0;
  });
}

PyObject* size(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&] {
    const auto [dim] = spread("size", {"dim"}, 1, args, n, keywords);
    if (!given(dim)) return wrap_size(tensor_of(o).sizes());
    return from_int(tensor_of(o).size(int_argument("size", "dim", dim)));
  });
}

PyObject* stride(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&] {
    const auto [dim] = spread("stride", {"dim"}, 1, args, n, keywords);
    if (!given(dim)) return wrap_tuple(tensor_of(o).strides());
    return from_int(tensor_of(o).stride(int_argument("stride", "dim", dim)));
  });
}

PyObject* is_contiguous(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&] {
    const auto [format] = spread("is_contiguous", {"memory_format"}, 0, args, n, keywords);
    MemoryFormat wanted = MemoryFormat::Contiguous;
    if (given(format)) {
      const auto value = as_memory_format(format);
      if (!value) wrong_type("is_contiguous", "memory_format", "a memory_format", format);
      wanted = *value;
    }
    return PyBool_FromLong(tensor_of(o).is_contiguous(wanted));
  });
}

/// What set_printoptions() was given. Guarded by the interpreter lock.
PrintOptions& print_options() {
  static PrintOptions options;
  return options;
}

/// (precision, threshold, edge items, line width, scientific or None), which set_printoptions() has checked.
PyObject* set_print_options(PyObject*, PyObject* args) {
  PrintOptions options;
  long long threshold = 0, edge_items = 0;
  PyObject* scientific = nullptr;
  if (!PyArg_ParseTuple(args, "iLLiO", &options.precision, &threshold, &edge_items, &options.line_width,
                        &scientific))
    return nullptr;
  options.threshold = threshold;
  options.edge_items = edge_items;
  if (scientific != Py_None) options.scientific = scientific == Py_True;
  print_options() = options;
  return Py_NewRef(Py_None);
}

/// Gives a tensor the sizes, strides and offset of a view of it. As long as it has no history: a view's is
/// made of its geometry when its base gets one.
PyObject* take_geometry(PyObject* o, PyObject* view) {
  return guarded([&] {
    if (!is_tensor(view)) wrong_type("_take_geometry", "view", "a Tensor", view);
    const Tensor& self = tensor_of(o);
    const Tensor& from = tensor_of(view);
    TENON_CHECK(self.storage() == from.storage() && self.dtype() == from.dtype(), Runtime,
                "_take_geometry: `view` must be a view of the tensor");
    self.impl()->set_geometry(from.sizes(), from.strides(), from.storage_offset());
    self.storage()->bump_version();
    return Py_NewRef(o);
  });
}

PyObject* repr(PyObject* o) {
  return guarded([&] {
    std::string text = to_string(tensor_of(o), print_options());
    if (Py_IS_TYPE(o, &tensor_type)) return to_python(text);
    // A subclass says what it is, as PyTorch's Parameter does.
    const char* name = Py_TYPE(o)->tp_name;
    return PyUnicode_FromFormat("%s containing:\n%s", name, text.c_str());
  });
}

PyObject* format(PyObject* o, PyObject* spec) {
  return guarded([&]() -> PyObject* {
    if (!PyUnicode_Check(spec)) wrong_type("__format__", "format_spec", "a str", spec);
    const Tensor& t = tensor_of(o);
    if (t.dim() == 0 && !t.is_meta()) {
      const Ref number(checked(wrap(t.item())));
      return PyObject_Format(number.get(), spec);
    }
    if (PyUnicode_GetLength(spec) > 0) {
      throw_error(ErrorKind::Type,
                  fmt::format("format: only a 0-dim tensor takes a format, got {}", summary(t)));
    }
    return PyObject_Str(o);
  });
}

// Storage

struct StorageObject {
  PyObject_HEAD Storage value;
};
PyTypeObject g_storage_type = {PyVarObject_HEAD_INIT(nullptr, 0)};
Storage& storage_of(PyObject* o) noexcept { return reinterpret_cast<StorageObject*>(o)->value; }

PyObject* storage(PyObject* o, PyObject*) { return wrap(tensor_of(o).storage()); }
PyObject* storage_equal(PyObject* a, PyObject* b, int op) {
  if (!Py_IS_TYPE(b, &g_storage_type) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((storage_of(a) == storage_of(b)) == (op == Py_EQ));
}

/// The bytes on a device: the storage itself if they are there already.
PyObject* storage_on(PyObject* o, Device device) {
  const Storage& s = storage_of(o);
  if (same_device(s->device(), device)) return Py_NewRef(o);
  const Dims bytes{static_cast<int64_t>(s.nbytes())};
  const Tensor all(TensorImpl::make(s, DType::UInt8, bytes));
  auto moved = without_gil([&] { return all.to(device); });
  return wrap(moved.storage());
}

PyObject* storage_to(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&] {
    const auto [where] = spread("to", {"device"}, 1, args, n, keywords);
    const auto device = where ? as_device(where) : std::nullopt;
    if (!device) wrong_type("to", "device", "a device or str", where ? where : Py_None);
    return storage_on(o, *device);
  });
}

/// What the bytes hold is read and written in Python (tenon/storage.py).
template <class... A>
PyObject* storage_helper(const char* name, A... args) {
  const Ref module(PyImport_ImportModule("tenon.storage"));
  const Ref helper(module ? PyObject_GetAttrString(module.get(), name) : nullptr);
  return helper ? PyObject_CallFunctionObjArgs(helper.get(), args..., nullptr) : nullptr;
}
Py_ssize_t storage_length(PyObject* o) { return static_cast<Py_ssize_t>(storage_of(o).nbytes()); }
PyObject* storage_item(PyObject* o, Py_ssize_t i) {
  const Ref index(PyLong_FromSsize_t(i));
  return index ? storage_helper("_byte", o, index.get()) : nullptr;
}
PyObject* storage_at(PyObject* o, PyObject* index) { return storage_helper("_byte", o, index); }
int set_storage_at(PyObject* o, PyObject* index, PyObject* value) {
  const Ref done(storage_helper("_set_bytes", o, index, value));  // a null value ends the list: del
  return done ? 0 : -1;
}
PySequenceMethods g_storage_sequence = {.sq_length = &storage_length, .sq_item = &storage_item};
PyMappingMethods g_storage_mapping = {&storage_length, &storage_at, &set_storage_at};

PyMethodDef g_storage_methods[] = {
    {"tolist", [](PyObject* o, PyObject*) { return storage_helper("_all_bytes", o); }, METH_NOARGS,
     "tolist($self)\n--\n\n"
     "The bytes as a list of ints."},
    {"__copy__", [](PyObject* o, PyObject*) { return storage_helper("_copied", o); }, METH_NOARGS, nullptr},
    {"__reduce__", [](PyObject* o, PyObject*) { return storage_helper("_reduced", o); }, METH_NOARGS,
     nullptr},
    fast_method("to", &storage_to,
                "to($self, device)\n--\n\n"
                "The bytes on a device; the storage itself if they are there."),
    {"cpu", [](PyObject* o, PyObject*) { return guarded([&] { return storage_on(o, kCPU); }); }, METH_NOARGS,
     "cpu($self)\n--\n\n"
     "The bytes in host memory."},
    {"nbytes", [](PyObject* o, PyObject*) { return from_size(storage_of(o).nbytes()); }, METH_NOARGS,
     "nbytes($self)\n--\n\n"
     "Bytes that are kept alive."},
    {"size", [](PyObject* o, PyObject*) { return from_size(storage_of(o).nbytes()); }, METH_NOARGS,
     "size($self)\n--\n\n"
     "Bytes."},
    {"data_ptr", [](PyObject* o, PyObject*) { return from_size(storage_of(o).address()); }, METH_NOARGS,
     "data_ptr($self)\n--\n\n"
     "Where the first byte is."},
    {"use_count",
     [](PyObject* o, PyObject*) { return PyLong_FromUnsignedLong(storage_of(o).use_count() - 1); },
     METH_NOARGS,
     "use_count($self)\n--\n\n"
     "Tensors, and storages held elsewhere, that share it."},
    {"resizable", [](PyObject* o, PyObject*) { return PyBool_FromLong(storage_of(o)->resizable()); },
     METH_NOARGS,
     "resizable($self)\n--\n\n"
     "Whether resize_ can grow it."},
    {}};
PyGetSetDef g_storage_attributes[] = {
    {"device", [](PyObject* o, void*) { return wrap(storage_of(o)->device()); }, nullptr, nullptr, nullptr},
    {}};

PyGetSetDef g_properties_attributes[] = {
    {"shape", &get<kShape>, nullptr, "The sizes.", nullptr},
    {"dtype", &get<kDtype>, nullptr, "The type of the elements.", nullptr},
    {"device", &get<kDevice>, nullptr, "Where the elements are.", nullptr},
    {"layout", &get<kLayout>, nullptr, "How they are arranged.", nullptr},
    {"ndim", &get<kNdim>, nullptr, "The number of dimensions.", nullptr},
    {"itemsize", &get<kItemsize>, nullptr, "Bytes of one element.", nullptr},
    {"nbytes", &get<kNbytes>, nullptr, "Bytes of the elements, whatever the storage holds.", nullptr},
    {"T", &get<kTransposed>, nullptr, "A view with all dimensions reversed.", nullptr},
    {"mT", &get<kMatrixTransposed>, nullptr, "A view with the last two dimensions swapped.", nullptr},
    {"mH", &get<kMatrixAdjoint>, nullptr, "The conjugate of mT.", nullptr},
    {"real", &get<kReal>, &set_real, "A view of the real parts.", nullptr},
    {"imag", &get<kImag>, &set_real, "A view of the imaginary parts.", const_cast<char*>("imag")},
    {"is_meta", &get<kIsMeta>, nullptr, "Whether there are no elements, only their description.", nullptr},
    {"is_cpu", &get<kIsCpu>, nullptr, "Whether the elements are in the memory of the host.", nullptr},
    {"is_cuda", &get<kIsOn<"cuda">>, nullptr, "Whether the elements are on a device called cuda.", nullptr},
    {"is_xpu", &get<kIsOn<"xpu">>, nullptr, "Whether the elements are on a device called xpu.", nullptr},
    {"is_mps", &get<kIsOn<"mps">>, nullptr, "Whether the elements are on a device called mps.", nullptr},
    {"is_mtia", &get<kIsOn<"mtia">>, nullptr, "Whether the elements are on a device called mtia.", nullptr},
    {"is_maia", &get<kIsOn<"maia">>, nullptr, "Whether the elements are on a device called maia.", nullptr},
    {"is_ipu", &get<kIsOn<"ipu">>, nullptr, "Whether the elements are on a device called ipu.", nullptr},
    {"is_xla", &get<kIsOn<"xla">>, nullptr, "Whether the elements are on a device called xla.", nullptr},
    {"is_vulkan", &get<kIsOn<"vulkan">>, nullptr, "Whether the elements are on a device called vulkan.",
     nullptr},
    {"is_sparse", &get<kNever>, nullptr, "Whether zeros are left out: no.", nullptr},
    {"is_sparse_csr", &get<kNever>, nullptr, "Whether zeros are left out, row by row: no.", nullptr},
    {"is_quantized", &get<kNever>, nullptr, "Whether elements are integers with a scale: no.", nullptr},
    {"is_mkldnn", &get<kNever>, nullptr, "Whether the elements are in a layout of oneDNN: no.", nullptr},
    {"is_nested", &get<kNever>, nullptr, "Whether rows have lengths of their own: no.", nullptr},
    {"_version", &get<kVersion>, nullptr, "Counts in-place writes to the storage.", nullptr},
};
PyMethodDef g_properties_methods[] = {
    fast_method("size", &size, "size($self, dim=None)\n--\n\nThe sizes, or one of them."),
    fast_method("stride", &stride,
                "stride($self, dim=None)\n--\n\n"
                "The strides in elements, or one of them."),
    fast_method("is_contiguous", &is_contiguous,
                "is_contiguous($self, *, memory_format=None)\n--\n\n"
                "Whether the elements are in order, without gaps."),
    {"_take_geometry", &take_geometry, METH_O, nullptr},
    {"_set_print_options", &set_print_options, METH_VARARGS | METH_STATIC, nullptr},
    {"strides", &call_plain<kStrides>, METH_NOARGS,
     "strides($self)\n--\n\n"
     "The strides in elements."},
    {"dim", &call_plain<kNdim>, METH_NOARGS,
     "dim($self)\n--\n\n"
     "The number of dimensions."},
    {"ndimension", &call_plain<kNdim>, METH_NOARGS,
     "ndimension($self)\n--\n\n"
     "The number of dimensions."},
    {"numel", &call_plain<kNumel>, METH_NOARGS,
     "numel($self)\n--\n\n"
     "The number of elements."},
    {"nelement", &call_plain<kNumel>, METH_NOARGS,
     "nelement($self)\n--\n\n"
     "The number of elements."},
    {"element_size", &call_plain<kItemsize>, METH_NOARGS,
     "element_size($self)\n--\n\n"
     "Bytes of one element."},
    {"storage_offset", &call_plain<kOffset>, METH_NOARGS,
     "storage_offset($self)\n--\n\n"
     "Elements of the storage before the first."},
    {"data_ptr", &call_plain<kDataPtr>, METH_NOARGS,
     "data_ptr($self)\n--\n\n"
     "Where the first element is."},
    {"is_floating_point", &call_plain<kIsFloat>, METH_NOARGS,
     "is_floating_point($self)\n--\n\n"
     "Whether the dtype is a real floating type."},
    {"is_complex", &call_plain<kIsComplex>, METH_NOARGS,
     "is_complex($self)\n--\n\n"
     "Whether the dtype is complex."},
    {"is_signed", &call_plain<kIsSigned>, METH_NOARGS,
     "is_signed($self)\n--\n\n"
     "Whether the dtype holds negative values."},
    {"storage", &storage, METH_NOARGS,
     "storage($self)\n--\n\n"
     "The bytes of the tensor, which views share."},
    {"untyped_storage", &storage, METH_NOARGS,
     "untyped_storage($self)\n--\n\n"
     "The bytes of the tensor, which views share."},
    {"__format__", &format, METH_O, nullptr},
};

PyObject* is_tensor_function(PyObject*, PyObject* o) { return PyBool_FromLong(is_tensor(o)); }
PyObject* is_complex_function(PyObject*, PyObject* o) {
  if (!is_tensor(o)) return PyErr_Format(PyExc_TypeError, "is_complex() takes a Tensor");
  return call_plain<kIsComplex>(o, nullptr);
}
PyObject* is_float_function(PyObject*, PyObject* o) {
  if (!is_tensor(o)) return PyErr_Format(PyExc_TypeError, "is_floating_point() takes a Tensor");
  return call_plain<kIsFloat>(o, nullptr);
}
PyObject* numel_function(PyObject*, PyObject* o) {
  if (!is_tensor(o)) return PyErr_Format(PyExc_TypeError, "numel() takes a Tensor");
  return call_plain<kNumel>(o, nullptr);
}
PyMethodDef g_properties_functions[] = {{"is_tensor", &is_tensor_function, METH_O,
                                         "is_tensor(obj, /)\n--\n\n"
                                         "Whether an object is a Tensor."},
                                        {"is_floating_point", &is_float_function, METH_O,
                                         "is_floating_point(input, /)\n--\n\n"
                                         "See Tensor.is_floating_point."},
                                        {"is_complex", &is_complex_function, METH_O,
                                         "is_complex(input, /)\n--\n\n"
                                         "See Tensor.is_complex."},
                                        {"numel", &numel_function, METH_O,
                                         "numel(input, /)\n--\n\n"
                                         "See Tensor.numel."},
                                        {}};

}  // namespace

const Storage* as_storage(PyObject* o) noexcept {
  return Py_IS_TYPE(o, &g_storage_type) ? &storage_of(o) : nullptr;
}
PyObject* wrap(Storage storage) noexcept {
  PyObject* s = g_storage_type.tp_alloc(&g_storage_type, 0);
  if (s) new (&storage_of(s)) Storage(std::move(storage));
  return s;
}

TensorPart property_part() {
  tensor_type.tp_repr = &repr;
  return {g_properties_methods, g_properties_attributes};
}

bool add_storage(PyObject* module) {
  PyTypeObject& t = g_storage_type;
  t.tp_name = "tenon.UntypedStorage";
  t.tp_doc = "The bytes that tensors are views of, shared and counted.";
  t.tp_basicsize = sizeof(StorageObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_richcompare = &storage_equal;
  t.tp_hash = [](PyObject* o) { return _Py_HashPointer(storage_of(o).operator->()); };
  t.tp_as_sequence = &g_storage_sequence;
  t.tp_as_mapping = &g_storage_mapping;
  t.tp_methods = g_storage_methods;
  t.tp_getset = g_storage_attributes;
  t.tp_dealloc = &destroy_value<storage_of>;
  return add_type(module, "UntypedStorage", t) && PyModule_AddFunctions(module, g_properties_functions) == 0;
}

}  // namespace tenon::python
