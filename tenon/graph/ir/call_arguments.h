// CallArguments: the arguments of a call of a graph, put on a stack again and again, with other tensors each
// time. Used by what runs calls by themselves. Holds no tensors and nothing of the graph.
#pragma once

#include <span>
#include <vector>

#include "tenon/core/tensor.h"
#include "tenon/graph/ir/graph.h"

namespace tenon::graph {

class CallArguments {
 public:
  CallArguments(const Graph& graph, const Node& call);

  /// `uses` and `defs` are the node's tensors in their order. Those that are written are taken from `defs`,
  /// after the new results. Of lists of numbers nothing is pushed but None.
  void push(Stack& stack, std::span<const Tensor> uses, std::span<const Tensor> defs,
            std::span<const Scalar> numbers) const;

  /// New tensors among the results: the first defs.
  uint32_t num_results() const noexcept { return num_results_; }
  uint32_t num_written() const noexcept { return num_written_; }
  /// How many tensors among its arguments a call writes: the last of its defs.
  static uint32_t num_written(const Graph& graph, const Node& call);

 private:
  struct Source {
    Argument::Kind kind;
    uint32_t first = 0, count = 0;  ///< Of uses or numbers, or in the stack of attributes.
    uint32_t def = kNone;           ///< Of a written argument: its place among the defs.
    schema::BaseType type;
  };
  void push(Stack& stack, const Source& from, std::span<const Tensor> uses, std::span<const Tensor> defs,
            std::span<const Scalar> numbers) const;

  std::vector<Source> sources_;
  uint32_t num_results_ = 0, num_written_ = 0;
  Stack attributes_;
};

}  // namespace tenon::graph
