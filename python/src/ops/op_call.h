// OpCall: one call of an operator with Python's own objects as arguments, which go to a kernel written in
// Python without being boxed. Used by operator objects, and by kernels that continue a call below their key.
#pragma once

#include "python/src/ops/op_schema.h"
#include "tenon/dispatch/operator.h"

namespace tenon::python {

/// The arguments of one call, in schema order and accepted. The interpreter lock is held while it lives.
class OpCall {
 public:
  OpCall(const OpSchema& schema, OperatorEntry& entry) noexcept : schema(schema), entry(entry) {}
  OpCall(const OpCall&) = delete;
  ~OpCall() {
    for (; owned_; owned_ &= owned_ - 1) Py_DECREF(slots()[std::countr_zero(owned_)]);
  }

  const OpSchema& schema;
  OperatorEntry& entry;
  /// What the arguments bring.
  DispatchKeySet keys;

  PyObject** slots() noexcept { return storage_ + kReserved; }
  /// Takes the argument's object over.
  void own(size_t i, Ref value) noexcept {
    slots()[i] = value.release();
    owned_ |= uint64_t{1} << i;
  }

  /// Takes what a caller passed. False where names, counts or types do not fit; `misfit` then is the argument
  /// at fault, or -1. Throws PythonError and Error{Value} from conversions.
  bool bind(PyObject* const* args, Py_ssize_t count, PyObject* keywords, int& misfit);
  /// Takes the arguments at the top of a stack, which stay there.
  void bind(Stack& stack);
  void push(Stack& stack);

  /// Calls a Python function on the arguments, `extra` (or null) before them.
  PyObject* call(PyObject* function, PyObject* extra = nullptr);

 private:
  /// Python's calling convention may use the place before the arguments; the one after it is for `extra`.
  static constexpr size_t kReserved = 2;
  PyObject* storage_[kMaxOpArguments + kReserved];
  uint64_t owned_ = 0;
};

/// Makes a call: the whole of it, from the thread's keys to the versions of written arguments.
Ref call(OpCall& call);
/// Continues it at the highest of `keys`.
Ref redispatch(OpCall& call, DispatchKeySet keys);

}  // namespace tenon::python
