// OpCall: one call of an operator with Python objects as arguments, which are passed to a kernel written in
// Python without boxing. Used by operator objects, and by kernels that continue a call below their key.
#pragma once

#include "python/src/call/op_schema.h"
#include "tenon/dispatch/operator.h"

namespace tenon::python {

/// The checked arguments of one call, in schema order. The interpreter lock is held during its lifetime.
class OpCall {
 public:
  OpCall(const OpSchema& schema, OperatorEntry& entry) noexcept : schema(schema), entry(entry) {}
  OpCall(const OpCall&) = delete;
  ~OpCall() {
    for (; owned_; owned_ &= owned_ - 1) Py_DECREF(slots()[std::countr_zero(owned_)]);
  }

  const OpSchema& schema;
  OperatorEntry& entry;
  /// The keys of the arguments.
  DispatchKeySet keys;

  PyObject** slots() noexcept { return storage_ + kReserved; }
  /// Sets an argument and takes ownership of its object.
  void own(size_t i, Ref value) noexcept {
    slots()[i] = value.release();
    owned_ |= uint64_t{1} << i;
  }

  /// Binds the arguments that a caller passed. False if names, counts or types do not fit; `misfit` is then
  /// the index of the wrong argument, or -1. Throws PythonError and Error{Value} from conversions.
  bool bind(PyObject* const* args, Py_ssize_t count, PyObject* keywords, int& misfit);
  /// Binds the arguments at the top of a stack, which stay there.
  void bind(Stack& stack);
  void push(Stack& stack);

  /// Calls a Python function on the arguments, `extra` (or null) before them.
  PyObject* call(PyObject* function, PyObject* extra = nullptr);

 private:
  /// Python's calling convention may use one slot before the arguments, and `extra` needs another.
  static constexpr size_t kReserved = 2;
  PyObject* storage_[kMaxOpArguments + kReserved];
  uint64_t owned_ = 0;
};

/// Makes the whole call, from adding the thread's keys to counting the versions of written arguments.
Ref call(OpCall& call);
/// Continues a call at the highest of `keys`.
Ref redispatch(OpCall& call, DispatchKeySet keys);

}  // namespace tenon::python
