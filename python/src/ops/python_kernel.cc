#include "python/src/ops/python_kernel.h"

#include "python/src/ops/key_set_object.h"

namespace tenon::python {
namespace {

/// The common case, without strings and loops over results: one new tensor on the kernel's backend.
bool is_new_tensor(OpCall& call, DispatchKey key, PyObject* o) noexcept {
  if (!call.schema.returns_new_tensor || !is_tensor(o)) return false;
  const Tensor& result = tensor_of(o);
  if (!is_alias_key(key) && result.device().backend != key.backend) return false;
  const Storage& storage = result.impl()->storage();
  for (size_t i = 0; i < call.schema.arguments.size(); ++i) {
    if (call.schema.arguments[i].base != schema::BaseType::Tensor) continue;
    PyObject* argument = call.slots()[i];
    if (is_tensor(argument) ? tensor_of(argument).impl()->storage() == storage : argument != Py_None)
      return false;
  }
  return true;
}

/// Runs `make_results(call)` on the arguments at the top of the stack, and replaces them by its results.
template <class F>
void enter(const OpSchema& schema, const OperatorHandle& op, Stack& stack, F&& make_results) {
  Ref result;
  {
    OpCall call(schema, op.entry());
    call.bind(stack);
    result = make_results(call);
  }
  const size_t first = stack.size() - schema.arguments.size();
  push_results(stack, schema, result.get());
  stack.erase(first, schema.arguments.size());
}

}  // namespace

PythonKernel::~PythonKernel() {
  if_interpreter_lives([this] { Py_DECREF(function); });
}

Ref PythonKernel::run(OpCall& call, DispatchKeySet keys) {
  // The function may remove this kernel: nothing of it is read after the call.
  const Ref f = Ref::borrow(function);
  const DispatchKey own_key = key;
  const SourceLocation own_place = where;
  Ref result;
  if (with_keys) {
    const Ref set(checked(wrap(keys)));
    result = Ref(call.call(f.get(), set.get()));
  } else {
    result = Ref(call.call(f.get()));
  }
  if (!result) throw PythonError();
  if (is_new_tensor(call, own_key, result.get())) [[likely]]
    return result;
  return accept_results(call.schema, call.slots(), {own_key, own_place}, std::move(result));
}

void enter_python_kernel(const Kernel& kernel, const OperatorHandle& op, DispatchKeySet keys, Stack& stack) {
  auto& self = *static_cast<PythonKernel*>(const_cast<void*>(kernel.data));
  const HoldGil gil;
  try {
    const OpSchema& schema = OpSchema::of(op.schema());
    self.schema = &schema;
    enter(schema, op, stack, [&](OpCall& call) { return self.run(call, keys); });
  } catch (const PythonError&) {
    throw_python_error();
  }
}

PythonFallback::~PythonFallback() {
  if_interpreter_lives([this] { Py_DECREF(function); });
}

void enter_python_fallback(const Kernel& kernel, const OperatorHandle& op, DispatchKeySet keys,
                           Stack& stack) {
  const auto& self = *static_cast<const PythonFallback*>(kernel.data);
  const HoldGil gil;
  try {
    const Ref f = Ref::borrow(self.function);
    const KernelPlace place{self.key, self.where};
    const Ref set(checked(wrap(keys)));
    const Ref what(checked(Py_BuildValue("(Os)", set.get(), op.full_name().c_str())));
    enter(OpSchema::of(op.schema()), op, stack, [&](OpCall& call) {
      Ref result(call.call(f.get(), what.get()));
      if (!result) throw PythonError();
      return accept_results(call.schema, call.slots(), place, std::move(result));
    });
  } catch (const PythonError&) {
    throw_python_error();
  }
}

}  // namespace tenon::python
