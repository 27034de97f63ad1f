// The rules of typed expressions (docs/decisions/0015-typed-expressions.md), which every typed expression
// must satisfy. Checked after every transformation in builds with assertions, and always for expressions from
// a file or a plug-in.
#pragma once

#include <span>

#include "tenon/expr/expression.h"

namespace tenon::expr {

/// Where a typed expression comes from: a call, or the definition of a function, which may look at the bits
/// of floats.
enum class Origin : uint8_t { Call, Definition };

/// Throws Error{Value} "expression: rule L3: node 2 (add) ..." unless a typed or primitive expression is
/// legal; Error{NotImplemented} for what has a number and no meaning yet.
void check(const Expression& e, Origin origin = Origin::Call);

/// Whether dtype `d` holds the value of node `id`, of d's carrier, exactly: storing it as `d` and loading it
/// again changes nothing (a NaN stays one). Proven from the nodes; `inputs` are the slots of their loads.
bool holds(std::span<const Node> nodes, std::span<const Slot> inputs, NodeId id, DType d);

inline constexpr size_t kMaxSlots = 64;
inline constexpr size_t kMaxNodes = 4096;

}  // namespace tenon::expr
