// Lift: a recorded segment as a graph, from which its plan is made. Storages of the graph are the segment's
// slots by number, and so are the numbers that a run brings. Used by plans.
#pragma once

#include <vector>

#include "tenon/graph/graph.h"
#include "tenon/record/segment.h"

namespace tenon::record {

struct Lifted {
  graph::Graph graph;
  /// Which recorded call a node was lifted from, by the first of its arguments.
  std::vector<uint32_t> call_by_argument;
  /// By slot: how many bytes further offsets count in the graph, where none is negative, than those of the
  /// segment's operands.
  std::vector<size_t> moved;

  uint32_t call_of(const graph::Node& node) const noexcept { return call_by_argument[node.arguments.first]; }
};

/// The calls that `wanted` slots follow from, and those that may fail.
Lifted lift(const Segment& segment, const std::vector<bool>& wanted);

}  // namespace tenon::record
