#include "tenon/expr/join.h"

#include <fmt/format.h>

#include "tenon/core/error.h"
#include "tenon/expr/spec.h"

namespace tenon::expr {

namespace {

// Whether every value of `from` is one of `to`, which then converts back to it.
bool is_exact(Type from, Type to) {
  return from == Type::Mask || (from == Type::F32 && to == Type::F64) ||
         (from == Type::I32 && (to == Type::I64 || to == Type::F64));
}

// The slots of one kind in the order of their first use, the parts of a complex one side by side.
class SlotOrder {
 public:
  explicit SlotOrder(size_t count) : place_(count, kNone) {}

  // `slot_of(i)` and `name_of(i)` are those of leaf i.
  template <class SlotOf, class NameOf>
  uint64_t place(uint64_t leaf, const SlotOf& slot_of, const NameOf& name_of) {
    if (place_[leaf] != kNone) return place_[leaf];
    // Parts were made one after the other.
    const Part part = slot_of(leaf).part;
    const uint64_t first = part == Part::Im ? leaf - 1 : leaf;
    const auto operand = static_cast<uint16_t>(names.size());
    names.push_back(name_of(first));
    for (uint64_t i = first; i < first + (part == Part::Whole ? 1u : 2u); ++i) {
      place_[i] = slots.size();
      slots.push_back(slot_of(i));
      slots.back().operand = operand;
      slots.back().node = kNoNode;
      leaves.push_back(i);
    }
    return place_[leaf];
  }

  std::vector<Slot> slots;
  std::vector<uint32_t> names;   // by operand
  std::vector<uint64_t> leaves;  // by slot

 private:
  static constexpr uint64_t kNone = ~uint64_t{0};
  std::vector<uint64_t> place_;
};

}  // namespace

NodeId Joiner::input(const Slot& slot, const JoinInput& from) {
  const Key key{from.name, slot.part};
  if (const auto made = stored_.find(key); made != stored_.end()) {
    TENON_CHECK(made->second.first.dtype == slot.dtype, Internal,
                fmt::format("join: value {} is stored as {} and loaded as {}", from.name,
                            tenon::name(made->second.first.dtype), tenon::name(slot.dtype)));
    return made->second.second;
  }
  const auto known = read_.find(key);
  if (known != read_.end()) {
    const Source& s = inputs_[known->second];
    TENON_CHECK(s.slot.dtype == slot.dtype && s.slot.rank == from.rank, Internal,
                fmt::format("join: value {} is loaded as {} and as {}", from.name, tenon::name(s.slot.dtype),
                            tenon::name(slot.dtype)));
    return s.node;
  }
  const NodeId node = g_.add({.op = Op::Load,
                              .type = carrier(slot.dtype),
                              .flags = static_cast<uint8_t>(from.rank),
                              .bits = inputs_.size()});
  read_[key] = inputs_.size();
  slots_.push_back({.dtype = slot.dtype, .rank = from.rank, .part = slot.part});
  inputs_.push_back({slots_.back(), from.name, node});
  return node;
}

NodeId Joiner::number(const Slot& slot, uint32_t name) {
  for (const Source& s : numbers_) {
    if (s.name == name && s.slot.dtype == slot.dtype && s.slot.part == slot.part) return s.node;
  }
  const NodeId node = g_.add({.op = Op::Number, .type = carrier(slot.dtype), .bits = numbers_.size()});
  numbers_.push_back({{.dtype = slot.dtype, .rank = Rank::Number, .part = slot.part}, name, node});
  return node;
}

// What is true once operands are known better: rounding changes nothing of what the dtype holds, and a value
// that was widened comes back as it was.
NodeId Joiner::operation(Node n) {
  if (n.op == Op::RoundTo) {
    const auto d = static_cast<DType>(n.bits);
    if ((relaxed_ && is_floating_point(d)) || holds(g_.nodes(), slots_, n.args[0], d)) return n.args[0];
  }
  if (n.op == Op::Cast && g_[n.args[0]].op == Op::Cast) {
    const NodeId inner = g_[n.args[0]].args[0];
    if (g_[inner].type == n.type && is_exact(n.type, g_[n.args[0]].type)) return inner;
  }
  return g_.add(n);
}

void Joiner::add(const Expression& e, std::span<const JoinInput> inputs, std::span<const uint32_t> numbers,
                 std::span<const ValueName> outputs) {
  TENON_CHECK(e.level == Level::Typed, Internal, "join: a typed expression was expected");
  TENON_CHECK(
      inputs.size() == e.num_inputs && numbers.size() == e.num_numbers && outputs.size() == e.num_outputs,
      Internal, "join: a name for each slot was expected");
  // Both parts of a complex operand become leaves, one after the other, even where one is not used.
  std::vector<NodeId> loads(e.num_inputs), given(e.num_numbers);
  for (size_t i = 0; i < e.num_inputs; ++i) loads[i] = input(e.inputs()[i], inputs[i]);
  for (size_t i = 0; i < e.num_numbers; ++i) given[i] = number(e.numbers()[i], numbers[i]);

  std::vector<NodeId> made(e.num_nodes);
  for (NodeId id = 0; id < e.num_nodes; ++id) {
    Node n = e[id];
    for (int i = 0; i < n.arity; ++i) n.args[i] = made[n.args[i]];
    made[id] = n.op == Op::Load ? loads[n.bits] : n.op == Op::Number ? given[n.bits] : operation(n);
  }
  for (size_t i = 0; i < e.num_outputs; ++i) {
    const Slot& s = e.outputs()[i];
    const Key key{outputs[i], s.part};
    TENON_CHECK(read_.count(key) == 0 && stored_.count(key) == 0, Internal,
                fmt::format("join: value {} is stored again, or after it was read", outputs[i]));
    stored_[key] = {s, made[s.node]};
  }
}

Joined Joiner::finish(std::span<const ValueName> wanted) {
  ExpressionParts parts{.relaxed = relaxed_};
  Joined joined;
  for (const ValueName name : wanted) {
    const size_t before = parts.outputs.size();
    for (const Part part : {Part::Whole, Part::Re, Part::Im}) {
      const auto found = stored_.find({name, part});
      if (found == stored_.end()) continue;
      Slot s = found->second.first;
      s.operand = static_cast<uint16_t>(joined.outputs.size());
      s.node = found->second.second;
      if (relaxed_ && !holds(g_.nodes(), slots_, s.node, s.dtype))
        s.node = g_.add({.op = Op::RoundTo,
                         .type = carrier(s.dtype),
                         .arity = 1,
                         .args = {s.node, kNoNode, kNoNode},
                         .bits = static_cast<uint64_t>(s.dtype)});
      s.rank = g_[s.node].rank();
      parts.outputs.push_back(s);
    }
    TENON_CHECK(parts.outputs.size() > before, Internal, fmt::format("join: nothing stores value {}", name));
    joined.outputs.push_back(name);
  }
  for (const Source& s : inputs_) parts.inputs.push_back(s.slot);
  for (const Source& s : numbers_) parts.numbers.push_back(s.slot);
  parts = parts_of(*g_.finish(std::move(parts)));

  SlotOrder inputs(inputs_.size()), numbers(numbers_.size());
  for (NodeId id = 0; id < parts.nodes.size(); ++id) {
    Node& n = parts.nodes[id];
    const bool load = n.op == Op::Load;
    if (!load && n.op != Op::Number) continue;
    const std::vector<Source>& sources = load ? inputs_ : numbers_;
    SlotOrder& order = load ? inputs : numbers;
    n.bits = order.place(
        n.bits, [&](uint64_t i) { return sources[i].slot; }, [&](uint64_t i) { return sources[i].name; });
    order.slots[n.bits].node = id;
  }
  parts.inputs = std::move(inputs.slots);
  parts.numbers = std::move(numbers.slots);
  joined.inputs = std::move(inputs.names);
  for (const uint64_t leaf : numbers.leaves) joined.numbers.push_back(numbers_[leaf].name);
  joined.expression = make_expression(parts);
  check(*joined.expression);
  return joined;
}

}  // namespace tenon::expr
