// What a graph looks like at each stage, in files: TENON_DUMP_GRAPH=dir. Used by all that run passes over
// graphs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tenon/graph/ir/graph.h"

namespace tenon::graph {

/// A picture for Graphviz (`dot -Tsvg`): storages that come from outside, nodes, regions as boxes around
/// their members, and values as arrows.
std::string to_dot(const Graph& graph);

/// The stages of one graph, as `graph_PID_NUMBER_STAGE_NAME.txt` and `.dot` in the folder. Numbers rise in
/// the order in which graphs are made.
class GraphDump {
 public:
  /// Costs a load where TENON_DUMP_GRAPH is not set, or empty.
  GraphDump() noexcept;
  /// Writes the graph as it is now; nothing where dumps are off. A file that cannot be written is said on the
  /// diagnostic sink, once.
  void stage(std::string_view name, const Graph& graph);
  /// The same of a text, as `.txt` alone.
  void text(std::string_view name, const std::string& text);
  explicit operator bool() const noexcept { return number_ != 0; }

 private:
  std::string next_path(std::string_view name);

  uint32_t number_ = 0;
  uint32_t stage_ = 0;
};

}  // namespace tenon::graph
