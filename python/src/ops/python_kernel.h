// PythonKernel and PythonFallback: a Python function as a kernel, of one operator or of all. Used by
// registration (library_object.cc) and by calls that meet a kernel in an operator's table.
#pragma once

#include "python/src/ops/op_call.h"
#include "tenon/dispatch/dispatcher.h"

namespace tenon::python {

/// Registered as a closure. The interpreter lock is held when it is removed, so that calls, which hold it
/// too, need no lock of their own.
struct PythonKernel final : tenon::detail::ClosureBase {
  PythonKernel(PyObject* f, DispatchKey key, SourceLocation where, bool with_keys)
      : function(Py_NewRef(f)), key(key), where(where), with_keys(with_keys) {}
  ~PythonKernel() override;

  /// Runs the function and checks what it returns.
  Ref run(OpCall& call, DispatchKeySet keys);

  PyObject* function;
  DispatchKey key;
  SourceLocation where;
  bool with_keys;  ///< The function takes the call's key set first.
  /// The schema that its last call was checked against; null before the operator is declared.
  const OpSchema* schema = nullptr;
};

/// The kernel of a key for operators that have none: `function((key set, name), *args, **kwargs)`.
struct PythonFallback final : tenon::detail::ClosureBase {
  PythonFallback(PyObject* f, DispatchKey key, SourceLocation where)
      : function(Py_NewRef(f)), key(key), where(where) {}
  ~PythonFallback() override;

  PyObject* function;
  DispatchKey key;
  SourceLocation where;
};

void enter_python_fallback(const Kernel& kernel, const OperatorHandle& op, DispatchKeySet keys, Stack& stack);

/// The boxed entry of a PythonKernel, which also distinguishes it from other closures.
void enter_python_kernel(const Kernel& kernel, const OperatorHandle& op, DispatchKeySet keys, Stack& stack);

}  // namespace tenon::python
