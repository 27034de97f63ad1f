// tenon._C._weights.save: Python objects as values of a checkpoint, for tenon.serialization.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <unordered_map>

#include "python/src/call/spread.h"
#include "python/src/interpreter/errors.h"
#include "python/src/interpreter/gil.h"
#include "python/src/modules/key_hashes.h"
#include "python/src/modules/weights_arguments.h"
#include "python/src/tensor/attribute_types.h"
#include "python/src/tensor/tensor_object.h"
#include "tenon/io/pickler.h"

namespace tenon::python {
namespace {

using Kind = Value::Kind;
using io::Node;

constexpr size_t kMostDepth = 1000;  // what load reads

/// Makes nodes of Python objects: each once, so that what is shared in Python is shared in the file. Types
/// count exactly: a subclass would come back as another type.
class Nodes {
 public:
  /// Throws Error for what load would refuse.
  const Node& of(PyObject* root) {
    Node* const out = node(root);
    io::check_loadable(out, nodes_);
    return *out;
  }

 private:
  /// From a container to a part of it: by a key or a position, or by neither.
  struct Step {
    PyObject* key = nullptr;
    Py_ssize_t index = -1;
  };

  Node* node(PyObject* o) {
    if (const auto known = made_.find(o); known != made_.end()) return known->second;
    TENON_CHECK(depth_ < kMostDepth, Value,
                fmt::format("save: values nest more than {} deep, at {}", kMostDepth, place()));
    ++depth_;
    Node* const out = make(o);
    --depth_;
    return out;
  }
  Node* add(PyObject* o, Kind kind, decltype(Node::value) value, bool special = false) {
    return keep(o, io::add(nodes_, kind, std::move(value), special));
  }
  Node* keep(PyObject* o, Node* made) {
    made_.emplace(o, made);
    return made;
  }

  Node* make(PyObject* o) {
    if (o == Py_None) return io::add(nodes_, Kind::None);  // without identity, as the next
    if (PyBool_Check(o)) return io::add(nodes_, Kind::Bool, o == Py_True);
    if (PyFloat_CheckExact(o)) return io::add(nodes_, Kind::Float, PyFloat_AS_DOUBLE(o));
    if (PyLong_CheckExact(o)) return integer(o);
    if (PyComplex_CheckExact(o))
      return add(o, Kind::Complex,
                 std::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)));
    if (PyUnicode_CheckExact(o)) return text(o);
    if (PyBytes_CheckExact(o))
      return add(o, Kind::Bytes,
                 std::string_view(PyBytes_AS_STRING(o), static_cast<size_t>(PyBytes_GET_SIZE(o))));
    if (PyList_CheckExact(o)) return list(o);
    if (PyTuple_CheckExact(o)) return tuple(o);
    if (PyDict_CheckExact(o)) return dict(o, false);
    if (PySet_CheckExact(o) || PyFrozenSet_CheckExact(o)) return set(o);
    if (is_tensor(o)) return tensor(o);
    if (const auto device = PyUnicode_Check(o) ? std::nullopt : as_device(o))
      return keep(o, io::add_text(nodes_, Kind::Device, to_string(*device)));
    auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(o));
    // Not Python's types, which mean dtypes elsewhere.
    if (type == type_of("tenon._C", "dtype", dtype_)) return add(o, Kind::DType, *as_dtype(o));
    const bool is_size = type == type_of("tenon._C", "Size", size_);
    if (is_size || type == type_of("collections", "Counter", counter_)) {
      Node* const out = is_size ? tuple(o) : dict(o, false);
      (is_size ? out->special : out->counts) = true;
      return out;
    }
    if (type == type_of("collections", "OrderedDict", ordered_)) return dict(o, true);
    refuse(o);
  }

  static PyObject* type_of(const char* module, const char* name, Ref& known) {
    if (!known) {
      const Ref imported(checked(PyImport_ImportModule(module)));
      known = Ref(checked(PyObject_GetAttrString(imported.get(), name)));
    }
    return known.get();
  }

  /// "['model'][3]": where an object is that cannot be saved.
  std::string place() const {
    constexpr size_t kMost = 200;
    std::string out;
    for (const Step& step : path_) {
      if (out.size() > kMost) return out + "...";
      const Ref key(step.key ? PyObject_Repr(step.key) : nullptr);
      const char* const utf8 = key ? PyUnicode_AsUTF8(key.get()) : nullptr;
      if (utf8)
        out += fmt::format("[{}]", std::string_view(utf8).substr(0, kMost));
      else if (step.index >= 0)
        out += fmt::format("[{}]", step.index);
      else
        out += "{...}";
      PyErr_Clear();
    }
    return out;
  }

  [[noreturn]] void refuse(PyObject* o) {
    // A function or a type goes by its own name.
    const bool is_named = PyType_Check(o) || (PyObject_HasAttrString(o, "__module__") &&
                                              PyObject_HasAttrString(o, "__qualname__"));
    PyObject* const kind = is_named ? o : reinterpret_cast<PyObject*>(Py_TYPE(o));
    const Ref module(checked(PyObject_GetAttrString(kind, "__module__")));
    const Ref name(checked(PyObject_GetAttrString(kind, "__qualname__")));
    const Ref both(checked(PyUnicode_FromFormat("%S.%S", module.get(), name.get())));
    const char* const shown = PyUnicode_AsUTF8(both.get());
    if (!shown) PyErr_Clear();
    throw Error(
        ErrorKind::Type,
        fmt::format("save: a {} cannot be in a checkpoint{}, which holds tensors, numbers, str, bytes, None, "
                    "dtypes, devices, and lists, tuples, sets and dicts of those; save a module's "
                    "state_dict()",
                    shown ? shown : "value", path_.empty() ? "" : fmt::format(", at {}", place())));
  }

  Node* integer(PyObject* o) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow == 0) return io::add(nodes_, Kind::Int, int64_t{value});
    const Ref bits(checked(PyObject_CallMethod(o, "bit_length", nullptr)));
    const size_t size = PyLong_AsSize_t(bits.get()) / 8 + 1;  // with the sign
    const Ref method(checked(PyObject_GetAttrString(o, "to_bytes")));
    const Ref arguments(checked(Py_BuildValue("(ns)", static_cast<Py_ssize_t>(size), "little")));
    const Ref keywords(checked(Py_BuildValue("{s:O}", "signed", Py_True)));
    const Ref bytes(checked(PyObject_Call(method.get(), arguments.get(), keywords.get())));
    return keep(o, io::add_text(nodes_, Kind::LargeInt, text_of(bytes.get())));
  }

  static std::string text_of(PyObject* bytes) {
    return {PyBytes_AS_STRING(bytes), static_cast<size_t>(PyBytes_GET_SIZE(bytes))};
  }

  Node* text(PyObject* o) {
    Py_ssize_t size = 0;
    if (const char* const utf8 = PyUnicode_AsUTF8AndSize(o, &size))
      return add(o, Kind::Text, std::string_view(utf8, static_cast<size_t>(size)));
    PyErr_Clear();  // a lone surrogate
    const Ref bytes(checked(PyUnicode_AsEncodedString(o, "utf-8", "surrogatepass")));
    return keep(o, io::add_text(nodes_, Kind::Text, text_of(bytes.get())));
  }

  /// The node of a part, whose place in its container is `step`.
  Node* part(PyObject* o, Step step) {
    path_.push_back(step);
    Node* const out = node(o);
    path_.pop_back();
    return out;
  }

  Node* list(PyObject* o) {
    Node* const out = add(o, Kind::List, Node::List());
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i)
      out->list().push_back(part(PyList_GET_ITEM(o, i), {nullptr, i}));
    return out;
  }

  Node* tuple(PyObject* o) {
    Node::List elements;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
      elements.push_back(part(PyTuple_GET_ITEM(o, i), {nullptr, i}));
    // A list inside may hold this tuple.
    if (const auto known = made_.find(o); known != made_.end()) return known->second;
    return add(o, Kind::Tuple, std::move(elements));
  }

  Node* set(PyObject* o) {
    Node* const out = add(o, Kind::Set, Node::List(), PyFrozenSet_CheckExact(o));
    const Ref iterator(checked(PyObject_GetIter(o)));
    KeyHashes hashes(static_cast<size_t>(PySet_GET_SIZE(o)));
    while (PyObject* const element = PyIter_Next(iterator.get())) {
      const Ref held(element);
      add_hash(hashes, element);
      out->list().push_back(part(element, {}));
    }
    if (PyErr_Occurred()) throw PythonError();
    return out;
  }

  Node* dict(PyObject* o, bool is_ordered) {
    Node* const out = add(o, Kind::Dict, Node::List(), is_ordered);
    PyObject *key, *value;
    KeyHashes hashes(static_cast<size_t>(PyDict_GET_SIZE(o)));
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) add_hash(hashes, key);
    if (!is_ordered) {
      for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) add_item(*out, key, value);
      return out;
    }
    const Ref items(checked(PyObject_CallMethod(o, "items", nullptr)));
    const Ref pairs(checked(PySequence_List(items.get())));
    held_.push_back(pairs);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pairs.get()); ++i) {
      PyObject* const pair = PyList_GET_ITEM(pairs.get(), i);
      add_item(*out, PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1));
    }
    const Ref attributes(checked(PyObject_GetAttrString(o, "__dict__")));
    const Ref empty(checked(PyObject_CallNoArgs(type_of("collections", "OrderedDict", ordered_))));
    const std::string hiding = hiding_attribute(empty.get(), attributes.get());
    TENON_CHECK(hiding.empty(), Value,
                fmt::format("save: the attribute '{0}' of an OrderedDict{1} hides OrderedDict.{0}, and load "
                            "refuses that; delete the attribute",
                            hiding, path_.empty() ? "" : fmt::format(", at {},", place())));
    set_attributes(*out, attributes.get());
    return out;
  }
  void add_hash(KeyHashes& hashes, PyObject* key) {
    TENON_CHECK(hashes.add(key), Value,
                fmt::format("save: {}{}, and load refuses that", KeyHashes::kProblem,
                            path_.empty() ? "" : fmt::format(", at {}", place())));
  }
  void add_item(Node& dict, PyObject* key, PyObject* value) {
    dict.list().push_back(part(key, {key}));
    dict.list().push_back(part(value, {key}));
  }

  Node* tensor(PyObject* o) {
    const bool is_parameter = !Py_IS_TYPE(o, &tensor_type);
    if (is_parameter &&
        reinterpret_cast<PyObject*>(Py_TYPE(o)) != type_of("tenon.nn.parameter", "Parameter", parameter_))
      refuse(o);
    Node* const out = add(o, Kind::Tensor, tensor_of(o), is_parameter);
    // What is saved without its history is another tensor.
    if (PyObject* const own = reinterpret_cast<TensorObject*>(o)->dict; own && tensor_of(o).is_leaf())
      set_attributes(*out, own);
    return out;
  }

  void set_attributes(Node& node, PyObject* attributes) {
    if (!PyDict_Check(attributes) || PyDict_GET_SIZE(attributes) == 0) return;
    node.attributes = part(attributes, {});
  }

  io::Nodes nodes_;
  std::unordered_map<PyObject*, Node*> made_;
  std::vector<Ref> held_;  // objects that were made here, whose addresses stay theirs
  std::vector<Step> path_;
  size_t depth_ = 0;
  Ref dtype_, size_, ordered_, counter_, parameter_;
};

/// "save: model.pt: what", as the OSError that the system would make of `error`.
[[noreturn]] void refuse_write(int error, PyObject* file, const char* what) {
  PyObject* found = PyObject_GetAttrString(file, "name");
  if (!found) PyErr_Clear();
  const Ref name(found ? found : checked(PyUnicode_FromString(Py_TYPE(file)->tp_name)));
  const Ref text(checked(PyUnicode_FromFormat("save: %S: %s", name.get(), what)));
  const Ref arguments(checked(Py_BuildValue("(iO)", error, text.get())));
  PyErr_SetObject(PyExc_OSError, arguments.get());
  throw PythonError();
}

/// Writes bytes by Python's file.write, which may take fewer than it is given. A raw file says how many, or
/// None where it cannot take any now; others need not say.
void write_all(PyObject* file, io::Bytes left) {
  constexpr size_t kPiece = size_t{16} << 20;
  const Ref io_module(checked(PyImport_ImportModule("io")));
  const Ref raw_type(checked(PyObject_GetAttrString(io_module.get(), "RawIOBase")));
  const int is_raw = PyObject_IsInstance(file, raw_type.get());
  if (is_raw < 0) throw PythonError();
  while (!left.empty()) {
    const io::Bytes piece = left.first(std::min(left.size(), kPiece));
    const Ref bytes(checked(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(piece.data()),
                                                      static_cast<Py_ssize_t>(piece.size()))));
    const Ref written(checked(PyObject_CallMethod(file, "write", "O", bytes.get())));
    size_t count = piece.size();
    if (written.get() != Py_None) {
      const Py_ssize_t given = PyNumber_AsSsize_t(written.get(), PyExc_OverflowError);
      if (given < 0 && PyErr_Occurred()) throw PythonError();
      TENON_CHECK(given >= 0 && static_cast<size_t>(given) <= count, Value,
                  fmt::format("save: f.write() returned {} for {} bytes", given, count));
      count = static_cast<size_t>(given);
      if (count == 0)
        refuse_write(EIO, file, "f.write() takes no more bytes, and what is written is no whole checkpoint");
    } else if (is_raw != 0) {
      refuse_write(
          EAGAIN, file,
          "f.write() would have to wait, and what is written is no whole checkpoint; save to a file that "
          "waits (os.set_blocking)");
    }
    left = left.subspan(count);
  }
}

}  // namespace

PyObject* save(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("save", n, 2, [&] {
    const bool is_path = PyBytes_Check(args[1]);
    const std::string path = is_path ? path_argument("save", args[1]) : std::string();
    Nodes nodes;
    const Node& root = nodes.of(args[0]);
    std::optional<io::OwnCheckpoint> checkpoint;
    {
      const ReleaseGil released;
      checkpoint.emplace(root);
      if (is_path) io::replace_file(path, checkpoint->parts());
    }
    if (!is_path)
      for (const io::Bytes part : checkpoint->parts()) write_all(args[1], part);
  });
}

}  // namespace tenon::python
