// Autograd from Python: Tensor.grad, backward, hooks; the functions of tenon.autograd and the grad modes.
#include "tenon/autograd/autograd.h"

#include "python/src/autograd/function_object.h"
#include "python/src/autograd/garbage_collection.h"
#include "python/src/autograd/hooks.h"
#include "python/src/autograd/node_object.h"
#include "python/src/call/parser.h"
#include "python/src/call/spread.h"
#include "python/src/interpreter/sequences.h"
#include "python/src/module_parts.h"
#include "python/src/tensor/tensor_parts.h"
#include "tenon/autograd/autograd_meta.h"
#include "tenon/autograd/workers.h"
#include "tenon/core/warn.h"
#include "tenon/generated/factory/functions.h"

namespace tenon::python {
namespace {

// Attributes of tensors

PyObject* get_grad(PyObject* o, void*) {
  return guarded([&] {
    const Tensor& self = tensor_of(o);
    const Tensor grad = self.grad();
    const autograd::AutogradMeta* const meta = autograd::meta_of(*self.impl());
    if (!grad.defined() && !self.is_leaf() && !(meta && meta->retains_grad)) [[unlikely]] {
      warn(
          "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed: backward sets .grad "
          "of leaves alone; call retain_grad() on it before backward, or read the leaf's");
    }
    return wrap(grad);
  });
}
int set_grad(PyObject* o, PyObject* value, void*) {
  return guarded([&] {
    if (!given(value)) {
      tensor_of(o).set_grad({});
      return 0;
    }
    if (!is_tensor(value)) wrong_type("grad", "value", "a Tensor or None", value);
    TENON_CHECK(value != o, Runtime, "grad: a tensor cannot be its own gradient");
    tensor_of(o).set_grad(tensor_of(value));
    return 0;
  });
}
PyObject* get_grad_fn(PyObject* o, void*) {
  return guarded([&] { return wrap(tensor_of(o).grad_fn()); });
}
PyObject* get_requires_grad(PyObject* o, void*) {
  return guarded([&] { return PyBool_FromLong(tensor_of(o).requires_grad()); });
}
int set_requires_grad(PyObject* o, PyObject* value, void*) {
  return guarded([&] {
    TENON_CHECK(value, Type, "requires_grad cannot be deleted");
    tensor_of(o).requires_grad_(flag("requires_grad", "value", value));
    return 0;
  });
}
PyObject* get_is_leaf(PyObject* o, void*) {
  return guarded([&] { return PyBool_FromLong(tensor_of(o).is_leaf()); });
}
PyObject* get_retains_grad(PyObject* o, void*) {
  return guarded([&] {
    const autograd::AutogradMeta* const meta = autograd::meta_of(*tensor_of(o).impl());
    return PyBool_FromLong(meta && meta->retains_grad);
  });
}
PyObject* get_output_nr(PyObject* o, void*) {
  return guarded([&] { return PyLong_FromUnsignedLong(tensor_of(o).output_nr()); });
}
PyObject* get_base(PyObject* o, void*) { return wrap(tensor_of(o)._base()); }
PyObject* get_is_inference(PyObject* o, PyObject*) {
  return PyBool_FromLong(tensor_of(o).impl()->is_inference());
}

PyObject* get_data(PyObject* o, void*) {
  return guarded([&] { return wrap(alias_of(tensor_of(o))); });
}
/// The tensor stays who it is, but shows the elements of another.
int set_data(PyObject* o, PyObject* value, void*) {
  return guarded([&] {
    if (!given(value) || !is_tensor(value)) wrong_type("data", "value", "a Tensor", value ? value : Py_None);
    TensorImpl& self = *tensor_of(o).impl();
    const TensorImpl& other = *tensor_of(value).impl();
    TENON_CHECK(
        self.device() == other.device() || !self.base(), Device,
        fmt::format("data: the new elements are on {}; those of a view must be on its base's device, {}",
                    to_string(other.device()), to_string(self.device())));
    const DType dtype = other.dtype();
    TENON_CHECK(!tensor_of(o).requires_grad() || is_floating_point(dtype) || is_complex(dtype), Runtime,
                fmt::format("data: the tensor requires grad, so its elements must be of floating point or "
                            "complex dtype, got {}",
                            name(dtype)));
    self.set_dtype(other.dtype());
    if (self.device() != other.device()) self.set_device(other.device());
    self.set_storage(other.storage());
    self.set_geometry(other.sizes(), other.strides(), other.offset());
    return 0;
  });
}

// Methods of tensors

PyObject* requires_grad_method(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&] {
    const auto [on] = spread("requires_grad_", {"requires_grad"}, 1, args, n, keywords);
    tensor_of(o).requires_grad_(flag("requires_grad_", "requires_grad", on, !on));
    return Py_NewRef(o);
  });
}

PyObject* detach_in_place(PyObject* o, PyObject*) {
  return guarded([&] {
    autograd::detach_(tensor_of(o));
    return Py_NewRef(o);
  });
}
PyObject* detach_function(PyObject*, PyObject* o) {
  return guarded([&] {
    if (!is_tensor(o)) wrong_type("detach_", "input", "a Tensor", o);
    return detach_in_place(o, nullptr);
  });
}

PyObject* retain_grad(PyObject* o, PyObject*) {
  return guarded([&] { tensor_of(o).retain_grad(); });
}

/// Zero or more tensors: None, one, or a sequence in which None is an undefined one.
std::vector<Tensor> tensors_from(const char* function, const char* argument, PyObject* o) {
  std::vector<Tensor> out;
  if (!given(o)) return out;
  if (is_tensor(o)) return {tensor_of(o)};
  const Ref sequence(PySequence_Fast(o, ""));
  if (!sequence) PyErr_Clear();
  if (!sequence || !parse_tensors(sequence.get(), true, out)) {
    wrong_type(function, argument, "a Tensor or a sequence of Tensors", o);
  }
  return out;
}

std::optional<bool> optional_flag(const char* function, const char* argument, PyObject* o) {
  if (!given(o)) return std::nullopt;
  return flag(function, argument, o);
}

void run_backward(std::vector<Tensor> outputs, PyObject* gradients, PyObject* retain_graph,
                  PyObject* create_graph, PyObject* inputs) {
  const std::vector<Tensor> grads = tensors_from("backward", "gradient", gradients);
  const std::vector<Tensor> wanted = tensors_from("backward", "inputs", inputs);
  TENON_CHECK(!given(inputs) || !wanted.empty(), Runtime,
              "`inputs` argument to `backward()` cannot be empty.");
  const std::optional<bool> retain = optional_flag("backward", "retain_graph", retain_graph);
  const bool create = flag("backward", "create_graph", create_graph);
  // Hooks take the lock back while they run.
  const ReleaseGil gil;
  autograd::backward(outputs, grads, retain, create, wanted);
}

PyObject* backward_method(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&] {
    static constexpr const char* kNames[] = {"gradient", "retain_graph", "create_graph", "inputs"};
    const auto [gradient, retain_graph, create_graph, inputs] =
        spread("backward", kNames, 4, args, n, keywords);
    run_backward({tensor_of(o)}, gradient, retain_graph, create_graph, inputs);
  });
}

// Functions

PyObject* backward_function(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&] {
    static constexpr const char* kNames[] = {"tensors", "grad_tensors", "retain_graph", "create_graph",
                                             "inputs"};
    const auto [tensors, grads, retain, create, inputs] = spread("backward", kNames, 5, args, n, keywords);
    TENON_CHECK(given(tensors), Type, "backward() misses argument 'tensors'");
    run_backward(tensors_from("backward", "tensors", tensors), grads, retain, create, inputs);
  });
}

PyObject* grad_function(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* keywords) {
  return guarded([&] {
    static constexpr const char* kNames[] = {"outputs",      "inputs",           "grad_outputs",
                                             "retain_graph", "create_graph",     "only_inputs",
                                             "allow_unused", "is_grads_batched", "materialize_grads"};
    const auto [outputs, inputs, grad_outputs, retain_graph, create_graph, only_inputs, allow_unused, batched,
                materialize] = spread("grad", kNames, 9, args, n, keywords);
    TENON_CHECK(!flag("grad", "is_grads_batched", batched), NotImplemented,
                "grad: is_grads_batched=True is not supported; call grad once for each row");
    TENON_CHECK(flag("grad", "only_inputs", only_inputs, true), NotImplemented,
                "grad: only_inputs=False is not supported; use backward to fill .grad");
    const bool create = flag("grad", "create_graph", create_graph),
               fill = flag("grad", "materialize_grads", materialize);
    const std::optional<bool> allowed = optional_flag("grad", "allow_unused", allow_unused);
    TENON_CHECK(!fill || allowed.value_or(true), Value,
                "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
                "allow_unused=False.");
    TENON_CHECK(given(outputs) && given(inputs), Type, "grad() takes outputs and inputs");
    const auto from = tensors_from("grad", "outputs", outputs);
    const auto wanted = tensors_from("grad", "inputs", inputs);
    const auto grads = tensors_from("grad", "grad_outputs", grad_outputs);
    const bool unused = allowed.value_or(fill);
    const auto retain = optional_flag("grad", "retain_graph", retain_graph);
    std::vector<Tensor> result;
    {
      const ReleaseGil gil;
      result = autograd::grad(from, wanted, grads, retain, create, unused);
      for (size_t i = 0; i < result.size(); ++i) {
        if (fill && !result[i].defined()) result[i] = zeros_like(wanted[i]);
      }
    }
    return tuple_of(result, [](Tensor& t) { return wrap(std::move(t)); }).release();
  });
}

/// Sets a mode of the thread and returns what it was.
PyObject* set_grad_enabled(PyObject*, PyObject* on) {
  return guarded([&] {
    return PyBool_FromLong(
        std::exchange(thread_state.grad_enabled, switch_of("set_grad_enabled", "mode", on)));
  });
}
PyObject* set_inference_mode(PyObject*, PyObject* on) {
  return guarded([&] {
    return PyBool_FromLong(std::exchange(thread_state.inference_mode, flag("inference_mode", "mode", on)));
  });
}

/// A tensor of a subclass over the elements of a plain one: Parameter's constructor.
PyObject* make_subclass(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return guarded([&] {
    TENON_CHECK(n == 3 && PyType_Check(args[0]) && is_tensor(args[1]), Type,
                "_make_subclass takes a class, a Tensor and requires_grad");
    auto* type = reinterpret_cast<PyTypeObject*>(args[0]);
    TENON_CHECK(PyType_IsSubtype(type, &tensor_type), Type,
                "_make_subclass: the class is no subclass of Tensor");
    Tensor alias = alias_of(tensor_of(args[1]));
    if (flag("Parameter", "requires_grad", args[2])) alias.requires_grad_();
    return wrap_as(type, std::move(alias));
  });
}

PyGetSetDef g_autograd_attributes[] = {
    {"grad", &get_grad, &set_grad, "What backward has accumulated, or None.", nullptr},
    {"grad_fn", &get_grad_fn, nullptr, "The node that made the tensor; None for a leaf.", nullptr},
    {"requires_grad", &get_requires_grad, &set_requires_grad, "Whether operators on it record history.",
     nullptr},
    {"is_leaf", &get_is_leaf, nullptr, "Whether it has no history of its own.", nullptr},
    {"retains_grad", &get_retains_grad, nullptr,
     "Whether it has history, and retain_grad() was called so that backward sets its grad.", nullptr},
    {"output_nr", &get_output_nr, nullptr, "Which result of its node it is.", nullptr},
    {"data", &get_data, &set_data, "The same elements outside autograd.", nullptr},
    {"_base", &get_base, nullptr, "The tensor that a view looks at, or None.", nullptr},
};
PyMethodDef g_autograd_methods[] = {
    fast_method("backward", &backward_method,
                "backward($self, gradient=None, retain_graph=None, create_graph=False, inputs=None)\n--\n\n"
                "Adds the derivatives of the tensor to the .grad of the leaves that it depends on; see "
                "tenon.autograd.backward."),
    fast_method("requires_grad_", &requires_grad_method,
                "requires_grad_($self, requires_grad=True)\n--\n\n"
                "Makes a leaf record history, or stop; returns self."),
    {"detach_", &detach_in_place, METH_NOARGS,
     "detach_($self)\n--\n\n"
     "Cuts the tensor from the graph; returns self."},
    {"retain_grad", &retain_grad, METH_NOARGS,
     "retain_grad($self)\n--\n\n"
     "Keeps the gradient of a tensor that is no leaf."},
    {"register_hook", &register_tensor_hook, METH_O,
     "register_hook($self, hook, /)\n--\n\n"
     "Calls a function with the gradient; its result, of the same shape, dtype and device, replaces it."},
    {"register_post_accumulate_grad_hook", &register_leaf_hook, METH_O,
     "register_post_accumulate_grad_hook($self, hook, /)\n--\n\n"
     "Calls a function with the leaf whenever its .grad has been added to."},
    {"is_inference", &get_is_inference, METH_NOARGS,
     "is_inference($self)\n--\n\n"
     "Whether it was made in inference mode."},
};
PyMethodDef g_autograd_functions[] = {
    fast_method(
        "_backward", &backward_function,
        "_backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None)\n--\n\n"
        "Adds the derivatives of `tensors` to the .grad of the leaves that they depend on, or of `inputs`. "
        "`grad_tensors` are what comes in, of the tensors' shapes; None for tensors of one element. The "
        "graph is "
        "freed unless `retain_graph`, which follows `create_graph`: that records the pass itself."),
    fast_method(
        "_grad", &grad_function,
        "_grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=None, "
        "materialize_grads=False)\n--\n\n"
        "A tuple of the derivatives of `outputs` by each of `inputs`; .grad stays as it is. Raises "
        "RuntimeError for "
        "an input that the outputs do not depend on, unless `allow_unused`, which gives None, or "
        "`materialize_grads`, which gives zeros."),
    {"_set_grad_enabled", &set_grad_enabled, METH_O, nullptr},
    {"_set_inference_mode", &set_inference_mode, METH_O, nullptr},
    {"is_grad_enabled", [](PyObject*, PyObject*) { return PyBool_FromLong(thread_state.grad_enabled); },
     METH_NOARGS,
     "is_grad_enabled()\n--\n\n"
     "Whether this thread records history."},
    {"is_inference_mode_enabled",
     [](PyObject*, PyObject*) { return PyBool_FromLong(thread_state.inference_mode); }, METH_NOARGS,
     "is_inference_mode_enabled()\n--\n\n"
     "Whether this thread is in inference mode."},
    fast_method("_make_subclass", &make_subclass),
    {"detach_", &detach_function, METH_O,
     "detach_(input, /)\n--\n\n"
     "See Tensor.detach_."},
    {}};

}  // namespace

TensorPart autograd_part() {
  tensor_type.tp_traverse = &traverse_tensor;
  tensor_type.tp_clear = &clear_tensor;
  return {g_autograd_methods, g_autograd_attributes};
}

bool add_autograd(PyObject* module) {
  autograd::set_thread_binding({&set_computing, &is_finalizing});
  return add_node_type(module) && add_hooks(module) && add_function_type(module) &&
         PyModule_AddFunctions(module, g_autograd_functions) == 0;
}

}  // namespace tenon::python
