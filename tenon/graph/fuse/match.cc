#include "tenon/graph/fuse/match.h"

#include <algorithm>

#include "tenon/dispatch/dispatcher.h"

namespace tenon::graph {

Matcher::Matcher(Clusters& clusters, std::span<const NodeId> except)
    : clusters_(clusters), g_(clusters.graph()), except_(except.begin(), except.end()) {
  for (NodeId id = 0; id < g_.nodes.size(); ++id) {
    if (is_anchor(id)) clusters_.set_anchor(clusters_.of(id), id);
  }
}

bool Matcher::is_anchor(NodeId node) const {
  return !g_.nodes[node].region && g_.nodes[node].op.traits().anchor.kind != AnchorTrait::Kind::None &&
         std::find(except_.begin(), except_.end(), node) == except_.end();
}

void Matcher::refuse(NodeId node, std::string_view reason) {
  refused_.push_back({node, std::string(reason)});
}

std::string_view Matcher::why_no_prologue(ClusterId anchor, const Use& use) const {
  const Value& value = g_.values[use.value];
  const ClusterId producer = clusters_.of(value.producer);
  const Clusters::Cluster& c = clusters_[producer];
  if (!c.lowered || !c.over.empty() || c.anchor_node != kNone)
    return "what makes the operand is not pointwise";
  for (const NodeId node : c.members) {
    for (const Def& d : g_.defs(g_.nodes[node])) {
      if (d.value == use.value && d.geometry != use.geometry)
        return "the operand is read in another order than it is made in";
      // Read by members, and by what the anchor's cluster has; the rest of the world does not see it.
      const std::span<const NodeId> readers = clusters_.readers(d.value);
      const bool inner = std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
        return clusters_.of(reader) == producer || clusters_.of(reader) == anchor;
      });
      if (!inner || clusters_.is_kept(d.value, producer)) return "the operand is used by others too";
    }
  }
  return clusters_.why_apart(producer, anchor);
}

void Matcher::take_prologue(NodeId anchor) {
  std::vector<Use> open;
  const auto push = [&](NodeId node) {
    const std::span<const Use> uses = g_.uses(g_.nodes[node]);
    open.insert(open.end(), uses.begin(), uses.end());
  };
  push(anchor);
  while (!open.empty()) {
    const Use use = open.back();
    open.pop_back();
    if (use.value == kNone || g_.values[use.value].producer == kNone) continue;
    const NodeId producer = g_.values[use.value].producer;
    const ClusterId mine = clusters_.of(anchor), other = clusters_.of(producer);
    if (mine == other || !clusters_.lowered(producer)) continue;
    if (const std::string_view why = why_no_prologue(mine, use); !why.empty()) {
      refuse(producer, why);
      continue;
    }
    const std::vector<NodeId> members = clusters_[other].members;
    clusters_.join(mine, other);
    for (const NodeId node : members) push(node);
  }
}

std::string_view Matcher::why_no_epilogue(ClusterId anchor, ClusterId flat) const {
  const Clusters::Cluster &a = clusters_[anchor], &f = clusters_[flat];
  if (f.anchor_node != kNone) return "what reads the result belongs to another product or convolution";
  if (!f.lowered) return "what reads the result is not pointwise";
  const Def& result = g_.defs(g_.nodes[a.anchor_node])[0];
  const Dims& sizes = g_.geometry(result.geometry).sizes;
  if (!(f.sizes == sizes) && a.over.empty()) return "what reads the result has another shape";
  if ((!a.over.empty() || !f.over.empty()) && !clusters_.same_loop(anchor, flat))
    return "what reads the result is made of other rows";
  for (const NodeId node : a.members) {
    if (node > a.anchor_node) break;
    for (const Use& u : g_.uses(g_.nodes[node])) {
      const NodeId producer = u.value == kNone ? kNone : g_.values[u.value].producer;
      if (producer != kNone && clusters_.of(producer) == flat)
        return "it makes what the operands are made of, too";
    }
  }
  return clusters_.why_apart(anchor, flat);
}

void Matcher::take_epilogue(NodeId anchor) {
  std::vector<Def> open(g_.defs(g_.nodes[anchor]).begin(), g_.defs(g_.nodes[anchor]).end());
  while (!open.empty()) {
    const Def made = open.front();
    open.erase(open.begin());
    for (const NodeId reader : clusters_.readers(made.value)) {
      const ClusterId mine = clusters_.of(anchor), other = clusters_.of(reader);
      if (mine == other || !clusters_.lowered(reader)) continue;
      if (const std::string_view why = why_no_epilogue(mine, other); !why.empty()) {
        refuse(reader, why);
        continue;
      }
      const std::vector<NodeId> members = clusters_[other].members;
      clusters_.join(mine, other);
      for (const NodeId node : members) {
        const std::span<const Def> defs = g_.defs(g_.nodes[node]);
        open.insert(open.end(), defs.begin(), defs.end());
      }
    }
  }
}

void Matcher::match_all() {
  for (NodeId id = 0; id < g_.nodes.size(); ++id) {
    if (!is_anchor(id)) continue;
    take_prologue(id);
    take_epilogue(id);
  }
}

}  // namespace tenon::graph
