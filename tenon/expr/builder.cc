#include "tenon/expr/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "tenon/core/error.h"
#include "tenon/expr/expr.h"
#include "tenon/expr/function.h"

namespace tenon::expr {

bool Literal::operator==(const Literal& other) const noexcept {
  if (integer != other.integer) return false;
  return integer ? i == other.i : std::bit_cast<uint64_t>(d) == std::bit_cast<uint64_t>(other.d);
}

namespace {

size_t hash(const Node& n) noexcept {
  uint64_t h = static_cast<uint64_t>(n.op) * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(n.type);
  const auto mix = [&h](uint64_t v) { h = (h ^ v) * 0xD6E8FEB86659FD93u, h ^= h >> 32; };
  mix(n.bits + n.flags);
  for (int i = 0; i < n.arity; ++i) mix(n.args[i] + 1);
  return static_cast<size_t>(h);
}

// An operation whose second operand is a literal of the text; the node has it in `bits`.

}  // namespace

NodeId Builder::add(Node node) {
  if (node.arity > 0) {
    Rank rank = Rank::Number;
    for (int i = 0; i < node.arity; ++i) rank = rank | nodes_[node.args[i]].rank();
    if (node.op == Op::Reduce) rank = reduced(rank);
    node.flags = static_cast<uint8_t>((node.flags & ~Node::kRank) | static_cast<uint8_t>(rank));
  }
  if (2 * (nodes_.size() + 1) > table_.size()) {
    table_.assign(std::max<size_t>(64, 2 * table_.size()), kNoNode);
    nodes_.reserve(table_.size() / 2);
    for (NodeId id = 0; id < nodes_.size(); ++id) {
      size_t slot = hash(nodes_[id]) & (table_.size() - 1);
      while (table_[slot] != kNoNode) slot = (slot + 1) & (table_.size() - 1);
      table_[slot] = id;
    }
  }
  size_t slot = hash(node) & (table_.size() - 1);
  for (; table_[slot] != kNoNode; slot = (slot + 1) & (table_.size() - 1)) {
    if (nodes_[table_[slot]] == node) return table_[slot];
  }
  nodes_.push_back(node);
  return table_[slot] = static_cast<NodeId>(nodes_.size() - 1);
}

Literal Builder::literal_of(NodeId id) const noexcept {
  const Node& n = nodes_[id];
  if ((n.flags & Node::kWhole) != 0) return {.integer = true, .i = static_cast<int64_t>(n.bits)};
  return {.integer = false, .d = std::bit_cast<double>(n.bits)};
}

NodeId Builder::literal(const Literal& value) {
  return add({.op = Op::Literal,
              .flags = value.integer ? Node::kWhole : uint8_t{0},
              .bits = value.integer ? static_cast<uint64_t>(value.i) : std::bit_cast<uint64_t>(value.d)});
}

NodeId Builder::symbol(std::string_view name, SymbolKind kind, Rank rank) {
  uint32_t index = 0;
  while (index < symbols_.size() && symbols_[index].name != name) ++index;
  const bool number = kind == SymbolKind::Scalar;
  if (number) rank = Rank::Number;
  if (index == symbols_.size()) symbols_.push_back({std::string(name), kind, rank});
  TENON_CHECK(symbols_[index].kind == kind && symbols_[index].rank == rank, Value,
              fmt::format("expression: symbol '{}' is already there with another kind", name));
  return add({.op = number ? Op::Number : Op::Load,
              .type = kind == SymbolKind::MaskTensor    ? Type::Mask
                      : kind == SymbolKind::IndexTensor ? Type::I64
                                                        : Type::Same,
              .flags = static_cast<uint8_t>(rank),
              .bits = index});
}

NodeId Builder::find_symbol(std::string_view name) const noexcept {
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    if (is_symbol(id) && symbol_of(id).name == name) return id;
  }
  return kNoNode;
}

NodeId Builder::given(std::string_view name) {
  const NodeId symbol = find_symbol(name);
  TENON_CHECK(symbol != kNoNode, Value, fmt::format("expression: given() of an unknown name '{}'", name));
  return add({.op = Op::Given, .type = Type::Mask, .bits = nodes_[symbol].bits});
}

bool Builder::is_literal(NodeId id, double value) const noexcept {
  return is_literal(id) && nodes_[id].type == Type::Open &&
         std::bit_cast<uint64_t>(literal_of(id).as_double()) == std::bit_cast<uint64_t>(value);
}

NodeId Builder::as_number(NodeId id) {
  if (!is_mask(id)) return id;
  return make(Op::Where, {id, literal(1), literal(0)});
}

NodeId Builder::as_mask(NodeId id) {
  const Node n = nodes_[id];
  if (n.type == Type::Mask) return id;
  if (n.op == Op::Where && is_literal(n.args[1], 1) && is_literal(n.args[2], 0)) return n.args[0];
  return make(Op::Ne, {id, literal(0)});
}

// The type of number operands that meet: that of those which are no literals.
Type Builder::common_type(Op op, std::span<const NodeId> args) const {
  Type common = Type::Open;
  for (NodeId a : args) {
    const Type t = nodes_[a].type;
    if (t == Type::Open || t == Type::Mask || t == common) continue;
    if (common == Type::Open) {
      common = t;
      continue;
    }
    TENON_CHECK(t != Type::Pattern && common != Type::Pattern, Type,
                "expression: a number and a bit pattern meet without bits() or from_bits()");
    throw_error(ErrorKind::Type,
                fmt::format("expression: `{}` of {} and {}; convert one of them, as in same(x) or float64(x)",
                            info(op).name, name(common), name(t)));
  }
  return common;
}

Type Builder::result_type(Op op, std::span<const NodeId> args) const {
  switch (info(op).rule) {
    case TypeRule::Compare:
      common_type(op, args);
      return Type::Mask;
    case TypeRule::Select:
      return common_type(op, args.subspan(1));
    case TypeRule::ToBits: {
      const Type t = common_type(op, args);
      return is_compute_type(t) ? pattern_of(t) : Type::Pattern;
    }
    case TypeRule::FromBits: {
      const Type t = common_type(op, args);
      return t == Type::I32 ? Type::F32 : t == Type::I64 ? Type::F64 : Type::Same;
    }
    case TypeRule::Part: {
      const Type t = common_type(op, args);
      return t == Type::Open ? Type::Same : t;
    }
    default:
      return common_type(op, args);
  }
}

NodeId Builder::make(Op op, std::span<const NodeId> given) {
  const OpInfo& row = info(op);
  const bool leaf = row.rule == TypeRule::Leaf || row.rule == TypeRule::Convert ||
                    row.rule == TypeRule::Row || row.rule == TypeRule::Reserved;
  TENON_CHECK(!leaf && given.size() == row.arity, Value,
              fmt::format("expression: `{}` takes {} operands, got {}", row.name, row.arity, given.size()));
  NodeId list[3];
  std::copy(given.begin(), given.end(), list);  // building nodes may move what `given` views
  std::span<const NodeId> args(list, given.size());
  Node node{.op = op, .arity = row.arity};
  const bool all_masks = std::all_of(args.begin(), args.end(), [this](NodeId a) { return is_mask(a); });
  if (row.rule == TypeRule::Select) {
    const NodeId mask = as_mask(list[0]);
    if (is_mask(list[1]) && is_mask(list[2])) {
      return make(Op::Or, {make(Op::And, {mask, list[1]}), make(Op::And, {make(Op::Not, {mask}), list[2]})});
    }
    list[0] = mask;
    list[1] = as_number(list[1]);
    list[2] = as_number(list[2]);
  } else {
    if (all_masks && op == Op::Ne) return make(Op::Xor, args);
    if (all_masks && op == Op::Eq) return make(Op::Not, {make(Op::Xor, args)});
    const bool logic = row.rule == TypeRule::Bitwise && all_masks;
    for (size_t i = 0; i < args.size(); ++i) list[i] = logic ? list[i] : as_number(list[i]);
    if (logic) node.type = Type::Mask;
  }
  if (has_count(row.op)) {
    TENON_CHECK(is_literal(list[1]) && literal_of(list[1]).integer, Value,
                fmt::format("expression: the second operand of `{}` must be an integer literal", row.name));
    node.bits = static_cast<uint64_t>(literal_of(list[1]).i);
    node.arity = 1;
    args = args.first(1);
  }
  if (node.type != Type::Mask) node.type = result_type(op, args);
  std::copy(args.begin(), args.end(), node.args);
  return add(node);
}

NodeId Builder::call(std::string_view function, std::span<const NodeId> args) {
  const uint16_t number = find_function(function);
  TENON_CHECK(number != kNoFunction, Value, fmt::format("expression: unknown function '{}'", function));
  const Function& f = functions()[number];
  TENON_CHECK(args.size() == f.arity, Value,
              fmt::format("expression: `{}` takes {} operands, got {}", function, f.arity, args.size()));
  Node node{.op = Op::Call, .type = Type::Mask, .arity = f.arity, .bits = number};
  NodeId list[3];
  std::copy(args.begin(), args.end(), list);
  for (int i = 0; i < f.arity; ++i) node.args[i] = as_number(list[i]);
  const Type t = common_type(Op::Call, {node.args, f.arity});
  if (!f.mask) node.type = t == Type::Open ? Type::Same : t;
  return add(node);
}

NodeId Builder::cast(Type to, NodeId value) {
  if (nodes_[value].type == to) return value;
  if (to == Type::Mask) return as_mask(value);
  return add({.op = Op::Cast, .type = to, .arity = 1, .args = {value, kNoNode, kNoNode}});
}

NodeId Builder::stored(NodeId value, NodeId as) {
  value = cast(Type::Same, as_number(value));
  return add({.op = Op::RoundTo,
              .type = Type::Same,
              .arity = 1,
              .args = {value, kNoNode, kNoNode},
              .bits = as == kNoNode ? Node::kOfResult : nodes_[as].bits});
}

NodeId Builder::position() {
  return add({.op = Op::Iota,
              .type = Type::I64,
              .flags = static_cast<uint8_t>(Rank::Column),
              .bits = static_cast<uint64_t>(IotaKind::Position)});
}

NodeId Builder::hold(NodeId value) {
  return add({.op = Op::Hold, .type = nodes_[value].type, .arity = 1, .args = {value, kNoNode, kNoNode}});
}

NodeId Builder::reduce(ReduceKind kind, std::span<const NodeId> given) {
  const bool logic = kind == ReduceKind::Any || kind == ReduceKind::All;
  const auto operands = static_cast<size_t>(num_operands(kind));
  TENON_CHECK(
      given.size() == operands, Value,
      fmt::format("expression: `{}` takes {} operands, got {}", expr::name(kind), operands, given.size()));
  Node node{
      .op = Op::Reduce, .arity = static_cast<uint8_t>(given.size()), .bits = static_cast<uint64_t>(kind)};
  for (size_t i = 0; i < operands; ++i)
    node.args[i] = i == 0 && takes_mask(kind) ? as_mask(given[i]) : as_number(given[i]);
  const NodeId value = node.args[node.arity - 1];
  Type type = nodes_[value].type;
  if (type == Type::Open) type = Type::Same;
  Rank rank = Rank::Number;
  for (int i = 0; i < node.arity; ++i) rank = rank | nodes_[node.args[i]].rank();
  if (!varies_along(rank)) {
    if (kind == ReduceKind::Sum) return make(Op::Mul, {value, cast(type, length())});
    TENON_CHECK(kind == ReduceKind::Max || kind == ReduceKind::Min || logic, Value,
                fmt::format("expression: `{}` of what is the same along the row", expr::name(kind)));
    return value;
  }
  node.type = logic ? Type::Mask : gives_place(kind) ? Type::I64 : type;
  return add(node);
}

NodeId Builder::make_like(NodeId id, std::span<const NodeId> args) {
  if (args.empty()) return id;
  const Node n = nodes_[id];
  if (n.op == Op::Reduce) return reduce(static_cast<ReduceKind>(n.bits), args);
  if (n.op == Op::Hold) return hold(args[0]);
  if (n.op == Op::Call) return call(functions()[n.bits].name, args);
  if (n.op == Op::Cast) return cast(n.type, args[0]);
  if (n.op == Op::RoundTo || has_count(n.op)) {
    Node made = n;
    made.args[0] = as_number(args[0]);
    return add(made);
  }
  return make(n.op, args);
}

ExpressionPtr Builder::finish(std::span<const NodeId> outputs) const {
  ExpressionParts parts{.level = Level::Written};
  for (size_t i = 0; i < symbols_.size(); ++i) {
    const bool number = symbols_[i].kind == SymbolKind::Scalar;
    auto& list = number ? parts.numbers : parts.inputs;
    Slot slot{.rank = symbols_[i].rank, .operand = static_cast<uint16_t>(list.size())};
    if (symbols_[i].kind == SymbolKind::MaskTensor) slot.dtype = DType::Bool;
    if (symbols_[i].kind == SymbolKind::IndexTensor) slot.dtype = DType::Int64;
    list.push_back(slot);
  }
  for (const NodeId id : outputs) {
    parts.outputs.push_back({.dtype = is_mask(id) ? DType::Bool : DType::Float32,
                             .rank = nodes_[id].rank(),
                             .operand = static_cast<uint16_t>(parts.outputs.size()),
                             .node = id});
  }
  // A symbol's number becomes that of its slot.
  Builder slots;
  std::vector<NodeId> renumbered(nodes_.size());
  const auto slot_of = [&](uint64_t symbol) {
    uint64_t slot = 0;
    const bool number = symbols_[symbol].kind == SymbolKind::Scalar;
    for (size_t i = 0; i < symbol; ++i) slot += (symbols_[i].kind == SymbolKind::Scalar) == number;
    return slot;
  };
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    Node n = nodes_[id];
    for (int i = 0; i < n.arity; ++i) n.args[i] = renumbered[n.args[i]];
    if (is_symbol(id)) n.bits = slot_of(n.bits);
    if (n.op == Op::RoundTo && n.bits != Node::kOfResult) n.bits = slot_of(n.bits);
    if (n.op == Op::Given) {
      const bool number = symbols_[n.bits].kind == SymbolKind::Scalar;
      n.bits = slot_of(n.bits) + (number ? Node::kFirstNumber : 0);
    }
    renumbered[id] = slots.add(n);
  }
  for (Slot& s : parts.outputs) s.node = renumbered[s.node];
  return slots.finish(std::move(parts));
}

ExpressionPtr Builder::finish(ExpressionParts parts) const {
  std::vector<NodeId> place(nodes_.size(), kNoNode), stack;
  parts.nodes.clear();
  for (Slot& output : parts.outputs) {
    stack.push_back(output.node);
    while (!stack.empty()) {
      const NodeId id = stack.back();
      const size_t before = stack.size();
      for (int i = nodes_[id].arity; i-- > 0;) {
        if (place[nodes_[id].args[i]] == kNoNode) stack.push_back(nodes_[id].args[i]);
      }
      if (stack.size() != before) continue;
      stack.pop_back();
      if (place[id] != kNoNode) continue;
      Node n = nodes_[id];
      for (int i = 0; i < n.arity; ++i) n.args[i] = place[n.args[i]];
      place[id] = static_cast<NodeId>(parts.nodes.size());
      parts.nodes.push_back(n);
    }
    output.node = place[output.node];
  }
  for (NodeId id = 0; id < parts.nodes.size(); ++id) {
    const Node& n = parts.nodes[id];
    if (n.op == Op::Load) parts.inputs[n.bits].node = id;
    if (n.op == Op::Number) parts.numbers[n.bits].node = id;
  }
  return make_expression(parts);
}

std::vector<bool> reached(const Builder& g, std::span<const NodeId> roots) {
  std::vector<bool> seen(g.size());
  NodeId top = 0;
  for (NodeId r : roots) seen[r] = true, top = std::max(top, r);
  for (NodeId id = top + 1; !roots.empty() && id-- > 0;) {
    if (!seen[id]) continue;
    for (NodeId a : g.args(id)) seen[a] = true;
  }
  return seen;
}

Factor factor_of(const Builder& g, NodeId root, NodeId x) {
  if (root == x) return Factor::One;
  const Node& n = g[root];
  if (n.op != Op::Mul || (n.args[0] != x && n.args[1] != x)) return Factor::Other;
  const NodeId other = n.args[0] == x ? n.args[1] : n.args[0];
  const bool number = g.is_symbol(other) && g.symbol_of(other).kind == SymbolKind::Scalar;
  return number ? Factor::Number : Factor::Other;
}

bool uses(const Builder& g, NodeId root, NodeId node) {
  return root != kNoNode && node != kNoNode && reached(g, std::span(&root, 1))[node];
}

std::vector<NodeId> symbols_of(const Builder& g, std::span<const NodeId> roots) {
  const std::vector<bool> seen = reached(g, roots);
  std::vector<NodeId> result;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (seen[id] && g.is_symbol(id)) result.push_back(id);
  }
  return result;
}

}  // namespace tenon::expr
