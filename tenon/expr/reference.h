// The scalar reference: what each op and function means in double, by the C library. Used by `evaluate`, by
// checks at build time and by tests; shares no code with the definitions that kernels are made of.
#pragma once

#include <span>

#include "tenon/expr/expr.h"

namespace tenon::expr {

/// The value of node `id` (no symbol) for given operand values; masks are 0 and 1. Throws
/// Error{NotImplemented} for internal functions and bit patterns.
double evaluate_node(const Builder& g, NodeId id, std::span<const double> args);

}  // namespace tenon::expr
