// The oneDNN engine: a product or a convolution of float32 whose epilogue begins with what oneDNN computes
// together with it. Its bits are its own, so that it runs what may have other bits than eagerly.
#pragma once

#include "tenon/graph/engine/engine.h"

namespace tenon::cpu::onednn {

/// Makes the primitive, which is kept, to find out whether there is one.
std::string refusal(const graph::Graph& g, const graph::Node& node);
graph::RegionCost cost_of(const graph::Graph& g, const graph::Node& node);
/// "3.1.1", or why there is none.
std::string version();
std::unique_ptr<const graph::RegionProgram> build(const graph::Graph& g, const graph::Node& node);

}  // namespace tenon::cpu::onednn
