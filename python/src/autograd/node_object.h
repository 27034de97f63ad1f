// NodeObject: the Python object of a node of the backward graph, such as `x.grad_fn`. Used by autograd.cc.
#pragma once

#include "python/src/interpreter/reference.h"
#include "tenon/autograd/node.h"

namespace tenon::python {

/// The base class of the classes of all nodes: tenon.autograd.Node.
extern PyTypeObject node_type;

/// The object of a node, whose class has the node's name; None for null. While the object lives, the same
/// node gives the same object. A new reference, or null with an exception set.
PyObject* wrap(const IntrusivePtr<Node>& node) noexcept;

bool add_node_type(PyObject* module);

}  // namespace tenon::python
