// Clusters: which nodes of a graph run together, before they are made regions. A cluster runs where its last
// member is, so members move down; `may_join` says whether any node between would then see other bytes.
// Used by the fuser and the matcher.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tenon/graph/ir/graph.h"
#include "tenon/graph/ir/lowering.h"
#include "tenon/graph/ir/region.h"

namespace tenon::graph {

using ClusterId = uint32_t;

/// The shapes that values of rows have.
struct RowShape {
  Dims kept, dropped;  ///< With the dimensions of a row, of size 1, and without them.

  RowShape(const Dims& sizes, const Dims& over);
  bool is_of_rows(const Dims& sizes) const noexcept { return sizes == kept || sizes == dropped; }
};

class Clusters {
 public:
  /// Each node by itself. Lowers every call once, but for those that are to stay `alone`; without `rows`,
  /// those that work on rows count as others.
  Clusters(const Graph& graph, Lowering& lowering, bool rows, std::span<const NodeId> alone = {});

  /// What a storage is to a cluster.
  struct Touch {
    StorageId storage;
    GeometryId geometry;  ///< The one that all its uses and defs have; kNone where there are several.
    bool read, written;
  };
  struct Cluster {
    std::vector<NodeId> members;  ///< Rising; empty once it was joined to another.
    std::vector<Touch> touches;
    size_t numbers = 0;  ///< Slots for numbers, of all members.
    NodeId anchor_node = kNone;
    /// What its members loop over, and which of the dimensions make up a row where one of them works on rows.
    /// Members that work on values of rows loop over less.
    Dims sizes, over;
    bool lowered = false;  ///< All members are expressions.

    /// How many flat members must be saved to pay for one more operand or result, which is transposed where
    /// rows, or their pieces, are short; 0 where they are long enough to be read in place, or few.
    int64_t transposition_cost() const;
    NodeId place() const noexcept { return members.back(); }
  };

  const Graph& graph() const noexcept { return g_; }
  ClusterId of(NodeId node) const noexcept { return of_[node]; }
  const Cluster& operator[](ClusterId id) const noexcept { return clusters_[id]; }
  const LoweredCall* lowered(NodeId node) const noexcept { return lowered_[node].get(); }

  /// Whether two clusters of expressions have one loop.
  bool same_loop(ClusterId a, ClusterId b) const;
  /// Why two clusters cannot run as one at the place of the later one; empty if they can. Compares
  /// the bytes that they touch; does not look at their expressions.
  std::string_view why_apart(ClusterId a, ClusterId b) const;
  bool may_join(ClusterId a, ClusterId b) const { return why_apart(a, b).empty(); }
  /// Whether it is a reduction that walks its operand faster by itself than a loop over rows would pass it
  /// on. The loop wins where it saves that the operand is stored, or where it reads the elements once for the
  /// reduction and for what is computed of both.
  bool is_faster_alone(ClusterId id) const;
  /// Joins them, which must be possible. The result is the later one.
  ClusterId join(ClusterId a, ClusterId b);
  void set_anchor(ClusterId id, NodeId node);

  /// Whether a value is given back, or changed in part outside of a cluster.
  bool is_kept(ValueId value, ClusterId cluster) const;
  /// The same, or read outside.
  bool is_needed_outside(ValueId value, ClusterId cluster) const;
  /// The nodes that read it as an argument.
  std::span<const NodeId> readers(ValueId value) const;

 private:
  void touch(Cluster& c, const Touch& t);
  bool returns_to_elements(NodeId reduction) const;
  bool values_fit(ClusterId a, ClusterId b) const;
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
