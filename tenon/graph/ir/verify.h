// The rules that every graph keeps. Checked after every pass in builds with assertions, and always for graphs
// that come from a text.
#pragma once

#include <string>
#include <string_view>

#include "tenon/graph/ir/graph.h"

namespace tenon::graph {

/// A rule that a graph breaks.
struct Violation {
  std::string sentence;  ///< Empty: the graph keeps them all.
  NodeId node = kNone;   ///< Where; kNone for what is wrong with no node in particular.

  explicit operator bool() const noexcept { return !sentence.empty(); }
};
/// The first rule that is broken. Safe for any graph whose ranges are in its vectors.
Violation verify(const Graph& graph);

/// Throws Error{Internal} that names the stage, the node and the rule, if one is broken.
void check(const Graph& graph, std::string_view stage);
/// The same in builds with assertions; nothing in others.
inline void check_debug([[maybe_unused]] const Graph& graph, [[maybe_unused]] std::string_view stage) {
#ifndef NDEBUG
  check(graph, stage);
#endif
}

}  // namespace tenon::graph
