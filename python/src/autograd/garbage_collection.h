// What Python's collector of cycles is told of the C++ objects that lie between Python objects: a tensor
// keeps nodes, nodes keep nodes, hooks and the ctx of functions, and those may keep the tensor. Used by the
// types whose objects keep nodes.
#pragma once

#include "python/src/interpreter/reference.h"
#include "tenon/autograd/node.h"
#include "tenon/core/tensor.h"

namespace tenon::python {

/// Whether Python objects have come into the graph: from then on the objects of tensors with a history are
/// shown to the collector. Guarded by the interpreter lock.
extern bool g_graph_has_python;
/// Has the collector look at a tensor's object, which may be part of a cycle.
void track(PyObject* tensor) noexcept;

/// For tp_traverse: visits the Python objects in the part of the graph that nothing but `tensor`, which
/// nobody shares, keeps alive. What C++ holds from elsewhere, also on a thread without the interpreter lock,
/// is thus never taken for garbage. Not every cycle is found: not one through nodes that two Python objects
/// keep, nor a very long one.
int visit_graph(const Tensor& tensor, visitproc visit, void* arg) noexcept;
int visit_graph(const IntrusivePtr<Node>& node, visitproc visit, void* arg) noexcept;

/// For tp_clear: takes the hooks off that part of the graph.
void clear_graph(const Tensor& tensor) noexcept;
void clear_graph(const IntrusivePtr<Node>& node) noexcept;

}  // namespace tenon::python
