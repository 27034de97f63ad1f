// DispatchKeySet in Python: passed to kernels that ask for their call's keys, and taken by redispatch.
#pragma once

#include "python/src/interpreter/reference.h"
#include "tenon/dispatch/key.h"

namespace tenon::python {

/// A new reference, or null with an exception set.
PyObject* wrap(DispatchKeySet keys) noexcept;
/// Null for anything else.
const DispatchKeySet* as_key_set(PyObject* o) noexcept;

// The keys of names. C++ libraries may name a backend before it is loaded; here, a name that is neither a key
// nor that of a known device is taken for a misspelling, and throws Error{Value}.

/// For a query; none for a key of a known device that is not registered.
std::optional<DispatchKey> key_asked_for(std::string_view name);
/// For a set of keys, whose devices must be registered.
DispatchKey known_key(std::string_view name);
/// For a registration, which may reserve the backend of a known device.
DispatchKey key_to_fill(std::string_view name);

bool add_key_set_type(PyObject* module);

}  // namespace tenon::python
