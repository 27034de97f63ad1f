// Passes over graphs: pointwise calls become regions. Used by the pipeline,
// which knows their order (pipeline.h).
#pragma once

#include <string>
#include <vector>

#include "tenon/graph/fuse/clusters.h"
#include "tenon/graph/ir/graph.h"

namespace tenon::graph {

class Matcher;

/// Joins flat calls that read or write the same tensors: each where that saves the traffic of one. With a
/// matcher, also to the products and convolutions whose results they read.
void join_flat(Clusters& clusters, Matcher* matcher = nullptr);

/// Something that was not fused, and why.
struct Refusal {
  NodeId node = kNone;  ///< Of the graph before.
  std::string reason;
};

/// The nodes that clusters become, in the order of their places: a region for each cluster of several
/// members. What cannot be one expression stays as it was, and is listed.
struct FormedRegions {
  std::vector<Node> nodes;
  /// Of each node: which nodes of the graph before it is made of, and its region's anchor, else kNone.
  std::vector<std::vector<NodeId>> members;
  std::vector<NodeId> anchors;
  std::vector<Refusal> refused;
};
/// Adds to the graph's tables, and leaves its nodes as they are.
/// `single_calls`: as in FusionOptions.
FormedRegions form_regions(Graph& graph, const Clusters& clusters, bool relaxed, bool single_calls = false);

}  // namespace tenon::graph
