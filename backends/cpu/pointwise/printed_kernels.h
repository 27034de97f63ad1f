// The kernels that the build printed, by what they compute: an operator of the build, a user's text and a
// derivative of a derivative find the same one. Used by the host's table. Knows no operators.
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
