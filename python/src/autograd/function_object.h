// FunctionObject: `ctx`, what forward and backward of one call of a tenon.autograd.Function share; the call's
// node owns it, and it is what `grad_fn` shows of that node. Used by node_object.cc and autograd.cc.
#pragma once

#include "python/src/interpreter/reference.h"
#include "tenon/autograd/node.h"

namespace tenon::python {

/// tenon._C._FunctionBase, a subclass of Node; each Function class has a subclass of it for its calls.
extern PyTypeObject function_type;

/// The node of a ctx. Throws Error{Runtime} while forward runs, and once the graph is gone.
Node& node_of_function(PyObject* ctx);
/// The ctx of a node that is a Function's, borrowed; null for others.
PyObject* function_of_node(const Node& node) noexcept;

/// Adds the type, and the function that Function.apply is.
bool add_function_type(PyObject* module);

}  // namespace tenon::python
