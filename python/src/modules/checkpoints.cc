// tenon._C._weights.load_pytorch: PyTorch's checkpoints as Python objects, for tenon.serialization.
#include <unordered_map>

#include "python/src/call/spread.h"
#include "python/src/interpreter/errors.h"
#include "python/src/interpreter/gil.h"
#include "python/src/modules/weights_arguments.h"
#include "python/src/tensor/attribute_types.h"
#include "python/src/tensor/tensor_object.h"
#include "tenon/io/node.h"
#include "tenon/io/read_checkpoint.h"

namespace tenon::python {
namespace {

using Kind = Value::Kind;

Ref attribute(const char* module, const char* name) {
  const Ref imported(checked(PyImport_ImportModule(module)));
  return Ref(checked(PyObject_GetAttrString(imported.get(), name)));
}

/// Makes Python objects of the nodes of one file: each once, so that what is shared in the file is shared in
/// Python. Values nest at most 500 deep (tenon/io/unpickler.h).
class Objects {
 public:
  PyObject* of(const io::Node& node) {
    if (const auto known = made_.find(&node); known != made_.end()) return Py_NewRef(known->second.get());
    Ref object(checked(make(node)));
    const bool is_shared = node.kind >= Kind::List || node.kind == Kind::Tensor;
    if (is_shared) made_.emplace(&node, Ref::borrow(object.get()));
    return object.release();
  }

 private:
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
        return PyObject_CallFunction(attribute("tenon._C", "device").get(), "s", node.text().c_str());
      case Kind::List:
        return sequence(node, PyList_New, PyList_SetItem);
      case Kind::Tuple: {
        Ref tuple(checked(sequence(node, PyTuple_New, PyTuple_SetItem)));
        return node.special ? PyObject_CallOneArg(attribute("tenon._C", "Size").get(), tuple.get())
                            : tuple.release();
      }
      case Kind::Set: {
        const Ref list(checked(sequence(node, PyList_New, PyList_SetItem)));
        return PySet_New(list.get());
      }
      case Kind::Dict:
        return dict(node);
    }
    Py_UNREACHABLE();
  }

  static Py_ssize_t size_of(const io::Node& node) { return static_cast<Py_ssize_t>(node.text().size()); }

  static PyObject* large_int(const std::string& bytes) {
    const Ref arguments(
        checked(Py_BuildValue("(y#s)", bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "little")));
    const Ref keywords(checked(Py_BuildValue("{s:O}", "signed", Py_True)));
    const Ref function(
        checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyLong_Type), "from_bytes")));
    return PyObject_Call(function.get(), arguments.get(), keywords.get());
  }

  static PyObject* tensor(const io::Node& node) {
    const auto& value = std::get<Tensor>(node.value);
    if (!node.special) return wrap(value);
    const Ref data(checked(wrap(value.detach())));
    return PyObject_CallFunction(attribute("tenon.nn.parameter", "Parameter").get(), "OO", data.get(),
                                 value.requires_grad() ? Py_True : Py_False);
  }

  PyObject* sequence(const io::Node& node, PyObject* (*make_empty)(Py_ssize_t),
                     int (*set)(PyObject*, Py_ssize_t, PyObject*)) {
    Ref out(checked(make_empty(static_cast<Py_ssize_t>(node.list().size()))));
    Py_ssize_t i = 0;
    for (const io::Node* element : node.list())
      if (set(out.get(), i++, of(*element)) < 0) throw PythonError();
    return out.release();
  }

  PyObject* dict(const io::Node& node) {
    const char* const type = node.counts ? "Counter" : "OrderedDict";
    Ref out(node.counts || node.special ? PyObject_CallNoArgs(attribute("collections", type).get())
                                        : PyDict_New());
    checked(out.get());
    for (size_t i = 0; i < node.list().size(); i += 2) {
      const Ref key(of(*node.list()[i]));
      const Ref value(of(*node.list()[i + 1]));
      if (PyObject_SetItem(out.get(), key.get(), value.get()) < 0) throw PythonError();
    }
    return out.release();
  }

  std::unordered_map<const io::Node*, Ref> made_;
};

/// What Python's place(storage, device) returns.
Storage placed(PyObject* place, Storage storage, const std::string& device) {
  const HoldGil held;
  const Ref given(wrap(std::move(storage)));
  const Ref out(given ? PyObject_CallFunction(place, "Os", given.get(), device.c_str()) : nullptr);
  if (!out) throw_python_error();
  const Storage* const made = as_storage(out.get());
  TENON_CHECK(made, Type,
              std::string("load: expected an UntypedStorage, got ") + Py_TYPE(out.get())->tp_name);
  return *made;
}

}  // namespace

PyObject* load_pytorch(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return guarded([&] {
    check_count("load_pytorch", n, 3);
    const bool is_path = PyBytes_Check(args[0]);
    const std::string path = is_path ? path_argument(args[0]) : std::string();
    const std::optional<Buffer> buffer = is_path ? std::nullopt : std::optional<Buffer>(args[0]);
    const bool mmap = flag(args[2]);
    std::optional<Value> value;
    {
      const ReleaseGil released;
      const io::Input input =
          is_path ? io::Input::file(path, mmap) : io::Input::memory(buffer->bytes(), "the bytes");
      io::Place place;
      if (args[1] != Py_None)
        place = [&](Storage storage, const std::string& device) {
          return placed(args[1], std::move(storage), device);
        };
      value = io::read_pytorch(input, place);
    }
    return Objects().of(value->node());
  });
}

}  // namespace tenon::python
