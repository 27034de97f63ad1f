#include "python/src/exchange/from_data.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "python/src/call/parser.h"
#include "python/src/call/spread.h"
#include "python/src/exchange/foreign.h"
#include "tenon/core/dispatch_dtype.h"
#include "tenon/core/float8.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::python {
namespace {

/// An integer above int64 that uint64 holds; false for other objects.
bool parse_uint64(PyObject* o, Scalar& value) noexcept {
  const Ref number(PyIndex_Check(o) ? PyNumber_Index(o) : nullptr);
  int overflow = 0;
  if (number) PyLong_AsLongLongAndOverflow(number.get(), &overflow);
  const uint64_t whole = overflow > 0 ? PyLong_AsUnsignedLongLong(number.get()) : 0;
  const bool failed = PyErr_Occurred() != nullptr;
  if (failed) PyErr_Clear();
  if (overflow <= 0 || failed) return false;
  value = Scalar(whole);
  return true;
}

/// A tensor or array within a sequence, whose dimensions follow those of the sequence; undefined for others.
Tensor whole_tensor(PyObject* o) {
  if (is_tensor(o)) return tensor_of(o);
  return is_numpy_array(o) ? tensor_from_array(o, "tensor", Sharing::Preferred) : Tensor();
}

/// Whether an item of a sequence is itself a sequence of items. Texts are no data.
bool is_nested(PyObject* o) noexcept {
  return !is_tensor(o) && !is_numpy_array(o) && PySequence_Check(o) && !PyUnicode_Check(o) &&
         !PyIndex_Check(o) && !PyFloat_Check(o);
}

/// The dtype of a NumPy scalar, found from the name of its type, so that NumPy need not be imported; none for
/// other objects, and for NumPy's dtypes that Tenon lacks.
std::optional<DType> dtype_of_numpy_scalar(PyObject* o) noexcept {
  const std::string_view type(Py_TYPE(o)->tp_name);
  if (!type.starts_with("numpy.")) return std::nullopt;
  for (const DType t : kDTypes) {
    if (dtype_info(t).numpy && type.substr(6) == name(t)) return t;
  }
  return std::nullopt;
}

/// The shape of a nested sequence, found from its first items, and the category of its numbers.
class Survey {
 public:
  explicit Survey(PyObject* data) {
    descend(data);
    visit(data, 0);
  }
  const Dims& sizes() const noexcept { return sizes_; }
  DType dtype() const noexcept { return found_ ? dtype_ : default_dtype(); }

 private:
  void descend(PyObject* data) {
    Ref item = Ref::borrow(data);
    while (is_nested(item.get())) {
      const Py_ssize_t n = PySequence_Size(item.get());
      if (n < 0) throw PythonError();
      sizes_.push_back(n);
      if (n == 0) break;
      item = Ref(checked(PySequence_GetItem(item.get(), 0)));
      TENON_CHECK(sizes_.size() <= 64, Value, "tensor: the data are nested too deeply");
    }
    if (const Tensor t = whole_tensor(item.get()); t.defined()) {
      for (const int64_t s : t.sizes()) sizes_.push_back(s);
    }
  }

  void visit(PyObject* o, size_t depth) {
    if (is_nested(o)) {
      const Ref items(checked(PySequence_Fast(o, "tensor: data must be numbers or sequences")));
      const Py_ssize_t n = PySequence_Fast_GET_SIZE(items.get());
      TENON_CHECK(depth < sizes_.size() && n == sizes_[depth], Value,
                  fmt::format("tensor: a sequence at depth {} has length {}, expected {}", depth, n,
                              depth < sizes_.size() ? std::to_string(sizes_[depth]) : "a number"));
      // A number's own __float__ may change the list while it is read.
      for (Py_ssize_t i = 0; i < n && i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
        visit(Ref::borrow(PySequence_Fast_GET_ITEM(items.get(), i)).get(), depth + 1);
      }
      return;
    }
    if (const Tensor t = whole_tensor(o); t.defined()) {
      add(t.dtype());
      check_sizes(t, depth);
      depth += static_cast<size_t>(t.dim());
    } else {
      add_number(o);
    }
    TENON_CHECK(depth == sizes_.size(), Value,
                fmt::format("tensor: expected a sequence of length {} at depth {}, got a {}", sizes_[depth],
                            depth, Py_TYPE(o)->tp_name));
  }

  void check_sizes(const Tensor& t, size_t depth) const {
    const bool fits = depth + t.sizes().size() == sizes_.size() &&
                      std::equal(t.sizes().begin(), t.sizes().end(), sizes_.begin() + depth);
    TENON_CHECK(fits, Value,
                fmt::format("tensor: a {} at depth {} has shape {}, unlike others before it", summary(t),
                            depth, to_string(t.sizes())));
  }

  void add_number(PyObject* o) {
    if (PyFloat_CheckExact(o)) return add(default_dtype());
    if (const std::optional<DType> t = dtype_of_numpy_scalar(o)) return add(*t);
    if (PyFloat_Check(o)) return add(default_dtype());
    if (PyBool_Check(o)) return add(DType::Bool);
    if (PyLong_Check(o)) return add(DType::Int64);
    Scalar value;
    TENON_CHECK(parse_scalar(o, value), Type, fmt::format("tensor: a {} is no number", Py_TYPE(o)->tp_name));
    add(value.dtype());
  }
  void add(DType t) {
    if (found_ && t == dtype_) return;
    dtype_ = found_ ? promote_types(dtype_, t) : t;
    found_ = true;
  }

  Dims sizes_;
  DType dtype_ = DType::Float32;
  bool found_ = false;
};

/// Writes the numbers of a nested sequence, in order.
class Filler {
 public:
  explicit Filler(Tensor& out) : out_(out), next_(static_cast<char*>(out.data_ptr())) {}

  void fill(PyObject* o) {
    if (is_nested(o)) {
      const Ref items(checked(PySequence_Fast(o, "")));
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
        fill(Ref::borrow(PySequence_Fast_GET_ITEM(items.get(), i)).get());
      }
    } else if (const Tensor t = whole_tensor(o); t.defined()) {
      TENON_CHECK(!t.is_complex() || out_.is_complex(), Type,
                  fmt::format("tensor: complex numbers cannot be stored as {}", name(out_.dtype())));
      const Tensor values = t.detach().to(kCPU, out_.dtype()).contiguous();  // refuses meta
      TENON_CHECK(next_ + values.nbytes() <= end(), Value, "tensor: the data changed while they were read");
      if (values.nbytes() > 0) std::memcpy(next_, values.data_ptr(), values.nbytes());
      next_ += values.nbytes();
    } else {
      Scalar value;
      const bool whole = out_.dtype() == DType::UInt64 && parse_uint64(o, value);
      TENON_CHECK((whole || parse_scalar(o, value)) && next_ < end(), Value,
                  "tensor: the data changed while they were read");
      store_element(out_.dtype(), next_, value);
      next_ += out_.itemsize();
    }
  }

  /// Throws Error{Value} unless every element was written.
  void check_full() const {
    TENON_CHECK(next_ == end(), Value, "tensor: the data changed while they were read");
  }

 private:
  const char* end() const { return static_cast<const char*>(out_.data_ptr()) + out_.nbytes(); }

  Tensor& out_;
  char* next_;
};

/// The dtype of a buffer's format, as Python's struct module spells it.
std::optional<DType> dtype_of_format(const Py_buffer& buffer) noexcept {
  const char* f = buffer.format ? buffer.format : "B";
  if (*f == '@' || *f == '=' || *f == '<' || *f == '|') ++f;
  const bool complex = *f == 'Z';
  if (complex) ++f;
  if (f[0] == 0 || f[1] != 0) return std::nullopt;
  const Py_ssize_t n = buffer.itemsize;
  switch (*f) {
    case '?':
      return DType::Bool;
    case 'b':
      return DType::Int8;
    case 'B':
      return DType::UInt8;
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return n == 2 ? DType::Int16 : n == 4 ? DType::Int32 : DType::Int64;
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      return n == 2 ? DType::UInt16 : n == 4 ? DType::UInt32 : DType::UInt64;
    case 'e':
      return DType::Float16;
    case 'f':
      return complex ? DType::Complex64 : DType::Float32;
    case 'd':
      return complex ? DType::Complex128 : DType::Float64;
    default:
      return std::nullopt;
  }
}

/// Sizes and strides of a buffer in elements. Arrays of ctypes and dates of NumPy's leave out the strides of
/// dense elements, and a plain run of bytes may leave out its size, whatever was asked for.
struct BufferGeometry {
  Dims sizes, strides;

  BufferGeometry(const Py_buffer& b, const char* function) {
    TENON_CHECK(b.ndim <= 1 || b.shape, Type,
                fmt::format("{}: a buffer of {} dimensions says nothing of their sizes", function, b.ndim));
    for (int d = 0; d < b.ndim; ++d) sizes.push_back(b.shape ? b.shape[d] : b.len / b.itemsize);
    int64_t bytes = 0;
    const bool fits = !__builtin_mul_overflow(checked_numel(sizes, function), b.itemsize, &bytes);
    TENON_CHECK(fits && bytes == b.len, Value,
                fmt::format("{}: a buffer of {} bytes has not the elements of shape {}", function, b.len,
                            to_string(sizes)));
    strides = contiguous_strides(sizes);
    for (int d = 0; d < b.ndim && b.strides; ++d) {
      TENON_CHECK(b.strides[d] % b.itemsize == 0, Value,
                  fmt::format("{}: stride {} of dimension {} is no multiple of the {} bytes of an element",
                              function, b.strides[d], d, b.itemsize));
      strides[static_cast<size_t>(d)] = b.strides[d] / b.itemsize;
    }
  }
};

[[noreturn]] void refuse_elements(const char* function, const std::string& what) {
  throw_error(ErrorKind::Type,
              fmt::format("{}: elements of {} have no dtype here; convert them to numbers first, as with "
                          ".astype() of NumPy",
                          function, what));
}

/// A dtype of NumPy's as text; the object's type where it has none.
std::string element_type_of(PyObject* object) {
  const Ref type(PyObject_GetAttrString(object, "dtype")), text(type ? PyObject_Str(type.get()) : nullptr);
  const char* name = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!name) PyErr_Clear();
  return name ? name : Py_TYPE(object)->tp_name;
}

void release_buffer(void* context) noexcept {
  auto* buffer = static_cast<Py_buffer*>(context);
  if_interpreter_lives([buffer] { PyBuffer_Release(buffer); });
  delete buffer;
}

}  // namespace

void store_element(DType dtype, void* element, const Scalar& value) {
  TENON_CHECK(!value.is_complex() || is_complex(dtype), Type,
              fmt::format("tensor: a complex number cannot be stored as {}", name(dtype)));
  TENON_CHECK(is_known(dtype) && !is_quantized(dtype) && !is_float8(dtype), Type,
              fmt::format("tensor: numbers cannot be stored as {}", name(dtype)));
  switch_any_dtype(dtype, "tensor", [&]<class T>() {
    T& out = *static_cast<T*>(element);
    if constexpr (std::is_same_v<T, bool>) {
      out = value.to_bool();
    } else if constexpr (std::is_integral_v<T>) {
      check_fits(value, dtype, "tensor");
      out = static_cast<T>(value.to_uint());
    } else if constexpr (kIsComplex<T>) {
      out = T(value.to_complex());
    } else if constexpr (std::is_same_v<T, double>) {
      out = value.to_double();
    } else {
      out = T(static_cast<float>(value.to_double()));
    }
  });
}

PyObject* load_element(DType dtype, const void* element) {
  if (is_float8(dtype))
    return PyFloat_FromDouble(float8_to_float(dtype, *static_cast<const uint8_t*>(element)));
  TENON_CHECK(is_known(dtype) && !is_quantized(dtype), Type,
              fmt::format("tolist: {} elements are no Python numbers", name(dtype)));
  return switch_any_dtype(dtype, "tolist", [&]<class T>() {
    const auto& value = *static_cast<const std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>*>(element);
    if constexpr (std::is_same_v<T, bool>)
      return PyBool_FromLong(value);
    else if constexpr (std::is_same_v<T, uint64_t>)
      return PyLong_FromUnsignedLongLong(value);
    else if constexpr (std::is_integral_v<T>)
      return PyLong_FromLongLong(value);
    else if constexpr (kIsComplex<T>)
      return PyComplex_FromDoubles(value.real(), value.imag());
    else if constexpr (std::is_same_v<T, double>)
      return PyFloat_FromDouble(value);
    else
      return PyFloat_FromDouble(static_cast<float>(value));
  });
}

Tensor tensor_from_buffer(PyObject* object, const char* function) {
  if (is_numpy_scalar_without_number(object)) refuse_elements(function, element_type_of(object));
  auto buffer = std::make_unique<Py_buffer>();
  bool read_only = false;
  if (PyObject_GetBuffer(object, buffer.get(), PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE) < 0) {
    PyErr_Clear();
    read_only = true;
    if (PyObject_GetBuffer(object, buffer.get(), PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
      PyErr_Clear();
      refuse_elements(function, element_type_of(object));
    }
  }
  std::unique_ptr<Py_buffer, void (*)(Py_buffer*)> owner(buffer.release(),
                                                         [](Py_buffer* b) { release_buffer(b); });
  const Py_buffer& b = *owner;
  const std::optional<DType> dtype = dtype_of_format(b);
  const char* format = b.format ? b.format : "B";
  TENON_CHECK(
      *format != '>' && *format != '!', Type,
      fmt::format("{}: the elements are big-endian; convert them with .astype(a.dtype.newbyteorder('='))",
                  function));
  if (!dtype || static_cast<Py_ssize_t>(item_size(*dtype)) != b.itemsize)
    refuse_elements(function, fmt::format("format '{}' ({} bytes)", format, b.itemsize));
  const auto [sizes, strides] = BufferGeometry(b, function);
  const Extent e = extent(sizes, strides, function);
  const auto first = reinterpret_cast<Address>(b.buf) + static_cast<Address>(e.low * b.itemsize);
  Storage storage = Storage::from_foreign(first, static_cast<size_t>((e.high - e.low) * b.itemsize), kCPU,
                                          &release_buffer, owner.get());
  owner.release();
  storage->set_read_only(read_only);
  return Tensor(TensorImpl::make(std::move(storage), *dtype, sizes, strides, -e.low));
}

Tensor bytes_of_buffer(PyObject* object) {
  auto buffer = std::make_unique<Py_buffer>();
  bool read_only = false;
  if (PyObject_GetBuffer(object, buffer.get(), PyBUF_WRITABLE) < 0) {
    PyErr_Clear();
    read_only = true;
    if (PyObject_GetBuffer(object, buffer.get(), PyBUF_SIMPLE) < 0) {
      if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError();
      PyErr_Clear();
      wrong_type("frombuffer", "buffer", "an object with a buffer, as bytes has", object);
    }
  }
  const Dims sizes{buffer->len};
  const auto first = reinterpret_cast<Address>(buffer->buf);
  std::unique_ptr<Py_buffer, void (*)(Py_buffer*)> owner(buffer.release(),
                                                         [](Py_buffer* b) { release_buffer(b); });
  Storage storage =
      Storage::from_foreign(first, static_cast<size_t>(sizes[0]), kCPU, &release_buffer, owner.get());
  owner.release();
  storage->set_read_only(read_only);
  return Tensor(TensorImpl::make(std::move(storage), DType::UInt8, sizes));
}

Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype) {
  if (is_tensor(data)) {
    const Tensor source = tensor_of(data).detach();
    return dtype && *dtype != source.dtype() ? source.to(*dtype) : source.clone();
  }
  // Bytes are sequences of ints, as in PyTorch.
  const bool bytes = PyBytes_Check(data) || PyByteArray_Check(data);
  if (const Tensor source = bytes ? Tensor() : tensor_from_array(data, "tensor", Sharing::Preferred);
      source.defined())
    return dtype && *dtype != source.dtype() ? source.to(*dtype) : source.clone();
  const Survey survey(data);
  Tensor out = make_empty(survey.sizes(), dtype.value_or(survey.dtype()));
  Filler filler(out);
  filler.fill(data);
  filler.check_full();
  return out;
}

}  // namespace tenon::python
