// FunctionObject: `ctx`, the object that forward and backward of one call of a tenon.autograd.Function share.
// The call's node owns it, and `grad_fn` returns it. Used by node_object.cc and autograd.cc.
#pragma once

#include "python/src/interpreter/reference.h"
#include "tenon/autograd/node.h"

namespace tenon::python {

/// tenon._C._FunctionBase, a subclass of Node; each Function class has a subclass of it for its calls.
extern PyTypeObject function_type;

/// The node of a ctx. Throws Error{Runtime} while forward runs, and after the graph was freed.
Node& node_of_function(PyObject* ctx);
/// The ctx of a node that is a Function's, borrowed; null for others.
PyObject* function_of_node(const Node& node) noexcept;

/// Adds the type, and the function that Function.apply is.
bool add_function_type(PyObject* module);

}  // namespace tenon::python
