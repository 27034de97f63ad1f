// Fused: a recorded segment as the graph that its plan is made of, with its regions: formed now, or read from
// a file of the plan cache. Used by plans.
#pragma once

#include <cstdint>
#include <vector>

#include "tenon/cache/plan_cache.h"
#include "tenon/graph/fuse/pipeline.h"
#include "tenon/graph/ir/program.h"
#include "tenon/record/plan.h"

namespace tenon::record {

struct Fused {
  graph::Graph graph;
  /// Of the segment, by the calls of the graph in order, those of a region's members in its place.
  std::vector<uint32_t> calls;
  std::vector<size_t> offset_shift;  ///< As graph::Assembled has it.
  graph::FusionReport report;
  std::vector<uint32_t> left;  ///< The calls of the report's `left`.
  bool is_whole = true;        ///< False: the fuser failed, and nothing is fused.
};

/// `tune_ms`: as in ScopeOptions.
Fused fuse(const Segment& segment, const std::vector<bool>& wanted, graph::Assembled assembled, bool relaxed,
           double tune_ms, PlanFor purpose);

/// Under which the plan of a segment is kept: its calls as they stand, what is wanted of them, and
/// what decides how they run.
expr::Key cache_key(const graph::Assembled& assembled, bool relaxed, double tune_ms, PlanFor purpose);
cache::PlanCache::File to_file(const Fused& fused);
/// What `to_file` wrote of a segment with the same key. Throws Error for anything else: for a graph that
/// breaks a rule, and for one that has other calls than the segment.
Fused from_file(cache::Bytes bytes, const Segment& segment, graph::Assembled assembled);

}  // namespace tenon::record
