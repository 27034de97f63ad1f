#include "python/src/ops/python_autograd.h"

#include "python/src/ops/python_node.h"
#include "tenon/autograd/autograd.h"
#include "tenon/autograd/fallback.h"

namespace tenon::python {

PythonAutograd::~PythonAutograd() {
  if_interpreter_lives([this] {
    Py_XDECREF(backward);
    Py_XDECREF(setup_context);
  });
}

bool PythonAutograd::records(OpCall& call) {
  if (!thread_state.grad_enabled) return false;
  for (size_t i = 0; i < call.schema.arguments.size(); ++i) {
    if (call.schema.arguments[i].base != schema::BaseType::Tensor) continue;
    PyObject* o = call.slots()[i];
    if (is_tensor(o)) {
      if (tensor_of(o).requires_grad()) return true;
    } else if (PyList_Check(o)) {
      for (Py_ssize_t j = 0; j < PyList_GET_SIZE(o); ++j) {
        PyObject* item = PyList_GET_ITEM(o, j);
        if (is_tensor(item) && tensor_of(item).requires_grad()) return true;
      }
    }
  }
  return false;
}

Ref PythonAutograd::run(OpCall& call, DispatchKeySet keys) {
  const DispatchKeySet rest = keys.below(Functionality::Autograd);
  if (!records(call)) {
    // Operators that the kernel calls on the same tensors are its own business.
    const ExcludeDispatchKeyGuard below(kAutogradKeys);
    return redispatch(call, rest);
  }
  const auto node = IntrusivePtr<PythonNode>::adopt(new PythonNode(shared_from_this(), call.schema));
  node->begin(call);
  Ref result;
  {
    const ExcludeDispatchKeyGuard below(kAutogradKeys);
    result = redispatch(call, rest);
  }
  node->finish(call, result.get());
  return result;
}

void enter_python_autograd(const Kernel& kernel, const OperatorHandle& op, DispatchKeySet keys,
                           Stack& stack) {
  auto& self = *static_cast<PythonAutograd*>(const_cast<void*>(kernel.data));
  const HoldGil gil;
  try {
    const OpSchema& schema = OpSchema::of(op.schema());
    Ref result;
    {
      OpCall call(schema, op.entry());
      call.bind(stack);
      if (self.can_run(call)) result = self.run(call, keys);
    }
    if (!result) {
      static const CppFunction no_formula = autograd::missing_derivative_fallback();
      return no_formula.kernel().boxed(no_formula.kernel(), op, keys, stack);
    }
    const size_t first = stack.size() - schema.arguments.size();
    push_results(stack, schema, result.get());
    stack.erase(first, schema.arguments.size());
  } catch (const PythonError&) {
    throw_python_error();
  }
}

}  // namespace tenon::python
