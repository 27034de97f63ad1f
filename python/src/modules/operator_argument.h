// operator_argument: finds the operator that an argument names. Used by the functions that inspect the
// dispatcher.
#pragma once

#include <string>

#include "python/src/call/spread.h"
#include "tenon/dispatch/dispatcher.h"

namespace tenon::python {

/// The name with its namespace, which is aten where it names none. Throws Error{Value} for an empty one.
inline std::string qualified_name(const char* function, const char* argument, PyObject* o) {
  std::string name = text_argument(function, argument, o);
  TENON_CHECK(
      !name.empty(), Value,
      std::string(function) + "(): argument '" + argument + "' must be an operator's name, not an empty str");
  return name.find("::") == std::string::npos ? "aten::" + name : name;
}

/// The operator of a name such as "aten::add.Tensor"; a name without a namespace, such as "add.Tensor", is in
/// aten. Throws Error{Type} unless `o` is a str, and Error{NotImplemented} if there is no such operator.
inline OperatorHandle operator_argument(const char* function, const char* argument, PyObject* o) {
  return Dispatcher::singleton().find_schema_or_throw_full(qualified_name(function, argument, o));
}

/// The same, and operators that have kernels and no declaration.
inline OperatorHandle registered_argument(const char* function, const char* argument, PyObject* o) {
  const std::string name = qualified_name(function, argument, o);
  if (const auto found = Dispatcher::singleton().find_registered(name)) return *found;
  return Dispatcher::singleton().find_schema_or_throw_full(name);
}

}  // namespace tenon::python
