// The engine: walks a recorded graph from its results to its leaves, and runs each node once, when all its
// gradients have arrived. Used by autograd.h. Knows nodes and edges, and of operators only the addition of
// gradients.
#pragma once

#include <vector>

#include "tenon/autograd/node.h"

namespace tenon::autograd {

struct BackwardOptions {
  /// Whether to keep the tensors that nodes saved, so that the graph can be walked again.
  bool retain_graph = false;
  /// Whether to record the backward pass itself, so that it can be differentiated.
  bool create_graph = false;
  /// Whether to run the nodes of leaves, which add to `.grad`; otherwise only captured gradients are kept.
  bool accumulate = true;
};

/// Walks the graph from `roots` with the gradients `grads`. With `captures`, walks only the nodes that lead
/// to those edges, and returns the gradients that arrive at each (undefined if none does); with `accumulate`,
/// leaves among them also get their `.grad`. Nodes of the CPU run on the calling thread. A node may call this
/// function itself.
std::vector<Tensor> run_backward(std::span<const Edge> roots, std::span<const Tensor> grads,
                                 std::span<const Edge> captures, const BackwardOptions& options);

}  // namespace tenon::autograd
