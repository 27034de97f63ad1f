
#include "tenon/core/error.h"
#include "tenon/expr/algebra.h"
#include "tenon/expr/function.h"
#include "tenon/expr/parse.h"

namespace tenon::expr {

namespace {

std::string_view rule_of(const Node& n, int operand) {
  if (n.op == Op::Call) return functions()[n.bits].derivative[operand];
  return info(n.op).derivative[operand];
}

// The slope of node `id` by its operand; kNoNode where it is zero.
NodeId slope(Builder& g, NodeId id, int operand) {
  const Node n = g[id];
  const std::string_view rule = rule_of(n, operand);
  if (rule.empty()) return kNoNode;
  static constexpr std::string_view kNames[] = {"x", "y", "z"};
  Binding names[4] = {{"result", id}};
  for (int i = 0; i < n.arity; ++i) names[i + 1] = {kNames[i], n.args[i]};
  return simplify(g, parse_bound(g, rule, std::span(names, n.arity + 1)));
}

NodeId where_tangent(Builder& g, const Node& n, NodeId on, NodeId off) {
  if (on == kNoNode && off == kNoNode) return kNoNode;
  const NodeId zero = g.literal(0);
  return g.make(Op::Where, {n.args[0], on == kNoNode ? zero : on, off == kNoNode ? zero : off});
}

// What is stored passes on the tangent of what was to be stored, as a step of its own does. A cast's is cast
// along with the value; to and from integers and masks there is none.
NodeId converted_tangent(Builder& g, const Node& n, NodeId tangent) {
  const auto whole = [](Type t) { return t == Type::I32 || t == Type::I64 || t == Type::Mask; };
  if (tangent == kNoNode || whole(n.type) || whole(g[n.args[0]].type)) return kNoNode;
  return g[tangent].type == Type::Open ? tangent : g.cast(n.type, tangent);
}

}  // namespace

// Forward accumulation: the tangent of each node in turn. A tangent through `where` is a `where` of tangents,
// so the branch not taken cannot contribute a NaN, as it would by multiplying with a masked zero.
NodeId derivative(Builder& g, NodeId root, NodeId wrt, const DerivativeOptions& options) {
  TENON_CHECK(!g.is_mask(root), Type, "derivative: a mask has no derivative");
  std::vector<NodeId> tangent(root + 1, kNoNode);
  const std::vector<bool> needed = reached(g, std::span(&root, 1));
  for (NodeId id = 0; id <= root; ++id) {
    if (!needed[id]) continue;
    if (id == wrt) {
      tangent[id] = g.literal(1);
      continue;
    }
    const Node n = g[id];
    if (n.type == Type::Mask) continue;
    if (n.op == Op::Where) {
      tangent[id] = where_tangent(g, n, tangent[n.args[1]], tangent[n.args[2]]);
      continue;
    }
    if (info(n.op).rule == TypeRule::Convert) {
      tangent[id] = converted_tangent(g, n, tangent[n.args[0]]);
      continue;
    }
    NodeId sum = kNoNode;
    for (int i = 0; i < n.arity; ++i) {
      if (tangent[n.args[i]] == kNoNode) continue;
      const NodeId s = slope(g, id, i);
      if (s != kNoNode) sum = add_terms(g, sum, times(g, tangent[n.args[i]], s));
    }
    tangent[id] = sum;
  }
  NodeId result = tangent[root];
  if (result == kNoNode) return kNoNode;
  result = simplify(g, result);
  if (options.grad != kNoNode) result = simplify(g, times(g, options.grad, result));
  // A symbol for the value of a leaf would only hide it.
  if (options.result != kNoNode && g[root].arity > 0) result = substitute(g, result, root, options.result);
  return result;
}

}  // namespace tenon::expr
