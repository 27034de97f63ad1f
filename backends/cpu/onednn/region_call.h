// RegionCall: how a region around a product or a convolution is one call of oneDNN's. The first calls of the
// epilogue, each on the result of the one before, become its post-ops; what is left of the epilogue stays a
// loop of ours. Used by the engine.
#pragma once

#include <string>
#include <vector>

#include "backends/cpu/onednn/primitive.h"
#include "tenon/graph/ir/graph.h"
#include "tenon/graph/ir/region.h"

namespace tenon::cpu::onednn {

/// A number that a call takes: one of the graph's, or an attribute.
struct Number {
  uint32_t number = graph::kNone;  ///< Of the graph; kNone: `constant`.
  double constant = 0;
  double value(std::span<const Scalar> numbers) const {
    return number == graph::kNone ? constant : numbers[number].to_double();
  }
};

/// Where an operand comes from.
struct Source {
  enum class Kind : uint8_t { None, Operand, Use, Number };
  Kind kind = Kind::None;
  uint32_t index = 0;  ///< Among the tensor operands of the anchor, or the uses of the region's node.
  Number number = {};
};

struct RegionCall {
  /// Empty where there is one; else why not, as a sentence, and nothing else is of use.
  std::string refusal;
  Description description;
  uint32_t source = 0, weights = 1;  ///< Which operands of the anchor these are.
  Source bias;
  std::vector<Source> post_ops;  ///< The operand of each; None for functions of one argument.
  std::vector<Number> ones;      ///< Factors that calls may have and oneDNN has not.
  graph::Def result;             ///< What oneDNN writes.
  std::vector<uint32_t> rest;    ///< The members that are left.
  double saved = 0;              ///< Nanoseconds by which its functions are faster than ours.
};

/// What oneDNN takes of a region that the composed engine runs, too.
RegionCall call_of(const graph::Graph& g, const graph::Node& node);

}  // namespace tenon::cpu::onednn
