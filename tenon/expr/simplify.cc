#include <optional>

#include "tenon/expr/algebra.h"

namespace tenon::expr {

namespace {

// Sub-expressions of literals alone are computed here, integers exactly and the rest in double, whatever the
// compute type; every printer starts from a simplified graph, so that all agree.
std::optional<Literal> fold(const Builder& g, Op op, std::span<const NodeId> args) {
  const Literal& a = g.literal_of(args[0]);
  if (op == Op::Neg) {
    // The integer 0 stays an integer here, but -0 as a float would be -0.0: leave it to the compute type.
    if (a.integer && (a.i == 0 || a.i == INT64_MIN)) return std::nullopt;
    return a.integer ? Literal{.integer = true, .i = -a.i} : Literal{.integer = false, .d = -a.d};
  }
  if (args.size() != 2) return std::nullopt;
  const Literal& b = g.literal_of(args[1]);
  if (a.integer && b.integer && op != Op::Div) {
    int64_t r = 0;
    const bool overflow = op == Op::Add   ? __builtin_add_overflow(a.i, b.i, &r)
                          : op == Op::Sub ? __builtin_sub_overflow(a.i, b.i, &r)
                          : op == Op::Mul ? __builtin_mul_overflow(a.i, b.i, &r)
                                          : true;
    // A product of 0 and a negative number is 0 of integers and -0.0 of floats.
    if (overflow || (op == Op::Mul && r == 0)) return std::nullopt;
    return Literal{.integer = true, .i = r};
  }
  const double x = a.as_double(), y = b.as_double();
  switch (op) {
    case Op::Add:
      return Literal{.integer = false, .d = x + y};
    case Op::Sub:
      return Literal{.integer = false, .d = x - y};
    case Op::Mul:
      return Literal{.integer = false, .d = x * y};
    case Op::Div:
      return Literal{.integer = false, .d = x / y};
    default:
      return std::nullopt;
  }
}

// What an operation over a mask that is known, as given() is once the call is, comes to.
std::optional<NodeId> with_known_mask(Builder& g, Op op, std::span<const NodeId> args) {
  const auto known = [&](NodeId id) { return g.is_literal(id) && g.is_mask(id); };
  const auto opposite = [&](NodeId id) {
    if (!known(id)) return g.make(Op::Not, {id});
    return g.add({.op = Op::Literal, .type = Type::Mask, .bits = 1 - g[id].bits});
  };
  if (op == Op::Where && known(args[0])) return g[args[0]].bits != 0 ? args[1] : args[2];
  if (op == Op::Not && known(args[0])) return opposite(args[0]);
  if ((op != Op::And && op != Op::Or && op != Op::Xor) || args.size() != 2) return std::nullopt;
  for (int i = 0; i < 2; ++i) {
    if (!known(args[i])) continue;
    const bool truth = g[args[i]].bits != 0;
    const NodeId other = args[1 - i];
    if (op == Op::Xor) return truth ? opposite(other) : other;
    return truth == (op == Op::And) ? other : args[i];
  }
  return std::nullopt;
}

bool is_one(const Builder& g, NodeId id) { return g.is_literal(id, 1); }
bool is_minus_one(const Builder& g, NodeId id) { return g.is_literal(id, -1); }

}  // namespace

NodeId simplified(Builder& g, NodeId id, std::span<const NodeId> args) {
  const Op op = g[id].op;
  const TypeRule rule = info(op).rule;
  if (args.empty() || op == Op::Call || rule == TypeRule::Convert || rule == TypeRule::Row)
    return g.make_like(id, args);
  if (const auto known = with_known_mask(g, op, args)) return *known;
  bool all_literal = true;
  for (NodeId a : args) all_literal = all_literal && g.is_literal(a) && !g.is_mask(a);
  if (all_literal) {
    if (const auto value = fold(g, op, args)) return g.literal(*value);
  }
  const NodeId a = args[0], b = args.size() > 1 ? args[1] : kNoNode;
  switch (op) {
    case Op::Add:
      if (g.is_literal(b, -0.0)) return a;
      if (g.is_literal(a, -0.0)) return b;
      if (g[b].op == Op::Neg) return g.make(Op::Sub, {a, g[b].args[0]});
      break;
    case Op::Sub:
      if (g.is_literal(b, 0.0)) return a;
      if (g[b].op == Op::Neg) return g.make(Op::Add, {a, g[b].args[0]});
      break;
    case Op::Mul:
      if (is_one(g, b)) return a;
      if (is_one(g, a)) return b;
      if (is_minus_one(g, b)) return g.make(Op::Neg, {a});
      if (is_minus_one(g, a)) return g.make(Op::Neg, {b});
      if (g[a].op == Op::Neg && g[b].op == Op::Neg) return g.make(Op::Mul, {g[a].args[0], g[b].args[0]});
      break;
    case Op::Div:
      if (is_one(g, b)) return a;
      break;
    case Op::Neg:
      if (g[a].op == Op::Neg) return g[a].args[0];
      break;
    case Op::Abs:
      if (g[a].op == Op::Abs) return a;
      if (g[a].op == Op::Neg) return g.make(Op::Abs, {g[a].args[0]});
      break;
    case Op::Not:
      if (g[a].op == Op::Not) return g[a].args[0];
      break;
    case Op::And:
    case Op::Or:
    case Op::Min:
    case Op::Max:
      if (a == b) return a;
      break;
    case Op::Where:
      if (args[1] == args[2]) return args[1];
      if (g[a].op == Op::Not) return g.make(Op::Where, {g[a].args[0], args[2], args[1]});
      break;
    default:
      break;
  }
  return g.make_like(id, args);
}

NodeId simplify(Builder& g, NodeId root) {
  std::vector<NodeId> done(root + 1, kNoNode);
  std::vector<NodeId> stack{root};
  while (!stack.empty()) {
    const NodeId id = stack.back();
    bool ready = true;
    for (int i = 0; i < g[id].arity; ++i) {
      if (done[g[id].args[i]] == kNoNode) stack.push_back(g[id].args[i]), ready = false;
    }
    if (!ready) continue;
    stack.pop_back();
    if (done[id] != kNoNode) continue;
    NodeId args[3];
    const int arity = g[id].arity;
    for (int i = 0; i < arity; ++i) args[i] = done[g[id].args[i]];
    done[id] = simplified(g, id, std::span<const NodeId>(args, arity));
  }
  return done[root];
}

NodeId substitute(Builder& g, NodeId root, NodeId from, NodeId to) {
  std::vector<NodeId> done(root + 1, kNoNode);
  for (NodeId id = 0; id <= root; ++id) {
    if (id == from) {
      done[id] = to;
      continue;
    }
    NodeId args[3];
    const int arity = g[id].arity;
    bool changed = false;
    for (int i = 0; i < arity; ++i) {
      args[i] = done[g[id].args[i]];
      changed = changed || args[i] != g[id].args[i];
    }
    done[id] = changed ? g.make_like(id, std::span<const NodeId>(args, arity)) : id;
  }
  return done[root];
}

NodeId add_terms(Builder& g, NodeId a, NodeId b) {
  if (a == kNoNode) return b;
  if (b == kNoNode) return a;
  if (g[b].op == Op::Neg) return g.make(Op::Sub, {a, g[b].args[0]});
  if (g[a].op == Op::Neg) return g.make(Op::Sub, {b, g[a].args[0]});
  return g.make(Op::Add, {a, b});
}

namespace {

bool is_zero(const Builder& g, NodeId id) { return g.is_literal(id) && g.literal_of(id).as_double() == 0; }

/// Whether the node is a choice that leaves one side out.
bool selects(const Builder& g, NodeId id) {
  return g[id].op == Op::Where && (is_zero(g, g[id].args[1]) || is_zero(g, g[id].args[2]) ||
                                   selects(g, g[id].args[1]) || selects(g, g[id].args[2]));
}

}  // namespace

NodeId times(Builder& g, NodeId factor, NodeId slope) {
  if (is_zero(g, factor)) return factor;
  if (is_one(g, slope)) return factor;
  if (is_minus_one(g, slope)) return g.make(Op::Neg, {factor});
  if (is_zero(g, slope)) return slope;
  // Copies: building nodes moves the graph's storage.
  const Node n = g[slope], f = g[factor];
  if (n.op == Op::Where) {
    return g.make(Op::Where, {n.args[0], times(g, factor, n.args[1]), times(g, factor, n.args[2])});
  }
  if (selects(g, factor))
    return g.make(Op::Where, {f.args[0], times(g, f.args[1], slope), times(g, f.args[2], slope)});
  if (n.op == Op::Neg) return g.make(Op::Neg, {times(g, factor, n.args[0])});
  if (n.op == Op::Div) return g.make(Op::Div, {times(g, factor, n.args[0]), n.args[1]});
  if (is_one(g, factor)) return slope;
  if (is_minus_one(g, factor)) return g.make(Op::Neg, {slope});
  return g.make(Op::Mul, {factor, slope});
}

}  // namespace tenon::expr
