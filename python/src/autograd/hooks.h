// Python functions as hooks: on gradients, on nodes, on leaves, on saved tensors.
// Used by autograd.cc and node_object.cc.
#pragma once

#include <memory>

#include "python/src/interpreter/errors.h"
#include "tenon/autograd/hooks.h"
#include "tenon/autograd/node.h"

namespace tenon::python {

/// A Python object that C++ code keeps, and may release on any thread.
class KeptObject {
 public:
  explicit KeptObject(PyObject* o) noexcept : object_(Py_NewRef(o)) {}
  KeptObject(const KeptObject&) = delete;
  ~KeptObject();
  PyObject* get() const noexcept { return object_; }

 private:
  PyObject* object_;
};
inline std::shared_ptr<KeptObject> keep(PyObject* o) { return std::make_shared<KeptObject>(o); }

/// The Python function of a hook, borrowed; null if the hook is not a Python function or is running.
PyObject* function_of(const autograd::TensorHook& hook) noexcept;
PyObject* function_of(const autograd::NodePreHook& hook) noexcept;
PyObject* function_of(const autograd::NodePostHook& hook) noexcept;
PyObject* function_of(const std::function<void()>& leaf_hook) noexcept;

// Methods of tensors.
PyObject* register_tensor_hook(PyObject* tensor, PyObject* function);
PyObject* register_leaf_hook(PyObject* tensor, PyObject* function);

// Methods of nodes. New references to handles; throw.
PyObject* register_prehook(Node& node, PyObject* function);
PyObject* register_posthook(Node& node, PyObject* function);

/// Adds RemovableHandle, and the functions of tenon.autograd.graph and anomaly mode.
bool add_hooks(PyObject* module);

}  // namespace tenon::python
