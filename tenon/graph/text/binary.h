// Graphs as bytes: what the text form holds, in a few bytes for each argument. Used for files and for other
// processes.
//
//   "TENONGRF", version, length of what follows, its checksum
//   strings, which everything below names by number: operators, dtypes, devices, expressions
//   storages, numbers, geometries, values
//   nodes: operator, defs, arguments by the schema, and a region with its members and parts
//
// Whole numbers have seven bits a byte, signed ones their sign in the lowest bit, and "none" is 0 where
// others begin with 1. Lines at which nodes were recorded are not kept. A file of another version, a file
// that was cut off and one whose bytes have changed are refused before anything is read of them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tenon/graph/ir/graph.h"

namespace tenon::graph {

/// The graph must be legal (verify.h).
std::vector<std::byte> serialize(const Graph& graph);

/// The graph that was serialised, with its key and its text. Throws Error{Value}, with the byte at which it
/// is wrong, for bytes that are no such form, for operators that are not there and arguments that do not fit
/// them, and for a graph that breaks a rule.
Graph deserialize(std::span<const std::byte> bytes);

}  // namespace tenon::graph
