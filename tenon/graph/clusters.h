// Clusters: which nodes of a graph run together, before they are made regions. A cluster runs where its last
// member stands, so members move down; `may_join` says whether any node between would then see other bytes.
// Used by the fuser and the matcher.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tenon/graph/graph.h"
#include "tenon/graph/lowering.h"
#include "tenon/graph/region.h"

namespace tenon::graph {

using ClusterId = uint32_t;

class Clusters {
 public:
  /// Each node by itself. Lowers every call once.
  Clusters(const Graph& graph, Lowering& lowering);

  /// What a storage is to a cluster.
  struct Touch {
    StorageId storage;
    GeometryId geometry;  ///< The one that all its uses and defs have; kNone where there are several.
    bool read, written;
  };
  struct Cluster {
    std::vector<NodeId> members;  ///< Rising; empty once it was joined to another.
    std::vector<Touch> touches;
    Anchor anchor = Anchor::None;
    NodeId anchor_node = kNone;
    /// The geometry that its flat members loop over; kNone: none of them does.
    GeometryId loop = kNone;
    bool flat = false;  ///< All members are lowered to flat expressions.

    NodeId place() const noexcept { return members.back(); }
  };

  const Graph& graph() const noexcept { return g_; }
  ClusterId of(NodeId node) const noexcept { return of_[node]; }
  const Cluster& operator[](ClusterId id) const noexcept { return clusters_[id]; }
  const LoweredCall* lowered(NodeId node) const noexcept { return lowered_[node].get(); }
  /// The sizes that a flat call loops over; of its first def.
  const Dims& loop_of(NodeId node) const { return g_.geometry(g_.defs(g_.nodes[node])[0].geometry).sizes; }

  /// Why two clusters cannot run as one at the place of the later one; empty if they can. It knows the bytes
  /// that they touch, and not what they compute.
  std::string_view why_apart(ClusterId a, ClusterId b) const;
  bool may_join(ClusterId a, ClusterId b) const { return why_apart(a, b).empty(); }
  /// Joins them, which must be possible. The result is the later one.
  ClusterId join(ClusterId a, ClusterId b);
  void set_anchor(ClusterId id, Anchor anchor, NodeId node);

  /// Whether a value is given back, or changed in part outside of a cluster.
  bool is_kept(ValueId value, ClusterId cluster) const;
  /// The same, or read outside.
  bool is_needed_outside(ValueId value, ClusterId cluster) const;
  /// The nodes that read it as an argument.
  std::span<const NodeId> readers(ValueId value) const;

 private:
  void touch(Cluster& c, const Touch& t);
  bool blocked(ClusterId moved, ClusterId with, NodeId place) const;

  const Graph& g_;
  std::vector<std::shared_ptr<const LoweredCall>> lowered_;
  std::vector<Cluster> clusters_;  // by their first node
  std::vector<ClusterId> of_;
  std::vector<std::vector<NodeId>> reads_, writes_;  // of storages
  std::vector<std::vector<NodeId>> readers_;         // of values
  std::vector<ValueId> next_;                        // the version that keeps elements of a value
  std::vector<ValueId> last_;                        // of storages
};

}  // namespace tenon::graph
