// PythonAutograd: a derivative that was registered in Python, as the operator's Autograd kernel. Used by
// registration (library_object.cc) and by calls that meet one in an operator's table.
#pragma once

#include <memory>
#include <string>

#include "python/src/ops/op_call.h"
#include "tenon/dispatch/dispatcher.h"

namespace tenon::python {

/// Registered as a closure, as PythonKernel is. The nodes that it makes keep it alive.
struct PythonAutograd final : tenon::detail::ClosureBase, std::enable_shared_from_this<PythonAutograd> {
  /// If `backward` is null, results of arguments that require grad require grad too, and their backward pass
  /// throws that there is no formula. `setup_context` may be null.
  PythonAutograd(PyObject* backward, PyObject* setup_context, SourceLocation where, std::string node_name)
      : backward(Py_XNewRef(backward)),
        setup_context(Py_XNewRef(setup_context)),
        where(where),
        node_name(std::move(node_name)) {}
  ~PythonAutograd() override;

  /// Whether `run` can make this call; calls of an operator without a formula are boxed once they must be
  /// recorded.
  bool can_run(OpCall& call) const { return backward || !records(call); }
  /// Continues the call below Autograd and makes its results part of the graph.
  Ref run(OpCall& call, DispatchKeySet keys);

  PyObject* backward;
  PyObject* setup_context;
  SourceLocation where;
  std::string node_name;

 private:
  static bool records(OpCall& call);
};

void enter_python_autograd(const Kernel& kernel, const OperatorHandle& op, DispatchKeySet keys, Stack& stack);

/// Adds the type of ctx to the module.
bool add_op_context(PyObject* module);

}  // namespace tenon::python
