// Autograd kernels for operators that have no derivative: they run forward, and say so when backward is asked
// for. Used by authors of custom operators and of backends.
#pragma once

#include "tenon/dispatch/kernel.h"

namespace tenon::autograd {

/// For the key Autograd (or AutogradCPU, ...) of one operator, or as the fallback of a key. Results of
/// arguments that require grad require it too; a backward pass that reaches them throws Error{NotImplemented}
/// naming the operator. Throws Error{Runtime} for an in-place call on a leaf that requires grad.
CppFunction autograd_not_implemented_fallback();

}  // namespace tenon::autograd
