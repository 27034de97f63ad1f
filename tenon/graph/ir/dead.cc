#include "tenon/graph/ir/dead.h"

#include <algorithm>

namespace tenon::graph {

std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.values.size());
  std::vector<ValueId> last(graph.storages.size(), kNone);
  for (const Node& node : graph.nodes) {
    for (const Def& d : graph.defs(node)) last[graph.values[d.value].storage] = d.value;
  }
  for (StorageId s = 0; s < last.size(); ++s) {
    if (graph.storages[s].is_output && last[s] != kNone) live[last[s]] = true;
  }
  std::vector<bool> nodes(graph.nodes.size());
  for (size_t id = graph.nodes.size(); id-- > 0;) {
    const Node& node = graph.nodes[id];
    bool needed = graph.defs(node).empty();
    for (const Def& d : graph.defs(node)) needed |= live[d.value];
    nodes[id] = needed;
    if (!needed) continue;
    for (const Use& u : graph.uses(node)) {
      if (u.value != kNone) live[u.value] = true;
    }
    for (const Def& d : graph.defs(node)) {
      if (const ValueId previous = graph.values[d.value].previous; previous != kNone) live[previous] = true;
    }
  }
  return nodes;
}

void remove_dead(Graph& graph) {
  const std::vector<bool> live = live_nodes(graph);
  if (std::ranges::find(live, false) == live.end()) return;
  size_t kept = 0;
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    if (!live[id]) continue;
    if (kept != id) graph.nodes[kept] = std::move(graph.nodes[id]);
    ++kept;
  }
  graph.nodes.erase(graph.nodes.begin() + static_cast<ptrdiff_t>(kept), graph.nodes.end());
  graph.renumber();
}

}  // namespace tenon::graph
