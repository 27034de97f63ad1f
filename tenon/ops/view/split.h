// How many views an operator that returns several may return. Used by split, unbind and chunk. Knows sizes
// alone.
#pragma once

#include <cstdint>

namespace tenon::ops {

/// Throws Error{Value} for more views than any memory could hold. A dimension that is expanded or has no
/// elements may be of any size at no cost, but each view takes memory.
void check_view_count(int64_t count, const char* op);

}  // namespace tenon::ops
