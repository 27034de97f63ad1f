// The composed engine: a product or a convolution with the expressions around it. Blocks of rows of the
// result are made by the operator itself, called on slices of its operands, which a prologue may have made;
// the epilogue runs on each block while it is in the cache.
#pragma once

#include "tenon/graph/engine/engine.h"

namespace tenon::cpu {

std::string composed_refusal(const graph::Graph& g, const graph::Node& node);
std::unique_ptr<const graph::RegionProgram> compose(const graph::Graph& g, const graph::Node& node);

}  // namespace tenon::cpu
