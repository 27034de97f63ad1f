#include "tenon/expr/instantiate.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "tenon/core/error.h"
#include "tenon/expr/complex.h"
#include "tenon/expr/expr.h"
#include "tenon/expr/function.h"
#include "tenon/expr/parse.h"
#include "tenon/expr/scalar.h"
#include "tenon/expr/spec.h"
#include "tenon/expr/unsigned.h"

namespace tenon::expr {

namespace {

bool bit(uint64_t mask, size_t i) { return i < 64 && ((mask >> i) & 1u) != 0; }

// The written expression again as a builder's nodes, with given() answered.
class Reopened {
 public:
  Reopened(const Expression& e, const CallTypes& types) {
    for (size_t i = 0; i < e.num_inputs; ++i) {
      const Slot& s = e.inputs()[i];
      const SymbolKind kind = s.dtype == DType::Bool    ? SymbolKind::MaskTensor
                              : s.dtype == DType::Int64 ? SymbolKind::IndexTensor
                                                        : SymbolKind::Tensor;
      inputs.push_back(g.symbol(fmt::format("in{}", i), kind, s.rank));
    }
    for (size_t i = 0; i < e.num_numbers; ++i)
      numbers.push_back(g.symbol(fmt::format("number{}", i), SymbolKind::Scalar));
    std::vector<NodeId> made;
    for (Node n : e.nodes()) {
      for (int i = 0; i < n.arity; ++i) n.args[i] = made[n.args[i]];
      if (n.op == Op::Load) {
        made.push_back(inputs[n.bits]);
      } else if (n.op == Op::Number) {
        made.push_back(numbers[n.bits]);
      } else if (n.op == Op::Given) {
        const bool number = n.bits >= Node::kFirstNumber;
        const bool absent = number ? bit(types.absent_numbers, n.bits - Node::kFirstNumber)
                                   : bit(types.absent_inputs, n.bits);
        made.push_back(g.add({.op = Op::Literal, .type = Type::Mask, .bits = absent ? 0u : 1u}));
      } else {
        made.push_back(g.add(n));
      }
    }
    for (const Slot& s : e.outputs()) outputs.push_back(made[s.node]);
  }

  Builder g;
  std::vector<NodeId> inputs, numbers, outputs;
};

// What a symbol of the reopened expression is in the typed one.
struct Place {
  NodeId symbol;
  size_t operand;
  Part part;
};

class Instantiator {
 public:
  Instantiator(const Builder& written, const CallTypes& types)
      : w_(written), types_(types), done_(written.size()) {
    wide_ = types.wide != Type::Open     ? types.wide
            : is_floating(types.compute) ? Type::F64
            : types.compute == Type::U64 ? Type::U64
                                         : Type::I64;
  }

  void input(const Place& p) {
    const Node& n = w_[p.symbol];
    const DType d = n.type == Type::I64 ? DType::Int64 : slot_dtype(types_.inputs, p.operand);
    TENON_CHECK(carrier(d) != Type::Open, NotImplemented,
                fmt::format("expression: {} elements have no arithmetic", tenon::name(d)));
    inputs_.push_back(p);
    parts_.inputs.push_back(
        {.dtype = d, .rank = n.rank(), .part = p.part, .operand = static_cast<uint16_t>(p.operand)});
  }

  // A slot for each type that the expression wants the number in.
  void number(const Place& p, const std::vector<bool>& needed) {
    bool plain = false, used = false;
    std::vector<Type> casts;
    for (NodeId id = 0; id < w_.size(); ++id) {
      if (!needed[id]) continue;
      for (const NodeId a : w_.args(id)) {
        if (a != p.symbol) continue;
        used = true;
        const Type to = w_[id].op == Op::Cast ? resolve(w_[id].type) : types_.compute;
        if (to == types_.compute)
          plain = true;
        else if (std::find(casts.begin(), casts.end(), to) == casts.end())
          casts.push_back(to);
      }
    }
    if (plain || !used || is_output(p.symbol)) casts.insert(casts.begin(), types_.compute);
    for (const Type t : casts) {
      numbers_.push_back({p, t});
      parts_.numbers.push_back({.dtype = dtype(register_type(t)),
                                .rank = Rank::Number,
                                .part = p.part,
                                .operand = static_cast<uint16_t>(p.operand)});
    }
  }

  void absent(NodeId symbol) { absent_.push_back(symbol); }
  void root(NodeId id) { roots_.push_back(id); }

  void output(size_t i, ComplexParts value) {
    // Places stay int64, whatever is computed in.
    const bool places = types_.dense && w_[value.re].type == Type::I64;
    const DType result = places ? DType::Int64 : slot_dtype(types_.results, i);
    const DType out = types_.outs.empty() || types_.dense ? result : types_.outs[i];
    const auto slot = [&](NodeId written, Part part) {
      NodeId node = store(value_of(written), value_type(written), result);
      if (out != result) node = store(node, number_type(result), out);
      parts_.outputs.push_back({.dtype = out,
                                .rank = t_[node].rank(),
                                .part = part,
                                .operand = static_cast<uint16_t>(i),
                                .node = node});
    };
    TENON_CHECK(is_complex(out) || value.im == kNoNode, Type,
                "expression: the value is complex, expected a real one");
    slot(value.re, is_complex(out) ? Part::Re : Part::Whole);
    if (!is_complex(out)) return;
    if (value.im != kNoNode) return slot(value.im, Part::Im);
    const NodeId zero = t_.add({.op = Op::Literal, .type = carrier(out)});
    parts_.outputs.push_back({.dtype = out,
                              .rank = Rank::Number,
                              .part = Part::Im,
                              .operand = static_cast<uint16_t>(i),
                              .node = zero});
  }

  ExpressionPtr take() {
    parts_.level = Level::Typed;
    parts_.relaxed = types_.relaxed;
    return t_.finish(std::move(parts_));
  }

 private:
  DType slot_dtype(std::span<const DType> list, size_t i) const {
    const DType dense = dtype(register_type(types_.compute));
    if (list.empty()) return dense;
    if (!types_.dense) return list[i];
    return is_complex(list[i]) ? complex_dtype(dense) : dense;
  }

  bool is_output(NodeId id) const { return std::find(roots_.begin(), roots_.end(), id) != roots_.end(); }

  Type resolve(Type t) const {
    switch (t) {
      case Type::Same:
        return types_.compute;
      case Type::Wide:
        return wide_;
      case Type::Pattern:
        return pattern_of(types_.compute);
      default:
        return t;
    }
  }

  [[noreturn]] void refuse(const Node& n, std::string_view expected, Type got) const {
    const std::string_view what = n.op == Op::Call ? functions()[n.bits].name : info(n.op).name;
    throw_error(ErrorKind::Type, fmt::format("expression: `{}` needs {}, got {}", what, expected, name(got)));
  }

  void check(const Node& n, Type operands) const {
    switch (info(n.op).rule) {
      case TypeRule::Floating:
      case TypeRule::Part:
        if (!is_floating(operands)) refuse(n, "a floating type", operands);
        break;
      case TypeRule::Integer:
        if (is_floating(operands)) refuse(n, "an integer type", operands);
        break;
      case TypeRule::Bitwise:
        if (is_floating(operands)) refuse(n, "integers or masks", operands);
        break;
      case TypeRule::BitShift:
        if (is_floating(operands)) refuse(n, "an integer type", operands);
        break;
      default:
        if (n.op == Op::Call && !functions()[n.bits].runs_in(operands)) {
          refuse(n, is_floating(operands) ? "an integer type" : "a floating type", operands);
        }
    }
  }

  uint64_t literal_bits(const Literal& v, Type type) const {
    if (type == Type::F64) return std::bit_cast<uint64_t>(v.as_double());
    if (type == Type::F32) {
      // An integer goes to float32 directly: through double it could round twice.
      const float f = v.integer ? static_cast<float>(v.i) : static_cast<float>(v.d);
      return std::bit_cast<uint32_t>(f);
    }
    const bool whole = v.integer || (std::trunc(v.d) == v.d && std::abs(v.d) < 0x1p63);
    TENON_CHECK(whole, Type,
                fmt::format("expression: literal {} is not a whole number, as {} needs", v.d, name(type)));
    const int64_t i = v.integer ? v.i : static_cast<int64_t>(v.d);
    if (item_size(type) == 8) return static_cast<uint64_t>(i);
    TENON_CHECK(i >= INT32_MIN && i <= int64_t{UINT32_MAX}, Type,
                fmt::format("expression: literal {} does not fit 32 bits", i));
    return static_cast<uint32_t>(i);
  }

  Type value_type(NodeId id) const {
    return w_[id].type == Type::Open ? types_.compute : resolve(w_[id].type);
  }
  NodeId value_of(NodeId id) { return visit(id, value_type(id)); }

  NodeId visit(NodeId id, Type type) {
    for (const auto& [known, node] : done_[id]) {
      if (known == type) return node;
    }
    const NodeId made = visit_new(id, type);
    done_[id].push_back({type, made});
    return made;
  }

  // The type in which a node takes its number operands.
  Type operand_type(const Node& n, Type type) const {
    const TypeRule rule = info(n.op).rule;
    if (rule != TypeRule::Compare && rule != TypeRule::ToBits && rule != TypeRule::FromBits &&
        n.op != Op::Call && n.op != Op::Cast)
      return type;
    for (int i = 0; i < n.arity; ++i) {
      const Type t = w_[n.args[i]].type;
      if (t != Type::Open) return resolve(t);
    }
    return rule == TypeRule::FromBits ? pattern_of(type) : types_.compute;
  }

  NodeId visit_new(NodeId id, Type type) {
    const Node& n = w_[id];
    if (n.op == Op::Literal) {
      if (n.type == Type::Mask) return t_.add({.op = Op::Literal, .type = Type::Mask, .bits = n.bits});
      return t_.add(
          {.op = Op::Literal, .type = register_type(type), .bits = literal_bits(w_.literal_of(id), type)});
    }
    if (n.op == Op::Load) return load(id);
    if (n.op == Op::Number) return number_node(id, type);
    if (n.op == Op::RoundTo) return stored(n);
    if (info(n.op).rule == TypeRule::Row) return of_row(n, type);
    const Type operands = operand_type(n, type);
    if (n.op == Op::Cast) {
      if (w_[n.args[0]].op == Op::Number) return number_node(n.args[0], type);
      return convert(visit(n.args[0], operands), operands, type);
    }
    if (n.op == Op::Call && operands == Type::F32 && functions()[n.bits].widens()) return wide_call(n, type);
    // Identities where floats have no separate bits.
    if ((n.op == Op::Bits || n.op == Op::FromBits) && operands == type) return visit(n.args[0], type);
    check(n, operands);
    // Rounding an integer leaves it.
    const bool rounding = n.op == Op::Floor || n.op == Op::Ceil || n.op == Op::Trunc || n.op == Op::Round;
    if (rounding && !is_floating(type)) return visit(n.args[0], type);
    if (n.op == Op::Call && operands == Type::U64) return unsigned_call(n);
    Node out{.op = n.op, .type = type, .arity = n.arity, .bits = n.bits};
    if (info(n.op).rule == TypeRule::BitShift) {
      TENON_CHECK(n.bits < 8 * item_size(type), Value,
                  fmt::format("expression: `{}` by {} bits of {}", info(n.op).name,
                              static_cast<int64_t>(n.bits), 8 * item_size(type)));
    }
    for (int i = 0; i < n.arity; ++i) {
      const bool condition = n.op == Op::Where && i == 0;
      out.args[i] = visit(n.args[i], condition ? Type::Mask : operands);
    }
    return operands == Type::U64 ? add_unsigned(t_, out) : t_.add(out);
  }

  // A function of unsigned numbers: its definition in the place of the call.
  NodeId unsigned_call(const Node& n) {
    Builder g;
    static constexpr std::string_view kNames[] = {"x", "y", "z"};
    std::vector<Binding> names;
    for (int i = 0; i < n.arity; ++i) names.push_back({kNames[i], g.symbol(kNames[i])});
    const Function& f = functions()[n.bits];
    const NodeId root = parse_bound(g, f.body_for(Type::I64), names);
    const DType result[] = {f.mask ? DType::Bool : DType::UInt64};
    const std::vector<DType> inputs(f.arity, DType::UInt64);
    const ExpressionPtr body =
        instantiate(*g.finish({root}), {.compute = Type::U64, .inputs = inputs, .results = result});
    std::vector<NodeId> made;
    for (Node node : body->nodes()) {
      for (int i = 0; i < node.arity; ++i) node.args[i] = made[node.args[i]];
      made.push_back(node.op == Op::Load ? visit(n.args[node.bits], Type::U64) : t_.add(node));
    }
    return made[body->outputs()[0].node];
  }

  // A function that is defined in float64 alone, of float32.
  NodeId wide_call(const Node& n, Type type) {
    const std::string_view form = functions()[n.bits].short_form;
    const uint64_t function = form.empty() ? n.bits : find_function(form);
    Node out{.op = Op::Call, .type = Type::F64, .arity = n.arity, .bits = function};
    for (int i = 0; i < n.arity; ++i)
      out.args[i] = convert(visit(n.args[i], Type::F32), Type::F32, Type::F64);
    return convert(t_.add(out), Type::F64, type);
  }

  NodeId of_row(const Node& n, Type type) {
    if (n.op == Op::Hold) return visit(n.args[0], type);
    Node out{.op = n.op, .type = type, .arity = n.arity, .flags = n.flags, .bits = n.bits};
    const auto kind = static_cast<ReduceKind>(n.bits);
    bool is_unsigned = false;
    for (int i = 0; i < n.arity; ++i) {
      const Type t = w_[n.args[i]].type;
      const bool mask = kind == ReduceKind::First && i == 0;
      const Type own = t == Type::Open ? types_.compute : resolve(t);
      out.args[i] = visit(n.args[i], mask ? Type::Mask : gives_place(kind) ? own : type);
      is_unsigned |= !mask && own == Type::U64;
    }
    out.type = register_type(type);
    return is_unsigned ? add_unsigned(t_, out) : t_.add(out);
  }

  // `value`, which is a `from`, as another type.
  NodeId convert(NodeId value, Type from, Type to) {
    const Node n = t_[value];
    if (from == to) return value;
    if (n.op == Op::Literal)
      return t_.add({.op = Op::Literal, .type = register_type(to), .bits = convert_scalar(n.bits, from, to)});
    if (from == Type::U64) return convert_from_unsigned(t_, value, to);
    if (to == Type::U64) return convert_to_unsigned(t_, value);
    if (to == Type::Mask) {
      const NodeId zero = t_.add({.op = Op::Literal, .type = n.type});
      return t_.add({.op = Op::Ne, .type = Type::Mask, .arity = 2, .args = {value, zero, kNoNode}});
    }
    return t_.add({.op = Op::Cast, .type = to, .arity = 1, .args = {value, kNoNode, kNoNode}});
  }

  // `value`, which is a `from`, as storing it as `d` and loading it again gives it, in d's carrier.
  NodeId store(NodeId value, Type from, DType d) {
    TENON_CHECK(carrier(d) != Type::Open, NotImplemented,
                fmt::format("expression: {} elements have no arithmetic", tenon::name(d)));
    value = convert(value, from, number_type(d));
    if (holds(t_.nodes(), parts_.inputs, value, d)) return value;
    return t_.add({.op = Op::RoundTo,
                   .type = carrier(d),
                   .arity = 1,
                   .args = {value, kNoNode, kNoNode},
                   .bits = static_cast<uint64_t>(d)});
  }

  NodeId stored(const Node& n) {
    const NodeId value = visit(n.args[0], types_.compute);
    const auto& list = n.bits == Node::kOfResult ? types_.results : types_.inputs;
    const size_t i = n.bits == Node::kOfResult ? 0 : static_cast<size_t>(n.bits);
    const DType d = list.empty() ? dtype(register_type(types_.compute)) : real_dtype(list[i]);
    if (types_.relaxed && is_floating_point(d)) return value;
    return convert(store(value, types_.compute, d), number_type(d), types_.compute);
  }

  NodeId load(NodeId id) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].symbol != id) continue;
      const NodeId value = t_.add({.op = Op::Load,
                                   .type = carrier(parts_.inputs[i].dtype),
                                   .flags = static_cast<uint8_t>(parts_.inputs[i].rank),
                                   .bits = i});
      // Dense slots have the compute type already.
      const bool same = w_[id].type == Type::Same;
      const bool held = types_.dense && same && types_.compute == Type::U64;
      return convert(value, held ? Type::U64 : number_type(parts_.inputs[i].dtype),
                     same ? types_.compute : w_[id].type);
    }
    refuse_absent(id);
  }

  NodeId number_node(NodeId id, Type type) {
    for (size_t i = 0; i < numbers_.size(); ++i) {
      if (numbers_[i].first.symbol == id && numbers_[i].second == type)
        return t_.add({.op = Op::Number, .type = register_type(type), .bits = i});
    }
    refuse_absent(id);
  }

  [[noreturn]] void refuse_absent(NodeId id) const {
    const bool absent = std::find(absent_.begin(), absent_.end(), id) != absent_.end();
    TENON_CHECK(absent, Internal, "instantiate: a symbol without a slot");
    throw_error(ErrorKind::Value,
                fmt::format("expression: operand {} is absent, and its value is used; ask given() before",
                            w_.symbol_of(id).name));
  }

  const Builder& w_;
  const CallTypes& types_;
  Type wide_;
  std::vector<std::vector<std::pair<Type, NodeId>>> done_;
  std::vector<Place> inputs_;
  std::vector<std::pair<Place, Type>> numbers_;
  std::vector<NodeId> absent_, roots_;
  Builder t_;
  ExpressionParts parts_;
};

}  // namespace

ExpressionPtr instantiate(const Expression& written, const CallTypes& types) {
  TENON_CHECK(written.level == Level::Written, Type, "instantiate: the expression is typed already");
  TENON_CHECK(is_compute_type(register_type(types.compute)), Type, "instantiate: no compute type");
  const auto fits = [](auto list, size_t n) { return list.empty() || list.size() == n; };
  TENON_CHECK(fits(types.inputs, written.num_inputs) && fits(types.results, written.num_outputs) &&
                  fits(types.outs, written.num_outputs),
              Internal, "instantiate: a dtype for each operand and result, or none");
  Reopened w(written, types);

  std::vector<ComplexOperand> operands;
  std::vector<Place> inputs, numbers;
  inputs.reserve(w.inputs.size());
  std::vector<NodeId> absent;
  bool complex = false;
  const auto add = [&](NodeId symbol, size_t i, bool has_imaginary, bool conjugated,
                       std::vector<Place>& list) {
    if (!has_imaginary) {
      const bool zero = types.complex_inputs && w.g.symbol_of(symbol).kind == SymbolKind::Tensor;
      if (zero) operands.push_back({symbol, {symbol, w.g.literal(0)}, false});
      return list.push_back({symbol, i, Part::Whole});
    }
    const std::string name = w.g.symbol_of(symbol).name;
    const SymbolKind kind = w.g.symbol_of(symbol).kind;
    const Rank rank = w.g.symbol_of(symbol).rank;
    const ComplexParts parts{w.g.symbol(name + ".re", kind, rank), w.g.symbol(name + ".im", kind, rank)};
    list.push_back({parts.re, i, Part::Re});
    list.push_back({parts.im, i, Part::Im});
    operands.push_back({symbol, parts, conjugated});
    complex = true;
  };
  for (size_t i = 0; i < w.inputs.size(); ++i) {
    if (bit(types.absent_inputs, i))
      absent.push_back(w.inputs[i]);
    else
      add(w.inputs[i], i, !types.inputs.empty() && is_complex(types.inputs[i]), bit(types.conjugated, i),
          inputs);
  }
  for (size_t i = 0; i < w.numbers.size(); ++i) {
    if (bit(types.absent_numbers, i))
      absent.push_back(w.numbers[i]);
    else
      add(w.numbers[i], i, bit(types.complex_numbers, i), false, numbers);
  }
  for (const DType d : types.results) complex |= is_complex(d);

  std::vector<ComplexParts> values;
  if (complex) {
    values = split_complex(w.g, types.compute, w.outputs, operands, types.conjugated_results);
  } else {
    for (const NodeId id : w.outputs) values.push_back({id});
  }
  std::vector<NodeId> roots;
  for (ComplexParts& v : values) {
    v.re = simplify(w.g, v.re);
    roots.push_back(v.re);
    if (v.im == kNoNode) continue;
    v.im = simplify(w.g, v.im);
    roots.push_back(v.im);
  }

  Instantiator typed(w.g, types);
  const std::vector<bool> needed = reached(w.g, roots);
  for (const NodeId id : roots) typed.root(id);
  for (const NodeId id : absent) typed.absent(id);
  for (const Place& p : inputs) typed.input(p);
  for (const Place& p : numbers) typed.number(p, needed);
  for (size_t i = 0; i < values.size(); ++i) typed.output(i, values[i]);
  ExpressionPtr made = typed.take();
  TENON_CHECK(made->num_nodes <= kMaxNodes, Value,
              fmt::format("expression: {} nodes, at most {} are taken", made->num_nodes, kMaxNodes));
#ifndef NDEBUG
  check(*made, types.definition ? Origin::Definition : Origin::Call);
#endif
  return made;
}

ExpressionPtr instantiate_stored(const Expression& written, DType half) {
  const std::vector<DType> inputs(written.num_inputs, half), results(written.num_outputs, half);
  return instantiate(written, {.compute = Type::F32, .inputs = inputs, .results = results});
}

Asks asks_of(const Expression& written) {
  Asks asks;
  for (const Node& n : written.nodes()) {
    asks.dtypes |= n.op == Op::RoundTo || n.type == Type::Wide;
    asks.typed_numbers |= n.op == Op::Cast && written[n.args[0]].op == Op::Number;
  }
  return asks;
}

void check(const Builder& g, NodeId root, Type type) { instantiate(*g.finish({root}), {.compute = type}); }

bool runs_on_integers(const Builder& g, NodeId root) {
  try {
    check(g, root, Type::I64);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace tenon::expr
