#include "tenon/graph/ir/graph.h"

#include <algorithm>

#include "tenon/expr/mixer.h"
#include "tenon/graph/ir/region.h"

namespace tenon::graph {
namespace {

uint64_t hash(const Geometry& g) noexcept {
  expr::Mixer mixer;
  mixer.add(static_cast<uint64_t>(g.dtype) | uint64_t{g.wrapped_number} << 8 |
            static_cast<uint64_t>(g.offset) << 9);
  for (const int64_t size : g.sizes) mixer.add(static_cast<uint64_t>(size));
  for (const int64_t stride : g.strides) mixer.add(static_cast<uint64_t>(stride));
  return mixer.take().low;
}

// Few geometries are compared one by one; more are found by their hashes.
constexpr size_t kFewGeometries = 8;

}  // namespace

Node Node::copy() const {
  Node result(op);
  result.arguments = arguments;
  result.defs = defs;
  result.line = line;
  result.call = call;
  if (region) result.region = region->copy();
  return result;
}

Graph Graph::copy() const {
  Graph result;
  result.storages = storages;
  result.values = values;
  result.numbers = numbers;
  result.nodes.reserve(nodes.size());
  for (const Node& node : nodes) result.nodes.push_back(node.copy());
  result.geometries_ = geometries_;
  result.geometry_slots_ = geometry_slots_;
  result.uses_ = uses_;
  result.number_uses_ = number_uses_;
  result.defs_ = defs_;
  result.arguments_ = arguments_;
  for (size_t i = 0; i < attributes_.size(); ++i) result.attributes_.push_copy(attributes_, i);
  result.taken_arguments_ = taken_arguments_;
  result.taken_defs_ = taken_defs_;
  return result;
}

Device Graph::device(const Node& node) const noexcept {
  for (const Def& d : defs(node)) return storages[values[d.value].storage].device;
  for (const Use& u : uses(node)) {
    if (u.value != kNone) return storages[values[u.value].storage].device;
  }
  return kCPU;
}

std::span<const Use> Graph::uses(const Node& node) const noexcept {
  std::span<const Use> all;
  for (const Argument& argument : arguments(node)) {
    const std::span<const Use> own = uses(argument);
    if (!own.empty()) all = all.empty() ? own : std::span(all.data(), own.data() + own.size());
  }
  return all;
}

std::span<const uint32_t> Graph::numbers_of(const Node& node) const noexcept {
  std::span<const uint32_t> all;
  for (const Argument& argument : arguments(node)) {
    const std::span<const uint32_t> own = numbers_of(argument);
    if (!own.empty()) all = all.empty() ? own : std::span(all.data(), own.data() + own.size());
  }
  return all;
}

StorageId Graph::add_storage(const Storage& storage) {
  storages.push_back(storage);
  return static_cast<StorageId>(storages.size() - 1);
}

ValueId Graph::add_input_value(StorageId storage) {
  values.push_back({.storage = storage});
  return static_cast<ValueId>(values.size() - 1);
}

GeometryId Graph::add_geometry(const Geometry& geometry) {
  const auto append = [&] {
    geometries_.push_back(geometry);
    return static_cast<GeometryId>(geometries_.size() - 1);
  };
  if (geometries_.size() < kFewGeometries) {
    const auto found = std::find(geometries_.begin(), geometries_.end(), geometry);
    return found == geometries_.end() ? append() : static_cast<GeometryId>(found - geometries_.begin());
  }
  const auto place_of = [&](const Geometry& g) {
    const size_t mask = geometry_slots_.size() - 1;
    size_t at = hash(g) & mask;
    while (geometry_slots_[at] != kNone && !(geometries_[geometry_slots_[at]] == g)) at = (at + 1) & mask;
    return at;
  };
  if (2 * geometries_.size() >= geometry_slots_.size()) {
    geometry_slots_.assign(std::max<size_t>(64, 2 * geometry_slots_.size()), kNone);
    for (size_t i = 0; i < geometries_.size(); ++i)
      geometry_slots_[place_of(geometries_[i])] = static_cast<GeometryId>(i);
  }
  const size_t at = place_of(geometry);
  if (geometry_slots_[at] == kNone) {
    const GeometryId id = append();
    geometry_slots_[at] = id;
  }
  return geometry_slots_[at];
}

uint32_t Graph::add_number(Scalar::Kind kind) {
  numbers.push_back(kind);
  return static_cast<uint32_t>(numbers.size() - 1);
}

void Graph::add_use(Use use) {
  arguments_.push_back({Argument::Kind::Use, {static_cast<uint32_t>(uses_.size()), 1}});
  uses_.push_back(use);
}

void Graph::add_uses(std::span<const Use> uses) {
  arguments_.push_back(
      {Argument::Kind::Uses, {static_cast<uint32_t>(uses_.size()), static_cast<uint32_t>(uses.size())}});
  uses_.insert(uses_.end(), uses.begin(), uses.end());
}

void Graph::add_number_use(uint32_t number) {
  arguments_.push_back({Argument::Kind::Number, {static_cast<uint32_t>(number_uses_.size()), 1}});
  number_uses_.push_back(number);
}

void Graph::add_number_uses(std::span<const uint32_t> numbers) {
  arguments_.push_back({Argument::Kind::Numbers,
                        {static_cast<uint32_t>(number_uses_.size()), static_cast<uint32_t>(numbers.size())}});
  number_uses_.insert(number_uses_.end(), numbers.begin(), numbers.end());
}

void Graph::add_attribute(const Stack& from, size_t i) {
  arguments_.push_back({Argument::Kind::Attribute, {static_cast<uint32_t>(attributes_.size()), 1}});
  attributes_.push_copy(from, i);
}

ValueId Graph::add_def(StorageId storage, GeometryId geometry, ValueId previous) {
  // A node that a pass makes has no place yet: `renumber` sets the producer.
  values.push_back({storage, static_cast<NodeId>(nodes.size()), previous});
  const auto value = static_cast<ValueId>(values.size() - 1);
  defs_.push_back({value, geometry});
  return value;
}

Node Graph::make_node(OperatorHandle op, SourceMark line) {
  Node node(op);
  node.line = line;
  const auto take = [](uint32_t& taken, size_t size) {
    const Range range{taken, static_cast<uint32_t>(size) - taken};
    taken = static_cast<uint32_t>(size);
    return range;
  };
  node.arguments = take(taken_arguments_, arguments_.size());
  node.defs = take(taken_defs_, defs_.size());
  return node;
}

Node& Graph::add_node(OperatorHandle op, SourceMark line) {
  nodes.push_back(make_node(op, line));
  nodes.back().call = static_cast<uint32_t>(nodes.size() - 1);
  return nodes.back();
}

void Graph::renumber() noexcept {
  constexpr NodeId kGone = kNone - 1;
  for (Value& value : values) {
    if (value.producer != kNone) value.producer = kGone;
  }
  for (NodeId id = 0; id < nodes.size(); ++id) {
    for (const Def& def : defs(nodes[id])) values[def.value].producer = id;
    if (!nodes[id].region) continue;
    for (const Node& member : nodes[id].region->members) {
      for (const Def& def : defs(member)) values[def.value].producer = id;
    }
  }
  for (Value& value : values) {
    if (value.producer == kGone) value = {};
  }
}

std::vector<uint32_t> versions_of(const Graph& graph) {
  std::vector<uint32_t> versions(graph.values.size(), kNone), next(graph.storages.size());
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.producer == kNone && value.storage < next.size()) versions[v] = next[value.storage]++;
  }
  const auto number = [&](const Node& node) {
    for (const Def& d : graph.defs(node)) {
      if (d.value >= versions.size() || versions[d.value] != kNone) continue;
      const StorageId storage = graph.values[d.value].storage;
      if (storage < next.size()) versions[d.value] = next[storage]++;
    }
  };
  for (const Node& node : graph.nodes) {
    if (node.region) {
      for (const Node& member : node.region->members) number(member);
    }
    number(node);
  }
  return versions;
}

}  // namespace tenon::graph
