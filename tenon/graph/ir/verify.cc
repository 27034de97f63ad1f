#include "tenon/graph/ir/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tenon/graph/ir/region.h"
#include "tenon/graph/ir/verify_parts.h"

namespace tenon::graph {
namespace {

using schema::BaseType;

/// Bytes from the start of a storage that a tensor needs; -1 where it begins before it, or beyond counting.
int64_t bytes_reached(const Geometry& g) {
  int64_t low = g.offset, high = g.offset;
  bool overflow = false;
  for (size_t d = 0; d < g.sizes.size(); ++d) {
    if (g.sizes[d] < 0) return -1;
  }
  for (size_t d = 0; d < g.sizes.size(); ++d) {
    if (g.sizes[d] == 0) return 0;
    int64_t step = 0;
    overflow |= __builtin_mul_overflow(g.sizes[d] - 1, g.strides[d], &step);
    int64_t& end = step < 0 ? low : high;
    overflow |= __builtin_add_overflow(end, step, &end);
  }
  int64_t bytes = 0;
  overflow |= __builtin_add_overflow(high, 1, &high);
  overflow |= __builtin_mul_overflow(high, static_cast<int64_t>(item_size(g.dtype)), &bytes);
  return overflow || low < 0 ? -1 : bytes;
}

/// The tag of an attribute of a schema type; None where there are no attributes of it.
CellTag attribute_tag(const schema::Type& type) {
  CellTag tag = CellTag::None;
  detail::for_each_base([&]<BaseType b>() {
    using V = detail::ValueType<b>;
    constexpr bool plain = b != BaseType::Tensor && b != BaseType::Generator && b != BaseType::Storage;
    if (plain && b == type.base) tag = type.list ? V::list_tag : V::tag;
  });
  return tag;
}

bool is_number(const schema::Type& type) {
  return type.base == BaseType::Scalar || type.base == BaseType::Float || type.base == BaseType::Int;
}

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : g_(graph), current_(graph.storages.size(), kNone) {}

  Violation run() {
    try {
      tables();
      for (at_ = 0; at_ < g_.nodes.size(); ++at_) {
        if (g_.nodes[at_].region)
          region(g_.nodes[at_]);
        else
          call(g_.nodes[at_]);
      }
      at_ = kNone;
      for (StorageId s = 0; s < g_.storages.size(); ++s)
        require(!g_.storages[s].is_output || current_[s] != kNone,
                "an output has a last version: storage %{} has none", s);
    } catch (Broken& broken) {
      return {std::move(broken.sentence), at_};
    }
    return {};
  }

 private:
  void tables() {
    for (GeometryId id = 0; id < g_.num_geometries(); ++id) {
      const Geometry& g = g_.geometry(id);
      require(is_known(g.dtype), "a geometry has a known dtype: geometry {} has code {}", id,
              static_cast<int>(g.dtype));
      require(g.sizes.size() == g.strides.size(),
              "a geometry has a stride for each size: geometry {} has {} and {}", id, g.sizes.size(),
              g.strides.size());
    }
    for (const Value& value : g_.values) {
      if (value.storage == kNone) continue;
      require(value.storage < g_.storages.size(), "a value is a version of one of the graph's storages");
      require(value.previous == kNone || value.previous < g_.values.size(),
              "the version before a value is one of the graph's values");
      require(value.producer == kNone || value.producer < g_.nodes.size(),
              "the producer of a value is one of the graph's nodes");
      if (value.producer != kNone) continue;
      require(g_.storages[value.storage].is_input,
              "only an input has a version that no node writes: storage %{} is none", value.storage);
      require(current_[value.storage] == kNone,
              "an input has one version that no node writes: storage %{} has two", value.storage);
      current_[value.storage] = static_cast<ValueId>(&value - g_.values.data());
    }
  }

  void geometry(GeometryId id, StorageId storage) const {
    require(id < g_.num_geometries(), "a tensor has one of the graph's geometries");
    const int64_t bytes = bytes_reached(g_.geometry(id));
    require(bytes >= 0 && static_cast<uint64_t>(bytes) <= g_.storages[storage].nbytes,
            "a tensor lies in its storage: storage %{} has {} bytes", storage, g_.storages[storage].nbytes);
  }

  void use(const Use& u) const {
    require(u.value < g_.values.size() && g_.values[u.value].storage != kNone,
            "a tensor argument is one of the graph's values");
    const StorageId storage = g_.values[u.value].storage;
    require(current_[storage] == u.value,
            "a node reads the version that its storage has then: of storage %{} it reads another", storage);
    geometry(u.geometry, storage);
  }

  void argument(const schema::Argument& declared, const Argument& given) {
    using Kind = Argument::Kind;
    const schema::Type& type = declared.type;
    const bool list = type.list;
    const auto fits = [&](bool right) {
      require(right, "an argument is of its schema's type: `{}` is {}", declared.name, to_string(type));
    };
    switch (given.kind) {
      case Kind::None:
        fits(type.optional);
        return;
      case Kind::Use:
      case Kind::Uses:
        fits(type.base == BaseType::Tensor && list == (given.kind == Kind::Uses));
        for (const Use& u : g_.uses(given)) {
          if (u.value != kNone) {
            use(u);
          } else if (u.geometry == kNone) {
            require(list && type.element_optional,
                    "only lists of optional tensors have absent ones: `{}` is {}", declared.name,
                    to_string(type));
          } else {
            require(declared.is_write(), "an argument that is not written is read: `{}` has no value",
                    declared.name);
          }
        }
        return;
      case Kind::Number:
      case Kind::Numbers:
        fits(is_number(type) && list == (given.kind == Kind::Numbers));
        for (const uint32_t n : g_.numbers_of(given)) {
          require(n < g_.numbers.size(), "a number is one of the graph's numbers: ${} is none", n);
          const Scalar::Kind kind = g_.numbers[n];
          require(type.base == BaseType::Scalar ||
                      kind == (type.base == BaseType::Int ? Scalar::Kind::Int : Scalar::Kind::Float),
                  "a number has the kind of its argument: ${} has not that of {}", n, to_string(type));
        }
        return;
      case Kind::Attribute:
        fits(given.range.first < g_.attributes().size() &&
             g_.attributes().tag(given.range.first) == attribute_tag(type) &&
             attribute_tag(type) != CellTag::None);
        return;
    }
    fits(false);
  }

  void arguments(const Node& node) {
    const schema::FunctionSchema& schema = node.op.schema();
    const std::span<const Argument> given = g_.arguments(node);
    require(given.size() == schema.arguments.size(),
            "a node has the arguments of its schema: {} takes {}, not {}", node.op.full_name(),
            schema.arguments.size(), given.size());
    for (size_t i = 0; i < given.size(); ++i) argument(schema.arguments[i], given[i]);
  }

  void def(const Def& d, NodeId producer) {
    require(d.value < g_.values.size() && g_.values[d.value].storage != kNone,
            "what a node writes is one of the graph's values");
    const Value& value = g_.values[d.value];
    require(value.producer == producer, "the producer of a value is the node that writes it");
    require(value.previous == kNone || value.previous == current_[value.storage],
            "a version follows the one that its storage has then: of storage %{} it follows another",
            value.storage);
    require(written_.insert(d.value).second, "a value is written once");
    geometry(d.geometry, value.storage);
    current_[value.storage] = d.value;
  }

  /// What is written of a node's arguments comes last among its defs, at the places that its uses name.
  void written_arguments(const Node& node) const {
    const schema::FunctionSchema& schema = node.op.schema();
    size_t tensors = 0, results = 0;
    bool result_lists = false;
    for (const schema::Return& r : schema.returns) {
      if (r.is_write() || r.type.base != BaseType::Tensor) continue;
      result_lists |= r.type.list;
      results += !r.type.list;
    }
    std::vector<Use> written;
    const std::span<const Argument> given = g_.arguments(node);
    for (size_t i = 0; i < given.size(); ++i) {
      if (!schema.arguments[i].is_write()) continue;
      for (const Use& u : g_.uses(given[i])) {
        if (u.geometry != kNone) written.push_back(u), ++tensors;
      }
    }
    const std::span<const Def> defs = g_.defs(node);
    require(result_lists ? defs.size() >= results + tensors : defs.size() == results + tensors,
            "a node has a def for each result and each written argument: {} has {}", node.op.full_name(),
            defs.size());
    for (size_t i = 0; i < tensors; ++i) {
      const Def& d = defs[defs.size() - tensors + i];
      const Value& value = g_.values[d.value];
      const bool same = written[i].geometry == d.geometry &&
                        (written[i].value == kNone || written[i].value == value.previous);
      require(same, "a written argument is read and written at one place: of {} it is not",
              node.op.full_name());
    }
  }

  void call(const Node& node) {
    arguments(node);
    for (const Def& d : g_.defs(node)) {
      require(d.value < g_.values.size(), "what a node writes is one of the graph's values");
    }
    written_arguments(node);
    for (const Def& d : g_.defs(node)) def(d, at_);
  }

  void region(const Node& node) {
    const Region& region = *node.region;
    require(node.op == region_operator(region.kind), "the operator of a region's node is that of its anchor");
    require(names_.insert(region.name).second, "the name of a region is its own: '{}' is given twice",
            region.name);
    require(region.members.size() > 0, "a region has members: '{}' has none", region.name);
    arguments(node);
    for (const Node& member : region.members) {
      require(!member.region, "a member of a region is no region");
      const std::span<const Use> read = g_.uses(node);
      for (const Use& u : g_.uses(member)) {
        const bool inner = u.value < g_.values.size() && g_.values[u.value].producer == at_;
        require(u.value == kNone || inner || std::find(read.begin(), read.end(), u) != read.end(),
                "a region's node reads what its members read");
      }
      call(member);
    }
    for (const Def& d : g_.defs(node)) {
      require(d.value < g_.values.size() && written_.contains(d.value) && g_.values[d.value].producer == at_,
              "what a region writes is written by one of its members");
      require(current_[g_.values[d.value].storage] == d.value,
              "a region leaves the last version that it writes");
      const auto same = [&](const Def& of) { return of == d; };
      require(
          std::any_of(region.members.begin(), region.members.end(),
                      [&](const Node& m) { return std::any_of(g_.defs(m).begin(), g_.defs(m).end(), same); }),
          "what a region writes has the geometry of its member's");
    }
    one_geometry(node, region);
    check_region(g_, node);
  }

  /// A region visits its elements in any order.
  void one_geometry(const Node& node, const Region& region) const {
    for (const Def& d : g_.defs(node)) {
      const StorageId storage = g_.values[d.value].storage;
      for (const Node& member : region.members) {
        for (const Use& u : g_.uses(member)) {
          require(u.value == kNone || g_.values[u.value].storage != storage || u.geometry == d.geometry,
                  "a region reads what it writes at the same places: of storage %{} it reads others",
                  storage);
        }
      }
    }
  }

  const Graph& g_;
  std::vector<ValueId> current_;  // by storage: the version that it has at this place
  std::set<ValueId> written_;
  std::set<std::string_view> names_;
  NodeId at_ = kNone;
};

}  // namespace

Violation verify(const Graph& graph) { return Verifier(graph).run(); }

void check(const Graph& graph, std::string_view stage) {
  const Violation violation = verify(graph);
  if (!violation) return;
  const std::string where = violation.node == kNone ? ""
                                                    : fmt::format(" node {} ({}):", violation.node,
                                                                  graph.nodes[violation.node].op.full_name());
  throw_error(ErrorKind::Internal, fmt::format("graph after {}:{} {}", stage, where, violation.sentence));
}

}  // namespace tenon::graph
