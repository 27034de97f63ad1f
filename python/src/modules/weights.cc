// tenon._C._weights: files of weights, for tenon.safetensors and tenon.serialization.
#include <memory>

#include "python/src/call/spread.h"
#include "python/src/interpreter/capsule.h"
#include "python/src/interpreter/errors.h"
#include "python/src/interpreter/gil.h"
#include "python/src/interpreter/sequences.h"
#include "python/src/module_parts.h"
#include "python/src/modules/buffer.h"
#include "python/src/modules/weights_arguments.h"
#include "python/src/tensor/tensor_object.h"
#include "tenon/io/replace_file.h"
#include "tenon/io/safetensors.h"

namespace tenon::python {

std::string path_argument(const char* function, PyObject* o) {
  char* text = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(o, &text, &size) < 0) throw PythonError();
  TENON_CHECK(std::string_view(text, static_cast<size_t>(size)).find('\0') == std::string_view::npos, Value,
              std::string(function) + ": the path has a null character, which no path of the system has");
  return text;
}

std::string hiding_attribute(PyObject* object, PyObject* attributes) {
  PyObject* name;
  for (Py_ssize_t at = 0; PyDict_Next(attributes, &at, &name, nullptr);)
    if (PyObject_HasAttr(object, name)) {
      const char* const text = PyUnicode_AsUTF8(name);
      if (!text) throw PythonError();
      return text;
    }
  return {};
}

namespace {

constexpr const char* kFileName = "tenon.safetensors.File";

std::string utf8(const char* function, PyObject* o) {
  Py_ssize_t size = 0;
  TENON_CHECK(PyUnicode_Check(o), Type,
              std::string(function) + ": names and metadata are str, not " + Py_TYPE(o)->tp_name);
  const char* const text = PyUnicode_AsUTF8AndSize(o, &size);
  if (!text) {
    PyErr_Clear();
    const Ref shown(checked(PyObject_ASCII(o)));
    throw_error(ErrorKind::Value, std::string(function) + ": " + PyUnicode_AsUTF8(shown.get()) +
                                      " is no text that UTF-8 can hold; it has a lone surrogate");
  }
  return {text, static_cast<size_t>(size)};
}

StateDict tensors_argument(PyObject* o) {
  TENON_CHECK(PyDict_Check(o), Type,
              std::string("save: safetensors holds a dict of tensors, not a ") + Py_TYPE(o)->tp_name);
  StateDict out;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) {
    std::string name = utf8("save", key);
    TENON_CHECK(is_tensor(value), Type,
                "save: safetensors holds tensors, but '" + name + "' is a " + Py_TYPE(value)->tp_name);
    out.set(std::move(name), tensor_of(value));
  }
  return out;
}

safetensors::Metadata metadata_argument(PyObject* o) {
  safetensors::Metadata out;
  if (o == Py_None) return out;
  if (!PyDict_Check(o)) wrong_type("save", "metadata", "a dict of str", o);
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);)
    out.emplace_back(utf8("save", key), utf8("save", value));
  return out;
}

PyObject* save_safetensors(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("save_safetensors", n, 3, [&]() -> PyObject* {
    const StateDict tensors = tensors_argument(args[1]);
    const safetensors::Metadata metadata = metadata_argument(args[2]);
    if (args[0] == Py_None) {
      auto bytes = without_gil([&] { return safetensors::save(tensors, metadata); });
      return checked(PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
    }
    const std::string path = path_argument("save_file", args[0]);
    without_gil([&] { safetensors::save_file(tensors, path, metadata); });
    return Py_NewRef(Py_None);
  });
}

PyObject* dict_of(const StateDict& tensors) {
  Ref out(checked(PyDict_New()));
  for (const auto& [name, tensor] : tensors) put(out, name, wrap(tensor));
  return out.release();
}

PyObject* load_safetensors(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("load_safetensors", n, 2, [&] {
    const std::string path = path_argument("load_file", args[0]);
    const bool mmap = flag("load_file", "mmap", args[1]);
    auto out = without_gil([&] { return safetensors::load_file(path, {.mmap = mmap}); });
    return dict_of(out);
  });
}

PyObject* read_safetensors(PyObject*, PyObject* o) {
  return guarded([&] {
    const Buffer buffer(o, "load", "data");
    auto out = without_gil([&] { return safetensors::load(buffer.bytes()); });
    return dict_of(out);
  });
}

const safetensors::File& file_argument(PyObject* capsule) {
  return from_capsule<const safetensors::File>(capsule, kFileName);
}

PyObject* open_safetensors(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("open_safetensors", n, 2, [&] {
    const std::string path = path_argument("safe_open", args[0]);
    const bool mmap = flag("safe_open", "mmap", args[1]);
    auto file =
        without_gil([&] { return std::make_unique<safetensors::File>(path, LoadOptions{.mmap = mmap}); });
    return to_capsule(std::move(file), kFileName);
  });
}

PyObject* rows(PyObject*, PyObject* o) {
  return guarded([&] {
    Ref out(checked(PyDict_New()));
    for (const auto& row : file_argument(o).rows()) {
      const Ref sizes = list_of(row.sizes, [&](const int64_t size) { return PyLong_FromLongLong(size); });
      put(out, row.name, Py_BuildValue("(sO)", row.dtype.c_str(), sizes.get()));
    }
    return out.release();
  });
}

PyObject* metadata(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    const safetensors::File& file = file_argument(o);
    if (!file.has_metadata()) return Py_NewRef(Py_None);
    Ref out(checked(PyDict_New()));
    for (const auto& [key, value] : file.metadata()) put(out, key, to_python(value));
    return out.release();
  });
}

PyObject* tensor(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("tensor", n, 2, [&] {
    const safetensors::File& file = file_argument(args[0]);
    const std::string name = utf8("get_tensor", args[1]);
    auto out = without_gil([&] { return file.tensor(name); });
    return wrap(std::move(out));
  });
}

PyMethodDef g_weights_methods[] = {
    fast_method("save_safetensors", &save_safetensors, "save_safetensors(path or None, tensors, metadata)"),
    fast_method("load_safetensors", &load_safetensors, "load_safetensors(path, mmap)"),
    {"read_safetensors", &read_safetensors, METH_O, "The tensors of a buffer."},
    fast_method("save", &save, "save(value, path or file)"),
    fast_method(
        "load", &load,
        "load(path or file, name, place or None, mmap): the value, and the number of bytes read after it"),
    fast_method("open_safetensors", &open_safetensors, "open_safetensors(path, mmap)"),
    {"rows", &rows, METH_O,
     "The tensors of an open file, in the order of their bytes: {name: (dtype, shape)}."},
    {"metadata", &metadata, METH_O, "The metadata of an open file."},
    fast_method("tensor", &tensor, "tensor(file, name)"),
    {}};

}  // namespace

bool add_weights(PyObject* module) { return add_submodule(module, "_weights", g_weights_methods); }

}  // namespace tenon::python
