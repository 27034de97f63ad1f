#include "tenon/expr/spec.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <vector>

#include "tenon/core/error.h"
#include "tenon/expr/function.h"
#include "tenon/expr/scalar.h"

namespace tenon::expr {

namespace {

class Checker {
 public:
  Checker(const Expression& e, Origin origin)
      : e_(e), patterns_(origin == Origin::Definition || e.level == Level::Primitive) {}

  void run() {
    sizes();
    for (at_ = 0; at_ < e_.num_nodes; ++at_) rows_and_words();
    for (NodeId id = 0; id < e_.num_nodes; ++id) {
      at_ = id;
      reserved();
      leaf_or_operation();
      if (e_[id].op == Op::Load)
        load();
      else if (e_[id].op == Op::Number)
        number();
      else
        types();
      rank();
    }
    slots();
    nothing_unused();
    aliases();
  }

 private:
  [[noreturn]] void fail(int rule, const std::string& what) const {
    throw_error(ErrorKind::Value, fmt::format("expression: rule L{}: {}", rule, what));
  }
  // Only a failed rule makes its sentence: checking a graph that is read must be fast.
  template <class... A>
  void require(bool holds, int rule, fmt::format_string<A...> what, A&&... args) const {
    if (!holds) [[unlikely]]
      fail(rule, fmt::format("{} {}", here(), fmt::format(what, std::forward<A>(args)...)));
  }
  std::string here() const {
    const auto op = static_cast<int>(node().op);
    return fmt::format("node {} ({})", at_, op < kNumOps ? info(node().op).name : "unknown");
  }
  const Node& node() const { return e_[at_]; }
  Type type_of(int operand) const { return e_[node().args[operand]].type; }

  // L14: what consumers are built for.
  void sizes() const {
    const size_t num_slots = size_t{e_.num_inputs} + e_.num_numbers + e_.num_outputs;
    if (num_slots > kMaxSlots) fail(14, fmt::format("{} slots, at most {} are taken", num_slots, kMaxSlots));
    if (e_.num_nodes > kMaxNodes)
      fail(14, fmt::format("{} nodes, at most {} are taken", e_.num_nodes, kMaxNodes));
    if (e_.level > Level::Primitive) fail(7, fmt::format("there is no level {}", static_cast<int>(e_.level)));
    if (e_.level == Level::Written) fail(7, "the expression is written, a typed one was expected");
    if (e_.num_outputs == 0) fail(1, "the expression has no output");
  }

  // The rules of reserved nodes, so that a mistake in one is reported before its being reserved is.
  void rows_and_words() const {
    const Node& n = node();
    const auto operand = [&](int i) -> const Node* {
      return i < n.arity && i < 3 && n.args[i] < at_ ? &e_[n.args[i]] : nullptr;
    };
    switch (n.op) {
      // L11: truth is reduced by any, all and first alone. L1 sees that no reducer depends on itself.
      case Op::Reduce: {
        require(n.bits < kNumReduceKinds, 2, "reduces in way {}, which does not exist", n.bits);
        for (int i = 0; i < n.arity; ++i) {
          if (operand(i) && varies_along(operand(i)->rank())) break;
          require(i + 1 < n.arity, 10, "reduces what is the same along the row");
        }
        const auto kind = static_cast<ReduceKind>(n.bits);
        const bool of_masks = takes_mask(kind);
        const Node* first = operand(0);
        require(!first || of_masks == (first->type == Type::Mask), 11, "{}",
                of_masks ? "reduces numbers where it takes masks"
                         : "reduces masks, which only any, all and first do");
        break;
      }
      // L12: a row's length is one number.
      case Op::Length:
        require(n.type == Type::I64 && n.rank() == Rank::Number, 12,
                "is no i64 number of the call, as a length is");
        break;
      // L13: random words are found by seed, offset and logical number alone.
      case Op::Word32:
      case Op::Word64: {
        require(n.arity == 3, 2, "has {} operands, it takes 3", n.arity);
        for (int i = 0; i < 2; ++i) {
          const Node* number = operand(i);
          require(!number || (number->type == Type::I64 && number->rank() == Rank::Number), 13,
                  "takes its {} from what is no i64 number of the call", i == 0 ? "seed" : "offset");
        }
        const Node* place = operand(2);
        require(!place || place->op == Op::Iota, 13, "counts by something else than logical numbers");
        break;
      }
      default:
        break;
    }
  }

  // What has a number already and gets its meaning with its first user.
  void reserved() const {
    const Node& n = node();
    TENON_CHECK(static_cast<int>(n.op) < kNumOps, Value,
                fmt::format("expression: {}: no such operation", here()));
    TENON_CHECK(is_type(n.type), Value,
                fmt::format("expression: {}: no such type: {}", here(), static_cast<int>(n.type)));
    const auto refuse = [&](std::string_view what) {
      throw_error(ErrorKind::NotImplemented, fmt::format("expression: {}: {}", here(), what));
    };
    switch (n.op) {
      case Op::Scan:
        refuse("scans along rows are reserved and not implemented yet");
        break;
      case Op::Iota:
        if (n.bits != static_cast<uint64_t>(IotaKind::Position))
          refuse("numbers of elements and rows are reserved and not implemented yet");
        break;
      case Op::Word32:
      case Op::Word64:
        refuse("random words are reserved and not implemented yet");
        break;
      default:
        break;
    }
    if (n.type > Type::I64 && n.type < Type::Same)
      refuse(fmt::format("values of type {} are reserved and not implemented yet", suffix(n.type)));
    if ((n.flags & ~(Node::kRank | Node::kWhole)) != 0) refuse("its flags are reserved");
  }

  // L1, L2: operands before their users, as many as the op takes, bits in range; L7: the level's ops.
  void leaf_or_operation() const {
    const Node& n = node();
    const OpInfo& row = info(n.op);
    const bool counted = row.rule == TypeRule::BitShift || row.rule == TypeRule::Part;
    size_t arity = counted ? 1 : row.arity;
    if (n.op == Op::Call) {
      require(n.bits < functions().size(), 2, "calls function {}, which does not exist", n.bits);
      arity = functions()[n.bits].arity;
    }
    if (n.op == Op::Reduce && n.bits < kNumReduceKinds)
      arity = static_cast<size_t>(num_operands(static_cast<ReduceKind>(n.bits)));
    require(n.arity == arity, 2, "has {} operands, it takes {}", n.arity, arity);
    for (int i = 0; i < 3; ++i) {
      if (i >= n.arity)
        require(n.args[i] == kNoNode, 2, "has an operand {} too many", i);
      else
        require(n.args[i] < at_, 1, "reads node {}, which does not come before it", n.args[i]);
    }
    require(n.op != Op::Given && n.op != Op::Hold, 7, "is of written expressions alone");
    require(n.type < Type::Same, 7, "has the type {} of written expressions", suffix(n.type));
    require((n.flags & Node::kWhole) == 0, 7, "has the flag of written literals");
    if (e_.level == Level::Primitive) require(n.op != Op::Call, 7, "calls a function at the primitive level");
    const bool has_bits = n.op == Op::Literal || n.op == Op::Load || n.op == Op::Number || n.op == Op::Call ||
                          n.op == Op::RoundTo || n.op == Op::Reduce || n.op == Op::Iota || counted;
    require(has_bits || n.bits == 0, 2, "has bits, which mean nothing for it");
    if (row.rule == TypeRule::BitShift && is_compute_type(n.type))
      require(n.bits < 8 * item_size(n.type), 2, "shifts {} bits by {}", 8 * item_size(n.type), n.bits);
    if (row.rule == TypeRule::Part) require(n.bits < 3, 2, "asks for part {} of 3", n.bits);
  }

  // L8: a load has the type of its dtype's elements and the rank of its slot.
  void load() const {
    const Node& n = node();
    require(n.bits < e_.num_inputs, 2, "loads input {} of {}", n.bits, e_.num_inputs);
    const Slot& s = e_.inputs()[n.bits];
    require(n.type == carrier(s.dtype), 8, "loads {} as {}", tenon::name(s.dtype), suffix(n.type));
    require(s.node == at_, 1, "is not the node of input {}", n.bits);
    require(n.rank() == s.rank, 8, "has another rank than its slot");
  }

  void number() const {
    const Node& n = node();
    require(n.bits < e_.num_numbers, 2, "is number {} of {}", n.bits, e_.num_numbers);
    const Slot& s = e_.numbers()[n.bits];
    require(is_compute_type(n.type) && s.dtype == dtype(n.type), 8, "is a {} number of type {}",
            tenon::name(s.dtype), suffix(n.type));
    require(s.node == at_, 1, "is not the node of number {}", n.bits);
  }

  void types() const {
    const Node& n = node();
    const auto mask_or_compute = [](Type t) { return t == Type::Mask || is_compute_type(t); };
    require(mask_or_compute(n.type), 3, "has no type that is computed in");
    if (n.op == Op::Literal) {
      const bool narrow = n.type == Type::Mask ? n.bits <= 1 : item_size(n.type) == 8 || n.bits <= UINT32_MAX;
      return require(narrow, 2, "has bits outside {}", suffix(n.type));
    }
    if (n.op == Op::Call) return call();
    if (info(n.op).rule == TypeRule::Row) return row();
    const Type t = type_of(0);
    switch (info(n.op).rule) {
      // L3: operands of one type, the result the same.
      case TypeRule::Any:
      case TypeRule::Floating:
      case TypeRule::Integer:
      case TypeRule::BitShift:
      case TypeRule::Part:
        require(is_compute_type(t), 3, "works on {}", suffix(t));
        for (int i = 0; i < n.arity; ++i) one_type(3, type_of(i), t);
        require(n.type == t, 3, "of {} gives {}", suffix(t), suffix(n.type));
        domain(t);
        break;
      // L4: comparisons give masks; `where` takes a mask and two of one type; logic is of masks or integers.
      case TypeRule::Compare:
        require(is_compute_type(t), 4, "compares {}", suffix(t));
        one_type(4, type_of(1), t);
        require(n.type == Type::Mask, 4, "gives {}, not a mask", suffix(n.type));
        break;
      case TypeRule::Select:
        require(t == Type::Mask, 4, "chooses by {}, not by a mask", suffix(t));
        one_type(4, type_of(2), type_of(1));
        require(n.type == type_of(1), 4, "of {} gives {}", suffix(type_of(1)), suffix(n.type));
        break;
      case TypeRule::Bitwise:
        require(!is_floating(t), 4, "works on {}, not on integers or masks", suffix(t));
        for (int i = 0; i < n.arity; ++i) one_type(4, type_of(i), t);
        require(n.type == t, 4, "of {} gives {}", suffix(t), suffix(n.type));
        break;
      // L15: what differs between NaNs is looked at by definitions alone, whose results do not show it.
      case TypeRule::ToBits:
        require(patterns_, 15, "looks at the bits of a float, which only definitions of functions do");
        require(is_floating(t) && n.type == pattern_of(t), 3, "takes {} to {}", suffix(t), suffix(n.type));
        break;
      case TypeRule::FromBits:
        require(is_floating(n.type) && t == pattern_of(n.type), 3, "takes {} to {}", suffix(t),
                suffix(n.type));
        break;
      // L5: a cast changes the type. L6: rounding is of the carrier of a dtype that is narrower.
      default:
        if (n.op == Op::Cast)
          require(n.type != t, 5, "casts {} to itself", suffix(t));
        else
          round(t);
    }
  }

  void round(Type t) const {
    const Node& n = node();
    require(n.bits < 256 && is_known(static_cast<DType>(n.bits)), 6,
            "rounds to dtype {}, which does not exist", n.bits);
    const auto d = static_cast<DType>(n.bits);
    require(is_narrower_than_carrier(d), 6, "rounds to {}, which rounds nothing", tenon::name(d));
    require(t == carrier(d) && n.type == t, 6, "rounds {} to {}, whose values are {}", suffix(t),
            tenon::name(d), suffix(carrier(d)));
  }

  // L11, L12: truth gives truth, places are i64, everything else keeps its type.
  void row() const {
    const Node& n = node();
    if (n.op != Op::Reduce) return require(n.type == Type::I64, 12, "is no i64");
    const auto kind = static_cast<ReduceKind>(n.bits);
    const Type t = type_of(n.arity - 1);
    const Type gives = gives_place(kind) ? Type::I64 : t;
    require(n.type == gives, 11, "of {} gives {}", suffix(t), suffix(n.type));
    if (kind == ReduceKind::First) require(is_compute_type(t), 11, "chooses among masks");
    if (kind > ReduceKind::First) {
      one_type(11, type_of(0), t);
      require(is_floating(t), 11, "multiplies complex numbers of {}", suffix(t));
    }
  }

  void call() const {
    const Node& n = node();
    const Function& f = functions()[n.bits];
    const Type t = type_of(0);
    require(is_compute_type(t) && f.runs_in(t), 3, "calls `{}` on {}", f.name, suffix(t));
    for (int i = 0; i < n.arity; ++i) one_type(3, type_of(i), t);
    const Type gives = f.mask ? Type::Mask : t;
    require(n.type == gives, 3, "calls `{}`, which gives {}, not {}", f.name, suffix(gives), suffix(n.type));
  }

  void one_type(int rule, Type a, Type b) const {
    require(a == b, rule, "meets {} with {} without a cast", suffix(b), suffix(a));
  }

  void domain(Type t) const {
    const Node& n = node();
    const TypeRule rule = info(n.op).rule;
    const bool rounding = n.op == Op::Floor || n.op == Op::Ceil || n.op == Op::Trunc || n.op == Op::Round;
    if (rule == TypeRule::Floating || rule == TypeRule::Part || rounding)
      require(is_floating(t), 3, "is of floating types, not of {}", suffix(t));
    if (rule == TypeRule::Integer || rule == TypeRule::BitShift)
      require(!is_floating(t), 3, "is of integers, not of {}", suffix(t));
  }

  // L10: a value varies with what its operands vary with.
  void rank() const {
    const Node& n = node();
    if (n.op == Op::Load) return;
    if (n.op == Op::Iota) return require(n.rank() == Rank::Column, 10, "does not vary along rows alone");
    Rank rank = Rank::Number;
    for (int i = 0; i < n.arity; ++i) rank = rank | e_[n.args[i]].rank();
    if (n.op == Op::Reduce) rank = reduced(rank);
    require(n.rank() == rank, 10, "has not the rank of its operands together");
  }

  void slots() const {
    for (size_t i = 0; i < e_.num_inputs; ++i) slot(e_.inputs()[i], fmt::format("input {}", i));
    for (size_t i = 0; i < e_.num_numbers; ++i) {
      const Slot& s = e_.numbers()[i];
      slot(s, fmt::format("number {}", i));
      if (s.rank != Rank::Number) fail(10, fmt::format("number {} varies", i));
    }
    for (size_t i = 0; i < e_.num_outputs; ++i) {
      const Slot& s = e_.outputs()[i];
      slot(s, fmt::format("output {}", i));
      store(s, i);
    }
    pairs(e_.inputs(), "input");
    pairs(e_.numbers(), "number");
    pairs(e_.outputs(), "output");
  }

  void slot(const Slot& s, const std::string& what) const {
    if (s.rank > Rank::Element) fail(10, fmt::format("{} has no rank", what));
    TENON_CHECK(s.reduces == Reduces::None && s.flags == 0 && s.reserved == 0, NotImplemented,
                fmt::format("expression: {}: reducing outputs are reserved and not implemented yet", what));
    if (carrier(s.dtype) == Type::Open) fail(8, fmt::format("{} is of a dtype without arithmetic", what));
    if (s.node != kNoNode && s.node >= e_.num_nodes)
      fail(1, fmt::format("{} is node {}, which does not exist", what, s.node));
  }

  // L9: what is stored is what the dtype holds. L10: and varies as the output does.
  void store(const Slot& s, size_t i) const {
    if (s.node == kNoNode) fail(1, fmt::format("output {} has no value", i));
    const Node& n = e_[s.node];
    if (n.type != carrier(s.dtype))
      fail(9, fmt::format("output {} stores {} as {}", i, suffix(n.type), tenon::name(s.dtype)));
    if (!holds(e_.nodes(), e_.inputs(), s.node, s.dtype))
      fail(9, fmt::format("output {} stores node {} as {}, which may not hold it; round it first", i, s.node,
                          tenon::name(s.dtype)));
    if (n.rank() != s.rank) fail(10, fmt::format("output {} has another rank than its value", i));
  }

  // L16: complex operands come as both parts, one after the other.
  void pairs(std::span<const Slot> list, std::string_view what) const {
    for (size_t i = 0; i < list.size(); ++i) {
      const Slot& s = list[i];
      const bool number = what == "number";
      if (s.part == Part::Whole && (number || !is_complex(s.dtype))) continue;
      const bool pair = s.part == Part::Re && i + 1 < list.size() && list[i + 1].part == Part::Im &&
                        list[i + 1].dtype == s.dtype && list[i + 1].operand == s.operand &&
                        (number || is_complex(s.dtype));
      if (!pair) fail(16, fmt::format("{} {} is not a pair of real and imaginary part", what, i));
      ++i;
    }
  }

  // L1: nothing is there that no output needs, but inputs and numbers of the list.
  void nothing_unused() const {
    std::vector<bool> used(e_.num_nodes);
    for (const Slot& s : e_.outputs()) used[s.node] = true;
    for (NodeId id = e_.num_nodes; id-- > 0;) {
      if (!used[id]) fail(1, fmt::format("node {} ({}) is used nowhere", id, info(e_[id].op).name));
      for (int i = 0; i < e_[id].arity; ++i) used[e_[id].args[i]] = true;
    }
    const auto own = [&](std::span<const Slot> list, Op op) {
      for (size_t i = 0; i < list.size(); ++i) {
        if (list[i].node != kNoNode && (e_[list[i].node].op != op || e_[list[i].node].bits != i))
          fail(1, fmt::format("{} {} has the node of another", op == Op::Load ? "input" : "number", i));
      }
    };
    own(e_.inputs(), Op::Load);
    own(e_.numbers(), Op::Number);
  }

  // L17: flat expressions have one pass, which reads an element before it stores it: any input may also be
  // written, element by element. Two outputs must not be one result.
  void aliases() const {
    for (size_t i = 0; i < e_.num_outputs; ++i) {
      for (size_t j = 0; j < i; ++j) {
        const Slot &a = e_.outputs()[i], &b = e_.outputs()[j];
        if (a.operand == b.operand && a.part == b.part)
          fail(17, fmt::format("outputs {} and {} both store result {}", j, i, a.operand));
      }
    }
  }

  const Expression& e_;
  bool patterns_;
  NodeId at_ = 0;
};

}  // namespace

void check(const Expression& e, Origin origin) { Checker(e, origin).run(); }

bool holds(std::span<const Node> nodes, std::span<const Slot> inputs, NodeId id, DType d) {
  if (nodes[id].type != carrier(d)) return false;
  if (!is_narrower_than_carrier(d)) return true;
  std::vector<bool> held(id + 1);  // from the operands up, so that shared nodes are decided once
  for (NodeId i = 0; i <= id; ++i) {
    const Node& n = nodes[i];
    if (n.type != carrier(d)) continue;
    switch (n.op) {
      case Op::Load:
        held[i] = inputs[n.bits].dtype == d;
        break;
      case Op::RoundTo:
        held[i] = n.bits == static_cast<uint64_t>(d);
        break;
      case Op::Literal: {
        const bool nan =
            n.type == Type::F32 && std::isnan(std::bit_cast<float>(static_cast<uint32_t>(n.bits)));
        held[i] = nan || round_scalar(n.bits, d) == n.bits;
        break;
      }
      case Op::Cast:  // 1 and 0, which every dtype holds
        held[i] = nodes[n.args[0]].type == Type::Mask;
        break;
      case Op::Min:
      case Op::Max:
        held[i] = held[n.args[0]] && held[n.args[1]];
        break;
      case Op::Where:
        held[i] = held[n.args[1]] && held[n.args[2]];
        break;
      case Op::Neg:
      case Op::Abs:
        held[i] = is_floating_point(d) && held[n.args[0]];
        break;
      default:
        break;
    }
  }
  return held[id];
}

}  // namespace tenon::expr
