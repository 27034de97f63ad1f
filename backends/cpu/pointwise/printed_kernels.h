// The kernels that were printed at build time, found by what they compute: a built-in operator, a user's
// expression and a derivative of a derivative with the same expression find the same kernel. Used by the
// host's table. Knows no operators.
#pragma once

#include <span>

#include "backends/cpu/pointwise/kernel.h"

namespace tenon::cpu {

/// The kernel with that key, of a written expression in one compute type (expr::in_type), for the process's
/// CPU target; null where the build printed none.
PointwiseFn find_printed_kernel(const expr::Key& key);

/// Every printed file; opgen prints the list.
std::span<const PrintedKernels* const> printed_kernels();

}  // namespace tenon::cpu
