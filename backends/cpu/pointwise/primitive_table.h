// The printed primitives of the tile interpreter, by number (tenon/expr/primitives.h).
// Defined by a file that the build prints; used by the interpreter only.
#pragma once

#include "backends/cpu/pointwise/kernel.h"

namespace tenon::cpu {

/// The kernel of primitive `number` for `target`.
PointwiseFn primitive(unsigned number, CpuTarget target) noexcept;

}  // namespace tenon::cpu
