// operator_argument: finds the operator that an argument names. Used by the functions that inspect the
// dispatcher.
#pragma once

#include <string>

#include "python/src/call/spread.h"
#include "tenon/dispatch/dispatcher.h"

namespace tenon::python {

/// The operator of a name such as "aten::add.Tensor"; a name without a namespace, such as "add.Tensor", is in
/// aten. Throws Error{Type} unless `o` is a str, and Error{NotImplemented} if there is no such operator.
inline OperatorHandle operator_argument(const char* function, const char* argument, PyObject* o) {
  std::string name = text_argument(function, argument, o);
  if (name.find("::") == std::string::npos) name = "aten::" + name;
  return Dispatcher::singleton().find_schema_or_throw_full(name);
}

/// The same, and operators that have kernels and no declaration.
inline OperatorHandle registered_argument(const char* function, const char* argument, PyObject* o) {
  std::string name = text_argument(function, argument, o);
  if (name.find("::") == std::string::npos) name = "aten::" + name;
  if (const auto found = Dispatcher::singleton().find_registered(name)) return *found;
  return Dispatcher::singleton().find_schema_or_throw_full(name);
}

}  // namespace tenon::python
