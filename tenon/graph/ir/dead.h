// remove_dead: what leads to nothing goes. Used before a graph is fused, planned or compared.
#pragma once

#include <vector>

#include "tenon/graph/ir/graph.h"

namespace tenon::graph {

/// By node: whether anything that it writes is read or given back.
std::vector<bool> live_nodes(const Graph& graph);
/// Removes the others. Operators that draw random numbers or print have no
/// place in a graph, so that every call is worth its results alone.
void remove_dead(Graph& graph);

}  // namespace tenon::graph
