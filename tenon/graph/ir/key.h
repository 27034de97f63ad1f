// What a graph computes, as a number. Plans are found by it.
#pragma once

#include "tenon/expr/key.h"
#include "tenon/graph/ir/graph.h"

namespace tenon::graph {

/// Raised whenever keys of unchanged graphs change.
inline constexpr uint64_t kKeyVersion = 1;

/// 128 bits: equal for graphs whose nodes are the same in the same order, in every process; storages and
/// numbers count in the order in which the nodes first name them. Numbers count by their kind, lines and
/// names of regions not at all.
expr::Key key_of(const Graph& graph);
/// One call by itself: as `key_of` has it, but that storages and numbers are those of the graph's tables
/// by their places there.
expr::Key key_of_call(const Graph& graph, const Node& node);

}  // namespace tenon::graph
