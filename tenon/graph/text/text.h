// Graphs as text, for dumps, tests and files. What is printed can be parsed again, to the same key and the
// same text; only the lines at which nodes were recorded are lost.
//
//   graph 1
//   storage %0 4096 cpu input
//   storage %1 4096 cpu output
//   number $0 float
//   %1.0 float32[32, 32] = aten::mul.Scalar(%0.0 float32[32, 32]:[1, 32]+4, $0)
//   %1.1(%1.0) float32[32, 32] = aten::relu_(%1.0 float32[32, 32])
//
// `%0.2` is version 2 of storage 0; version 0 of an input is what it has before the graph runs. A def names
// the version before it, if it needs that, in parentheses. A dtype is followed by the sizes, the strides
// where they are not those of a dense tensor, and the offset where it is not 0. A written argument that is
// not read has `_` for its value, an absent one is `none`. Attributes are what their schema types say.
//
// A region's node has its name, its members and its parts in braces:
//
//   %2.0 float32[4] = tenon::region_flat([%0.0 float32[4]], [$0]) region_0_mul_relu {
//     %1.0 float32[4] = aten::mul.Scalar(%0.0 float32[4], $0)
//     %2.0 float32[4] = aten::relu(%1.0 float32[4])
//     numbers (0.0)
//     body (0) (0) (0): in x0: float32; number n0: f32; out float32: max(mul(x0, n0), 0:f32);
//   }
//
// `over [0, 1]` says that rows are made of the last of two dimensions. The numbers of a region are
// member.slot. The lists of a part are the uses that it reads (`anchor`: the anchor's result), the numbers
// that it takes, and the defs that it stores. `engine composed (rows 24)` names what runs the region, and its
// knobs.
#pragma once

#include <string>
#include <string_view>

#include "tenon/graph/ir/graph.h"

namespace tenon::graph {

/// `lines`: adds the lines at which nodes were recorded, as comments. Never throws for what a graph's tables
/// hold, legal or not.
std::string to_string(const Graph& graph, bool lines = false);

/// Throws Error{Value}, with line and column, for a text that is not of that form, for operators that are not
/// there and for arguments that do not fit them; for a graph that breaks a rule (verify.h), with the line of
/// the node.
Graph parse(std::string_view text);

/// "float32[2, 3]:[1, 2]+4".
std::string to_string(const Geometry& geometry);

}  // namespace tenon::graph
