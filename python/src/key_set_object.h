// DispatchKeySet in Python: what a kernel gets that asked for its call's keys, and what redispatch takes.
#pragma once

#include "python/src/object.h"
#include "tenon/dispatch/key.h"

namespace tenon::python {

/// A new reference, or null with an exception set.
PyObject* wrap(DispatchKeySet keys) noexcept;
/// Null for anything else.
const DispatchKeySet* as_key_set(PyObject* o) noexcept;

/// The key of a name. C++ libraries may name a backend before it is loaded; here an unknown name is a
/// misspelt one. Throws Error{Value}.
DispatchKey known_key(std::string_view name);

bool add_key_set_type(PyObject* module);

}  // namespace tenon::python
