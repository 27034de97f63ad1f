// DispatchKeySet in Python: what a kernel gets that asked for its call's keys, and what redispatch takes.
#pragma once

#include "python/src/interpreter/reference.h"
#include "tenon/dispatch/key.h"

namespace tenon::python {

/// A new reference, or null with an exception set.
PyObject* wrap(DispatchKeySet keys) noexcept;
/// Null for anything else.
const DispatchKeySet* as_key_set(PyObject* o) noexcept;

// The keys of names. C++ libraries may name any backend before it is loaded; here a name that is neither a
// key nor a known device's is a misspelt one, and Error{Value}.

/// For a question; none for a known device that nobody has registered.
std::optional<DispatchKey> key_asked_for(std::string_view name);
/// For a set of keys, whose devices must be registered.
DispatchKey known_key(std::string_view name);
/// For a registration, which reserves the place of a known device.
DispatchKey key_to_fill(std::string_view name);

bool add_key_set_type(PyObject* module);

}  // namespace tenon::python
