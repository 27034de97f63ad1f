// What a plan follows from, as a number: under which it is kept where other processes find it. Used by the
// recorder and by plans of built graphs.
#pragma once

#include "tenon/expr/mixer.h"
#include "tenon/graph/ir/region.h"
#include "tenon/graph/plan/plan.h"

namespace tenon::graph {

/// Adds the calls of a graph without regions as they stand, its tables, and what decides how they are fused
/// and what runs them: options, and, where engines of vendors take part, their libraries'
/// versions, and, where they do or regions are tuned, the number of threads. The build and the instruction
/// set are the cache's to add.
void add_to_key(expr::Mixer& mixer, const Graph& graph, const PlanOptions& options);

/// The calls of a graph in order, those of a region's members in its place.
template <class G, class F>
void each_call(G& graph, F&& f) {
  for (auto& node : graph.nodes) {
    if (!node.region) {
      f(node);
      continue;
    }
    for (auto& member : node.region->members) f(member);
  }
}

/// Whether storages and numbers are the same, row by row.
bool same_tables(const Graph& a, const Graph& b);

/// For people who look at the cache: "mul, add, relu: 8 calls in 1 step".
std::string about(const Graph& graph);

}  // namespace tenon::graph
