#include "tenon/graph/fuse/clusters.h"

#include <algorithm>

#include "tenon/expr/plain_reduction.h"

namespace tenon::graph {
namespace {

// Storages that a cluster touches: an expression has at most 64 slots of a kind (expr/spec.h), and many of
// these are inner values.
constexpr size_t kMostTouches = 60;
constexpr size_t kMostNumbers = 60;
constexpr size_t kMostMembers = 128;
// Shorter rows, or pieces of rows, are transposed so that several are reduced side by side. An expression's
// operands and results are all transposed then, where a reduction by itself reads its one operand in place.
constexpr int64_t kShortRow = 192;
// Elements up to which that costs less than a call by itself.
constexpr int64_t kFewElements = 2048;

/// Rows whose elements are side by side, all of a row or pieces of it.
bool is_worth_it(const LoweredCall& call) {
  int64_t length = 1;
  bool side_by_side = false;
  for (size_t d = 0; d < call.over.size(); ++d) {
    if (call.over[d]) length *= call.sizes[d];
    if (call.sizes[d] != 1) side_by_side = call.over[d] != 0;
  }
  return side_by_side && length > 1;
}

/// The dimension along which neighbours are side by side; kNone where there is none.
uint32_t innermost(const Geometry& t) {
  uint32_t best = kNone;
  for (uint32_t d = 0; d < t.sizes.size(); ++d) {
    if (t.sizes[d] != 1 && (best == kNone || std::abs(t.strides[d]) < std::abs(t.strides[best]))) best = d;
  }
  return best;
}

/// A copy that turns its operand: it goes by tiles, where a loop would jump at every element.
bool is_transposition(const Graph& g, const Node& node, const LoweredCall& call) {
  const expr::Expression& e = *call.expression;
  if (e.num_inputs != 1 || e.num_outputs != 1 || e[e.outputs()[0].node].op != expr::Op::Load) return false;
  const Geometry& from = g.geometry(g.uses(node)[call.inputs[0]].geometry);
  const Geometry& to = g.geometry(g.defs(node)[call.outputs[0]].geometry);
  return from.dtype == to.dtype && from.sizes == to.sizes && to.numel() > kFewElements &&
         innermost(from) != innermost(to);
}

}  // namespace

RowShape::RowShape(const Dims& sizes, const Dims& over) {
  for (size_t d = 0; d < sizes.size(); ++d) {
    kept.push_back(over[d] ? 1 : sizes[d]);
    if (!over[d]) dropped.push_back(sizes[d]);
  }
}

Clusters::Clusters(const Graph& graph, Lowering& lowering, bool rows, std::span<const NodeId> alone)
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
    if (!torn && std::ranges::find(alone, id) == alone.end()) lowered_[id] = lowering.lower(g_, node);
    if (lowered_[id] && (lowered_[id]->over.empty() ? is_transposition(g_, node, *lowered_[id])
                                                    : !rows || !is_worth_it(*lowered_[id])))
      lowered_[id] = nullptr;
    c.lowered = lowered_[id] != nullptr;
    if (!c.lowered) continue;
    c.numbers = lowered_[id]->numbers.size();
    c.over = lowered_[id]->over;
    c.sizes = c.over.empty() ? g_.geometry(g_.defs(node)[0].geometry).sizes : lowered_[id]->sizes;
  }
}

int64_t Clusters::Cluster::transposition_cost() const {
  int64_t length = 1, piece = 1, numel = 1;
  bool in_piece = true;
  for (size_t d = over.size(); d-- > 0;) {
    numel *= sizes[d];
    in_piece &= over[d] || sizes[d] == 1;
    if (over[d]) length *= sizes[d];
    if (in_piece) piece *= sizes[d];
  }
  if (over.empty() || piece >= kShortRow || numel <= kFewElements) return 0;
  return piece < length ? 4 : 2;
}

bool Clusters::is_faster_alone(ClusterId id) const {
  if (clusters_[id].members.size() != 1 || clusters_[id].over.empty()) return false;
  const NodeId node = clusters_[id].members[0];
  const LoweredCall& call = *lowered_[node];
  int64_t numel = 1;
  for (const int64_t size : call.sizes) numel *= size;
  const std::optional<expr::PlainReduction> plain = expr::plain_reduction(*call.expression);
  if (!plain || numel <= kFewElements || returns_to_elements(node)) return false;
  const ValueId operand = g_.uses(g_.nodes[node])[call.inputs[plain->input]].value;
  const NodeId producer = g_.values[operand].producer;
  return clusters_[id].transposition_cost() != 0 || producer == kNone || is_kept(operand, of_[producer]);
}

// Whether something is computed of the rows' elements and of what was reduced of them, as in a softmax.
bool Clusters::returns_to_elements(NodeId reduction) const {
  const LoweredCall& call = *lowered_[reduction];
  const RowShape shape(call.sizes, call.over);
  std::vector<NodeId> left = {reduction};
  for (size_t i = 0; i < left.size() && i < kMostMembers; ++i) {
    for (const Def& made : g_.defs(g_.nodes[left[i]])) {
      for (const NodeId reader : readers_[made.value]) {
        if (g_.defs(g_.nodes[reader]).empty()) continue;
        const Dims& sizes = g_.geometry(g_.defs(g_.nodes[reader])[0].geometry).sizes;
        if (sizes == call.sizes) return true;
        if (shape.is_of_rows(sizes) && std::find(left.begin(), left.end(), reader) == left.end())
          left.push_back(reader);
      }
    }
  }
  return false;
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

bool Clusters::same_loop(ClusterId a, ClusterId b) const {
  const Cluster &x = clusters_[a], &y = clusters_[b];
  if (x.over.empty() && y.over.empty()) return x.sizes == y.sizes;
  if (!x.over.empty() && !y.over.empty()) return x.sizes == y.sizes && x.over == y.over && values_fit(a, b);
  const Cluster &rows = x.over.empty() ? y : x, &flat = x.over.empty() ? x : y;
  const RowShape shape(rows.sizes, rows.over);
  return (flat.sizes == rows.sizes || shape.is_of_rows(flat.sizes)) && values_fit(a, b);
}

// Whether what works on elements of rows reads the rows' values as such: broadcast along them.
bool Clusters::values_fit(ClusterId a, ClusterId b) const {
  const Cluster& rows = clusters_[a].over.empty() ? clusters_[b] : clusters_[a];
  const RowShape shape(rows.sizes, rows.over);
  for (const ClusterId id : {a, b}) {
    for (const NodeId node : clusters_[id].members) {
      if (!lowered_[node] || !lowered_[node]->over.empty()) continue;
      const Dims& made = g_.geometry(g_.defs(g_.nodes[node])[0].geometry).sizes;
      const bool on_elements = made == rows.sizes;
      if (!on_elements && !shape.is_of_rows(made)) continue;  // makes an operand of an anchor
      for (const Use& u : g_.uses(g_.nodes[node])) {
        if (u.value == kNone) continue;
        const NodeId producer = g_.values[u.value].producer;
        const bool inner = producer != kNone && (of_[producer] == a || of_[producer] == b);
        const Dims& sizes = g_.geometry(u.geometry).sizes;
        // A dimension less, it would be broadcast along the others.
        if (on_elements && inner && !(sizes == rows.sizes) && !(sizes == shape.kept)) return false;
        if (!on_elements && !shape.is_of_rows(sizes)) return false;
      }
    }
  }
  return true;
}

std::string_view Clusters::why_apart(ClusterId a, ClusterId b) const {
  const Cluster &x = clusters_[a], &y = clusters_[b];
  if (x.touches.size() + y.touches.size() > kMostTouches ||
      x.members.size() + y.members.size() > kMostMembers || x.numbers + y.numbers > kMostNumbers)
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
  to.numbers += from.numbers;
  if (from.anchor_node != kNone) to.anchor_node = from.anchor_node;
  // Of an anchor its result, else the elements of rows rather than their values.
  const bool in_rows = to.anchor_node == kNone && to.over.empty() && !from.over.empty();
  if (from.anchor_node != kNone || in_rows) to.sizes = from.sizes;
  if (to.over.empty()) to.over = from.over;
  to.lowered &= from.lowered;
  from.members.clear();
  return b;
}

void Clusters::set_anchor(ClusterId id, NodeId node) {
  clusters_[id].anchor_node = node;
  clusters_[id].sizes = g_.geometry(g_.defs(g_.nodes[node])[0].geometry).sizes;
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
