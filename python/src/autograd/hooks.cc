#include "python/src/autograd/hooks.h"

#include <fmt/core.h>

#include "python/src/autograd/garbage_collection.h"
#include "python/src/call/spread.h"
#include "python/src/interpreter/sequences.h"
#include "python/src/tensor/tensor_object.h"
#include "tenon/autograd/anomaly.h"
#include "tenon/autograd/autograd.h"
#include "tenon/autograd/saved_hooks.h"

namespace tenon::python {

KeptObject::~KeptObject() {
  if_interpreter_lives([this] { Py_DECREF(object_); });
}

namespace {

using autograd::HookHandle;
using Kept = std::shared_ptr<KeptObject>;

struct HandleObject {
  PyObject_HEAD HookHandle value;
};
PyTypeObject g_handle_type = {PyVarObject_HEAD_INIT(nullptr, 0)};
HookHandle& handle_of(PyObject* o) noexcept { return reinterpret_cast<HandleObject*>(o)->value; }

PyObject* new_handle(HookHandle value) {
  PyObject* o = checked(g_handle_type.tp_alloc(&g_handle_type, 0));
  new (&handle_of(o)) HookHandle(std::move(value));
  return o;
}
PyObject* handle_remove(PyObject* o, PyObject*) {
  return guarded([&] { handle_of(o).remove(); });
}
PyObject* handle_exit(PyObject* o, PyObject*) { return handle_remove(o, nullptr); }
PyMethodDef g_handle_methods[] = {
    {"remove", &handle_remove, METH_NOARGS,
     "remove($self)\n--\n\n"
     "Takes the hook off again."},
    {"__enter__", [](PyObject* o, PyObject*) { return Py_NewRef(o); }, METH_NOARGS, nullptr},
    {"__exit__", &handle_exit, METH_VARARGS, nullptr},
    {}};
PyGetSetDef g_handle_attributes[] = {
    {"id", [](PyObject* o, void*) { return PyLong_FromUnsignedLongLong(handle_of(o).id()); }, nullptr,
     "A number of its own.", nullptr},
    {}};

void check_callable(const char* function, PyObject* hook) {
  if (!PyCallable_Check(hook)) wrong_type(function, "hook", "callable", hook);
}

std::string name_of(PyObject* function) {
  const Ref name(PyObject_GetAttrString(function, "__name__"));
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  if (!text) PyErr_Clear();
  return text ? text : Py_TYPE(function)->tp_name;
}

/// Gradients as hooks see them: a tuple with None for those that are missing.
Ref gradient_tuple(std::span<const Tensor> tensors) {
  return tuple_of(tensors, [](const Tensor& t) { return wrap(t); });
}

/// What a node's hook returned: None, a tensor for a single one, or a tuple.
void replace(std::vector<Tensor>& tensors, PyObject* hook, PyObject* result) {
  if (result == Py_None) return;
  PyObject* one[] = {result};
  PyObject** values = one;
  size_t count = 1;
  if (PyTuple_Check(result)) {
    values = &PyTuple_GET_ITEM(result, 0);
    count = static_cast<size_t>(PyTuple_GET_SIZE(result));
  }
  TENON_CHECK(count == tensors.size(), Runtime,
              fmt::format("hook '{}' has returned an incorrect number of values (got {}, but expected {})",
                          name_of(hook), count, tensors.size()));
  for (size_t i = 0; i < count; ++i) {
    TENON_CHECK(values[i] == Py_None || is_tensor(values[i]), Type,
                fmt::format("hook '{}' must return Tensors or None, not {}", name_of(hook),
                            Py_TYPE(values[i])->tp_name));
    tensors[i] = values[i] == Py_None ? Tensor() : tensor_of(values[i]);
  }
}

/// Runs `f`, whose Python exceptions travel on as C++ ones.
template <class F>
auto from_python(F&& f) {
  const HoldGil gil;
  try {
    return f();
  } catch (const PythonError&) {
    throw_python_error();
  }
}

/// A Python function as a hook.
struct PythonHook {
  PyObject* function() const noexcept { return kept->get(); }
  Kept kept;
};

struct PythonTensorHook : PythonHook {
  Tensor operator()(const Tensor& grad) const {
    return from_python([&]() -> Tensor {
      const Ref argument(checked(wrap(grad)));
      const Ref result(checked(PyObject_CallOneArg(function(), argument.get())));
      if (result.get() == Py_None) return {};
      TENON_CHECK(is_tensor(result.get()), Type,
                  fmt::format("hook '{}' must return a Tensor or None, not {}", name_of(function()),
                              Py_TYPE(result.get())->tp_name));
      return tensor_of(result.get());
    });
  }
};

struct PythonLeafHook : PythonHook {
  void operator()(const Tensor& leaf) const {
    from_python([&] {
      // Where Python has let go of the leaf, the hook gets another tensor of the same elements and gradient.
      Ref target = Ref::borrow(PyWeakref_GetObject(object->get()));
      if (!target || target.get() == Py_None) target = Ref(checked(wrap(Tensor(leaf))));
      const Ref result(checked(PyObject_CallOneArg(function(), target.get())));
      TENON_CHECK(result.get() == Py_None, Runtime,
                  fmt::format("Tensor post accumulate grad hooks should return None, '{}' returned {}",
                              name_of(function()), Py_TYPE(result.get())->tp_name));
    });
  }
  /// A weak reference to the leaf's object. The leaf owns the hook: a strong one would keep both.
  Kept object;
};

struct PythonPreHook : PythonHook {
  void operator()(std::vector<Tensor>& grads) const {
    from_python([&] {
      const Ref tuple = gradient_tuple(grads);
      const Ref result(checked(PyObject_CallOneArg(function(), tuple.get())));
      replace(grads, function(), result.get());
    });
  }
};

struct PythonPostHook : PythonHook {
  void operator()(std::vector<Tensor>& results, const std::vector<Tensor>& grads) const {
    from_python([&] {
      const Ref after = gradient_tuple(results), before = gradient_tuple(grads);
      const Ref result(checked(PyObject_CallFunctionObjArgs(function(), after.get(), before.get(), nullptr)));
      replace(results, function(), result.get());
    });
  }
};

PyObject* sole_function(const PythonHook* hook) noexcept {
  return hook && hook->kept.use_count() == 1 ? hook->function() : nullptr;
}

}  // namespace

PyObject* function_of(const autograd::TensorHook& hook) noexcept {
  return sole_function(hook.target<PythonTensorHook>());
}
PyObject* function_of(const autograd::NodePreHook& hook) noexcept {
  return sole_function(hook.target<PythonPreHook>());
}
PyObject* function_of(const autograd::NodePostHook& hook) noexcept {
  return sole_function(hook.target<PythonPostHook>());
}
PyObject* function_of(const std::function<void()>& leaf_hook) noexcept {
  const auto* leaf = leaf_hook.target<autograd::LeafCall>();
  return leaf ? sole_function(leaf->hook.target<PythonLeafHook>()) : nullptr;
}

PyObject* register_tensor_hook(PyObject* o, PyObject* function) {
  return guarded([&] {
    check_callable("register_hook", function);
    PyObject* handle = new_handle(autograd::register_hook(tensor_of(o), PythonTensorHook{{keep(function)}}));
    g_graph_has_python = true;
    track(o);
    return handle;
  });
}

PyObject* register_leaf_hook(PyObject* o, PyObject* function) {
  return guarded([&] {
    check_callable("register_post_accumulate_grad_hook", function);
    const Ref weak(checked(PyWeakref_NewRef(o, nullptr)));
    PyObject* handle = new_handle(autograd::register_post_accumulate_grad_hook(
        tensor_of(o), autograd::LeafHook(PythonLeafHook{{keep(function)}, keep(weak.get())})));
    g_graph_has_python = true;
    track(o);
    return handle;
  });
}

PyObject* register_prehook(Node& node, PyObject* function) {
  check_callable("register_prehook", function);
  g_graph_has_python = true;
  return new_handle(autograd::register_prehook(node, PythonPreHook{{keep(function)}}));
}

PyObject* register_posthook(Node& node, PyObject* function) {
  check_callable("register_hook", function);
  g_graph_has_python = true;
  return new_handle(autograd::register_posthook(node, PythonPostHook{{keep(function)}}));
}

namespace {

// Saved tensors

PyObject* push_saved_hooks(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return guarded([&] {
    TENON_CHECK(n == 2, Type, "saved_tensors_hooks takes pack_hook and unpack_hook");
    check_callable("saved_tensors_hooks", args[0]);
    check_callable("saved_tensors_hooks", args[1]);
    autograd::push_saved_tensor_hooks(
        {[pack = keep(args[0])](const Tensor& t) -> std::any {
           return from_python([&] {
             const Ref argument(checked(wrap(t)));
             const Ref packed(checked(PyObject_CallOneArg(pack->get(), argument.get())));
             return keep(packed.get());
           });
         },
         [unpack = keep(args[1])](const std::any& packed) {
           return from_python([&] {
             PyObject* value = std::any_cast<const Kept&>(packed)->get();
             const Ref result(checked(PyObject_CallOneArg(unpack->get(), value)));
             TENON_CHECK(
                 is_tensor(result.get()), Type,
                 fmt::format("Output of saved tensor unpack_hook expected to be a Tensor but got result "
                             "of type {}",
                             Py_TYPE(result.get())->tp_name));
             return tensor_of(result.get());
           });
         }});
  });
}

PyObject* pop_saved_hooks(PyObject*, PyObject*) {
  autograd::pop_saved_tensor_hooks();
  Py_RETURN_NONE;
}

PyObject* disable_saved_hooks(PyObject*, PyObject* message) {
  return guarded([&]() -> PyObject* {
    std::optional<std::string> text;
    if (message != Py_None) {
      const char* utf8 = PyUnicode_AsUTF8(message);
      if (!utf8) throw PythonError();
      text = utf8;
    }
    const auto previous = autograd::disable_saved_tensor_hooks(std::move(text));
    return previous ? to_python(*previous) : Py_NewRef(Py_None);
  });
}

// Anomaly mode

std::string current_stack() {
  const HoldGil gil;
  const Ref traceback(PyImport_ImportModule("traceback"));
  const Ref lines(traceback ? PyObject_CallMethod(traceback.get(), "format_stack", nullptr) : nullptr);
  const Ref empty(PyUnicode_FromString(""));
  const Ref text(lines && empty ? PyUnicode_Join(empty.get(), lines.get()) : nullptr);
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!utf8) PyErr_Clear();
  return utf8 ? utf8 : "";
}

void warn(const std::string& message) {
  const HoldGil gil;
  // A warning that is turned into an error must not hide the error that it is about.
  if (PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1) < 0) PyErr_WriteUnraisable(nullptr);
}

PyObject* set_anomaly(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return guarded([&] {
    TENON_CHECK(n == 2, Type, "_set_anomaly_enabled takes mode and check_nan");
    autograd::set_anomaly_enabled(switch_of("set_detect_anomaly", "mode", args[0]),
                                  flag("set_detect_anomaly", "check_nan", args[1]));
  });
}

PyMethodDef g_hooks_functions[] = {
    fast_method("_push_saved_tensor_hooks", &push_saved_hooks),
    {"_pop_saved_tensor_hooks", &pop_saved_hooks, METH_NOARGS, nullptr},
    {"_disable_saved_tensor_hooks", &disable_saved_hooks, METH_O, nullptr},
    fast_method("_set_anomaly_enabled", &set_anomaly),
    {"is_anomaly_enabled",
     [](PyObject*, PyObject*) { return PyBool_FromLong(autograd::is_anomaly_enabled()); }, METH_NOARGS,
     "is_anomaly_enabled()\n--\n\n"
     "Whether anomaly mode is on."},
    {"is_anomaly_check_nan_enabled",
     [](PyObject*, PyObject*) { return PyBool_FromLong(autograd::is_anomaly_check_nan_enabled()); },
     METH_NOARGS,
     "is_anomaly_check_nan_enabled()\n--\n\n"
     "Whether anomaly mode looks for NaN."},
    {}};

}  // namespace

bool add_hooks(PyObject* module) {
  autograd::set_anomaly_binding({&current_stack, &warn});
  PyTypeObject& t = g_handle_type;
  t.tp_name = "tenon.utils.RemovableHandle";
  t.tp_basicsize = sizeof(HandleObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_methods = g_handle_methods;
  t.tp_getset = g_handle_attributes;
  t.tp_dealloc = &destroy_value<handle_of>;
  return add_type(module, "RemovableHandle", t) && PyModule_AddFunctions(module, g_hooks_functions) == 0;
}

}  // namespace tenon::python
