// How much stack a thread has left, for calls that nest as deeply as a user's program makes them. Used by the
// backward engine.
#pragma once

#include <cstddef>

namespace tenon {

/// Bytes between here and the end of this thread's stack; SIZE_MAX where the system does not say.
size_t stack_left() noexcept;

}  // namespace tenon
