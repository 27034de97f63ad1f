// Matcher: pointwise DAG -> matrix product or convolution -> pointwise DAG with several outputs, as one
// cluster. The same rules wherever it is in the pipeline: it takes clusters as they are, single calls or
// what a fuser has joined.
#pragma once

#include <string_view>
#include <vector>

#include "tenon/graph/fuse/clusters.h"
#include "tenon/graph/fuse/passes.h"

namespace tenon::graph {

class Matcher {
 public:
  /// Leaves the anchors alone that are listed.
  Matcher(Clusters& clusters, std::span<const NodeId> except);

  /// The whole pass: every anchor, first to last.
  void match_all();
  /// Joins to an anchor what makes its operands and is used for nothing else.
  void take_prologue(NodeId anchor);
  /// Joins to an anchor what loops over its result, and over what was joined.
  void take_epilogue(NodeId anchor);
  bool is_anchor(NodeId node) const;

  /// Why a call that reads the result of an anchor, or of its epilogue, cannot be joined to it; empty if
  /// it can.
  std::string_view why_no_epilogue(ClusterId anchor, ClusterId flat) const;

  /// Neighbours of anchors that were not taken, in the order in which they were asked for.
  const std::vector<Refusal>& refused() const noexcept { return refused_; }

 private:
  std::string_view why_no_prologue(ClusterId anchor, const Use& use) const;
  void refuse(NodeId node, std::string_view reason);

  Clusters& clusters_;
  const Graph& g_;
  std::vector<NodeId> except_;
  std::vector<Refusal> refused_;
};

}  // namespace tenon::graph
