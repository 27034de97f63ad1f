#include "python/src/exchange/foreign.h"

#include <fmt/format.h>

#include <memory>
#include <string_view>

#include "python/src/call/parser.h"
#include "python/src/call/spread.h"
#include "python/src/exchange/from_data.h"
#include "python/src/interpreter/errors.h"
#include "python/src/interpreter/gil.h"

namespace tenon::python {
namespace {

/// An attribute as text; empty where there is none.
std::string text_of(PyObject* o, const char* attribute) {
  const Ref value(o ? PyObject_GetAttrString(o, attribute) : nullptr);
  const char* text = value && PyUnicode_Check(value.get()) ? PyUnicode_AsUTF8(value.get()) : nullptr;
  if (!text) PyErr_Clear();
  return text ? text : "";
}

Tensor with_dtype(const Tensor& bits, DType dtype) {
  return Tensor(TensorImpl::make(bits.storage(), dtype, bits.sizes(), bits.strides(), bits.storage_offset()));
}

/// An array of NumPy's whose elements a buffer cannot name: the types of ml_dtypes, by their bits.
Tensor from_extension_type(PyObject* array, const std::string& dtype, const char* function) {
  for (const auto& [name, type, bits] :
       {std::tuple{"bfloat16", DType::BFloat16, "i2"}, std::tuple{"float8_e4m3fn", DType::Float8E4M3FN, "u1"},
        std::tuple{"float8_e5m2", DType::Float8E5M2, "u1"}}) {
    if (dtype != name) continue;
    const Ref view(checked(PyObject_CallMethod(array, "view", "s", bits)));
    return with_dtype(tensor_from_buffer(view.get(), function), type);
  }
  return {};
}

/// A copy in this machine's byte order, one element after another; null where the object is no array of
/// NumPy's.
Ref native_copy(PyObject* array) {
  if (!is_numpy_array(array)) return {};
  const Ref dtype(checked(PyObject_GetAttrString(array, "dtype")));
  const Ref native(checked(PyObject_CallMethod(dtype.get(), "newbyteorder", "s", "=")));
  return Ref(checked(PyObject_CallMethod(array, "astype", "O", native.get())));
}

Tensor from_buffer(PyObject* o, const char* function, Sharing sharing) {
  try {
    return tensor_from_buffer(o, function);
  } catch (const Error&) {
    const Ref dtype(PyObject_GetAttrString(o, "dtype"));
    if (!dtype) PyErr_Clear();
    const std::string kind = text_of(dtype.get(), "byteorder");
    if (const Tensor t = from_extension_type(o, text_of(dtype.get(), "name"), function); t.defined())
      return t;
    const Ref copy = sharing == Sharing::Preferred && kind != "|" ? native_copy(o) : Ref();
    if (!copy) throw;
    return tensor_from_buffer(copy.get(), function);
  }
}

// NumPy's array interface: https://numpy.org/doc/stable/reference/arrays.interface.html

/// What keeps the memory of an interface alive.
struct Kept {
  PyObject* owner;
  Py_buffer buffer{};
  bool has_buffer = false;

  static void release(void* context) noexcept {
    auto* kept = static_cast<Kept*>(context);
    if_interpreter_lives([kept] {
      if (kept->has_buffer) PyBuffer_Release(&kept->buffer);
      Py_DECREF(kept->owner);
    });
    delete kept;
  }
};

PyObject* field(PyObject* interface, const char* name) noexcept {
  PyObject* value = PyDict_GetItemString(interface, name);
  return value == Py_None ? nullptr : value;
}

Dims numbers(PyObject* tuple, const char* function, const char* what) {
  Dims out;
  TENON_CHECK(PyTuple_Check(tuple), Type,
              fmt::format("{}: the array interface's {} must be a tuple", function, what));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    int64_t n = 0;
    TENON_CHECK(parse_int(PyTuple_GET_ITEM(tuple, i), n), Type,
                fmt::format("{}: the array interface's {} must be ints", function, what));
    out.push_back(n);
  }
  return out;
}

DType dtype_of_typestr(PyObject* text, const char* function) {
  const char* given = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : nullptr;
  const std::string_view type = given ? given : "";
  TENON_CHECK(type.empty() || type[0] != '>', Type,
              fmt::format("{}: the elements are big-endian; convert them first", function));
  for (const DType t : kDTypes) {
    const char* numpy = dtype_info(t).numpy;
    if (numpy && type.size() > 1 && type.substr(1) == std::string_view(numpy).substr(1)) return t;
  }
  throw_error(ErrorKind::Type, fmt::format("{}: elements of type '{}' have no dtype here", function, type));
}

Tensor from_array_interface(PyObject* o, PyObject* interface, const char* function) {
  TENON_CHECK(PyDict_Check(interface) && field(interface, "shape"), Type,
              fmt::format("{}: __array_interface__ must be a dict with a shape", function));
  TENON_CHECK(!field(interface, "mask"), NotImplemented,
              fmt::format("{}: arrays with a mask are not in Tenon", function));
  const DType dtype = dtype_of_typestr(field(interface, "typestr"), function);
  const auto item = static_cast<int64_t>(item_size(dtype));
  const Dims sizes = numbers(field(interface, "shape"), function, "shape");
  const int64_t numel = checked_numel(sizes, function);
  Dims strides = contiguous_strides(sizes);
  if (PyObject* given = field(interface, "strides")) {
    strides = numbers(given, function, "strides");
    TENON_CHECK(strides.size() == sizes.size(), Value,
                fmt::format("{}: the array interface has {} strides for {} dimensions", function,
                            strides.size(), sizes.size()));
    for (int64_t& s : strides) {
      TENON_CHECK(
          s % item == 0, Value,
          fmt::format("{}: stride {} is no multiple of the {} bytes of an element", function, s, item));
      s /= item;
    }
  }
  const Extent e = extent(sizes, strides, function);
  std::unique_ptr<Kept, void (*)(Kept*)> kept(new Kept{Py_NewRef(o)}, [](Kept* k) { Kept::release(k); });
  bool read_only = false;
  Address data = 0;
  PyObject* memory = field(interface, "data");
  if (memory && PyTuple_Check(memory)) {
    unsigned long long address = 0;
    int is_read_only = 0;
    if (!PyArg_ParseTuple(memory, "Kp", &address, &is_read_only)) throw PythonError();
    data = address;
    read_only = is_read_only != 0;
  } else {
    // The bytes of an object with a buffer: `data`, or the array itself.
    Py_buffer& buffer = kept->buffer;
    PyObject* source = memory ? memory : o;
    if (PyObject_GetBuffer(source, &buffer, PyBUF_WRITABLE) < 0) {
      PyErr_Clear();
      read_only = true;
      if (PyObject_GetBuffer(source, &buffer, PyBUF_SIMPLE) < 0) throw PythonError();
    }
    kept->has_buffer = true;
    int64_t offset = 0;
    if (PyObject* given = field(interface, "offset"); given && !parse_int(given, offset))
      wrong_type(function, "__array_interface__", "a dict whose 'offset' is an int", given);
    const bool fits = offset >= 0 && offset <= buffer.len && -e.low <= offset / item &&
                      e.high <= (buffer.len - offset) / item;
    TENON_CHECK(
        fits, Value,
        fmt::format(
            "{}: the array interface has sizes {}, strides {} and offset {}, which reach outside the {} "
            "bytes of its buffer",
            function, to_string(sizes), to_string(strides), offset, buffer.len));
    data = reinterpret_cast<Address>(buffer.buf) + static_cast<Address>(offset);
  }
  TENON_CHECK(data != 0 || numel == 0, Value, fmt::format("{}: the array interface has no data", function));
  const Address first = data + static_cast<Address>(e.low * item);
  Storage storage = Storage::from_foreign(first, static_cast<size_t>((e.high - e.low) * item), kCPU,
                                          &Kept::release, kept.get());
  kept.release();
  storage->set_read_only(read_only);
  return Tensor(TensorImpl::make(std::move(storage), dtype, sizes, strides, -e.low));
}

/// An attribute of the object, which it may refuse to have; null for none.
Ref attribute(PyObject* o, const char* name) noexcept {
  Ref value(PyObject_GetAttrString(o, name));
  if (!value) PyErr_Clear();
  return value;
}

}  // namespace

Tensor tensor_from_array(PyObject* o, const char* function, Sharing sharing) {
  if (PyObject_CheckBuffer(o)) return from_buffer(o, function, sharing);
  // Numbers and sequences of Python's own have none of these, and are not asked.
  if (PyLong_Check(o) || PyFloat_Check(o) || PyList_Check(o) || PyTuple_Check(o) || PyUnicode_Check(o) ||
      PyComplex_Check(o) || PyType_Check(o))
    return {};
  if (attribute(o, "__dlpack__")) return tensor_from_dlpack(o);
  if (const Ref interface = attribute(o, "__array_interface__")) {
    const Ref dtype = attribute(o, "dtype");
    if (const Tensor t = from_extension_type(o, text_of(dtype.get(), "name"), function); t.defined())
      return t;
    return from_array_interface(o, interface.get(), function);
  }
  return {};
}

}  // namespace tenon::python
