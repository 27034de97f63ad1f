// CallStep: a call of a graph, ready to run on tensors. Used by plans for what no loop and no engine runs.
// Holds no tensors and nothing of the graph.
#pragma once

#include <span>
#include <vector>

#include "tenon/core/tensor.h"
#include "tenon/dispatch/operator.h"
#include "tenon/graph/graph.h"

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

 private:
  struct Source {
    Argument::Kind kind;
    uint32_t first = 0, count = 0;  ///< Of uses or numbers, or in the stack of attributes.
    uint32_t def = kNone;           ///< Of a written argument: its place among the defs.
    schema::BaseType type;
  };
  void push(Stack& stack, const Source& from, std::span<const Tensor> uses, std::span<const Tensor> defs,
            std::span<const Scalar> numbers) const;

  OperatorHandle op_;
  DispatchKeySet keys_;
  std::optional<OperatorHandle> out_;
  std::vector<Source> sources_;
  size_t num_results_ = 0;  // that are new tensors: the first defs
  Stack attributes_;
};

}  // namespace tenon::graph
