// Shows Python's garbage collector the references that run through C++: a tensor keeps nodes; nodes keep
// other nodes, hooks, and the ctx of functions; and those may keep the tensor. Used by the types whose
// objects keep nodes.
#pragma once

#include "python/src/interpreter/reference.h"
#include "tenon/autograd/node.h"
#include "tenon/core/tensor.h"

namespace tenon::python {

/// Whether the graph has ever referred to a Python object; from then on, the collector tracks the objects of
/// tensors with a history. Guarded by the interpreter lock.
extern bool g_graph_has_python;
/// Has the collector track a tensor's object, which may be part of a cycle.
void track(PyObject* tensor) noexcept;

/// For tp_traverse: visits the Python objects in the part of the graph that only `tensor` keeps alive,
/// provided that nothing else refers to `tensor`. What C++ code holds elsewhere, possibly on a thread without
/// the interpreter lock, is therefore never taken for garbage. Some cycles are not found: those through nodes
/// that two Python objects keep, and very long ones.
int visit_graph(const Tensor& tensor, visitproc visit, void* arg) noexcept;
int visit_graph(const IntrusivePtr<Node>& node, visitproc visit, void* arg) noexcept;

/// For tp_clear: removes the hooks of that part of the graph.
void clear_graph(const Tensor& tensor) noexcept;
void clear_graph(const IntrusivePtr<Node>& node) noexcept;

}  // namespace tenon::python
