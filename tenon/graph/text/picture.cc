#include <fmt/format.h>

#include "tenon/graph/ir/region.h"
#include "tenon/graph/text/dump.h"
#include "tenon/graph/text/text.h"

namespace tenon::graph {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

class Picture {
 public:
  explicit Picture(const Graph& graph)
      : g_(graph), versions_(versions_of(graph)), makers_(graph.values.size()) {}

  std::string draw() {
    text_ = "digraph graph_1 {\n  node [shape=box, fontname=\"sans-serif\"];\n";
    for (ValueId v = 0; v < g_.values.size(); ++v) {
      if (g_.values[v].storage >= g_.storages.size() || g_.values[v].producer != kNone) continue;
      makers_[v] = fmt::format("v{}", v);
      text_ += fmt::format("  v{} [label=\"{}\\n{} bytes\", shape=ellipse];\n", v, value(v),
                           g_.storages[g_.values[v].storage].nbytes);
    }
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      const Node& node = g_.nodes[i];
      if (!node.region) {
        call(node, fmt::format("n{}", i), "  ");
        continue;
      }
      text_ += fmt::format("  subgraph cluster_{} {{\n    label=\"{}\";\n", i, escaped(node.region->name));
      const std::vector<Node>& members = node.region->members;
      for (size_t k = 0; k < members.size(); ++k) call(members[k], fmt::format("n{}_{}", i, k), "    ");
      text_ += "  }\n";
    }
    text_ += edges_;
    for (StorageId s = 0; s < g_.storages.size(); ++s) {
      if (g_.storages[s].is_output) output(s);
    }
    return text_ + "}\n";
  }

 private:
  std::string value(ValueId v) const { return fmt::format("%{}.{}", g_.values[v].storage, versions_[v]); }

  void call(const Node& node, const std::string& id, std::string_view indent) {
    text_ += fmt::format("{}{} [label=\"{}\"];\n", indent, id, escaped(node.op.full_name()));
    for (const Use& u : g_.uses(node)) {
      if (u.value < makers_.size() && !makers_[u.value].empty())
        edge(makers_[u.value], id, fmt::format("{} {}", value(u.value), to_string(g_.geometry(u.geometry))));
    }
    for (const Def& d : g_.defs(node)) makers_[d.value] = id;
  }
  void edge(std::string_view from, std::string_view to, const std::string& label) {
    edges_ += fmt::format("  {} -> {} [label=\"{}\"];\n", from, to, escaped(label));
  }
  void output(StorageId s) {
    ValueId last = kNone;
    for (ValueId v = 0; v < g_.values.size(); ++v) {
      if (g_.values[v].storage == s && (last == kNone || versions_[v] > versions_[last])) last = v;
    }
    if (last == kNone || makers_[last].empty()) return;
    text_ += fmt::format("  out{} [label=\"%{}\", shape=ellipse, style=bold];\n  {} -> out{};\n", s, s,
                         makers_[last], s);
  }

  const Graph& g_;
  const std::vector<uint32_t> versions_;
  std::vector<std::string> makers_;  // by value
  std::string text_, edges_;
};

}  // namespace

std::string to_dot(const Graph& graph) { return Picture(graph).draw(); }

}  // namespace tenon::graph
