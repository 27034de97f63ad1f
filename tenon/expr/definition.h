// Definitions of the functions as typed expressions, made once for the process.
// Used by printers, the evaluator and keys.
#pragma once

#include "tenon/expr/expression.h"

namespace tenon::expr {

/// The definition of a function in one compute type: its parameters are inputs 0, 1, 2, its value output 0.
/// Throws Error{Type} where the function does not run in it.
const Expression& definition(uint16_t function, Type type);

}  // namespace tenon::expr
