// NodeObject: what Python sees of a node of the backward graph: `x.grad_fn`.
// Used by autograd.cc.
#pragma once

#include "python/src/interpreter/reference.h"
#include "tenon/autograd/node.h"

namespace tenon::python {

/// What the classes of all nodes derive from: tenon.autograd.Node.
extern PyTypeObject node_type;

/// The object of a node, whose class has the node's name; None for no node. The same object for the same node
/// while anybody holds it. A new reference, or null with an exception set.
PyObject* wrap(const IntrusivePtr<Node>& node) noexcept;

bool add_node_type(PyObject* module);

}  // namespace tenon::python
