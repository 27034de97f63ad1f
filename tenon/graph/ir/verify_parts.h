// What the parts of the verifier share. Used by them alone.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "tenon/graph/ir/graph.h"

namespace tenon::graph {

/// A rule that is broken: ends the walk.
struct Broken {
  std::string sentence;
};

template <class... A>
void require(bool holds, fmt::format_string<A...> rule, A&&... arguments) {
  if (!holds) [[unlikely]]
    throw Broken{fmt::format(rule, std::forward<A>(arguments)...)};
}

/// The rules for the parts of a region's node, whose members and tensors are legal. Throws Broken.
void check_region(const Graph& graph, const Node& node);

}  // namespace tenon::graph
