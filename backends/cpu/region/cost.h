// What a region around an anchor costs by the composed engine, and of how many rows its blocks are: a model
// of bytes moved, of calls, and of what the product packs again for each block. The multiplications are the
// same however it runs. Used by composed.cc.
#pragma once

#include "backends/cpu/region/blocks.h"
#include "tenon/graph/engine.h"

namespace tenon::cpu {

/// `strict`: OpenBLAS computes nothing.
Blocks choose_blocks(const graph::Graph& g, const graph::Node& node, bool strict);
graph::RegionCost cost_of(const graph::Graph& g, const graph::Node& node);

}  // namespace tenon::cpu
