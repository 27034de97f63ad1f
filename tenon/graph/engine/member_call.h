// MemberCall: a call of a graph on the host, ready to run on other tensors each time. Used by engines that
// run members of a region as operators. Holds no tensors and nothing of the graph.
#pragma once

#include <optional>
#include <span>

#include "tenon/core/tensor.h"
#include "tenon/dispatch/operator.h"
#include "tenon/graph/ir/call_arguments.h"

namespace tenon::graph {

/// Immutable and safe to run from many threads at once.
class MemberCall {
 public:
  MemberCall(const Graph& graph, const Node& call);

  /// `uses` and `defs` are the node's tensors in their order, undefined where an argument is absent; results
  /// are written to `defs`. By the operator's `out=` form, if it has one, else by a copy. Throws what the
  /// call throws.
  void run(std::span<const Tensor> uses, std::span<const Tensor> defs, std::span<const Scalar> numbers) const;

 private:
  OperatorHandle op_;
  CallArguments arguments_;
  std::optional<OperatorHandle> out_;
};

}  // namespace tenon::graph
