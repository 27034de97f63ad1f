#include <fmt/format.h>

#include <algorithm>

#include "tenon/core/error.h"
#include "tenon/graph/fuse/passes.h"
#include "tenon/graph/fuse/region_parts.h"

namespace tenon::graph {
namespace {

/// "mul" of aten::mul.Tensor, "add" of aten::add_.
std::string_view short_name(OperatorHandle op) {
  std::string_view name = op.name();
  if (const size_t colon = name.rfind(':'); colon != std::string_view::npos) name.remove_prefix(colon + 1);
  while (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

class RegionMaker {
 public:
  RegionMaker(Graph& graph, const Clusters& clusters, ClusterId id, bool relaxed)
      : g_(graph), clusters_(clusters), id_(id), cluster_(clusters[id]), relaxed_(relaxed) {}

  /// Throws Error{Value} where it would be no legal expression.
  Node make(size_t number) {
    region_ = RegionPtr(new Region);
    region_->kind = kind();
    region_->over = cluster_.over;
    if (!cluster_.over.empty()) rows_.emplace(cluster_.sizes, cluster_.over);
    region_->name = fmt::format("region_{}", number);
    for (size_t i = 0; i < cluster_.members.size(); ++i) {
      const Node& node = g_.nodes[cluster_.members[i]];
      if (i < kNamed) region_->name += fmt::format("_{}", short_name(node.op));
      region_->members.push_back(node.copy());
    }
    find_outputs();
    check_row_outputs();
    if (cluster_.anchor_node == kNone)
      region_->body = part(cluster_.members, nullptr, names_of(defs_));
    else
      around_anchor();
    return node();
  }

 private:
  static constexpr size_t kNamed = 5;

  RegionKind kind() const {
    if (cluster_.anchor_node == kNone) return cluster_.over.empty() ? RegionKind::Flat : RegionKind::Rows;
    const AnchorTrait& anchor = g_.nodes[cluster_.anchor_node].op.traits().anchor;
    return anchor.kind == AnchorTrait::Kind::Matmul ? RegionKind::Matmul : RegionKind::Convolution;
  }

  bool is_inner(ValueId value) const {
    const NodeId producer = g_.values[value].producer;
    return producer != kNone && clusters_.of(producer) == id_;
  }

  /// The last version of each storage that the region leaves, where it has readers.
  void find_outputs() {
    for (const NodeId node : cluster_.members) {
      for (const Def& d : g_.defs(g_.nodes[node])) {
        const StorageId storage = g_.values[d.value].storage;
        std::erase_if(defs_, [&](const Def& other) { return g_.values[other.value].storage == storage; });
        defs_.push_back(d);
      }
    }
    std::erase_if(defs_, [&](const Def& d) { return !clusters_.is_needed_outside(d.value, id_); });
  }

  /// A value of a row is stored when it is known, and the row's operands may be read again.
  void check_row_outputs() const {
    for (size_t i = 0; rows_ && i < defs_.size(); ++i) {
      if (!rows_->is_of_rows(g_.geometry(defs_[i].geometry).sizes)) continue;
      TENON_CHECK(is_made_here(g_.values[defs_[i].value].storage), Value,
                  "values of rows are written where the rows are read");
    }
  }
  /// Whether no member reads what a storage had before.
  bool is_made_here(StorageId storage) const {
    for (const NodeId node : cluster_.members) {
      for (const Use& u : g_.uses(g_.nodes[node])) {
        if (u.value != kNone && g_.values[u.value].storage == storage && !is_inner(u.value)) return false;
      }
    }
    return true;
  }

  std::vector<expr::ValueName> names_of(std::span<const Def> defs) {
    std::vector<expr::ValueName> names;
    for (const Def& d : defs) names.push_back(names_.of(d));
    return names;
  }

  uint32_t place_of(NodeId node) const {
    return static_cast<uint32_t>(std::lower_bound(cluster_.members.begin(), cluster_.members.end(), node) -
                                 cluster_.members.begin());
  }
  /// The place of a tensor among the uses of the region's node.
  uint32_t place_of_use(const Use& use) {
    const auto found = std::find(uses_.begin(), uses_.end(), use);
    const auto place = static_cast<uint32_t>(found - uses_.begin());
    if (found == uses_.end()) uses_.push_back(use);
    return place;
  }

  RegionPart part(std::span<const NodeId> calls, const Def* anchor_result,
                  std::span<const expr::ValueName> wanted) {
    // Prologues are flat.
    const bool on_rows = rows_ && (cluster_.anchor_node == kNone || anchor_result);
    PartMaker maker(g_, names_, numbers_, on_rows ? &*rows_ : nullptr, relaxed_);
    if (anchor_result) maker.add_anchor_result(*anchor_result);
    for (const NodeId call : calls) maker.add(g_.nodes[call], *clusters_.lowered(call), place_of(call));
    RegionPart made = maker.finish(wanted);
    for (uint32_t& input : made.inputs) {
      if (input != kAnchorResult) input = place_of_use(names_[input]);
    }
    return made;
  }

  void around_anchor() {
    const NodeId anchor = cluster_.anchor_node;
    region_->anchor_member = place_of(anchor);
    // What the anchor's operands are made by; the others come after it.
    std::vector<NodeId> before, after;
    std::vector<bool> feeds(cluster_.members.size());
    for (const Use& u : g_.uses(g_.nodes[anchor])) {
      if (u.geometry == kNone) continue;
      before.clear();
      collect(u.value, before);
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      for (const NodeId node : before) feeds[place_of(node)] = true;
      region_->prologue.push_back(before.empty() ? RegionPart()
                                                 : part(before, nullptr, std::array{names_.of(u)}));
      if (before.empty()) place_of_use(u);
    }
    for (const NodeId node : cluster_.members) {
      if (node != anchor && !feeds[place_of(node)]) after.push_back(node);
    }
    if (after.empty()) return;
    const Def& result = g_.defs(g_.nodes[anchor])[0];
    region_->epilogue = part(after, &result, names_of(defs_));
  }
  void collect(ValueId value, std::vector<NodeId>& nodes) const {
    if (value == kNone || !is_inner(value)) return;
    const NodeId producer = g_.values[value].producer;
    if (std::find(nodes.begin(), nodes.end(), producer) != nodes.end()) return;
    nodes.push_back(producer);
    for (const Use& u : g_.uses(g_.nodes[producer])) collect(u.value, nodes);
  }

  /// What runs rows finds the loop by operands of elements, and stores values of rows once for each.
  void check_rows(const RegionPart& part) const {
    const auto is_loop = [&](GeometryId id) { return g_.geometry(id).sizes == cluster_.sizes; };
    bool whole = false;
    for (const expr::Slot& slot : part.expression->inputs()) {
      const uint32_t input = part.inputs[slot.operand];
      whole |= varies_along(slot.rank) && (input == kAnchorResult || is_loop(uses_[input].geometry));
    }
    for (const expr::Slot& slot : part.expression->outputs()) {
      const bool elements = is_loop(defs_[slot.operand].geometry);
      TENON_CHECK(!elements || varies_along(slot.rank), Value,
                  "a value of rows, or a number, is stored for each of their elements");
      whole |= elements;
    }
    TENON_CHECK(whole, Value, "nothing is left that works on elements of rows");
  }

  Node node() {
    RegionPart& storing = region_->epilogue.empty() ? region_->body : region_->epilogue;
    if (rows_) check_rows(storing);
    if (!storing.empty()) {
      for (uint32_t i = 0; i < defs_.size(); ++i) storing.outputs.push_back(i);
    }
    // What members read and no part does any more is still read where they run one by one.
    for (const Node& member : region_->members) {
      for (const Use& u : g_.uses(member)) {
        if (u.value != kNone && !is_inner(u.value)) place_of_use(u);
      }
    }
    g_.add_uses(uses_);
    g_.add_number_uses(numbers_.used());
    region_->numbers = numbers_.take();
    for (const Def& d : defs_) g_.add_def(d);
    Node made = g_.make_node(region_operator(region_->kind), region_->members.back().line);
    made.region = std::move(region_);
    return made;
  }

  Graph& g_;
  const Clusters& clusters_;
  const ClusterId id_;
  const Clusters::Cluster& cluster_;
  const bool relaxed_;
  RegionPtr region_;
  std::optional<RowShape> rows_;
  Names names_;
  RegionNumbers numbers_;
  std::vector<Use> uses_;
  std::vector<Def> defs_;
};

}  // namespace

FormedRegions form_regions(Graph& graph, const Clusters& clusters, bool relaxed, bool single_calls) {
  FormedRegions formed;
  size_t number = 0;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const ClusterId cluster = clusters.of(id);
    const std::vector<NodeId>& members = clusters[cluster].members;
    if (clusters[cluster].place() != id) continue;
    if (members.size() > 1 || (single_calls && clusters[cluster].lowered)) {
      try {
        formed.nodes.push_back(RegionMaker(graph, clusters, cluster, relaxed).make(number));
        formed.anchors.push_back(clusters[cluster].anchor_node);
        formed.members.push_back(members);
        ++number;
        continue;
      } catch (const Error& error) {
        // Too many slots or nodes: its calls run as they are.
        formed.refused.push_back({id, error.what()});
      }
    }
    for (const NodeId member : members) {
      formed.nodes.push_back(graph.nodes[member].copy());
      formed.anchors.push_back(kNone);
      formed.members.push_back({member});
    }
  }
  return formed;
}

}  // namespace tenon::graph
