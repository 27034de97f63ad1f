#include "tenon/expr/unsigned.h"

#include <bit>

namespace tenon::expr {

namespace {

// Typed nodes over i64.
class Integers {
 public:
  explicit Integers(Builder& g) : g_(g) {}

  NodeId make(Op op, NodeId a, NodeId b = kNoNode) { return add(op, Type::I64, a, b); }
  NodeId compare(Op op, NodeId a, NodeId b) { return add(op, Type::Mask, a, b); }
  NodeId literal(int64_t value) {
    return g_.add({.op = Op::Literal, .type = Type::I64, .bits = static_cast<uint64_t>(value)});
  }
  NodeId where(NodeId mask, NodeId yes, NodeId no) {
    return g_.add({.op = Op::Where, .type = g_[yes].type, .arity = 3, .args = {mask, yes, no}});
  }
  /// A shift would do, but those are for definitions.
  NodeId half(NodeId value) {
    const NodeId even = make(Op::Sub, value, make(Op::And, value, literal(1)));
    return make(Op::And, make(Op::TruncDiv, even, literal(2)), literal(INT64_MAX));
  }
  /// The signed number at the same place in the order of numbers, and the reverse.
  NodeId ordered(NodeId value) { return make(Op::Xor, value, literal(INT64_MIN)); }
  NodeId is_negative(NodeId value) { return compare(Op::Lt, value, literal(0)); }
  NodeId at_least(NodeId a, NodeId b) { return compare(Op::Ge, ordered(a), ordered(b)); }

  // By halves of x where y is below 2^63: twice x/2/y, and one more if that much is left. 0 for y of 0.
  NodeId quotient(NodeId x, NodeId y) {
    const NodeId zero = literal(0), one = literal(1), quotient_of_half = make(Op::TruncDiv, half(x), y);
    const NodeId near = make(Op::Add, quotient_of_half, quotient_of_half);
    const NodeId left = make(Op::Sub, x, make(Op::Mul, near, y));
    const NodeId small = make(Op::Add, near, where(at_least(left, y), one, zero));
    const NodeId large = where(at_least(x, y), one, zero);
    return where(compare(Op::Eq, y, zero), zero, where(is_negative(y), large, small));
  }
  NodeId rest(NodeId x, NodeId y) {
    const NodeId left = make(Op::Sub, x, make(Op::Mul, quotient(x, y), y));
    return where(compare(Op::Eq, y, literal(0)), literal(0), left);
  }
  // The power of an even number is 0 from 64 on, and that of an odd one repeats every 2^62.
  NodeId power(NodeId x, NodeId y) {
    const NodeId low = make(Op::And, y, literal(INT64_MAX));
    const NodeId large = make(Op::Or, low, literal(int64_t{1} << 62));
    return make(Op::IntPow, x, where(is_negative(y), large, y));
  }

 private:
  NodeId add(Op op, Type type, NodeId a, NodeId b) {
    const auto arity = static_cast<uint8_t>(b == kNoNode ? 1 : 2);
    return g_.add({.op = op, .type = type, .arity = arity, .args = {a, b, kNoNode}});
  }

  Builder& g_;
};

NodeId literal(Builder& g, Type type, double value) {
  const uint64_t bits =
      type == Type::F32 ? std::bit_cast<uint32_t>(static_cast<float>(value)) : std::bit_cast<uint64_t>(value);
  return g.add({.op = Op::Literal, .type = type, .bits = bits});
}

}  // namespace

NodeId add_unsigned(Builder& g, Node n) {
  Integers i(g);
  n.type = register_type(n.type);
  const NodeId x = n.args[0], y = n.args[1];
  switch (n.op) {
    case Op::TruncDiv:
      return i.quotient(x, y);
    case Op::Fmod:
      return i.rest(x, y);
    case Op::Abs:
      return x;
    case Op::IntPow:
      return i.power(x, y);
    case Op::ShiftRight:
      n.op = Op::ShiftRightLogical;
      return g.add(n);
    case Op::Min:
    case Op::Max:
      return i.ordered(i.make(n.op, i.ordered(x), i.ordered(y)));
    case Op::Lt:
    case Op::Le:
    case Op::Gt:
    case Op::Ge:
      return i.compare(n.op, i.ordered(x), i.ordered(y));
    case Op::Reduce: {
      const auto kind = static_cast<ReduceKind>(n.bits);
      const bool place = kind == ReduceKind::ArgMax || kind == ReduceKind::ArgMin;
      if (!place && kind != ReduceKind::Max && kind != ReduceKind::Min) return g.add(n);
      n.args[0] = i.ordered(x);
      const NodeId made = g.add(n);
      return place ? made : i.ordered(made);
    }
    default:
      return g.add(n);
  }
}

NodeId convert_from_unsigned(Builder& g, NodeId value, Type to) {
  Integers i(g);
  const auto cast = [&](NodeId of) {
    return g.add({.op = Op::Cast, .type = to, .arity = 1, .args = {of, kNoNode, kNoNode}});
  };
  if (register_type(to) == Type::I64) return value;
  if (to == Type::Mask) return i.compare(Op::Ne, value, i.literal(0));
  if (!is_floating(to)) return cast(value);
  // Half of a large number, whose last bit says whether anything was cut off.
  const NodeId half = cast(i.make(Op::Or, i.half(value), i.make(Op::And, value, i.literal(1))));
  const NodeId twice = g.add({.op = Op::Add, .type = to, .arity = 2, .args = {half, half, kNoNode}});
  return i.where(i.is_negative(value), twice, cast(value));
}

NodeId convert_to_unsigned(Builder& g, NodeId value) {
  Integers i(g);
  const Type from = g[value].type;
  const auto cast = [&](NodeId of) {
    return g.add({.op = Op::Cast, .type = Type::I64, .arity = 1, .args = {of, kNoNode, kNoNode}});
  };
  if (from == Type::I64) return value;
  if (!is_floating(from)) return cast(value);
  const NodeId limit = literal(g, from, 0x1p63);
  const NodeId beyond = g.add({.op = Op::Sub, .type = from, .arity = 2, .args = {value, limit, kNoNode}});
  return i.where(i.compare(Op::Ge, value, limit), i.ordered(cast(beyond)), cast(value));
}

}  // namespace tenon::expr
