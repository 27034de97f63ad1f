#include "tenon/graph/clusters.h"

#include <algorithm>

namespace tenon::graph {
namespace {

// Storages that a cluster touches: an expression has at most 64 slots of a kind (expr/spec.h), and many of
// these are inner values.
constexpr size_t kMostTouches = 60;
constexpr size_t kMostMembers = 128;

}  // namespace

Clusters::Clusters(const Graph& graph, Lowering& lowering)
    : g_(graph),
      lowered_(graph.nodes.size()),
      clusters_(graph.nodes.size()),
      of_(graph.nodes.size()),
      reads_(graph.storages.size()),
      writes_(graph.storages.size()),
      readers_(graph.values.size()),
      next_(graph.values.size(), kNone),
      last_(graph.storages.size(), kNone) {
  for (ValueId v = 0; v < g_.values.size(); ++v) {
    const Value& value = g_.values[v];
    if (value.storage != kNone && value.producer == kNone) last_[value.storage] = v;
  }
  for (NodeId id = 0; id < g_.nodes.size(); ++id) {
    const Node& node = g_.nodes[id];
    Cluster& c = clusters_[id];
    of_[id] = id;
    c.members = {id};
    for (const Use& u : g_.uses(node)) {
      if (u.value == kNone) continue;
      const StorageId storage = g_.values[u.value].storage;
      touch(c, {storage, u.geometry, true, false});
      reads_[storage].push_back(id);
      readers_[u.value].push_back(id);
    }
    for (const Def& d : g_.defs(node)) {
      const Value& value = g_.values[d.value];
      touch(c, {value.storage, d.geometry, false, true});
      writes_[value.storage].push_back(id);
      if (value.previous != kNone) next_[value.previous] = d.value;
      last_[value.storage] = d.value;
    }
    if (node.region || g_.defs(node).empty()) continue;
    // A call that reads what it writes at other places is not done element by element.
    const bool torn = std::any_of(c.touches.begin(), c.touches.end(),
                                  [](const Touch& t) { return t.written && t.geometry == kNone; });
    if (!torn) lowered_[id] = lowering.lower(g_, node);
    c.flat = lowered_[id] != nullptr;
    if (c.flat) c.loop = g_.defs(node)[0].geometry;
  }
}

void Clusters::touch(Cluster& c, const Touch& t) {
  for (Touch& known : c.touches) {
    if (known.storage != t.storage) continue;
    if (known.geometry != t.geometry) known.geometry = kNone;
    known.read |= t.read;
    known.written |= t.written;
    return;
  }
  c.touches.push_back(t);
}

// Whether a node of a third cluster, which runs after `moved` and not after `place`, must see it done or
// undone.
bool Clusters::blocked(ClusterId moved, ClusterId with, NodeId place) const {
  const NodeId from = clusters_[moved].place();
  const auto between = [&](NodeId node) {
    const ClusterId other = of_[node];
    if (other == moved || other == with) return false;
    const NodeId at = clusters_[other].place();
    return at > from && at <= place;
  };
  for (const Touch& t : clusters_[moved].touches) {
    if (std::any_of(writes_[t.storage].begin(), writes_[t.storage].end(), between)) return true;
    if (t.written && std::any_of(reads_[t.storage].begin(), reads_[t.storage].end(), between)) return true;
  }
  return false;
}

std::string_view Clusters::why_apart(ClusterId a, ClusterId b) const {
  const Cluster &x = clusters_[a], &y = clusters_[b];
  if (x.touches.size() + y.touches.size() > kMostTouches ||
      x.members.size() + y.members.size() > kMostMembers)
    return "together they would have too many operands";
  for (const Touch& t : x.touches) {
    for (const Touch& u : y.touches) {
      if (t.storage != u.storage || !(t.written || u.written)) continue;
      if (t.geometry != u.geometry || t.geometry == kNone)
        return "one reads what the other writes at other places";
    }
  }
  const bool first = x.place() < y.place();
  if (blocked(first ? a : b, first ? b : a, std::max(x.place(), y.place())))
    return "a step between them depends on the first";
  return {};
}

ClusterId Clusters::join(ClusterId a, ClusterId b) {
  if (clusters_[a].place() > clusters_[b].place()) std::swap(a, b);
  Cluster &from = clusters_[a], &to = clusters_[b];
  for (const NodeId node : from.members) of_[node] = b;
  std::vector<NodeId> members(from.members.size() + to.members.size());
  std::merge(from.members.begin(), from.members.end(), to.members.begin(), to.members.end(), members.begin());
  to.members = std::move(members);
  for (const Touch& t : from.touches) touch(to, t);
  if (from.anchor_node != kNone) {
    to.anchor = from.anchor;
    to.anchor_node = from.anchor_node;
  }
  if (to.loop == kNone) to.loop = from.loop;
  to.flat &= from.flat;
  from.members.clear();
  return b;
}

void Clusters::set_anchor(ClusterId id, Anchor anchor, NodeId node) {
  clusters_[id].anchor = anchor;
  clusters_[id].anchor_node = node;
}

bool Clusters::is_kept(ValueId value, ClusterId cluster) const {
  const StorageId storage = g_.values[value].storage;
  if (last_[storage] == value && g_.storages[storage].is_output) return true;
  const ValueId next = next_[value];
  return next != kNone && of_[g_.values[next].producer] != cluster;
}

bool Clusters::is_needed_outside(ValueId value, ClusterId cluster) const {
  if (is_kept(value, cluster)) return true;
  const std::vector<NodeId>& readers = readers_[value];
  return std::any_of(readers.begin(), readers.end(), [&](NodeId node) { return of_[node] != cluster; });
}

std::span<const NodeId> Clusters::readers(ValueId value) const { return readers_[value]; }

}  // namespace tenon::graph
