// What Python's help() and inspect.signature know of an operator's function and method. Used by
// python_names.cc and the printer of the stubs.
#pragma once

#include <string>

#include "tools/opgen/python_names.h"

namespace tenon::opgen {

/// An argument's name in a function: `self` is `input`.
std::string python_parameter_name(const schema::Argument& argument);
/// "(input: Tensor, other: Tensor, *, alpha: Number = 1) -> Tensor".
std::string python_signature(const PythonOverload& overload);
/// The first line of a docstring, as CPython's `__text_signature__` is made of it. Of several overloads it
/// has the parameters of all, so far as their order is one; where it is not, `*args, **kwargs` end it.
std::string text_signature(const PythonName& name, const std::vector<const PythonOverload*>& overloads,
                           bool method);
/// The overloads, the description, how shapes go together, and an example.
std::string python_doc(const PythonName& name);

}  // namespace tenon::opgen
