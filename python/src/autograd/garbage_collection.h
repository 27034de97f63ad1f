// Shows Python's garbage collector the references that run through C++: a tensor keeps nodes; nodes keep
// other nodes, hooks, and the ctx of functions; and those may keep the tensor. Used by the types whose
// objects keep nodes.
#pragma once

#include "python/src/interpreter/reference.h"
#include "python/src/tensor/tensor_object.h"
#include "tenon/autograd/node.h"

namespace tenon::python {

/// A node with a `ctx` of Python's, which the collector visits.
class ContextNode : public Node {
 public:
  /// Borrowed; null until the node's call has run.
  PyObject* context() const noexcept { return context_.get(); }

 protected:
  Ref context_;
};

/// tp_traverse of nodes: visits the Python objects in the part of the graph that only this reference keeps
/// alive, provided that nothing else refers to `node`. What C++ code holds elsewhere, possibly on a thread
/// without the interpreter lock, is therefore never taken for garbage. Some cycles are not found: those
/// through nodes that two Python objects keep, and very long ones.
int visit_graph(const IntrusivePtr<Node>& node, visitproc visit, void* arg) noexcept;
/// tp_clear of nodes: removes the hooks of that part of the graph.
void clear_graph(const IntrusivePtr<Node>& node) noexcept;

/// The same slots of the type Tensor, which also visit and clear an object's attributes.
int traverse_tensor(PyObject* o, visitproc visit, void* arg);
int clear_tensor(PyObject* o);

}  // namespace tenon::python
