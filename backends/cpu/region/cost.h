// What a region around an anchor costs by the composed engine, and of how many rows its blocks are: a model
// of bytes moved, of calls, and of what the product packs again for each block. The multiplications are the
// same however it runs. Used by the engines.
#pragma once

#include "backends/cpu/region/blocks.h"
#include "tenon/graph/engine/engine.h"

namespace tenon::cpu {

Blocks choose_blocks(const graph::Graph& g, const graph::Node& node);
/// What the composed engine's knob `rows` may be besides what it chooses itself, where it makes no difference
/// to bits.
std::vector<graph::Knobs> block_sizes(const graph::Graph& g, const graph::Node& node);
graph::RegionCost cost_of(const graph::Graph& g, const graph::Node& node);
/// Of a library's call that makes operands whole, packs nothing, and computes the epilogue with it;
/// `has_rest`: but for a loop over the result. Images of a convolution are brought into its own order.
graph::RegionCost cost_in_one_call(const graph::Graph& g, const graph::Node& node, bool has_rest);

}  // namespace tenon::cpu
