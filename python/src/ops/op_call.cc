#include "python/src/ops/op_call.h"

#include <bit>

#include "python/src/call/parser.h"
#include "python/src/ops/python_autograd.h"
#include "python/src/ops/python_kernel.h"
#include "tenon/dispatch/closure.h"

namespace tenon::python {
namespace {

/// The argument that a keyword names; -1 when there is none.
int find_argument(const OpSchema& schema, PyObject* keyword) noexcept {
  const size_t n = schema.arguments.size();
  for (size_t i = 0; i < n; ++i) {
    if (schema.arguments[i].name == keyword) return static_cast<int>(i);
  }
  for (size_t i = 0; i < n; ++i) {
    if (PyUnicode_Compare(schema.arguments[i].name, keyword) == 0) return static_cast<int>(i);
  }
  return -1;
}

/// What the call's tensors hold, for the decision whether other threads may run meanwhile.
int64_t elements(OpCall& call) noexcept {
  int64_t n = 0;
  for (size_t i = 0; i < call.schema.arguments.size(); ++i) {
    if (is_tensor(call.slots()[i])) n += tensor_of(call.slots()[i]).numel();
  }
  return n;
}

using Writes = tenon::detail::Writes<tenon::detail::kAnyNumber>;

void add_writes(Writes& writes, OpCall& call) {
  for (uint64_t m = call.entry.written.load(std::memory_order_relaxed); m; m &= m - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(m));
    if (i >= call.schema.arguments.size()) return;
    PyObject* o = call.slots()[i];
    if (is_tensor(o)) writes.add(tensor_of(o), i);
    for (Py_ssize_t j = 0; PyList_Check(o) && j < PyList_GET_SIZE(o); ++j) {
      if (is_tensor(PyList_GET_ITEM(o, j))) writes.add(tensor_of(PyList_GET_ITEM(o, j)), i);
    }
  }
}

/// Calls the kernel for `keys` where it is written in Python and the table is computed; says whether it did.
/// While the trace is on there is no such table, so that traced calls are boxed.
bool call_python(OpCall& call, DispatchKeySet keys, Ref& result) {
  const Kernel& kernel = tenon::detail::column_of(call.entry, keys).lookup(keys);
  if (auto* slot = tenon::detail::slot_of(kernel, &enter_python_kernel)) {
    auto* python = static_cast<PythonKernel*>(slot->closure.get());
    if (!python || python->schema != &call.schema) return false;
    result = python->run(call, keys);
    return true;
  }
  if (auto* slot = tenon::detail::slot_of(kernel, &enter_python_autograd)) {
    const auto python = std::static_pointer_cast<PythonAutograd>(slot->closure);
    if (!python || !python->can_run(call)) return false;
    result = python->run(call, keys);
    return true;
  }
  return false;
}

template <class F>
Ref boxed(OpCall& call, F&& make_call) {
  Stack stack;
  call.push(stack);
  without_gil(elements(call) >= kReleaseGilElements, [&] { make_call(OperatorHandle(call.entry), stack); });
  return results_from(stack, 0, call.schema);
}

}  // namespace

bool OpCall::bind(PyObject* const* args, Py_ssize_t count, PyObject* keywords, int& misfit) {
  misfit = -1;
  const size_t n = schema.arguments.size();
  if (static_cast<size_t>(count) > schema.num_positional) return false;
  PyObject** const slot = slots();
  for (Py_ssize_t i = 0; i < count; ++i) slot[i] = args[i];
  for (size_t i = static_cast<size_t>(count); i < n; ++i) slot[i] = nullptr;
  if (keywords) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(keywords); ++k) {
      const int i = find_argument(schema, PyTuple_GET_ITEM(keywords, k));
      if (i < 0 || slot[i]) return false;
      slot[i] = args[count + k];
    }
  }
  if (schema.takes_device) keys = DispatchKeySet(Functionality::BackendSelect);
  for (size_t i = 0; i < n; ++i) {
    const OpArgument& a = schema.arguments[i];
    if (!slot[i]) {
      if (!a.fallback) return false;
      slot[i] = a.fallback;
      // Kernels may change a list that they are given.
      if (a.list && a.fallback != Py_None) own(i, Ref(checked(PySequence_List(a.fallback))));
      continue;
    }
    if (fits_exactly(a, slot[i], keys)) [[likely]]
      continue;
    Ref made;
    if (!accept(schema, a, slot[i], made, keys)) {
      misfit = static_cast<int>(i);
      return false;
    }
    if (made) own(i, std::move(made));
  }
  return true;
}

void OpCall::bind(Stack& stack) {
  const size_t n = schema.arguments.size();
  const size_t first = stack.size() - n;
  for (size_t i = 0; i < n; ++i) own(i, value_at(stack, first + i));
}

void OpCall::push(Stack& stack) {
  for (size_t i = 0; i < schema.arguments.size(); ++i) push_argument(stack, schema.arguments[i], slots()[i]);
}

PyObject* OpCall::call(PyObject* function, PyObject* extra) {
  PyObject** first = slots();
  size_t count = schema.num_positional;
  if (extra) {
    *--first = extra;
    ++count;
  }
  return PyObject_Vectorcall(function, first, count | PY_VECTORCALL_ARGUMENTS_OFFSET, schema.keywords);
}

Ref call(OpCall& call) {
  const DispatchKeySet keys = tenon::detail::with_thread_keys(call.keys);
  Ref result;
  {
    Writes writes(call.entry);
    add_writes(writes, call);
    if (call_python(call, keys, result)) [[likely]] {
      writes.bump();
      return result;
    }
  }
  return boxed(call, [](OperatorHandle op, Stack& stack) { op.call_boxed(stack); });
}

Ref redispatch(OpCall& call, DispatchKeySet keys) {
  Ref result;
  if (call_python(call, keys, result)) return result;
  return boxed(call, [&](OperatorHandle op, Stack& stack) { op.redispatch_boxed(keys, stack); });
}

}  // namespace tenon::python
