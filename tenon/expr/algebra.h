// Builders that simplify as they build: the algebra that keeps every bit, and that of derivatives.
// Used by simplify.cc and derivative.cc only.
#pragma once

#include "tenon/expr/expr.h"

namespace tenon::expr {

/// `id`'s op over simplified operands: the same value, bit for bit, with less work where there is a rule for
/// it.
NodeId simplified(Builder& g, NodeId id, std::span<const NodeId> args);

/// a + b; kNoNode is zero, which is not added.
NodeId add_terms(Builder& g, NodeId a, NodeId b);
/// factor * slope, multiplied into the branches of `where` in either and the numerators of divisions, so that
/// a branch not taken contributes exactly nothing.
NodeId times(Builder& g, NodeId factor, NodeId slope);

}  // namespace tenon::expr
