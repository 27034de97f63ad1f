// Graph: what a segment of recorded calls computes, as data: the one intermediate representation.
// `record` lifts its segments to graphs, passes rewrite them, plans are made from them. Knows shapes and
// storages by number; holds no addresses and no values of numbers.
//
// A value is one version of a storage, not of a tensor. Views are no nodes: each use of a value says which of
// its elements it reads, and each definition which ones it writes. Writes in place and aliases are therefore
// right by construction: a node that writes a part of a storage makes its next version, whose other elements
// are those of the version before.
//
// Nodes are in the order in which they run. Everything that nodes have several of is in one vector for
// all nodes, so that a graph costs a few allocations; a pass leaves what it no longer needs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tenon/core/device.h"
#include "tenon/core/dims.h"
#include "tenon/core/dtype.h"
#include "tenon/core/scalar.h"
#include "tenon/core/source_mark.h"
#include "tenon/dispatch/operator.h"

namespace tenon::graph {

using StorageId = uint32_t;
using ValueId = uint32_t;
using GeometryId = uint32_t;
using NodeId = uint32_t;
inline constexpr uint32_t kNone = ~uint32_t{0};

/// A block of memory. Storages that nodes share are the same row; two rows never overlap.
struct Storage {
  uint64_t nbytes = 0;
  Device device = kCPU;
  bool is_input = false;   ///< Has bytes before the graph runs, which are its version 0.
  bool is_output = false;  ///< Its last version is read afterwards.
};

/// One version of a storage.
struct Value {
  StorageId storage = kNone;  ///< kNone for a value that a pass has removed.
  NodeId producer = kNone;    ///< The node that writes it; kNone for the bytes of an input.
  /// The version that its producer reads or keeps elements of; kNone for one that needs none before it.
  ValueId previous = kNone;
};

/// Which elements of a storage a tensor has.
struct Geometry {
  DType dtype = DType::Float32;
  bool wrapped_number = false;  ///< It promotes as a number does.
  int64_t offset = 0;           ///< In elements.
  Dims sizes;
  Dims strides;  ///< In elements; may be zero or negative.

  int64_t numel() const noexcept {
    int64_t n = 1;
    for (const int64_t size : sizes) n *= size;
    return n;
  }
  friend bool operator==(const Geometry&, const Geometry&) = default;
};

/// A tensor argument: elements of one version of a storage.
struct Use {
  /// kNone for an argument whose elements the node overwrites without reading any; its def names the storage.
  ValueId value = kNone;
  /// kNone for an absent tensor in a list.
  GeometryId geometry = kNone;
  friend bool operator==(const Use&, const Use&) = default;
};

/// A tensor that a node writes: a result, or an argument of its own. The value is the version that holds
/// afterwards.
struct Def {
  ValueId value = kNone;
  GeometryId geometry = kNone;
  friend bool operator==(const Def&, const Def&) = default;
};

/// Some elements of one of the graph's vectors.
struct Range {
  uint32_t first = 0;
  uint32_t count = 0;
};

/// One argument of a call, in the schema's order.
struct Argument {
  enum class Kind : uint8_t {
    None,       ///< An absent tensor, number or value.
    Use,        ///< `range` of uses, one.
    Uses,       ///< A list of tensors: `range` of uses.
    Number,     ///< `range` of number references, one: a Scalar, float or int, whose value each run
                ///< brings.
    Numbers,    ///< A list of them.
    Attribute,  ///< `range.first` in the stack of attributes: everything else.
  };
  Kind kind = Kind::None;
  Range range;
};

/// Of region.h.
struct Region;
struct RegionDeleter {
  void operator()(Region* region) const noexcept;
};
using RegionPtr = std::unique_ptr<Region, RegionDeleter>;

/// A call of an operator, or a region of several of them that run as one.
struct Node {
  OperatorHandle op;
  Range arguments;  ///< In the schema's order.
  /// Its results in order, those in a list included, then the tensors that it writes among its arguments, in
  /// order. A result that is an argument that it writes is not listed twice.
  Range defs;
  SourceMark line;  ///< Where it was recorded.
  /// Its number among the calls of its program; by default, among the graph's nodes.
  uint32_t call = kNone;
  RegionPtr region;

  explicit Node(OperatorHandle o) noexcept : op(o) {}
  /// With its region; its ranges stay what they are.
  Node copy() const;
};

class Graph {
 public:
  /// With everything in it, regions included.
  Graph copy() const;

  // The tables. Those that are public may be changed within the rules of verify.h.
  std::vector<Storage> storages;
  std::vector<Value> values;
  /// The kind of each number that a run brings; two that are equal by chance are two.
  std::vector<Scalar::Kind> numbers;
  std::vector<Node> nodes;

  std::span<const Argument> arguments(const Node& node) const noexcept {
    return {arguments_.data() + node.arguments.first, node.arguments.count};
  }
  std::span<const Def> defs(const Node& node) const noexcept {
    return {defs_.data() + node.defs.first, node.defs.count};
  }
  /// The tensors of an argument; none for other kinds.
  std::span<const Use> uses(const Argument& argument) const noexcept {
    if (argument.kind != Argument::Kind::Use && argument.kind != Argument::Kind::Uses) return {};
    return {uses_.data() + argument.range.first, argument.range.count};
  }
  /// Where a node runs: the device of the first tensor that it writes, or reads.
  Device device(const Node& node) const noexcept;
  /// All tensors among the arguments of a node, one after the other.
  std::span<const Use> uses(const Node& node) const noexcept;
  /// Which of the graph's numbers an argument has; none for other kinds.
  std::span<const uint32_t> numbers_of(const Argument& argument) const noexcept {
    if (argument.kind != Argument::Kind::Number && argument.kind != Argument::Kind::Numbers) return {};
    return {number_uses_.data() + argument.range.first, argument.range.count};
  }
  /// Those of all arguments of a node, in order.
  std::span<const uint32_t> numbers_of(const Node& node) const noexcept;
  /// What Argument::range.first of an attribute counts.
  const Stack& attributes() const noexcept { return attributes_; }
  const Geometry& geometry(GeometryId id) const noexcept { return geometries_[id]; }
  size_t num_geometries() const noexcept { return geometries_.size(); }

  // Building: arguments are added in the schema's order, then `add_node` takes those added since the last.

  StorageId add_storage(const Storage& storage);
  /// Version 0 of an input.
  ValueId add_input_value(StorageId storage);
  /// Equal geometries have one number.
  GeometryId add_geometry(const Geometry& geometry);
  uint32_t add_number(Scalar::Kind kind);

  void add_none() { arguments_.push_back({}); }
  void add_use(Use use);
  void add_uses(std::span<const Use> uses);
  void add_number_use(uint32_t number);
  void add_number_uses(std::span<const uint32_t> numbers);
  /// A copy of a boxed value.
  void add_attribute(const Stack& from, size_t i);
  /// Adds a written tensor of the node that comes next, and the value that it makes. `previous`: as in Value.
  ValueId add_def(StorageId storage, GeometryId geometry, ValueId previous);
  /// The same of a value that is there.
  void add_def(Def def) { defs_.push_back(def); }
  /// A call on what was added since the last one, as the last node.
  Node& add_node(OperatorHandle op, SourceMark line = {});
  /// The same, for a pass that finds its place.
  Node make_node(OperatorHandle op, SourceMark line = {});

  /// Sets the producers of all values after nodes were moved, joined or removed. A value that only members of
  /// a region write and read has the region as its producer; one that nothing writes any more is of no
  /// storage.
  void renumber() noexcept;

 private:
  std::vector<Geometry> geometries_;
  std::vector<uint32_t> geometry_slots_;  ///< Open addressing by hash, once there are more than a few.
  std::vector<Use> uses_;
  std::vector<uint32_t> number_uses_;
  std::vector<Def> defs_;
  std::vector<Argument> arguments_;
  Stack attributes_;
  uint32_t taken_arguments_ = 0, taken_defs_ = 0;  ///< By nodes so far.
};

/// The version of each value in its storage, by which keys and texts name values.
std::vector<uint32_t> versions_of(const Graph& graph);

}  // namespace tenon::graph
