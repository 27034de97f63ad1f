#include <fmt/format.h>

#include <bit>

#include "tenon/core/error.h"
#include "tenon/expr/expr.h"
#include "tenon/expr/function.h"

namespace tenon::expr {

std::string_view suffix(ComputeType t) noexcept {
  constexpr std::string_view kNames[] = {"f32", "f64", "i32", "i64"};
  return kNames[static_cast<int>(t)];
}

std::string_view name(ComputeType t) noexcept {
  constexpr std::string_view kNames[] = {"float32", "float64", "int32", "int64"};
  return kNames[static_cast<int>(t)];
}

bool Literal::operator==(const Literal& other) const noexcept {
  if (integer != other.integer) return false;
  return integer ? i == other.i : std::bit_cast<uint64_t>(d) == std::bit_cast<uint64_t>(other.d);
}

namespace {

bool same(const Node& a, const Node& b) noexcept {
  if (a.op != b.op || a.function != b.function || a.index != b.index || a.arity != b.arity) return false;
  for (int i = 0; i < a.arity; ++i) {
    if (a.args[i] != b.args[i]) return false;
  }
  return true;
}

size_t hash(const Node& n) noexcept {
  uint64_t h = static_cast<uint64_t>(n.op) * 0x9E3779B97F4A7C15u + n.function;
  const auto mix = [&h](uint64_t v) { h = (h ^ v) * 0xD6E8FEB86659FD93u, h ^= h >> 32; };
  mix(n.index);
  for (int i = 0; i < n.arity; ++i) mix(n.args[i] + 1);
  return static_cast<size_t>(h);
}

}  // namespace

NodeId Graph::intern(const Node& node) {
  if (2 * (nodes_.size() + 1) > table_.size()) {
    table_.assign(std::max<size_t>(64, 2 * table_.size()), kNoNode);
    for (NodeId id = 0; id < nodes_.size(); ++id) {
      size_t slot = hash(nodes_[id]) & (table_.size() - 1);
      while (table_[slot] != kNoNode) slot = (slot + 1) & (table_.size() - 1);
      table_[slot] = id;
    }
  }
  size_t slot = hash(node) & (table_.size() - 1);
  for (; table_[slot] != kNoNode; slot = (slot + 1) & (table_.size() - 1)) {
    if (same(nodes_[table_[slot]], node)) return table_[slot];
  }
  nodes_.push_back(node);
  return table_[slot] = static_cast<NodeId>(nodes_.size() - 1);
}

NodeId Graph::literal(const Literal& value) {
  uint32_t index = 0;
  while (index < literals_.size() && !(literals_[index] == value)) ++index;
  if (index == literals_.size()) literals_.push_back(value);
  return intern({.op = Op::Literal, .kind = Kind::Number, .index = index});
}

NodeId Graph::literal(double value) { return literal(Literal{.integer = false, .d = value}); }
NodeId Graph::literal(int64_t value) { return literal(Literal{.integer = true, .i = value}); }

NodeId Graph::symbol(std::string_view name, SymbolKind kind) {
  uint32_t index = 0;
  while (index < symbols_.size() && symbols_[index].name != name) ++index;
  if (index == symbols_.size()) symbols_.push_back({std::string(name), kind});
  TENON_CHECK(symbols_[index].kind == kind, Value,
              fmt::format("expression: symbol '{}' is already there with another kind", name));
  return intern(
      {.op = Op::Symbol, .kind = kind == SymbolKind::MaskTensor ? Kind::Mask : Kind::Number, .index = index});
}

NodeId Graph::find_symbol(std::string_view name) const noexcept {
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    if (nodes_[id].op == Op::Symbol && symbol_of(id).name == name) return id;
  }
  return kNoNode;
}

bool Graph::is_literal(NodeId id, double value) const noexcept {
  return is_literal(id) &&
         std::bit_cast<uint64_t>(literal_of(id).as_double()) == std::bit_cast<uint64_t>(value);
}

NodeId Graph::as_number(NodeId id) {
  if (nodes_[id].kind == Kind::Number) return id;
  return make(Op::Where, {id, literal(1), literal(0)});
}

NodeId Graph::as_mask(NodeId id) {
  const Node& n = nodes_[id];
  if (n.kind == Kind::Mask) return id;
  if (n.op == Op::Where && is_literal(n.args[1], 1) && is_literal(n.args[2], 0)) return n.args[0];
  return make(Op::Ne, {id, literal(0)});
}

NodeId Graph::make(Op op, std::span<const NodeId> args) {
  const OpInfo& row = info(op);
  TENON_CHECK(row.rule != TypeRule::Leaf && args.size() == row.arity, Value,
              fmt::format("expression: `{}` takes {} operands, got {}", row.name, row.arity, args.size()));
  const bool all_masks = [&] {
    for (NodeId a : args) {
      if (nodes_[a].kind != Kind::Mask) return false;
    }
    return true;
  }();
  Node node{.op = op, .kind = Kind::Number, .arity = row.arity};
  if (row.rule == TypeRule::Select) {
    const NodeId mask = as_mask(args[0]);
    if (nodes_[args[1]].kind == Kind::Mask && nodes_[args[2]].kind == Kind::Mask) {
      return make(Op::Or, {make(Op::And, {mask, args[1]}), make(Op::And, {make(Op::Not, {mask}), args[2]})});
    }
    node.args[0] = mask;
    node.args[1] = as_number(args[1]);
    node.args[2] = as_number(args[2]);
    return intern(node);
  }
  if (all_masks && op == Op::Ne) return make(Op::Xor, args);
  if (all_masks && op == Op::Eq) return make(Op::Not, {make(Op::Xor, args)});
  const bool logic = row.rule == TypeRule::Bitwise && all_masks;
  for (size_t i = 0; i < args.size(); ++i) node.args[i] = logic ? args[i] : as_number(args[i]);
  if (logic || row.rule == TypeRule::Compare) node.kind = Kind::Mask;
  if (row.rule == TypeRule::BitShift || row.rule == TypeRule::Part) {
    TENON_CHECK(is_literal(node.args[1]) && literal_of(node.args[1]).integer, Value,
                fmt::format("expression: the second operand of `{}` must be an integer literal", row.name));
  }
  return intern(node);
}

NodeId Graph::call(std::string_view function, std::span<const NodeId> args) {
  const uint16_t number = find_function(function);
  TENON_CHECK(number != kNoFunction, Value, fmt::format("expression: unknown function '{}'", function));
  const Function& f = functions()[number];
  TENON_CHECK(args.size() == f.arity, Value,
              fmt::format("expression: `{}` takes {} operands, got {}", function, f.arity, args.size()));
  Node node{.op = Op::Call, .kind = f.mask ? Kind::Mask : Kind::Number, .arity = f.arity, .function = number};
  for (size_t i = 0; i < args.size(); ++i) node.args[i] = as_number(args[i]);
  return intern(node);
}

NodeId Graph::make_like(NodeId id, std::span<const NodeId> args) {
  if (args.empty()) return id;
  const Node& n = nodes_[id];
  return n.op == Op::Call ? call(functions()[n.function].name, args) : make(n.op, args);
}

namespace {

std::vector<bool> reached(const Graph& g, std::span<const NodeId> roots) {
  std::vector<bool> seen(g.size());
  NodeId top = 0;
  for (NodeId r : roots) seen[r] = true, top = std::max(top, r);
  for (NodeId id = top + 1; !roots.empty() && id-- > 0;) {
    if (!seen[id]) continue;
    for (NodeId a : g.args(id)) seen[a] = true;
  }
  return seen;
}

}  // namespace

Factor factor_of(const Graph& g, NodeId root, NodeId x) {
  if (root == x) return Factor::One;
  const Node& n = g[root];
  if (n.op != Op::Mul || (n.args[0] != x && n.args[1] != x)) return Factor::Other;
  const NodeId other = n.args[0] == x ? n.args[1] : n.args[0];
  const bool number = g[other].op == Op::Symbol && g.symbol_of(other).kind == SymbolKind::Scalar;
  return number ? Factor::Number : Factor::Other;
}

bool uses(const Graph& g, NodeId root, NodeId node) {
  return root != kNoNode && node != kNoNode && reached(g, std::span(&root, 1))[node];
}

std::vector<NodeId> symbols_of(const Graph& g, std::span<const NodeId> roots) {
  const std::vector<bool> seen = reached(g, roots);
  std::vector<NodeId> result;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (seen[id] && g[id].op == Op::Symbol) result.push_back(id);
  }
  return result;
}

}  // namespace tenon::expr
