// Operators that return several views: how many there may be.
// Used by split, unbind and chunk. Knows sizes alone.
#pragma once

#include <cstdint>

namespace tenon::ops {

/// Throws Error{Value} for more views than any memory holds: sizes and counts are cheap to ask for (an
/// expanded or empty dimension costs nothing), while each view takes memory.
void check_view_count(int64_t count, const char* op);

}  // namespace tenon::ops
