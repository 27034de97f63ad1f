// tenon._C._inference: programs that are planned once, for tenon.inference.
#include <memory>

#include "python/src/call/spread.h"
#include "python/src/interpreter/errors.h"
#include "python/src/interpreter/gil.h"
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

template <class T>
T& from_capsule(PyObject* capsule, const char* name) {
  void* const found = PyCapsule_GetPointer(capsule, name);
  if (!found) throw PythonError();
  return *static_cast<T*>(found);
}
template <class T>
PyObject* to_capsule(std::unique_ptr<T> value, const char* name, PyCapsule_Destructor destroy) {
  PyObject* const capsule = checked(PyCapsule_New(value.get(), name, destroy));
  (void)value.release();
  return capsule;
}

std::vector<Tensor> tensors_of(const char* what, PyObject* list) {
  std::vector<Tensor> out;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* const item = PyList_GET_ITEM(list, i);
    if (!is_tensor(item)) wrong_type("inference", what, "a Tensor", item);
    out.push_back(tensor_of(item));
  }
  return out;
}
PyObject* list_of(std::vector<Tensor> tensors) {
  Ref out(checked(PyList_New(static_cast<Py_ssize_t>(tensors.size()))));
  for (size_t i = 0; i < tensors.size(); ++i)
    PyList_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), checked(wrap(std::move(tensors[i]))));
  return out.release();
}

void free_inference(PyObject* o) { delete static_cast<Inference*>(PyCapsule_GetPointer(o, kName)); }

PyObject* begin(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return guarded([&] {
    check_count("begin", n, 2);
    auto builder = std::make_unique<Inference::Builder>(tensors_of("an input", args[0]),
                                                        InferenceOptions{.exact = args[1] == Py_True});
    const Ref inputs(list_of(builder->inputs()));
    const Ref capsule(to_capsule(std::move(builder), kBuilderName, [](PyObject* o) {
      delete static_cast<Inference::Builder*>(PyCapsule_GetPointer(o, kBuilderName));
    }));
    return PyTuple_Pack(2, capsule.get(), inputs.get());
  });
}

PyObject* finish(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return guarded([&] {
    check_count("finish", n, 2);
    auto& builder = from_capsule<Inference::Builder>(args[0], kBuilderName);
    auto made = std::make_unique<Inference>(builder.finish(tensors_of("a result", args[1])));
    return to_capsule(std::move(made), kName, &free_inference);
  });
}

/// Ends the writing down, where the function has thrown: the builder may live on in a traceback.
PyObject* abandon(PyObject*, PyObject* o) {
  return guarded([&] {
    from_capsule<Inference::Builder>(o, kBuilderName).abandon();
    return Py_NewRef(Py_None);
  });
}

/// The outputs for a tuple or list of tensors; None where the plan was made for others.
PyObject* run(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return guarded([&]() -> PyObject* {
    check_count("run", n, 2);
    const auto& inference = from_capsule<Inference>(args[0], kName);
    std::vector<Tensor> inputs;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(args[1]); ++i) {
      PyObject* const item = PySequence_Fast_GET_ITEM(args[1], i);
      if (!is_tensor(item)) return Py_NewRef(Py_None);
      inputs.push_back(tensor_of(item));
    }
    if (!inference.fits(inputs)) return Py_NewRef(Py_None);
    std::vector<Tensor> outputs;
    {
      const ReleaseGil released;
      outputs = inference(inputs);
    }
    return list_of(std::move(outputs));
  });
}

PyObject* report(PyObject*, PyObject* o) {
  return guarded([&] {
    const std::string text = from_capsule<Inference>(o, kName).report();
    return checked(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
  });
}

PyObject* save(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return guarded([&] {
    check_count("save", n, 2);
    const auto& inference = from_capsule<Inference>(args[0], kName);
    const std::string path = path_argument("save_program", args[1]);
    {
      const ReleaseGil released;
      save_program(inference, path);
    }
    return Py_NewRef(Py_None);
  });
}

PyObject* load(PyObject*, PyObject* o) {
  return guarded([&] {
    const std::string path = path_argument("load_program", o);
    std::unique_ptr<Inference> made;
    {
      const ReleaseGil released;
      made = std::make_unique<Inference>(load_program(path));
    }
    const auto count = static_cast<long long>(made->outputs().size());
    const Ref capsule(to_capsule(std::move(made), kName, &free_inference));
    return checked(Py_BuildValue("OL", capsule.get(), count));
  });
}

/// [(dtype, shape)] of the inputs.
PyObject* inputs(PyObject*, PyObject* o) {
  return guarded([&] {
    Ref out(checked(PyList_New(0)));
    for (const Inference::Port& port : from_capsule<Inference>(o, kName).inputs()) {
      const Ref dtype(checked(wrap(port.dtype))),
          shape(checked(PyTuple_New(static_cast<Py_ssize_t>(port.sizes.size()))));
      for (size_t i = 0; i < port.sizes.size(); ++i)
        PyTuple_SET_ITEM(shape.get(), static_cast<Py_ssize_t>(i),
                         checked(PyLong_FromLongLong(port.sizes[i])));
      const Ref pair(checked(PyTuple_Pack(2, dtype.get(), shape.get())));
      if (PyList_Append(out.get(), pair.get()) < 0) throw PythonError();
    }
    return out.release();
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

bool add_inference(PyObject* module) {
  PyObject* const inference = PyModule_New("tenon._C._inference");
  if (!inference || PyModule_AddFunctions(inference, g_inference_methods) < 0) return false;
  return PyModule_AddObject(module, "_inference", inference) == 0;
}

}  // namespace tenon::python
