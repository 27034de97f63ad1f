// Lowering: one call of a graph as a typed expression, with what the expression's slots are among the call's
// arguments. Used by passes that form regions; tests and recorders may have lowerings of their own.
#pragma once

#include <memory>
#include <vector>

#include "tenon/expr/expression.h"
#include "tenon/graph/ir/graph.h"
#include "tenon/iter/lower.h"

namespace tenon::graph {

/// Where a number slot gets its number, and how that becomes the slot's 8 bytes.
struct LoweredArgument {
  /// The place in the schema of one of the graph's numbers or of an attribute; kNone: `constant`.
  uint32_t argument = kNone;
  LoweredNumber rule;
  Scalar constant;  ///< What zeros and ones fill.
};

/// What a call computes of each element, or of each row. Holds no numbers of a graph, so that it serves every
/// equal call.
struct LoweredCall {
  expr::ExpressionPtr expression;  ///< Typed.
  /// The loop of an expression over rows: its sizes, and 1 for the dimensions that make up a row. Empty for
  /// flat ones, which loop over what they store.
  Dims sizes, over;
  std::vector<uint32_t> inputs;          ///< Of each input slot: the place among the call's uses.
  std::vector<uint32_t> outputs;         ///< Of each output slot: the place among its defs.
  std::vector<LoweredArgument> numbers;  ///< Of each number slot.
};

class Lowering {
 public:
  virtual ~Lowering() = default;
  /// Null for a call that no expression computes. `node` is a call, not a region.
  virtual std::shared_ptr<const LoweredCall> lower(const Graph& graph, const Node& node) = 0;
};

/// By the data of pointwise operators, copies and fills (iter/lower.h), also of tensors of a device that runs
/// expressions, and of row operators (ops/forms/rows.h), of host tensors alone. Null where a call would be
/// refused: it is left to raise its error itself.
std::shared_ptr<const LoweredCall> lower_call(const Graph& graph, const Node& node);

/// Asks lower_call.
class OperatorLowering final : public Lowering {
 public:
  std::shared_ptr<const LoweredCall> lower(const Graph& graph, const Node& node) override {
    return lower_call(graph, node);
  }
};

}  // namespace tenon::graph
