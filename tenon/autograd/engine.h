// The engine: walks a recorded graph from its results to its leaves, each node once, when its gradients are
// complete. Used by autograd.h. Knows nodes and edges, and no operator but the addition of gradients.
#pragma once

#include <vector>

#include "tenon/autograd/node.h"

namespace tenon::autograd {

struct BackwardOptions {
  /// Keep what nodes saved, so that the graph can be walked again.
  bool retain_graph = false;
  /// Record the backward pass itself, so that it can be differentiated.
  bool create_graph = false;
  /// Run the nodes of leaves, which add to `.grad`; otherwise only captures are kept.
  bool accumulate = true;
};

/// Walks from `roots`, where `grads` enter. With `captures`, only what leads to those is walked, and the
/// gradients that arrive at each of them are returned (undefined where none did); with `accumulate`, leaves
/// among them get theirs as well. Nodes of the CPU run on the calling thread. A node may call this again.
std::vector<Tensor> run_backward(std::span<const Edge> roots, std::span<const Tensor> grads,
                                 std::span<const Edge> captures, const BackwardOptions& options);

}  // namespace tenon::autograd
