#include "backends/cpu/jit/select.h"

#include <bit>
#include <utility>

#include "tenon/expr/definition.h"
#include "tenon/expr/function.h"

namespace tenon::cpu::jit {

using expr::Expression;
using expr::kNoNode;
using expr::Node;
using expr::NodeId;
using expr::Op;
using expr::Type;

namespace {

class Selection {
 public:
  Selection(const Expression& e, bool avx512) : e_(e), avx512_(avx512), codes_(e.num_nodes) {
    for (NodeId id = 0; id < e.num_nodes; ++id) {
      static_cast<Node&>(codes_[id]) = e[id];
      select(id);
    }
  }

  std::vector<Code> take() { return std::move(codes_); }

 private:
  void select(NodeId id) {
    Code& c = codes_[id];
    switch (c.op) {
      case Op::Bits:
      case Op::FromBits:
        c.form = Form::Same;
        return;
      case Op::Fma:
        if (is_floating(c.type)) negations(c);
        return;
      case Op::Where:
        if (never(c.args[0]))
          become(c, Form::Same, {c.args[2]});
        else if (const Node other = e_[c.args[2]]; other.op == Op::PiReduce)
          become(c, Form::PiReduce, {c.args[0], c.args[1], other.args[0]}), c.bits = other.bits;
        return;
      case Op::Mul:
        if (avx512_ && is_floating(c.type)) scale(id);
        return;
      case Op::Or:
        if (avx512_) select_bits(c);
        return;
      default:
        return;
    }
  }

  static void become(Code& c, Form form, std::initializer_list<NodeId> args) {
    c.form = form;
    c.arity = 0;
    for (const NodeId a : args) c.args[c.arity++] = a;
  }

  // (-a) * b + c and a * b + (-c) are instructions of their own.
  void negations(Code& c) {
    for (int i = 0; i < 3; ++i) {
      const Code& operand = codes_[c.args[i]];
      if (operand.op != Op::Neg) continue;
      c.args[i] = operand.args[0];
      bool& minus = i < 2 ? c.minus_product : c.minus_addend;
      minus = !minus;
    }
  }

  // Whether a comparison is false whatever is compared: x > c of an x that is not above 0 (or NaN) and a c
  // that is not below it. e^x is cut off above where it overflows, and mostly asked for -|x|.
  bool never(NodeId mask) const {
    const Code& c = codes_[mask];
    if (c.op != Op::Gt || !is_floating(e_[c.args[0]].type)) return false;
    return sign(c.args[0]) < 0 && sign(c.args[1]) > 0;
  }

  // 1: not below 0, or NaN; -1: not above 0, or NaN; 0: unknown.
  int sign(NodeId id) const {
    const Code& c = codes_[id];
    switch (c.op) {
      case Op::Abs:
        return 1;
      case Op::Neg:
        return -sign(c.args[0]);
      case Op::Mul:
        return sign(c.args[0]) * sign(c.args[1]);
      case Op::Literal: {
        const double v = c.type == Type::F32 ? std::bit_cast<float>(static_cast<uint32_t>(c.bits))
                                             : std::bit_cast<double>(c.bits);
        return v >= 0 ? 1 : v <= 0 ? -1 : 0;
      }
      default:
        return 0;
    }
  }

  // scale(x, t) multiplies by two powers of two, so that only the second product rounds, as the instruction
  // does once. An x that is not 0 would have to be below 2^-100 for the first to round too, which no
  // definition has next to a power that is not 1; and where the powers are none, nothing is made of the
  // result.
  void scale(NodeId id) {
    const Expression& pattern = scale_of(codes_[id].type);
    NodeId bound[2] = {kNoNode, kNoNode};
    if (!matches(pattern, pattern.outputs()[0].node, id, bound)) return;
    const NodeId n = less_rounder(bound[1]);
    const bool known = n != kNoNode && n < id;
    become(codes_[id], Form::Scale, {bound[0], known ? n : bound[1]});
    if (!known) codes_[id].rounder = rounder(codes_[id].type);
  }

  static uint64_t rounder(Type type) {
    return type == Type::F32 ? std::bit_cast<uint32_t>(0x1.8p23f) : std::bit_cast<uint64_t>(0x1.8p52);
  }

  static const Expression& scale_of(Type type) {
    static const uint16_t number = expr::find_function("scale");
    return expr::definition(number, type);
  }

  // Whether a node is the pattern's, whose loads are what `bound` then has.
  bool matches(const Expression& pattern, NodeId p, NodeId id, NodeId* bound) const {
    const Node &want = pattern[p], &have = e_[id];
    if (want.op == Op::Load) {
      NodeId& b = bound[want.bits];
      if (b == kNoNode) b = id;
      return b == id;
    }
    if (want.op != have.op || want.type != have.type || want.bits != have.bits) return false;
    for (int i = 0; i < want.arity; ++i) {
      if (!matches(pattern, want.args[i], have.args[i], bound)) return false;
    }
    return true;
  }

  // The node t - rounder, whose bits `scale` takes apart.
  NodeId less_rounder(NodeId t) const {
    for (NodeId id = t; id < e_.num_nodes; ++id) {
      const Node& n = e_[id];
      if (n.op == Op::Sub && n.args[0] == t && e_[n.args[1]].op == Op::Literal &&
          e_[n.args[1]].bits == rounder(e_[t].type))
        return id;
    }
    return kNoNode;
  }

  // copysign, mostly.
  void select_bits(Code& c) {
    const Node &a = e_[c.args[0]], &b = e_[c.args[1]];
    if (a.op != Op::And || b.op != Op::And || c.type == Type::Mask) return;
    const Node &x = e_[a.args[1]], &y = e_[b.args[1]];
    const uint64_t all = expr::item_size(c.type) == 8 ? ~uint64_t{0} : 0xffffffffu;
    if (x.op == Op::Literal && y.op == Op::Literal && ((x.bits ^ y.bits) & all) == all)
      become(c, Form::SelectBits, {a.args[0], b.args[0], a.args[1]});
  }

  const Expression& e_;
  const bool avx512_;
  std::vector<Code> codes_;
};

}  // namespace

std::vector<Code> select_codes(const Expression& e, bool avx512) { return Selection(e, avx512).take(); }

}  // namespace tenon::cpu::jit
