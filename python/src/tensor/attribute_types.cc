#include "python/src/tensor/attribute_types.h"

#include <cstring>
#include <iterator>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "python/src/interpreter/errors.h"
#include "python/src/tensor/numbers.h"
#include "python/src/tensor/tensor_object.h"
#include "tenon/core/stream.h"
#include "tenon/record/recorder.h"

namespace tenon::python {
namespace {

// dtype, layout and memory_format are enumerations: one object for each value, compared by identity.

template <class T>
struct EnumObject {
  PyObject_HEAD T value;
  const char* name;
};

template <class T>
struct EnumType {
  static inline PyTypeObject type = {PyVarObject_HEAD_INIT(nullptr, 0)};
  static inline PyObject* objects[32] = {};

  static PyObject* repr(PyObject* o) {
    return PyUnicode_FromFormat("tenon.%s", reinterpret_cast<EnumObject<T>*>(o)->name);
  }
  /// Pickles as the module attribute of its name.
  static PyObject* reduce(PyObject* o, PyObject*) {
    return PyUnicode_FromString(reinterpret_cast<EnumObject<T>*>(o)->name);
  }
  static inline PyMethodDef methods[] = {{"__reduce__", &reduce, METH_NOARGS, nullptr}, {}};

  static bool add(PyObject* module, const char* type_name, const char* name, PyGetSetDef* attributes) {
    type.tp_name = type_name;
    type.tp_basicsize = sizeof(EnumObject<T>);
    type.tp_flags = Py_TPFLAGS_DEFAULT;
    type.tp_repr = &repr;
    type.tp_methods = methods;
    type.tp_getset = attributes;
    return add_type(module, name, type);
  }
  static bool add_value(PyObject* module, T value, const char* name) {
    auto* o = PyObject_New(EnumObject<T>, &type);
    if (!o) return false;
    o->value = value;
    o->name = name;
    objects[static_cast<int>(value)] = reinterpret_cast<PyObject*>(o);
    return PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(o)) == 0;
  }
  static std::optional<T> from(PyObject* o) noexcept {
    if (!Py_IS_TYPE(o, &type)) return std::nullopt;
    return reinterpret_cast<EnumObject<T>*>(o)->value;
  }
  /// Null with TypeError for a number that is no value, as a kernel from elsewhere may return it.
  static PyObject* wrap(T value) noexcept {
    const auto i = static_cast<size_t>(value);
    PyObject* o = i < std::size(objects) ? objects[i] : nullptr;
    if (!o) return PyErr_Format(PyExc_TypeError, "%zu is the code of no %s", i, type.tp_name);
    return Py_NewRef(o);
  }
};

DType dtype_of_object(PyObject* o) { return reinterpret_cast<EnumObject<DType>*>(o)->value; }

PyGetSetDef g_dtype_attributes[] = {
    {"itemsize", [](PyObject* o, void*) { return PyLong_FromSize_t(item_size(dtype_of_object(o))); }, nullptr,
     "Bytes of one element.", nullptr},
    {"is_floating_point",
     [](PyObject* o, void*) { return PyBool_FromLong(is_floating_point(dtype_of_object(o))); }, nullptr,
     "Whether it is a real floating type.", nullptr},
    {"is_complex", [](PyObject* o, void*) { return PyBool_FromLong(is_complex(dtype_of_object(o))); },
     nullptr, "Whether it is complex.", nullptr},
    {"is_signed", [](PyObject* o, void*) { return PyBool_FromLong(is_signed(dtype_of_object(o))); }, nullptr,
     "Whether it holds negative values.", nullptr},
    {}};

// device

struct DeviceObject {
  PyObject_HEAD Device value;
};
PyTypeObject g_device_type = {PyVarObject_HEAD_INIT(nullptr, 0)};
Device device_of_object(PyObject* o) { return reinterpret_cast<DeviceObject*>(o)->value; }

PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  PyObject* device;
  PyObject* index = nullptr;
  const char* names[] = {"type", "index", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names), &device, &index)) {
    return nullptr;
  }
  return guarded("device", [&]() -> PyObject* {
    std::optional<Device> value = as_device(device);
    if (!value)
      return PyErr_Format(PyExc_TypeError, "device: type must be a str, not %s", Py_TYPE(device)->tp_name);
    if (index && index != Py_None) {
      const int64_t i = int_argument("device", "index", index);
      TENON_CHECK(i >= 0 && i < 128 && value->index < 0, Value,
                  "device: index must be from 0 to 127, given once");
      value->index = static_cast<int8_t>(i);
    }
    return wrap(*value);
  });
}
PyObject* device_repr(PyObject* o) {
  const Device d = device_of_object(o);
  const std::string type(backend_name(d.backend));
  if (d.index < 0) return PyUnicode_FromFormat("device(type='%s')", type.c_str());
  return PyUnicode_FromFormat("device(type='%s', index=%d)", type.c_str(), d.index);
}
PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if (!Py_IS_TYPE(b, &g_device_type) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((device_of_object(a) == device_of_object(b)) == (op == Py_EQ));
}
PyGetSetDef g_device_attributes[] = {
    {"type", [](PyObject* o, void*) { return to_python(backend_name(device_of_object(o).backend)); }, nullptr,
     "\"cpu\", \"meta\", ...", nullptr},
    {"index",
     [](PyObject* o, void*) -> PyObject* {
       const Device d = device_of_object(o);
       if (d.index < 0) Py_RETURN_NONE;
       return PyLong_FromLong(d.index);
     },
     nullptr, "Which of several, or None.", nullptr},
    {}};
/// The devices that were current before each `with tenon.device(...)` of this thread.
thread_local std::vector<Device> t_before;

/// Makes the device the current one of its kind; the host, and a device without a number, change nothing.
PyObject* device_enter(PyObject* o, PyObject*) {
  return guarded([&] {
    const Device device = device_of_object(o);
    t_before.push_back(device.index < 0 ? device : resolved(Device(device.backend)));
    try {
      if (device.index >= 0) set_current_device(device);
    } catch (...) {
      t_before.pop_back();
      throw;
    }
    return Py_NewRef(o);
  });
}
PyObject* device_exit(PyObject*, PyObject*) {
  return guarded([&] {
    TENON_CHECK(!t_before.empty(), Runtime, "device: __exit__ without __enter__ on this thread");
    const Device before = t_before.back();
    t_before.pop_back();
    if (before.index >= 0) set_current_device(before);
  });
}

PyMethodDef g_device_methods[] = {{"__enter__", &device_enter, METH_NOARGS, nullptr},
                                  {"__exit__", &device_exit, METH_VARARGS, nullptr},
                                  {"__reduce__",
                                   [](PyObject* o, PyObject*) {
                                     const std::string text = to_string(device_of_object(o));
                                     return Py_BuildValue("O(s)", &g_device_type, text.c_str());
                                   },
                                   METH_NOARGS, nullptr},
                                  {}};

bool add_device_type(PyObject* module) {
  PyTypeObject& t = g_device_type;
  t.tp_name = "tenon.device";
  t.tp_doc = "A backend and the index of one of its devices: device(\"cpu\"), device(\"cuda\", 1).";
  t.tp_basicsize = sizeof(DeviceObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_new = &device_new;
  t.tp_repr = &device_repr;
  t.tp_str = [](PyObject* o) { return to_python(to_string(device_of_object(o))); };
  t.tp_hash = [](PyObject* o) {
    const Device d = device_of_object(o);
    return static_cast<Py_hash_t>(d.backend * 256 + d.index + 1);
  };
  t.tp_richcompare = &device_compare;
  t.tp_getset = g_device_attributes;
  t.tp_methods = g_device_methods;
  return add_type(module, "device", t);
}

// Size

PyTypeObject g_size_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject* size_repr(PyObject* o) {
  const Ref list(PySequence_List(o));
  return list ? PyUnicode_FromFormat("tenon.Size(%R)", list.get()) : nullptr;
}
PyObject* size_numel(PyObject* o, PyObject*) {
  int64_t numel = 1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) {
    const long long n = PyLong_AsLongLong(PyTuple_GET_ITEM(o, i));
    if (n == -1 && PyErr_Occurred()) return nullptr;
    numel *= n;
  }
  return PyLong_FromLongLong(numel);
}
PyObject* as_size(PyObject* tuple) {
  if (!tuple || !PyTuple_CheckExact(tuple)) return tuple;
  const Ref owner(tuple);
  return PyObject_CallOneArg(reinterpret_cast<PyObject*>(&g_size_type), tuple);
}
/// As a tuple is made, of ints: what counts as one becomes one. Errors say of what.
PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded("Size", [&]() -> PyObject* {
    Ref size(PyTuple_Type.tp_new(type, args, kwargs));
    const Py_ssize_t count = size ? PyTuple_GET_SIZE(size.get()) : 0;
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* item = PyTuple_GET_ITEM(size.get(), i);
      if (PyLong_CheckExact(item)) continue;
      TENON_CHECK(PyIndex_Check(item), Type,
                  "Size: item " + std::to_string(i) + " must be an int, not " + type_name(item));
      PyObject* number = PyBool_Check(item) ? PyLong_FromLong(item == Py_True) : PyNumber_Index(item);
      PyTuple_SetItem(size.get(), i, checked(number));
    }
    if (size) return size.release();
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError();
    throw_error(ErrorKind::Type, "Size: " + take_error_text());
  });
}
PyObject* size_subscript(PyObject* o, PyObject* key) {
  return as_size(PyTuple_Type.tp_as_mapping->mp_subscript(o, key));
}
PyMethodDef g_size_methods[] = {{"numel", &size_numel, METH_NOARGS,
                                 "numel($self)\n--\n\n"
                                 "The number of elements."},
                                {}};
PyMappingMethods g_size_mapping = {nullptr, &size_subscript, nullptr};
PySequenceMethods g_size_sequence = {};
PyNumberMethods g_size_number = {};

bool add_size_type(PyObject* module) {
  PyTypeObject& t = g_size_type;
  t.tp_name = "tenon.Size";
  t.tp_doc = "A shape: a tuple of ints, with numel().";
  t.tp_base = &PyTuple_Type;
  t.tp_new = &size_new;
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_repr = &size_repr;
  t.tp_methods = g_size_methods;
  g_size_mapping.mp_length = PyTuple_Type.tp_as_mapping->mp_length;
  g_size_sequence = *PyTuple_Type.tp_as_sequence;
  g_size_sequence.sq_repeat = [](PyObject* o, Py_ssize_t times) {
    return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(o, times));
  };
  // Also where the first one is a plain tuple.
  g_size_number.nb_add = [](PyObject* a, PyObject* b) {
    if (!PyTuple_Check(a) || !PyTuple_Check(b)) return Py_NewRef(Py_NotImplemented);
    return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
  };
  t.tp_as_number = &g_size_number;
  t.tp_as_mapping = &g_size_mapping;
  t.tp_as_sequence = &g_size_sequence;
  return add_type(module, "Size", t);
}

// Generator

struct GeneratorObject {
  PyObject_HEAD Generator value;
};
PyTypeObject g_generator_type = {PyVarObject_HEAD_INIT(nullptr, 0)};
Generator& generator_of_object(PyObject* o) { return reinterpret_cast<GeneratorObject*>(o)->value; }

PyObject* generator_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  PyObject* device = nullptr;
  const char* names[] = {"device", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names), &device))
    return nullptr;
  return guarded("Generator", [&] {
    if (device && !as_device(device))
      throw_error(ErrorKind::Type, "Generator: device must be a device or a str");
    return wrap(Generator(default_generator().initial_seed()));
  });
}
/// Of a program that is captured for a replay: its generator's state is no input of the replay.
void note_state_in_python() {
  record::Recorder::current().refuse_capture("it reads or sets the state of a generator");
}
PyObject* generator_seed(PyObject* o, PyObject* seed) {
  return guarded([&] {
    note_state_in_python();
    generator_of_object(o).manual_seed(seed_argument(seed));
    return Py_NewRef(o);
  });
}
PyObject* generator_get_state(PyObject* o, PyObject*) {
  return guarded([&] {
    note_state_in_python();
    const PhiloxState state = generator_of_object(o)->state();
    const uint64_t parts[2] = {state.seed, state.offset};
    Tensor bytes = make_empty({16}, DType::UInt8);
    std::memcpy(bytes.data_ptr(), parts, sizeof parts);
    return wrap(std::move(bytes));
  });
}
/// Reads a state as `generator_get_state` gives it: 16 bytes in host memory. False with an exception set.
bool parse_state_bytes(const char* function, const Tensor& t, PhiloxState& out) {
  uint64_t parts[2];
  if (!t.device().is_cpu() || t.dtype() != DType::UInt8 || t.dim() != 1 ||
      t.numel() != int64_t{sizeof parts}) {
    PyErr_Format(PyExc_TypeError, "%s: expected the 16 uint8 in host memory that get_state() returns",
                 function);
    return false;
  }
  const Tensor bytes = t.contiguous();
  std::memcpy(parts, bytes.data_ptr(), sizeof parts);
  out.seed = parts[0];
  out.offset = parts[1];
  return true;
}
/// The seed or the offset of a state, which `function` was given. False with an exception set.
bool parse_state_part(const char* function, const char* name, PyObject* part, uint64_t& out) {
  const Ref number(PyIndex_Check(part) ? PyNumber_Index(part) : nullptr);
  if (!number) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "%s: the %s of a state is an int, got %s", function, name,
                 Py_TYPE(part)->tp_name);
    return false;
  }
  out = PyLong_AsUnsignedLongLong(number.get());
  if (!PyErr_Occurred()) return true;
  PyErr_Clear();
  PyErr_Format(PyExc_ValueError, "%s: the %s of a state is from 0 to 2**64 - 1, got %S", function, name,
               part);
  return false;
}

/// Takes a tensor, or a tuple of seed and offset.
bool set_state(const char* function, Generator& generator, PyObject* value) {
  note_state_in_python();
  PhiloxState state;
  if (is_tensor(value)) {
    if (!parse_state_bytes(function, tensor_of(value), state)) return false;
    generator->set_state(state);
    return true;
  }
  if (!PyTuple_Check(value) || PyTuple_GET_SIZE(value) != 2) {
    PyErr_Format(PyExc_TypeError,
                 "%s: expected the tensor that get_state() returns, or a tuple of seed and offset, got %R",
                 function, value);
    return false;
  }
  if (!parse_state_part(function, "seed", PyTuple_GET_ITEM(value, 0), state.seed) ||
      !parse_state_part(function, "offset", PyTuple_GET_ITEM(value, 1), state.offset)) {
    return false;
  }
  generator->set_state(state);
  return true;
}

PyObject* generator_set_state(PyObject* o, PyObject* value) {
  return set_state("set_state", generator_of_object(o), value) ? Py_NewRef(o) : nullptr;
}
/// Another generator at the same place; `memo`, the argument of __deepcopy__, is not needed.
PyObject* generator_copy(PyObject* o, PyObject*) {
  return guarded([&] {
    const PhiloxState state = generator_of_object(o)->state();
    const Generator copy(state.seed);
    copy->set_state(state);
    return wrap(copy);
  });
}
PyObject* set_rng_state(PyObject*, PyObject* value) {
  Generator generator = default_generator();
  return set_state("set_rng_state", generator, value) ? Py_NewRef(Py_None) : nullptr;
}
PyMethodDef g_generator_methods[] = {
    {"manual_seed", &generator_seed, METH_O,
     "manual_seed($self, seed, /)\n--\n\n"
     "Starts the stream of a seed from its beginning; returns self."},
    {"initial_seed",
     [](PyObject* o, PyObject*) {
       note_state_in_python();
       return PyLong_FromUnsignedLongLong(generator_of_object(o).initial_seed());
     },
     METH_NOARGS,
     "initial_seed($self)\n--\n\n"
     "The seed of the stream."},
    {"get_state", &generator_get_state, METH_NOARGS,
     "get_state($self)\n--\n\n"
     "The place in the stream, for set_state: seed and offset, as 16 bytes."},
    {"set_state", &generator_set_state, METH_O,
     "set_state($self, state, /)\n--\n\n"
     "Goes back to a place in the stream; returns self."},
    {"clone_state", &generator_copy, METH_NOARGS,
     "clone_state($self)\n--\n\n"
     "Another generator at the same place in the stream."},
    {"__copy__", &generator_copy, METH_NOARGS, nullptr},
    {"__deepcopy__", &generator_copy, METH_O, nullptr},
    {}};
PyMethodDef g_generator_functions[] = {{"_set_rng_state", &set_rng_state, METH_O, nullptr}, {}};

bool add_generator_type(PyObject* module) {
  PyTypeObject& t = g_generator_type;
  t.tp_name = "tenon.Generator";
  t.tp_doc = "A place in a Philox stream of random numbers: seed and position.";
  t.tp_basicsize = sizeof(GeneratorObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_new = &generator_new;
  t.tp_dealloc = &destroy_value<generator_of_object>;
  t.tp_methods = g_generator_methods;
  if (!add_type(module, "Generator", t) || PyModule_AddFunctions(module, g_generator_functions) < 0)
    return false;
  const Ref shared(wrap(default_generator()));
  return shared && PyModule_AddObjectRef(module, "default_generator", shared.get()) == 0;
}

bool add_dtypes(PyObject* module) {
  if (!EnumType<DType>::add(module, "tenon.dtype", "dtype", g_dtype_attributes)) return false;
  for (const DType t : kDTypes) {
    if (!EnumType<DType>::add_value(module, t, dtype_info(t).name)) return false;
  }
  for (const char* alias : {"float", "double", "half", "int", "long", "short", "cfloat", "cdouble"}) {
    if (PyModule_AddObjectRef(module, alias,
                              EnumType<DType>::objects[static_cast<int>(*parse_dtype(alias))]) < 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

PyObject* wrap(DType dtype) noexcept { return EnumType<DType>::wrap(dtype); }
PyObject* wrap(Layout layout) noexcept { return EnumType<Layout>::wrap(layout); }
PyObject* wrap(MemoryFormat format) noexcept { return EnumType<MemoryFormat>::wrap(format); }

PyObject* wrap(Device device) noexcept {
  auto* o = PyObject_New(DeviceObject, &g_device_type);
  if (o) o->value = device;
  return reinterpret_cast<PyObject*>(o);
}

PyObject* wrap(const Generator& generator) noexcept {
  if (!generator.defined()) Py_RETURN_NONE;
  auto* o = PyObject_New(GeneratorObject, &g_generator_type);
  if (o) new (&o->value) Generator(generator);
  return reinterpret_cast<PyObject*>(o);
}

PyObject* wrap(const Scalar& scalar) noexcept {
  switch (scalar.kind()) {
    case Scalar::Kind::Bool:
      return PyBool_FromLong(scalar.to_bool());
    case Scalar::Kind::Int:
      if (scalar.is_beyond_int64()) return PyLong_FromUnsignedLongLong(scalar.to_uint());
      return PyLong_FromLongLong(scalar.to_int());
    case Scalar::Kind::Float:
      return PyFloat_FromDouble(scalar.to_double());
    case Scalar::Kind::Complex:
      break;
  }
  return PyComplex_FromDoubles(scalar.to_complex().real(), scalar.to_complex().imag());
}

PyObject* wrap_tuple(IntArrayRef values) noexcept {
  Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  if (!tuple) return nullptr;
  for (size_t i = 0; i < values.size(); ++i) {
    PyObject* item = PyLong_FromLongLong(values[i]);
    if (!item) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), item);
  }
  return tuple.release();
}

PyObject* wrap_size(IntArrayRef sizes) noexcept {
  // A tuple of the subclass, filled in place: no second tuple.
  Ref tuple(g_size_type.tp_alloc(&g_size_type, static_cast<Py_ssize_t>(sizes.size())));
  if (!tuple) return nullptr;
  for (size_t i = 0; i < sizes.size(); ++i) {
    PyObject* item = PyLong_FromLongLong(sizes[i]);
    if (!item) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), item);
  }
  return tuple.release();
}

/// NumPy's dtypes are of one class each, derived from numpy.dtype.
static bool is_numpy_dtype(PyObject* o) noexcept {
  return std::string_view(Py_TYPE(o)->tp_name).starts_with("numpy.dtype");
}

/// "float32", or what NumPy calls so: numpy.float32, numpy.dtype("float32"), ml_dtypes.bfloat16. Names that
/// NumPy and PyTorch use for different dtypes ("float", "long") and foreign byte orders are none.
static std::optional<DType> dtype_by_name(PyObject* o) noexcept {
  const auto named = [](std::string_view text) -> std::optional<DType> {
    for (const DType t : kDTypes) {
      if (text == dtype_info(t).name) return t;
    }
    return std::nullopt;
  };
  const auto text_of = [](PyObject* text) -> std::string_view {
    const char* utf8 = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : nullptr;
    if (!utf8) PyErr_Clear();
    return utf8 ? utf8 : "";
  };
  if (PyUnicode_Check(o)) return named(text_of(o));
  if (PyType_Check(o)) {
    const std::string_view type(reinterpret_cast<PyTypeObject*>(o)->tp_name);
    for (const std::string_view package : {"numpy.", "ml_dtypes."}) {
      if (type.starts_with(package)) return named(type.substr(package.size()));
    }
    return std::nullopt;
  }
  const Ref order(PyObject_GetAttrString(o, "byteorder")), text(PyObject_GetAttrString(o, "name"));
  if (text_of(order.get()) == ">") return std::nullopt;
  return named(text_of(text.get()));
}

std::optional<DType> as_dtype(PyObject* o) noexcept {
  if (const auto t = EnumType<DType>::from(o)) return t;
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::Float64;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::Int64;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::Bool;
  if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) return DType::Complex128;
  return PyUnicode_Check(o) || PyType_Check(o) || is_numpy_dtype(o) ? dtype_by_name(o) : std::nullopt;
}

std::optional<Device> as_device(PyObject* o) {
  if (Py_IS_TYPE(o, &g_device_type)) return device_of_object(o);
  if (!PyUnicode_Check(o)) return std::nullopt;
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(o, &size);
  if (!text) {
    PyErr_Clear();
    throw_error(ErrorKind::Value, "a str with lone surrogates names no device");
  }
  return Device(std::string_view(text, static_cast<size_t>(size)));
}

std::optional<Layout> as_layout(PyObject* o) noexcept { return EnumType<Layout>::from(o); }
std::optional<MemoryFormat> as_memory_format(PyObject* o) noexcept { return EnumType<MemoryFormat>::from(o); }

uint64_t seed_argument(PyObject* o) {
  if (!PyIndex_Check(o) ||
      (is_tensor(o) && (tensor_of(o).numel() != 1 || !is_integral(tensor_of(o).dtype(), true))))
    wrong_type("manual_seed", "seed", "an int", o);
  const Ref index(PyNumber_Index(o));
  if (!index) {
    if (!is_numpy_array(o)) throw PythonError();
    PyErr_Clear();  // NumPy says nothing of the seed
    wrong_type("manual_seed", "seed", "an int", o);
  }
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (overflow == 0) return static_cast<uint64_t>(value);
  const unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(index.get()) : 0;
  const bool fits = overflow > 0 && !PyErr_Occurred();
  PyErr_Clear();
  TENON_CHECK(fits, Value,
              "manual_seed: seed must be between -2^63 and 2^64 - 1, got " + shown_integer(index.get()));
  return large;
}

const Generator* as_generator(PyObject* o) noexcept {
  return Py_IS_TYPE(o, &g_generator_type) ? &generator_of_object(o) : nullptr;
}

bool add_types(PyObject* module) {
  return add_dtypes(module) && add_device_type(module) && add_size_type(module) &&
         add_generator_type(module) && EnumType<Layout>::add(module, "tenon.layout", "layout", nullptr) &&
         EnumType<Layout>::add_value(module, Layout::Strided, "strided") &&
         EnumType<Layout>::add_value(module, Layout::Sparse, "sparse_coo") &&
         EnumType<Layout>::add_value(module, Layout::SparseCsr, "sparse_csr") &&
         EnumType<Layout>::add_value(module, Layout::Blocked, "blocked") &&
         EnumType<MemoryFormat>::add(module, "tenon.memory_format", "memory_format", nullptr) &&
         EnumType<MemoryFormat>::add_value(module, MemoryFormat::Contiguous, "contiguous_format") &&
         EnumType<MemoryFormat>::add_value(module, MemoryFormat::Preserve, "preserve_format") &&
         EnumType<MemoryFormat>::add_value(module, MemoryFormat::ChannelsLast, "channels_last") &&
         EnumType<MemoryFormat>::add_value(module, MemoryFormat::ChannelsLast3d, "channels_last_3d");
}

}  // namespace tenon::python
