// tenon._C._inference: programs that are planned once, for tenon.inference.
#include <memory>

#include "python/src/call/spread.h"
#include "python/src/interpreter/capsule.h"
#include "python/src/interpreter/errors.h"
#include "python/src/interpreter/gil.h"
#include "python/src/interpreter/sequences.h"
#include "python/src/module_parts.h"
#include "python/src/modules/inference_argument.h"
#include "python/src/modules/weights_arguments.h"
#include "python/src/tensor/attribute_types.h"
#include "python/src/tensor/tensor_object.h"
#include "tenon/builder/inference.h"
#include "tenon/io/program_file.h"

namespace tenon::python {
namespace {

constexpr const char* kBuilderName = "tenon.inference.Builder";
constexpr const char* kName = "tenon.inference.Inference";

std::vector<Tensor> tensors_of(const char* what, PyObject* list) {
  std::vector<Tensor> out;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* const item = PyList_GET_ITEM(list, i);
    if (!is_tensor(item)) wrong_type("inference", what, "a Tensor", item);
    out.push_back(tensor_of(item));
  }
  return out;
}
Ref tensor_list(std::vector<Tensor> tensors) {
  return list_of(tensors, [](Tensor& t) { return wrap(std::move(t)); });
}

PyObject* begin(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("begin", n, 2, [&] {
    auto builder = std::make_unique<Inference::Builder>(tensors_of("an input", args[0]),
                                                        InferenceOptions{.exact = args[1] == Py_True});
    const Ref inputs = tensor_list(builder->inputs());
    const Ref capsule(to_capsule(std::move(builder), kBuilderName));
    return PyTuple_Pack(2, capsule.get(), inputs.get());
  });
}

PyObject* finish(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("finish", n, 2, [&] {
    auto& builder = from_capsule<Inference::Builder>(args[0], kBuilderName);
    auto made = std::make_unique<Inference>(builder.finish(tensors_of("a result", args[1])));
    return to_capsule(std::move(made), kName);
  });
}

/// Ends the writing down, where the function has thrown: the builder may live on in a traceback.
PyObject* abandon(PyObject*, PyObject* o) {
  return guarded([&] { from_capsule<Inference::Builder>(o, kBuilderName).abandon(); });
}

/// The outputs for a tuple or list of tensors; None where the plan was made for others.
PyObject* run(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("run", n, 2, [&]() -> PyObject* {
    const auto& inference = from_capsule<Inference>(args[0], kName);
    std::vector<Tensor> inputs;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(args[1]); ++i) {
      PyObject* const item = PySequence_Fast_GET_ITEM(args[1], i);
      if (!is_tensor(item)) return Py_NewRef(Py_None);
      inputs.push_back(tensor_of(item));
    }
    if (!inference.fits(inputs)) return Py_NewRef(Py_None);
    auto outputs = without_gil([&] { return inference(inputs); });
    return tensor_list(std::move(outputs)).release();
  });
}

PyObject* report(PyObject*, PyObject* o) {
  return guarded([&] { return to_python(from_capsule<Inference>(o, kName).report()); });
}

PyObject* save(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("save", n, 2, [&] {
    const auto& inference = from_capsule<Inference>(args[0], kName);
    const std::string path = path_argument("save_program", args[1]);
    without_gil([&] { save_program(inference, path); });
  });
}

PyObject* load(PyObject*, PyObject* o) {
  return guarded([&] {
    const std::string path = path_argument("load_program", o);
    auto made = without_gil([&] { return std::make_unique<Inference>(load_program(path)); });
    const auto count = static_cast<long long>(made->outputs().size());
    const Ref capsule(to_capsule(std::move(made), kName));
    return checked(Py_BuildValue("OL", capsule.get(), count));
  });
}

/// [(dtype, shape)] of the inputs.
PyObject* inputs(PyObject*, PyObject* o) {
  return guarded([&] {
    const auto pair = [](const Inference::Port& port) {
      const Ref dtype(checked(wrap(port.dtype))), shape(checked(wrap_tuple(port.sizes)));
      return PyTuple_Pack(2, dtype.get(), shape.get());
    };
    return list_of(from_capsule<Inference>(o, kName).inputs(), pair).release();
  });
}

PyMethodDef g_inference_methods[] = {
    fast_method("begin", &begin, "begin(example, exact): (builder, inputs without bytes)"),
    fast_method("finish", &finish, "finish(builder, outputs): what runs"),
    {"abandon", &abandon, METH_O, "Ends a builder without a result."},
    fast_method("run", &run, "run(inference, inputs): outputs"),
    fast_method("save", &save, "save(inference, path)"),
    {"load", &load, METH_O, "load(path): (inference, how many outputs it has)"},
    {"inputs", &inputs, METH_O, "The dtype and shape of each input."},
    {"report", &report, METH_O, "What was fused, as text."},
    {}};

}  // namespace

const Inference& inference_argument(PyObject* capsule) { return from_capsule<Inference>(capsule, kName); }

bool add_inference(PyObject* module) { return add_submodule(module, "_inference", g_inference_methods); }

}  // namespace tenon::python
