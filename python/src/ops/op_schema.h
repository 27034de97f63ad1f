// OpSchema: an operator's schema as Python calls it: interned names, ready-made defaults, a check for each
// argument and each result. Used by operator objects (op_overload.cc) and by kernels written in Python. Knows
// nothing of kernels and keys.
#pragma once

#include <vector>

#include "python/src/interpreter/errors.h"
#include "python/src/tensor/tensor_object.h"
#include "tenon/dispatch/dispatcher.h"
#include "tenon/schema/schema.h"

namespace tenon::python {

/// How many arguments an operator that Python defines may have.
inline constexpr size_t kMaxOpArguments = 64;

struct OpArgument {
  const schema::Argument* declared = nullptr;
  PyObject* name = nullptr;      ///< Interned.
  PyObject* fallback = nullptr;  ///< What a call that leaves it out passes; null where it must be given.
  schema::BaseType base = schema::BaseType::Tensor;
  bool list = false;
  bool optional = false;
  bool writes = false;
};

struct OpSchema {
  const schema::FunctionSchema* source = nullptr;
  std::vector<OpArgument> arguments;
  size_t num_positional = 0;
  PyObject* keywords = nullptr;  ///< Names of the keyword-only arguments, a tuple; null when there are none.
  bool takes_device = false;
  /// Returns one tensor that is no argument: what most operators do.
  bool returns_new_tensor = false;
  /// Numbers stand for tensors, as PyTorch has it for its own operators.
  bool numbers_as_tensors = false;

  /// The one of a schema, made when first asked for; both live as long as the process. The interpreter lock
  /// is held. Throws Error{NotImplemented} for types that Python cannot pass.
  static const OpSchema& of(const schema::FunctionSchema& source);

  std::string name() const { return source->full_name(); }
};

/// Whether `o` fits an argument just as it is; adds the keys that it brings. Says no also where `accept` says
/// yes.
inline bool fits_exactly(const OpArgument& a, PyObject* o, DispatchKeySet& keys) noexcept {
  if (a.list) return false;
  switch (a.base) {
    case schema::BaseType::Tensor:
      if (is_tensor(o)) [[likely]] {
        keys |= tensor_of(o).key_set();
        return true;
      }
      break;
    case schema::BaseType::Float:
      if (PyFloat_CheckExact(o)) return true;
      break;
    case schema::BaseType::Bool:
      if (PyBool_Check(o)) return true;
      break;
    case schema::BaseType::Str:
      if (PyUnicode_CheckExact(o)) return true;
      break;
    default:
      break;
  }
  return a.optional && o == Py_None;
}

/// Whether `o` fits an argument. Where a kernel must see another object (a float for an int, a list for a
/// tuple), `made` holds that. Adds the keys that it brings. Throws PythonError and Error{Value}.
bool accept(const OpSchema& schema, const OpArgument& a, PyObject* o, Ref& made, DispatchKeySet& keys);

/// Puts an accepted value on a stack.
void push_argument(Stack& stack, const OpArgument& a, PyObject* o);
/// A value of a stack as Python sees it. A new reference.
Ref value_at(Stack& stack, size_t i);

/// Where a kernel is, for messages.
struct KernelPlace {
  DispatchKey key;
  SourceLocation where;
};
/// What a kernel returned as the call's result: checked against the schema, a number made one of the declared
/// type, several results a tuple. `arguments` are the call's, in schema order. Throws Error{Type} and others
/// naming the operator, the kernel, the position, what was expected and what came.
Ref accept_results(const OpSchema& schema, PyObject* const* arguments, const KernelPlace& place, Ref result);
/// Puts accepted results on a stack.
void push_results(Stack& stack, const OpSchema& schema, PyObject* result);
/// The results at the top of a stack, `first` being the place of the first, as a call returns them.
Ref results_from(Stack& stack, size_t first, const OpSchema& schema);

}  // namespace tenon::python
