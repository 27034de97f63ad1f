// Tensor's methods that convert: to, float, tolist, numpy; and tenon.tensor, as_tensor, from_numpy.
#include <fmt/format.h>

#include "python/src/call/parser.h"
#include "python/src/call/spread.h"
#include "python/src/exchange/foreign.h"
#include "python/src/exchange/from_data.h"
#include "python/src/module_parts.h"
#include "python/src/tensor/tensor_parts.h"
#include "tenon/core/stream.h"
#include "tenon/generated/view/functions.h"

namespace tenon::python {
namespace {

std::optional<DType> dtype_argument(const char* function, PyObject* o) {
  if (!given(o)) return std::nullopt;
  const std::optional<DType> dtype = as_dtype(o);
  if (!dtype) wrong_type(function, "dtype", "a dtype", o);
  return dtype;
}

std::optional<Device> device_argument(const char* function, PyObject* o) {
  if (!given(o)) return std::nullopt;
  const std::optional<Device> device = as_device(o);
  if (!device) wrong_type(function, "device", "a device or str", o);
  return device;
}

// tenon.tensor, as_tensor, from_numpy

PyObject* make_tensor(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded("tensor", [&] {
    static constexpr const char* kNames[] = {"data", "dtype", "device", "requires_grad", "pin_memory"};
    const auto [data, dtype, device, requires_grad, pin_memory] =
        spread("tensor", kNames, 1, args, n, keywords);
    TENON_CHECK(data, Type, "tensor() misses argument 'data'");
    Tensor out = tensor_from_data(data, dtype_argument("tensor", dtype));
    if (const auto d = device_argument("tensor", device); d && !same_device(*d, out.device())) {
      TENON_CHECK(!flag("tensor", "pin_memory", pin_memory), Runtime,
                  "tensor(): Only dense CPU tensors can be pinned");
      out = out.to(*d);
    }
    if (flag("tensor", "pin_memory", pin_memory)) out = out.pin_memory();
    if (flag("tensor", "requires_grad", requires_grad)) out.requires_grad_();
    return wrap(std::move(out));
  });
}

/// A tensor over the memory of a tensor or an array, or else a new one of the data.
Tensor shared_or_new(PyObject* data, std::optional<DType> dtype, const char* function, bool ask_for_array,
                     Sharing sharing = Sharing::Preferred) {
  if (is_tensor(data)) return tensor_of(data);
  if (const Tensor t = ask_for_array ? tensor_from_array(data, function, sharing) : Tensor(); t.defined())
    return t;
  TENON_CHECK(sharing == Sharing::Preferred, Value,
              fmt::format("{}: copy=False, but a {} has no memory to share; use copy=None", function,
                          Py_TYPE(data)->tp_name));
  return tensor_from_data(data, dtype);
}

PyObject* as_tensor(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded("as_tensor", [&] {
    const auto [data, dtype, device] = spread("as_tensor", {"data", "dtype", "device"}, 3, args, n, keywords);
    TENON_CHECK(data, Type, "as_tensor() misses argument 'data'");
    const auto t = dtype_argument("as_tensor", dtype);
    Tensor out = shared_or_new(data, t, "as_tensor", !PyBytes_Check(data) && !PyByteArray_Check(data));
    if (t && *t != out.dtype()) out = out.to(*t);
    if (const auto d = device_argument("as_tensor", device); d && !same_device(*d, out.device()))
      out = out.to(*d);
    return wrap(std::move(out));
  });
}

/// `copy` is the array API's: True asks for a copy, False forbids one, None makes one where it is needed.
PyObject* as_array(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded("asarray", [&] {
    const auto [data, dtype, device, copy, requires_grad] =
        spread("asarray", {"obj", "dtype", "device", "copy", "requires_grad"}, 1, args, n, keywords);
    TENON_CHECK(data, Type, "asarray() misses argument 'obj'");
    const auto t = dtype_argument("asarray", dtype);
    const auto d = device_argument("asarray", device);
    const bool never = given(copy) && !flag("asarray", "copy", copy);
    Tensor out = shared_or_new(data, t, "asarray", true, never ? Sharing::Required : Sharing::Preferred);
    const bool converts = (t && *t != out.dtype()) || (d && !same_device(*d, out.device()));
    TENON_CHECK(!never || !converts, Value,
                "asarray: copy=False, but another dtype or device needs a copy; use copy=None");
    if (converts)
      out = out.to(d.value_or(out.device()), t.value_or(out.dtype()));
    else if (given(copy) && flag("asarray", "copy", copy))
      out = out.clone();
    if (flag("asarray", "requires_grad", requires_grad)) out = out.detach().requires_grad_();
    return wrap(std::move(out));
  });
}

PyObject* from_buffer(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded("frombuffer", [&] {
    static constexpr const char* kNames[] = {"buffer", "dtype", "count", "offset", "requires_grad"};
    const auto [buffer, dtype, count, offset, requires_grad] =
        spread("frombuffer", kNames, 1, args, n, keywords);
    TENON_CHECK(buffer, Type, "frombuffer() misses argument 'buffer'");
    TENON_CHECK(given(dtype), Type, "frombuffer() misses argument 'dtype'");
    const DType t = *dtype_argument("frombuffer", dtype);
    int64_t number = given(count) ? int_argument("frombuffer", "count", count) : -1;
    const int64_t first = given(offset) ? int_argument("frombuffer", "offset", offset) : 0;
    const Tensor bytes = bytes_of_buffer(buffer);
    const auto item = static_cast<int64_t>(item_size(t));
    const int64_t size = bytes.numel();
    TENON_CHECK(first >= 0 && first <= size, Value,
                fmt::format("frombuffer: offset {} is beyond the {} bytes of the buffer", first, size));
    TENON_CHECK(
        number >= 0 || (size - first) % item == 0, Value,
        fmt::format("frombuffer: {} bytes are no whole number of elements of {} bytes", size - first, item));
    if (number < 0) number = (size - first) / item;
    TENON_CHECK(
        number <= (size - first) / item, Value,
        fmt::format("frombuffer: {} elements of {} bytes from byte {} on need more than the {} bytes of "
                    "the buffer",
                    number, item, first, size));
    const Address address = bytes.storage().address() + static_cast<Address>(first);
    TENON_CHECK(number == 0 || address % static_cast<Address>(std::min<int64_t>(item, 8)) == 0, Value,
                fmt::format("frombuffer: byte {} of the buffer is not aligned for {}", first, name(t)));
    const Dims sizes{number};
    auto owner = std::make_unique<Tensor>(bytes);
    Storage storage = Storage::from_foreign(
        address, static_cast<size_t>(number * item), kCPU,
        [](void* context) noexcept { delete static_cast<Tensor*>(context); }, owner.get());
    owner.release();
    storage->set_read_only(bytes.storage()->read_only());
    Tensor out(TensorImpl::make(std::move(storage), t, sizes));
    if (flag("frombuffer", "requires_grad", requires_grad)) out.requires_grad_();
    return wrap(std::move(out));
  });
}

PyObject* from_numpy(PyObject*, PyObject* array) {
  return guarded([&] {
    if (!is_numpy_array(array)) wrong_type("from_numpy", "ndarray", "a numpy.ndarray", array);
    return wrap(tensor_from_array(array, "from_numpy", Sharing::Required));
  });
}

// tolist

PyObject* nested_list(const Tensor& t, const char* element, size_t dim) {
  if (dim == t.sizes().size()) return checked(load_element(t.dtype(), element));
  Ref list(PyList_New(t.sizes()[dim]));
  if (!list) {
    PyErr_Clear();
    throw_error(ErrorKind::OutOfMemory,
                fmt::format("tolist: no memory for a list of {} elements", t.sizes()[dim]));
  }
  const int64_t step = t.strides()[dim] * static_cast<int64_t>(t.itemsize());
  for (int64_t i = 0; i < t.sizes()[dim]; ++i) {
    PyList_SET_ITEM(list.get(), i, nested_list(t, element + i * step, dim + 1));
  }
  return list.release();
}

const Tensor& on_host(const char* method, const Tensor& t) {
  TENON_CHECK(t.device().is_cpu(), Device,
              fmt::format("{}: the tensor is on {}; move it with .cpu()", method, to_string(t.device())));
  return t;
}

PyObject* to_list(PyObject* o, PyObject*) {
  return guarded([&] {
    Tensor t = tensor_of(o);
    if (!t.device().is_cpu() && !t.is_meta()) {
      const ReleaseGil waits;
      t = t.detach().to(kCPU);
    }
    on_host("tolist", t);
    return nested_list(t, static_cast<const char*>(t.data_ptr()), 0);
  });
}

// NumPy, by the array interface: a small object that says where the elements are and keeps their memory
// alive.

/// The tensor is one of its own: what becomes of the one that was exported does not move the array.
struct ArraySource {
  PyObject_HEAD Tensor value;
  LentStorage memory;
};

const char* array_type_text(DType t) {
  const char* text = dtype_info(t).numpy;
  TENON_CHECK(
      text, Type,
      fmt::format("numpy: NumPy has no {}; install ml_dtypes, or convert with .to(tenon.float32)", name(t)));
  return text;
}

/// NumPy's dtype for bits that NumPy itself has no name for, which the package ml_dtypes brings; null without
/// it.
Ref extension_dtype(DType t) noexcept {
  const bool known = t == DType::BFloat16 || t == DType::Float8E4M3FN || t == DType::Float8E5M2;
  const Ref module(known ? PyImport_ImportModule("ml_dtypes") : nullptr);
  Ref type(module ? PyObject_GetAttrString(module.get(), std::string(name(t)).c_str()) : nullptr);
  if (!type) PyErr_Clear();
  return type;
}

PyObject* array_interface(PyObject* o, void*) {
  return guarded([&] {
    const Tensor& t = reinterpret_cast<ArraySource*>(o)->value;
    Dims strides = t.strides().to_dims();
    for (int64_t& s : strides) s *= static_cast<int64_t>(t.itemsize());
    const Ref shape(checked(wrap_tuple(t.sizes())));
    const Ref steps(checked(wrap_tuple(strides)));
    return Py_BuildValue("{s:i,s:O,s:s,s:(NO),s:O}", "version", 3, "shape", shape.get(), "typestr",
                         array_type_text(t.dtype()), "data", PyLong_FromVoidPtr(t.data_ptr()),
                         t.storage()->read_only() ? Py_True : Py_False, "strides", steps.get());
  });
}

PyGetSetDef g_source_attributes[] = {{"__array_interface__", &array_interface, nullptr, nullptr, nullptr},
                                     {}};
PyTypeObject g_source_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject* numpy_array(const Tensor& t) {
  on_host("numpy", t);
  if (const Ref type = dtype_info(t.dtype()).numpy ? Ref() : extension_dtype(t.dtype())) {
    const DType bits = t.itemsize() == 1 ? DType::UInt8 : DType::Int16;
    const Ref plain(checked(numpy_array(
        Tensor(TensorImpl::make(t.storage(), bits, t.sizes(), t.strides(), t.storage_offset())))));
    return PyObject_CallMethod(plain.get(), "view", "O", type.get());
  }
  array_type_text(t.dtype());
  const Ref numpy(checked(PyImport_ImportModule("numpy")));
  const Ref source(checked(g_source_type.tp_alloc(&g_source_type, 0)));
  auto* fields = reinterpret_cast<ArraySource*>(source.get());
  new (&fields->value) Tensor(alias_of(t));
  new (&fields->memory) LentStorage(t.storage());
  return PyObject_CallMethod(numpy.get(), "asarray", "O", source.get());
}

PyObject* to_numpy(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&] {
    const auto [force] = spread("numpy", {"force"}, 0, args, n, keywords);
    const Tensor& t = tensor_of(o);
    if (flag("numpy", "force", force)) {
      auto host = without_gil(!t.device().is_cpu(), [&] { return t.detach().to(kCPU); });
      return numpy_array(host);
    }
    TENON_CHECK(!t.requires_grad(), Runtime,
                "numpy: a tensor that requires grad has no NumPy array; use .detach().numpy()");
    return numpy_array(t);
  });
}

/// Says what NumPy's own error, which is set, is about. Other exceptions come from the object that was handed
/// in.
[[noreturn]] void throw_not_cast(PyObject* dtype) {
  const bool of_type = PyErr_ExceptionMatches(PyExc_TypeError) != 0;
  if (!of_type && !PyErr_ExceptionMatches(PyExc_ValueError)) throw PythonError();
  const std::string said = take_error_text();
  throw_error(
      of_type ? ErrorKind::Type : ErrorKind::Value,
      fmt::format(
          "__array__(): argument 'dtype' must be a dtype of NumPy that the elements can be converted to, "
          "not {}: {}",
          Py_TYPE(dtype)->tp_name, said));
}

/// NumPy calls this for np.asarray(x) and np.array(x, dtype).
PyObject* to_array(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&] {
    const auto [dtype, copy] = spread("__array__", {"dtype", "copy"}, 1, args, n, keywords);
    TENON_CHECK(!tensor_of(o).requires_grad(), Runtime,
                "numpy: a tensor that requires grad has no NumPy array; use .detach().numpy()");
    if (const Ref own(wrap(DType::Float32)); given(dtype) && PyObject_TypeCheck(dtype, Py_TYPE(own.get())))
      wrong_type("__array__", "dtype", "a dtype of NumPy", dtype);
    Ref array(checked(numpy_array(tensor_of(o))));
    Ref result = Ref::borrow(array.get());
    if (given(dtype)) {
      const Ref astype(checked(PyObject_GetAttrString(array.get(), "astype")));
      const Ref arguments(checked(PyTuple_Pack(1, dtype)));
      const Ref keywords(checked(Py_BuildValue("{s:O}", "copy", Py_False)));
      result = Ref(PyObject_Call(astype.get(), arguments.get(), keywords.get()));
      if (!result) throw_not_cast(dtype);
    }
    // `copy` is NumPy's: True asks for one, False forbids it, None takes what is needed.
    const bool shared = result.get() == array.get();
    TENON_CHECK(shared || !given(copy) || flag("__array__", "copy", copy), Value,
                "__array__: copy=False, but another dtype needs a copy; use copy=None");
    if (shared && given(copy) && flag("__array__", "copy", copy))
      result = Ref(checked(PyObject_CallMethod(array.get(), "copy", nullptr)));
    return result.release();
  });
}

// to and the casts

/// What all of them end with: the tensor itself where nothing changes.
PyObject* convert(const char* method, PyObject* o, const TensorOptions& options, PyObject* format,
                  bool non_blocking, bool copy) {
  const Tensor self = tensor_of(o);
  std::optional<MemoryFormat> wanted;
  if (given(format)) {
    wanted = as_memory_format(format);
    if (!wanted) wrong_type(method, "memory_format", "a memory_format", format);
  }
  if (!copy && !wanted && options.dtype_opt.value_or(self.dtype()) == self.dtype() &&
      options.layout_opt.value_or(self.layout()) == self.layout() &&
      same_device(options.device_opt.value_or(self.device()), self.device())) {
    return Py_NewRef(o);
  }
  auto result = without_gil(self.numel() >= kReleaseGilElements,
                            [&] { return self.to(options, non_blocking, copy, wanted); });
  return wrap(std::move(result));
}

/// `to` by keywords, after positional arguments have been sorted into them.
PyObject* to(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded("to", [&] {
    static constexpr const char* kNames[] = {"first",  "second", "non_blocking", "copy",         "dtype",
                                             "device", "other",  "layout",       "memory_format"};
    // Positional: (dtype | device | tensor), or (device, dtype); then non_blocking, copy.
    const bool two = n > 1 && (args[1] == Py_None || as_dtype(args[1]));
    PyObject* all[16];
    TENON_CHECK(n <= 4 && (!keywords || PyTuple_GET_SIZE(keywords) < 8), Type, "to() takes fewer arguments");
    Py_ssize_t count = 0;
    for (Py_ssize_t i = 0; i < n; ++i) {
      if (i == 1 && !two) all[count++] = nullptr;
      all[count++] = args[i];
    }
    for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); ++i) all[count + i] = args[n + i];
    const auto [first, second, non_blocking, copy, dtype, device, other, layout, format] =
        spread("to", kNames, 4, all, count, keywords);

    TensorOptions options;
    options.dtype_opt = dtype_argument("to", second ? second : dtype);
    options.device_opt = device_argument("to", device);
    PyObject* like = given(other) ? other : first;
    if (given(like)) {
      if (is_tensor(like)) {
        options = options.dtype(tensor_of(like).dtype()).device(tensor_of(like).device());
      } else if (const auto t = as_dtype(like)) {
        options.dtype_opt = t;
      } else if (const auto d = as_device(like)) {
        options.device_opt = d;
      } else {
        wrong_type("to", "other", "a dtype, device, str or Tensor", like);
      }
    }
    if (given(layout)) {
      options.layout_opt = as_layout(layout);
      if (!options.layout_opt) wrong_type("to", "layout", "a layout", layout);
    }
    const bool always = flag("to", "copy", copy), returns_early = flag("to", "non_blocking", non_blocking);
    return convert("to", o, options, format, returns_early, always);
  });
}

// float(), cpu() and the other casts

PyObject* format_argument(const char* method, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return spread(method, {"memory_format"}, 0, args, n, keywords)[0];
}

struct Cast {
  const char* method;
  DType dtype;
};
constexpr Cast kCasts[] = {{"float", DType::Float32}, {"double", DType::Float64},
                           {"half", DType::Float16},  {"bfloat16", DType::BFloat16},
                           {"int", DType::Int32},     {"long", DType::Int64},
                           {"short", DType::Int16},   {"char", DType::Int8},
                           {"byte", DType::UInt8},    {"bool", DType::Bool}};

template <size_t i>
PyObject* cast(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&] {
    constexpr Cast kCast = kCasts[i];
    PyObject* format = format_argument(kCast.method, args, n, keywords);
    return convert(kCast.method, o, TensorOptions().dtype(kCast.dtype), format, false, false);
  });
}

PyObject* to_cpu(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&] {
    PyObject* format = format_argument("cpu", args, n, keywords);
    return convert("cpu", o, TensorOptions().device(kCPU), format, false, false);
  });
}

PyMethodDef g_conversion_methods[] = {
    fast_method(
        "to", &to,
        "to($self, *args, **kwargs)\n--\n\n"
        "to(dtype | device | other, non_blocking=False, copy=False, *, memory_format=None) or to(device, "
        "dtype, ...): converts; returns self where nothing changes."),
    {"tolist", &to_list, METH_NOARGS,
     "tolist($self)\n--\n\n"
     "The elements as nested lists, or one number."},
    fast_method("numpy", &to_numpy,
                "numpy($self, *, force=False)\n--\n\n"
                "A NumPy array over the same memory."),
    fast_method("__array__", &to_array),
    fast_method("cpu", &to_cpu,
                "cpu($self, *, memory_format=None)\n--\n\n"
                "The tensor in host memory."),
    fast_method("float", &cast<0>,
                "float($self, *, memory_format=None)\n--\n\n"
                "To(tenon.float32)"),
    fast_method("double", &cast<1>,
                "double($self, *, memory_format=None)\n--\n\n"
                "To(tenon.float64)"),
    fast_method("half", &cast<2>,
                "half($self, *, memory_format=None)\n--\n\n"
                "To(tenon.float16)"),
    fast_method("bfloat16", &cast<3>,
                "bfloat16($self, *, memory_format=None)\n--\n\n"
                "To(tenon.bfloat16)"),
    fast_method("int", &cast<4>,
                "int($self, *, memory_format=None)\n--\n\n"
                "To(tenon.int32)"),
    fast_method("long", &cast<5>,
                "long($self, *, memory_format=None)\n--\n\n"
                "To(tenon.int64)"),
    fast_method("short", &cast<6>,
                "short($self, *, memory_format=None)\n--\n\n"
                "To(tenon.int16)"),
    fast_method("char", &cast<7>,
                "char($self, *, memory_format=None)\n--\n\n"
                "To(tenon.int8)"),
    fast_method("byte", &cast<8>,
                "byte($self, *, memory_format=None)\n--\n\n"
                "To(tenon.uint8)"),
    fast_method("bool", &cast<9>,
                "bool($self, *, memory_format=None)\n--\n\n"
                "To(tenon.bool)"),
};

PyMethodDef g_conversion_functions[] = {
    fast_method("tensor", &make_tensor,
                "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)\n--\n\n"
                "A new tensor with a copy of data."),
    fast_method("as_tensor", &as_tensor,
                "as_tensor(data, dtype=None, device=None)\n--\n\n"
                "Without a copy where possible."),
    fast_method(
        "asarray", &as_array,
        "asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False)\n--\n\n"
        "A tensor over the memory of an array where there is one and `copy` is not True, else a new one. "
        "An array is whatever has a buffer, `__dlpack__` or `__array_interface__`."),
    fast_method("frombuffer", &from_buffer,
                "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)\n--\n\n"
                "A vector over the bytes of a buffer, from `offset` on: `count` elements, or all."),
    {"from_numpy", &from_numpy, METH_O,
     "from_numpy(ndarray, /)\n--\n\n"
     "A tensor over the memory of a NumPy array."},
    {}};

}  // namespace

TensorPart conversion_part() { return {g_conversion_methods, {}}; }

bool add_conversion(PyObject* module) {
  PyTypeObject& t = g_source_type;
  t.tp_name = "tenon._C._ArraySource";
  t.tp_basicsize = sizeof(ArraySource);
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_getset = g_source_attributes;
  t.tp_dealloc = [](PyObject* o) {
    auto* fields = reinterpret_cast<ArraySource*>(o);
    fields->memory.~LentStorage();
    fields->value.~Tensor();
    Py_TYPE(o)->tp_free(o);
  };
  return PyType_Ready(&t) == 0 && PyModule_AddFunctions(module, g_conversion_functions) == 0;
}

}  // namespace tenon::python
