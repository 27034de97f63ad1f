#include <algorithm>

#include "tenon/graph/fuse/match.h"
#include "tenon/graph/fuse/passes.h"

namespace tenon::graph {
namespace {

// A use of the loop's own size saves the traffic of a tensor where it is shared; a number or a
// row that is broadcast does not.
bool is_worth_sharing(const Graph& g, const Use& u, const Clusters& clusters, ClusterId of) {
  int64_t numel = 1;
  for (const int64_t size : clusters[of].sizes) numel *= size;
  return g.geometry(u.geometry).numel() == numel;
}

// Tensors of the loop's size that a loop reads and leaves, of one cluster or of two in one.
int64_t operands(const Clusters& clusters, ClusterId a, ClusterId b, int64_t numel) {
  const Graph& g = clusters.graph();
  const auto inside = [&](NodeId node) {
    return node != kNone && (clusters.of(node) == a || clusters.of(node) == b);
  };
  std::vector<ValueId> read;
  int64_t count = 0;
  for (const ClusterId id : {a, b}) {
    if (id == kNone) continue;
    for (const NodeId member : clusters[id].members) {
      for (const Use& u : g.uses(g.nodes[member])) {
        if (u.value == kNone || inside(g.values[u.value].producer) || g.geometry(u.geometry).numel() != numel)
          continue;
        if (std::find(read.begin(), read.end(), u.value) == read.end()) read.push_back(u.value);
      }
      for (const Def& d : g.defs(g.nodes[member])) {
        // Of two, who reads it may come to be joined too.
        const bool stored =
            b == kNone ? clusters.is_needed_outside(d.value, id) : clusters.is_kept(d.value, id);
        count += stored && g.geometry(d.geometry).numel() == numel;
      }
    }
  }
  return count + static_cast<int64_t>(read.size());
}

bool pays_for_transpositions(const Clusters& clusters, ClusterId flat, ClusterId rows) {
  const int64_t cost = clusters[rows].transposition_cost();
  if (cost == 0) return true;
  int64_t numel = 1;
  for (const int64_t size : clusters[rows].sizes) numel *= size;
  const int64_t more = operands(clusters, flat, rows, numel) - operands(clusters, rows, kNone, numel);
  return cost * more <= static_cast<int64_t>(clusters[flat].members.size());
}

bool is_faster_together(const Clusters& clusters, ClusterId a, ClusterId b) {
  const auto gains = [&](ClusterId one, ClusterId other) {
    return !clusters.is_faster_alone(one) ||
           (!clusters[other].over.empty() && !clusters.is_faster_alone(other));
  };
  if (!gains(a, b) || !gains(b, a)) return false;
  if (clusters[a].over.empty() == clusters[b].over.empty()) return true;
  return clusters[a].over.empty() ? pays_for_transpositions(clusters, a, b)
                                  : pays_for_transpositions(clusters, b, a);
}

}  // namespace

void join_flat(Clusters& clusters, Matcher* matcher) {
  const Graph& g = clusters.graph();
  std::vector<ClusterId> candidates;
  for (NodeId id = 0; id < g.nodes.size(); ++id) {
    const auto is_flat = [&](NodeId node) {
      const Clusters::Cluster& c = clusters[clusters.of(node)];
      return c.lowered && c.anchor_node == kNone;
    };
    if (matcher && matcher->is_anchor(id)) matcher->take_prologue(id);
    if (!is_flat(id)) continue;
    // Who wrote what it reads, and who reads the same.
    candidates.clear();
    for (const Use& u : g.uses(g.nodes[id])) {
      if (u.value == kNone || !is_worth_sharing(g, u, clusters, clusters.of(id))) continue;
      const NodeId producer = g.values[u.value].producer;
      const bool anchored =
          matcher && producer != kNone && clusters[clusters.of(producer)].anchor_node != kNone;
      if (producer != kNone && (is_flat(producer) || anchored)) {
        // Of its elements each is read at the place where it was written.
        const std::span<const Def> defs = g.defs(g.nodes[producer]);
        if (std::find(defs.begin(), defs.end(), Def{u.value, u.geometry}) != defs.end())
          candidates.push_back(producer);
      }
      const std::span<const NodeId> readers = clusters.readers(u.value);
      const auto self = std::lower_bound(readers.begin(), readers.end(), id);
      for (auto r = self; r != readers.begin();) {
        --r;
        const std::span<const Use> read = g.uses(g.nodes[*r]);
        if (!is_flat(*r) || std::find(read.begin(), read.end(), u) == read.end()) continue;
        candidates.push_back(*r);
        break;
      }
    }
    std::sort(candidates.begin(), candidates.end());
    // The latest first: others reach back further, and may be joined through it.
    for (size_t i = candidates.size(); i-- > 0;) {
      const ClusterId mine = clusters.of(id), other = clusters.of(candidates[i]);
      if (mine == other) continue;
      const bool fits = clusters[other].anchor_node != kNone ? matcher->why_no_epilogue(other, mine).empty()
                        : clusters[mine].anchor_node != kNone
                            ? matcher->why_no_epilogue(mine, other).empty()
                            : clusters.same_loop(mine, other) && is_faster_together(clusters, mine, other) &&
                                  clusters.may_join(mine, other);
      if (fits) clusters.join(mine, other);
    }
  }
}

}  // namespace tenon::graph
