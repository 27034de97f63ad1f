// CallStep: a call of a graph, ready to run on tensors. Used by plans for what no loop and no engine runs.
// Holds no tensors and nothing of the graph.
#pragma once

#include <optional>
#include <span>

#include "tenon/core/tensor.h"
#include "tenon/dispatch/operator.h"
#include "tenon/graph/ir/call_arguments.h"
#include "tenon/iter/lower.h"

namespace tenon::graph {

/// Immutable and safe to run from many threads at once.
class CallStep {
 public:
  /// For tensors of the device that the graph's storages name. Throws Error{NotImplemented} where nobody has
  /// a kernel for that device, and it does not fall back.
  CallStep(const Graph& graph, const Node& call);

  /// `uses` and `defs` are the node's tensors in their order, undefined where an argument is absent; results
  /// are written to `defs`. By the operator's `out=` form, if it has one, else by a copy. Throws what the
  /// call throws.
  void run(std::span<const Tensor> uses, std::span<const Tensor> defs, std::span<const Scalar> numbers) const;

  OperatorHandle op() const noexcept { return op_; }
  /// Whether each element of the result depends on the elements of the same index alone.
  bool is_pointwise() const { return pointwise_info_of(op_.entry(), keys_.backend()) != nullptr; }

 private:
  OperatorHandle op_;
  DispatchKeySet keys_;
  CallArguments arguments_;
  std::optional<OperatorHandle> out_;
};

}  // namespace tenon::graph
