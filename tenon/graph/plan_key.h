// What a plan follows from, as a number: under which it is kept where other processes find it. Used by the
// recorder and by plans of built graphs.
#pragma once

#include "tenon/expr/mixer.h"
#include "tenon/graph/plan.h"

namespace tenon::graph {

/// Adds the calls of a graph without regions as they stand, its tables, and what decides how they are fused
/// and what runs them: options, strict mode, and, where engines of vendors take part, their libraries'
/// versions and the number of threads. The build and the instruction set are the cache's to add.
void add_to_key(expr::Mixer& mixer, const Graph& graph, const PlanOptions& options);

}  // namespace tenon::graph
