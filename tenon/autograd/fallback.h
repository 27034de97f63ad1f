// Autograd kernels for operators without a derivative. Calls run forward; a backward pass that reaches one
// throws, or stops there if the operator was declared to have no gradient. Used by authors of custom
// operators and of backends.
#pragma once

#include "tenon/dispatch/kernel.h"

namespace tenon::autograd {

/// For the key Autograd (or AutogradCPU, ...) of one operator, or as the fallback of a key. Results of
/// arguments that require grad require it too; a backward pass that reaches them throws Error{NotImplemented}
/// naming the operator. Operators that the kernel calls are not recorded. Throws Error{Runtime} for an
/// in-place call on a leaf that requires grad.
///
/// An operator with nothing registered for Autograd behaves the same, with one difference: a result that its
/// kernel made with recorded operators keeps their history.
CppFunction autograd_not_implemented_fallback();

/// As autograd_not_implemented_fallback, for an operator whose author registered nothing: the error also says
/// how to register a derivative.
CppFunction missing_derivative_fallback();

/// Declares, for the key Autograd, that an operator has no gradient: its results do not require grad, and a
/// tensor that it writes in place loses its history. Throws Error{Runtime} for an in-place call on a leaf
/// that requires grad.
///
///     TENON_LIBRARY_IMPL(myops, Autograd, m) { m.impl("rank_of", autograd::not_differentiable()); }
CppFunction not_differentiable();

}  // namespace tenon::autograd
