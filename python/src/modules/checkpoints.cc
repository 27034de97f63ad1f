// tenon._C._weights.load: checkpoints of every format as Python objects, for tenon.serialization.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "python/src/call/spread.h"
#include "python/src/interpreter/gil.h"
#include "python/src/interpreter/sequences.h"
#include "python/src/modules/buffer.h"
#include "python/src/modules/key_hashes.h"
#include "python/src/modules/weights_arguments.h"
#include "python/src/tensor/attribute_types.h"
#include "python/src/tensor/tensor_object.h"
#include "tenon/core/device.h"
#include "tenon/io/node.h"
#include "tenon/io/read_checkpoint.h"
#include "tenon/io/utf8.h"

namespace tenon::python {
namespace {

using Kind = Value::Kind;

Ref attribute(const char* module, const char* name) {
  const Ref imported(checked(PyImport_ImportModule(module)));
  return Ref(checked(PyObject_GetAttrString(imported.get(), name)));
}

/// The backend of a device by its text, where it is loaded. A file loads no devices: that would change the
/// process.
std::optional<Backend> loaded_backend(std::string_view text) {
  return find_backend(text.substr(0, text.find(':')));
}

/// Makes Python objects of the nodes of one file: each once, so that what is shared in the file is shared in
/// Python, and takes memory once. Values nest at most 1,000 deep (tenon/io/unpickler.h).
class Objects {
 public:
  PyObject* of(const io::Node& node) {
    if (PyObject* const known = find(node)) return Py_NewRef(known);
    Ref object(checked(make(node)));
    // A tuple may hold a list that holds the tuple.
    if (PyObject* const known = find(node)) return Py_NewRef(known);
    keep(node, object.get());
    return object.release();
  }

 private:
  PyObject* find(const io::Node& node) const {
    return node.number < made_.size() ? made_[node.number].get() : nullptr;
  }
  void keep(const io::Node& node, PyObject* object) {
    if (node.number >= made_.size()) made_.resize(node.number + 1);
    made_[node.number] = Ref::borrow(object);
  }

  PyObject* make(const io::Node& node) {
    switch (node.kind) {
      case Kind::None:
        return Py_NewRef(Py_None);
      case Kind::Bool:
        return PyBool_FromLong(std::get<bool>(node.value));
      case Kind::Int:
        return PyLong_FromLongLong(std::get<int64_t>(node.value));
      case Kind::LargeInt:
        return large_int(node.text());
      case Kind::Float:
        return PyFloat_FromDouble(std::get<double>(node.value));
      case Kind::Complex: {
        const auto value = std::get<std::complex<double>>(node.value);
        return PyComplex_FromDoubles(value.real(), value.imag());
      }
      case Kind::Text:
        return PyUnicode_DecodeUTF8(node.text().data(), size_of(node), "surrogatepass");
      case Kind::Bytes:
        return node.special ? PyByteArray_FromStringAndSize(node.text().data(), size_of(node))
                            : PyBytes_FromStringAndSize(node.text().data(), size_of(node));
      case Kind::Tensor:
        return tensor(node);
      case Kind::DType:
        return wrap(std::get<DType>(node.value));
      case Kind::Device:
        return device(node);
      case Kind::List:
        return list(node);
      case Kind::Tuple: {
        Ref tuple(checked(sequence(node, PyTuple_New, PyTuple_SetItem)));
        return node.special ? PyObject_CallOneArg(attribute("tenon._C", "Size").get(), tuple.get())
                            : tuple.release();
      }
      case Kind::Set: {
        const Ref elements(checked(sequence(node, PyList_New, PyList_SetItem)));
        KeyHashes hashes(node.list().size());
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(elements.get()); ++i)
          add_hash(hashes, PyList_GET_ITEM(elements.get(), i));
        return node.special ? PyFrozenSet_New(elements.get()) : PySet_New(elements.get());
      }
      case Kind::Dict:
        return dict(node);
    }
    Py_UNREACHABLE();
  }

  static Py_ssize_t size_of(const io::Node& node) { return static_cast<Py_ssize_t>(node.text().size()); }

  static PyObject* large_int(std::string_view bytes) {
    const Ref arguments(
        checked(Py_BuildValue("(y#s)", bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "little")));
    const Ref keywords(checked(Py_BuildValue("{s:O}", "signed", Py_True)));
    const Ref function(
        checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyLong_Type), "from_bytes")));
    return PyObject_Call(function.get(), arguments.get(), keywords.get());
  }

  static PyObject* device(const io::Node& node) {
    const std::string_view text = node.text();
    TENON_CHECK(
        text == "meta" || loaded_backend(text), Value,
        fmt::format("it holds the device '{}', and no device of that name is loaded; load it first with "
                    "tenon.load_device",
                    io::shown(text)));
    return wrap(Device(text));
  }

  PyObject* tensor(const io::Node& node) {
    const auto& value = std::get<Tensor>(node.value);
    Ref out;
    if (node.special) {
      const Ref data(checked(wrap(value.detach())));
      out = Ref(checked(PyObject_CallFunction(attribute("tenon.nn.parameter", "Parameter").get(), "OO",
                                              data.get(), value.requires_grad() ? Py_True : Py_False)));
    } else {
      out = Ref(checked(wrap(value)));
    }
    keep(node, out.get());
    set_attributes(node, out.get());
    return out.release();
  }

  PyObject* sequence(const io::Node& node, PyObject* (*make_empty)(Py_ssize_t),
                     int (*set)(PyObject*, Py_ssize_t, PyObject*)) {
    Ref out(checked(make_empty(static_cast<Py_ssize_t>(node.list().size()))));
    Py_ssize_t i = 0;
    for (const io::Node* element : node.list())
      if (set(out.get(), i++, of(*element)) < 0) throw PythonError();
    return out.release();
  }

  PyObject* list(const io::Node& node) {
    Ref out(checked(PyList_New(0)));
    keep(node, out.get());
    for (const io::Node* element : node.list()) append(out, of(*element));
    return out.release();
  }

  PyObject* dict(const io::Node& node) {
    const char* const type = node.counts ? "Counter" : "OrderedDict";
    const bool has_type = node.counts || node.special;
    Ref out(checked(has_type ? PyObject_CallNoArgs(attribute("collections", type).get()) : PyDict_New()));
    keep(node, out.get());
    KeyHashes hashes(node.list().size() / 2);
    for (size_t i = 0; i < node.list().size(); i += 2) {
      const Ref key(of(*node.list()[i]));
      add_hash(hashes, key.get());
      const Ref value(of(*node.list()[i + 1]));
      if (PyObject_SetItem(out.get(), key.get(), value.get()) < 0) throw PythonError();
    }
    if (has_type) set_attributes(node, out.get());
    return out.release();
  }

  static void add_hash(KeyHashes& hashes, PyObject* key) {
    TENON_CHECK(hashes.add(key), Value, KeyHashes::kProblem);
  }

  /// Of this object alone, as Python's pickle does it: not by setattr, which properties of the type heed.
  void set_attributes(const io::Node& node, PyObject* object) {
    if (!node.attributes || node.attributes->list().empty()) return;
    const Ref attributes(of(*node.attributes));
    if (node.kind == Kind::Dict) {
      const std::string name = hiding_attribute(object, attributes.get());
      TENON_CHECK(
          name.empty(), Value,
          fmt::format("an attribute of a {} is called '{}', which would hide one of its type; save it "
                      "without that attribute",
                      Py_TYPE(object)->tp_name, name));
    }
    const Ref own(checked(PyObject_GetAttrString(object, "__dict__")));
    if (PyDict_Update(own.get(), attributes.get()) < 0) throw PythonError();
  }

  std::vector<Ref> made_;  // by the numbers of nodes
};

/// Python's exception where objects cannot be made of a file: what the file says cannot cause one, but for
/// memory.
[[noreturn]] void refuse_objects(const std::string& name) {
  const bool lacks_memory = PyErr_ExceptionMatches(PyExc_MemoryError);
  if (!lacks_memory) throw PythonError();
  PyErr_Clear();
  throw Error(ErrorKind::OutOfMemory,
              fmt::format("load: {}: there is not enough memory for its values", name));
}

PyObject* objects_of(const Value& value, const std::string& name) {
  try {
    return Objects().of(value.node());
  } catch (const PythonError&) {
    refuse_objects(name);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("load: {}: {}", name, error.message()));
  }
}

/// A stream of what a Python file's read() returns.
io::StreamReader reader_of(PyObject* file) {
  return [file](std::span<std::byte> to) -> size_t {
    const HoldGil held;
    const Ref given(PyObject_CallMethod(file, "read", "n", static_cast<Py_ssize_t>(to.size())));
    if (!given) throw_python_error();
    TENON_CHECK(given.get() != Py_None, Runtime,
                "load: f.read() returned None: the file does not wait for its bytes; load one that does");
    TENON_CHECK(PyObject_CheckBuffer(given.get()), Type,
                fmt::format("load: f.read() must return bytes, got {}; load a file that is open as bytes",
                            Py_TYPE(given.get())->tp_name));
    try {
      const Buffer buffer(given.get(), "load", "f.read()");
      const io::Bytes bytes = buffer.bytes();
      TENON_CHECK(bytes.size() <= to.size(), Value,
                  fmt::format("load: f.read({}) returned {} bytes", to.size(), bytes.size()));
      std::ranges::copy(bytes, to.begin());
      return bytes.size();
    } catch (const PythonError&) {
      throw_python_error();
    }
  };
}

/// What Python's place(storage, device, whether that device is loaded) returns.
Storage placed(PyObject* place, Storage storage, const std::string& device) {
  const HoldGil held;
  const Ref given(wrap(std::move(storage)));
  PyObject* const is_loaded = device == "meta" || loaded_backend(device) ? Py_True : Py_False;
  const Ref name(given ? to_python(device) : nullptr);
  const Ref out(name ? PyObject_CallFunctionObjArgs(place, given.get(), name.get(), is_loaded, nullptr)
                     : nullptr);
  if (!out) throw_python_error();
  const Storage* const made = as_storage(out.get());
  TENON_CHECK(made, Type,
              std::string("load: expected an UntypedStorage, got ") + Py_TYPE(out.get())->tp_name);
  return *made;
}

}  // namespace

PyObject* load(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("load", n, 4, [&] {
    const bool is_path = PyBytes_Check(args[0]);
    const std::string path = is_path ? path_argument("load", args[0]) : std::string();
    const std::string name = path_argument("load", args[1]);
    const bool mmap = flag("load", "mmap", args[3]);
    io::ReadOptions options{.place = {}, .may_go_on = !is_path, .map = mmap};
    if (args[2] != Py_None)
      options.place = [&](Storage storage, const std::string& device) {
        return placed(args[2], std::move(storage), device);
      };
    std::optional<io::Checkpoint> read;
    uint64_t too_much = 0;
    {
      const ReleaseGil released;
      const io::Input input =
          is_path ? io::Input::file(path, mmap) : io::Input::stream(reader_of(args[0]), name);
      read = io::read_checkpoint(input, options);
      if (!is_path && input.taken() > read->end) too_much = input.taken() - read->end;
    }
    const Ref value(objects_of(read->value, name));
    return checked(Py_BuildValue("OK", value.get(), static_cast<unsigned long long>(too_much)));
  });
}

}  // namespace tenon::python
