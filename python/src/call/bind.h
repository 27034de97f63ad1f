// Gives the arguments of a call to the parameters of an overload, by position and by keyword. Used by what
// makes calls and by what says why none was made. Does not look at types.
#pragma once

#include "python/src/call/overload.h"

namespace tenon::python {

/// Puts the arguments into one slot for each parameter, null for those that were not passed, and the value of
/// requires_grad into one more slot. False if names or counts do not fit.
bool bind(const Overload& overload, const Arguments& arguments, PyObject** slots) noexcept;

/// The parameter that a keyword names, NumPy's spellings included; -1 when there is none.
int find_param(const Overload& overload, PyObject* keyword) noexcept;
bool is_named(PyObject* keyword, const char* name) noexcept;
/// Whether it may be the first of sizes that are not in a list: x.view(2, 3).
bool looks_like_int(PyObject* o) noexcept;

}  // namespace tenon::python
