// operator_argument: the operator that an argument names. Used by the functions that tell about the
// dispatcher.
#pragma once

#include <string>

#include "python/src/call/spread.h"
#include "tenon/dispatch/dispatcher.h"

namespace tenon::python {

/// The operator of a name such as "aten::add.Tensor"; without a namespace, as in "add.Tensor", it is in aten.
/// Throws Error{Type} for what is no str, and Error{NotImplemented} where there is no such operator.
inline OperatorHandle operator_argument(const char* function, const char* argument, PyObject* o) {
  std::string name = text_argument(function, argument, o);
  if (name.find("::") == std::string::npos) name = "aten::" + name;
  return Dispatcher::singleton().find_schema_or_throw_full(name);
}

}  // namespace tenon::python
