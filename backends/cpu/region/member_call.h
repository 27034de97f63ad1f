// MemberCall: a call of a graph that is made again and again, on other tensors than the graph's own: a slice
// of an anchor's operands. Used by the composed engine.
#pragma once

#include <span>

#include "tenon/graph/ir/call_arguments.h"

namespace tenon::cpu {

class MemberCall {
 public:
  /// Keeps nothing of the graph. Numbers in lists are not for it (takes_numbers_one_by_one).
  MemberCall(const graph::Graph& g, const graph::Node& call) : op_(call.op), arguments_(g, call) {}
  static bool takes_numbers_one_by_one(const graph::Graph& g, const graph::Node& call);

  /// The operator's one result for these tensors, without those that are absent in the call.
  Tensor operator()(std::span<const Tensor> tensors, std::span<const Scalar> numbers) const;

 private:
  OperatorHandle op_;
  graph::CallArguments arguments_;
};

}  // namespace tenon::cpu
