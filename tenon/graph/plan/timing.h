// How long a graph takes to plan and to run. Used by reports.
#pragma once

#include "tenon/graph/fuse/pipeline.h"

namespace tenon::graph {

/// Plans the graph of calls with a matcher in that position, as the recorder would, and runs it on zeros,
/// with 1 for each number. Takes some milliseconds.
Timing time_of(const Graph& graph, MatcherPosition position, const FusionOptions& options);

}  // namespace tenon::graph
