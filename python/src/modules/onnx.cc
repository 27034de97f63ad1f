// tenon._C._onnx: networks in ONNX files, for tenon.onnx.
#include <memory>

#include "python/src/call/spread.h"
#include "python/src/interpreter/capsule.h"
#include "python/src/interpreter/errors.h"
#include "python/src/interpreter/gil.h"
#include "python/src/interpreter/sequences.h"
#include "python/src/module_parts.h"
#include "python/src/modules/buffer.h"
#include "python/src/modules/inference_argument.h"
#include "python/src/modules/weights_arguments.h"
#include "python/src/tensor/attribute_types.h"
#include "python/src/tensor/tensor_object.h"
#include "tenon/onnx/model.h"
#include "tenon/onnx/save.h"

namespace tenon::python {
namespace {

constexpr const char* kModelName = "tenon.onnx.Model";

PyObject* text(std::string_view s) {
  return checked(PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace"));
}

PyObject* dim_object(const onnx::Port::Dim& dim) {
  if (const auto* size = std::get_if<int64_t>(&dim)) return PyLong_FromLongLong(*size);
  if (const auto* name = std::get_if<std::string>(&dim)) return text(*name);
  return Py_NewRef(Py_None);
}
/// (name, dtype or None, shape or None, its text)
PyObject* port_object(const onnx::Port& port) {
  const Ref name(text(port.name)), shown(text(port.text()));
  const Ref dtype(port.dtype ? checked(wrap(*port.dtype)) : Py_NewRef(Py_None));
  const Ref shape = port.shape ? list_of(*port.shape, dim_object) : Ref(Py_NewRef(Py_None));
  return PyTuple_Pack(4, name.get(), dtype.get(), shape.get(), shown.get());
}

/// Calls `read` with the path or the bytes that `source` is.
template <class Read>
auto read_source(const char* function, PyObject* const* args, const Read& read) {
  if (args[1] == Py_True) {
    const Buffer buffer(args[0], function, "source");
    const ReleaseGil released;
    return read(buffer.bytes());
  }
  const std::string path = path_argument(function, args[0]);
  const ReleaseGil released;
  return read(path);
}

const onnx::Model& model_argument(PyObject* capsule) {
  return from_capsule<const onnx::Model>(capsule, kModelName);
}

PyObject* load_model(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("load", n, 2, [&] {
    auto model = read_source("onnx.load", args, [](const auto& source) {
      return std::make_unique<onnx::Model>(onnx::load(source));
    });
    return to_capsule(std::move(model), kModelName);
  });
}

PyObject* ports(PyObject*, PyObject* o) {
  return guarded([&] {
    const onnx::Model& model = model_argument(o);
    const Ref inputs = list_of(model.inputs(), port_object), outputs = list_of(model.outputs(), port_object);
    return PyTuple_Pack(2, inputs.get(), outputs.get());
  });
}

PyObject* weights(PyObject*, PyObject* o) {
  return guarded([&] {
    const onnx::Model& model = model_argument(o);
    const auto pair = [](const std::pair<std::string, Tensor>& named) {
      const Ref name(text(named.first)), value(checked(wrap(named.second.detach())));
      return PyTuple_Pack(2, name.get(), value.get());
    };
    const Ref parameters = list_of(model.named_parameters(), pair),
              buffers = list_of(model.named_buffers(), pair);
    return PyTuple_Pack(2, parameters.get(), buffers.get());
  });
}

onnx::Item item_of(PyObject* o) {
  if (o == Py_None) return {};
  if (is_tensor(o)) return {tensor_of(o)};
  if (!PyList_Check(o) && !PyTuple_Check(o))
    wrong_type("onnx.Model", "input", "a Tensor, a list of Tensors or None", o);
  const Ref items(checked(PySequence_Fast(o, "")));
  auto all = std::make_shared<std::vector<Tensor>>();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* const one = PySequence_Fast_GET_ITEM(items.get(), i);
    if (!is_tensor(one)) wrong_type("onnx.Model", "input", "a list of Tensors", one);
    all->push_back(tensor_of(one));
  }
  return {{}, std::move(all)};
}
PyObject* object_of(const onnx::Item& item) {
  if (item.tensor.defined()) return wrap(item.tensor);
  if (!item.sequence) return Py_NewRef(Py_None);
  return list_of(*item.sequence, [](const Tensor& t) { return wrap(t); }).release();
}

PyObject* run(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("run", n, 3, [&] {
    const onnx::Model& model = model_argument(args[0]);
    std::vector<onnx::Item> inputs;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[1]); ++i)
      inputs.push_back(item_of(PyList_GET_ITEM(args[1], i)));
    std::vector<Tensor> parts;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[2]); ++i) {
      PyObject* const part = PyList_GET_ITEM(args[2], i);
      if (!is_tensor(part)) wrong_type("onnx.Model", "a parameter or buffer", "a Tensor", part);
      parts.push_back(tensor_of(part));
    }
    auto outputs = without_gil([&] { return model.run_items(std::move(inputs), parts); });
    return list_of(outputs, object_of).release();
  });
}

PyObject* contents(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("contents", n, 2, [&] {
    const onnx::Contents found =
        read_source("onnx.contents", args, [](const auto& source) { return onnx::contents(source); });
    const Ref inputs = list_of(found.inputs, port_object), outputs = list_of(found.outputs, port_object);
    const Ref operators = list_of(found.operators, [](const onnx::Contents::Operator& op) {
      const Ref domain(text(op.domain)), name(text(op.name)), first(text(op.first_node));
      return Py_BuildValue("OOiLOO", domain.get(), name.get(), op.opset, static_cast<long long>(op.num_nodes),
                           first.get(), op.is_known ? Py_True : Py_False);
    });
    const Ref missing = list_of(found.missing, [](const std::string& what) { return text(what); });
    const Ref metadata = list_of(found.metadata, [](const std::pair<std::string, std::string>& pair) {
      const Ref key(text(pair.first)), value(text(pair.second));
      return PyTuple_Pack(2, key.get(), value.get());
    });
    const Ref producer(text(found.producer));
    return checked(Py_BuildValue("OLOOOOLO", producer.get(), static_cast<long long>(found.ir_version),
                                 metadata.get(), inputs.get(), outputs.get(), operators.get(),
                                 static_cast<long long>(found.num_weights), missing.get()));
  });
}

std::string string_of(PyObject* o) {
  Py_ssize_t size = 0;
  const char* const data = PyUnicode_AsUTF8AndSize(o, &size);
  if (!data) throw PythonError();
  return {data, static_cast<size_t>(size)};
}
/// Calls `take` with each item of a list that the package has made.
template <class Take>
void each_item(PyObject* list, const Take& take) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) take(PyList_GET_ITEM(list, i));
}

PyObject* save(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("save", n, 7, [&] {
    std::vector<const Inference*> traces;
    each_item(args[0], [&](PyObject* o) { traces.push_back(&inference_argument(o)); });
    const std::string path = path_argument("onnx.save", args[1]);
    onnx::SaveOptions options{.opset = static_cast<int>(PyLong_AsLong(args[2]))};
    each_item(args[3], [&](PyObject* o) { options.input_names.push_back(string_of(o)); });
    each_item(args[4], [&](PyObject* o) { options.output_names.push_back(string_of(o)); });
    each_item(args[5], [&](PyObject* o) {
      options.dynamic_axes.push_back({static_cast<size_t>(PyLong_AsSize_t(PyTuple_GET_ITEM(o, 0))),
                                      PyLong_AsLongLong(PyTuple_GET_ITEM(o, 1)),
                                      string_of(PyTuple_GET_ITEM(o, 2))});
    });
    each_item(args[6], [&](PyObject* o) {
      options.weights.emplace_back(string_of(PyTuple_GET_ITEM(o, 0)), tensor_of(PyTuple_GET_ITEM(o, 1)));
    });
    without_gil([&] { onnx::save(traces, path, options); });
  });
}

PyMethodDef g_onnx_methods[] = {
    fast_method("load", &load_model, "load(path or bytes, is_bytes): a model"),
    {"ports", &ports, METH_O, "(inputs, outputs) of a model, each (name, dtype, shape, text)"},
    {"weights", &weights, METH_O, "(parameters, buffers) of a model, each (name, tensor)"},
    fast_method("run", &run, "run(model, inputs, parameters and buffers): the outputs"),
    fast_method("contents", &contents, "contents(path or bytes, is_bytes): what a file is made of"),
    fast_method(
        "save", &save,
        "save(traces, path, opset, input names, output names, [(input, axis, name)], [(name, tensor)])"),
    {}};

}  // namespace

bool add_onnx(PyObject* module) { return add_submodule(module, "_onnx", g_onnx_methods); }

}  // namespace tenon::python
