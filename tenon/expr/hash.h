// Keys of expressions: Merkle hashes of their nodes, mixed with their slots.
// Used by expression.cc; the numbers are the same on every machine and in every process.
#pragma once

#include "tenon/expr/expression.h"

namespace tenon::expr {

/// Raised whenever keys of unchanged expressions change, so that kernels on disk are not mistaken.
inline constexpr uint64_t kKeyVersion = 1;

/// The key of an expression with these parts. A node counts by what it computes, not by its number; a call
/// by its function's name and definition, so that changed digits change keys; a NaN as the one NaN that
/// there is.
Key key_of(const ExpressionParts& parts);

}  // namespace tenon::expr
