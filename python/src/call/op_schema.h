// OpSchema: an operator's schema as Python calls it: interned names, ready-made defaults, a check for each
// argument and each result. Used by operator objects (op_overload.cc) and by kernels written in Python.
// Independent of kernels and keys.
#pragma once

#include <vector>

#include "python/src/interpreter/errors.h"
#include "python/src/tensor/tensor_object.h"
#include "tenon/dispatch/dispatcher.h"
#include "tenon/schema/schema.h"

namespace tenon::python {

/// The most arguments that an operator defined in Python may have.
inline constexpr size_t kMaxOpArguments = 64;

struct OpArgument {
  const schema::Argument* declared = nullptr;
  PyObject* name = nullptr;      ///< Interned.
  PyObject* fallback = nullptr;  ///< What a call that leaves it out passes; null where it must be given.
  schema::BaseType base = schema::BaseType::Tensor;
  bool list = false;
  bool optional = false;
  bool writes = false;
  /// A short list of numbers that a call was given. The next call gets it again, if no one has kept or
  /// changed it and its numbers are the same objects.
  mutable PyObject* recent = nullptr;
};

struct OpSchema {
  const schema::FunctionSchema* source = nullptr;
  std::vector<OpArgument> arguments;
  size_t num_positional = 0;
  PyObject* keywords = nullptr;  ///< Names of the keyword-only arguments, a tuple; null when there are none.
  bool takes_device = false;
  /// Whether it returns one new tensor, as most operators do.
  bool returns_new_tensor = false;
  /// Whether numbers may be passed for tensors, as PyTorch allows for some of its own.
  bool numbers_as_tensors = false;

  /// The OpSchema of a schema, made at the first call; both live as long as the process. The caller holds the
  /// interpreter lock. Throws Error{NotImplemented} for types that Python cannot pass.
  static const OpSchema& of(const schema::FunctionSchema& source);

  std::string name() const { return source->full_name(); }
};

/// Whether `o` fits an argument without conversion; if so, adds its keys. A quick test, which may be false
/// where `accept` is true.
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

/// Whether `o` fits an argument. If a kernel must see another object (a float for an int, a list for a
/// tuple), `made` is set to it. Adds the argument's keys. Throws PythonError and Error{Value}.
bool accept(const OpSchema& schema, const OpArgument& a, PyObject* o, Ref& made, DispatchKeySet& keys);

/// Puts an accepted value on a stack.
void push_argument(Stack& stack, const OpArgument& a, PyObject* o);
/// A value of a stack as a Python object. A new reference.
Ref value_at(Stack& stack, size_t i);

/// A kernel's key and location, for messages.
struct KernelPlace {
  DispatchKey key;
  SourceLocation where;
};
/// Checks what a kernel returned against the schema, and returns it as the call's result: numbers are
/// converted to the declared type, and several results are a tuple. `arguments` are those of the call in
/// schema order. Errors name the operator, the kernel, the position, what was expected and what was returned.
Ref accept_results(const OpSchema& schema, PyObject* const* arguments, const KernelPlace& place, Ref result);
/// Puts checked results on a stack.
void push_results(Stack& stack, const OpSchema& schema, PyObject* result);
/// The results on a stack, from position `first` on, as a call returns them.
Ref results_from(Stack& stack, size_t first, const OpSchema& schema);

}  // namespace tenon::python
