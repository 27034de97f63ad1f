#include "tenon/expr/lower.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "tenon/core/error.h"
#include "tenon/expr/definition_constants.h"
#include "tenon/expr/function.h"
#include "tenon/expr/parse.h"

namespace tenon::expr {

namespace {

constexpr uint32_t kNotYet = ~uint32_t{0};

// What a node is before literals have chosen: those take the lane of what they meet.
enum class Want : uint8_t { Value, Bits, Mask, Open };

class Lowering {
 public:
  Lowering(const Graph& g, ComputeType type) : g_(g), type_(type), lane_(g.size(), Want::Open) {
    out_.type = type;
    const bool floating = is_floating(type);
    for (NodeId id = 0; id < g.size(); ++id) {
      const Node& n = g[id];
      if (n.kind == Kind::Mask)
        lane_[id] = Want::Mask;
      else if (n.op == Op::Literal)
        lane_[id] = Want::Open;
      else if (n.op == Op::Symbol || n.op == Op::Call || n.op == Op::FromBits || n.op == Op::PiReduce)
        lane_[id] = Want::Value;
      else if (n.op == Op::Bits)
        lane_[id] = floating ? Want::Bits : Want::Value;
      else
        lane_[id] = common(id);
    }
    done_.assign(3 * g.size(), kNotYet);
  }

  void place(NodeId symbol, uint64_t position, bool scalar) { places_.push_back({symbol, position, scalar}); }

  void output(NodeId root) {
    const Want w = lane_[root];
    out_.outputs.push_back(visit(root, w == Want::Open ? Lane::Value : static_cast<Lane>(w)));
  }

  Lowered take() { return std::move(out_); }

 private:
  struct Place {
    NodeId symbol;
    uint64_t position;
    bool scalar;
  };

  // The lane of a node's number operands: that of the first that is not a literal.
  Want common(NodeId id) const {
    for (NodeId a : g_.args(id)) {
      if (lane_[a] != Want::Open && lane_[a] != Want::Mask) return lane_[a];
    }
    return Want::Open;
  }

  [[noreturn]] void refuse(const Node& n, std::string_view expected) const {
    const std::string_view what = n.op == Op::Call ? functions()[n.function].name : info(n.op).name;
    throw_error(ErrorKind::Type,
                fmt::format("expression: `{}` needs {}, got {}", what, expected, name(type_)));
  }

  void check(const Node& n, Lane lane) const {
    const bool floating = is_floating(type_) && lane == Lane::Value;
    switch (info(n.op).rule) {
      case TypeRule::Floating:
      case TypeRule::Part:
        if (!floating) refuse(n, "a floating type");
        break;
      case TypeRule::Integer:
        if (floating) refuse(n, "an integer type");
        break;
      case TypeRule::Bitwise:
        if (lane != Lane::Mask && floating) refuse(n, "integers or masks");
        break;
      case TypeRule::BitShift:
        if (floating) refuse(n, "an integer type");
        break;
      default:
        if (n.op == Op::Call && !functions()[n.function].runs_in(type_)) {
          refuse(n, is_floating(type_) ? "an integer type" : "a floating type");
        }
    }
  }

  uint32_t emit(const LoweredNode& node) {
    out_.nodes.push_back(node);
    LoweredNode& n = out_.nodes.back();
    n.uniform = n.op == Op::Literal || (n.op == Op::Symbol && n.scalar) || n.arity > 0;
    for (int i = 0; i < n.arity; ++i) n.uniform = n.uniform && out_.nodes[n.args[i]].uniform;
    return static_cast<uint32_t>(out_.nodes.size() - 1);
  }

  uint64_t literal_bits(const Literal& v, Lane lane) const {
    if (is_floating(type_) && lane == Lane::Value) {
      if (type_ == ComputeType::Float64) return std::bit_cast<uint64_t>(v.as_double());
      // An integer goes to float32 directly: through double it could round twice.
      const float f = v.integer ? static_cast<float>(v.i) : static_cast<float>(v.d);
      return std::bit_cast<uint32_t>(f);
    }
    const bool whole = v.integer || (std::trunc(v.d) == v.d && std::abs(v.d) < 0x1p63);
    TENON_CHECK(whole, Type,
                fmt::format("expression: literal {} is not a whole number, as {} needs", v.d, name(type_)));
    const int64_t i = v.integer ? v.i : static_cast<int64_t>(v.d);
    if (item_size(type_) == 8) return static_cast<uint64_t>(i);
    TENON_CHECK(i >= INT32_MIN && i <= int64_t{UINT32_MAX}, Type,
                fmt::format("expression: literal {} does not fit 32 bits", i));
    return static_cast<uint32_t>(i);
  }

  uint32_t visit(NodeId id, Lane lane) {
    uint32_t& slot = done_[3 * id + static_cast<int>(lane)];
    if (slot != kNotYet) return slot;
    const uint32_t made = visit_new(id, lane);
    return done_[3 * id + static_cast<int>(lane)] = made;
  }

  uint32_t visit_new(NodeId id, Lane lane) {
    const Node& n = g_[id];
    if (n.op == Op::Literal)
      return emit({.op = n.op, .lane = lane, .bits = literal_bits(g_.literal_of(id), lane)});
    if (n.op == Op::Symbol) return symbol(id);
    // Identities where floats have no separate bits.
    if ((n.op == Op::Bits || n.op == Op::FromBits) && !is_floating(type_))
      return visit(n.args[0], Lane::Value);
    const Want own = lane_[id];
    TENON_CHECK(own == Want::Open || own == static_cast<Want>(lane), Type,
                "expression: a number and a bit pattern meet without bits() or from_bits()");
    check(n, lane);
    // Rounding an integer leaves it.
    const bool rounding = n.op == Op::Floor || n.op == Op::Ceil || n.op == Op::Trunc || n.op == Op::Round;
    if (rounding && (!is_floating(type_) || lane == Lane::Bits)) return visit(n.args[0], lane);
    LoweredNode out{.op = n.op, .lane = lane, .arity = n.arity, .function = n.function};
    if (info(n.op).rule == TypeRule::BitShift || n.op == Op::PiReduce) {
      out.arity = 1;
      out.bits = static_cast<uint64_t>(g_.literal_of(n.args[1]).i);
      TENON_CHECK(out.bits < 8 * item_size(type_), Value,
                  fmt::format("expression: `{}` by {} bits of {}", info(n.op).name,
                              g_.literal_of(n.args[1]).i, 8 * item_size(type_)));
    }
    for (int i = 0; i < out.arity; ++i) out.args[i] = visit(n.args[i], operand_lane(id, i, lane));
    return emit(out);
  }

  Lane operand_lane(NodeId id, int operand, Lane lane) const {
    const Node& n = g_[id];
    switch (info(n.op).rule) {
      case TypeRule::Leaf:
        return Lane::Value;  // Call
      case TypeRule::Compare: {
        const Want w = common(id);
        return w == Want::Bits ? Lane::Bits : Lane::Value;
      }
      case TypeRule::Select:
        return operand == 0 ? Lane::Mask : lane;
      case TypeRule::ToBits:
        return Lane::Value;
      case TypeRule::FromBits:
        return Lane::Bits;
      default:
        return lane;
    }
  }

  uint32_t symbol(NodeId id) {
    for (const Place& p : places_) {
      if (p.symbol != id) continue;
      const uint32_t value =
          emit({.op = Op::Symbol, .lane = Lane::Value, .scalar = p.scalar, .bits = p.position});
      if (g_.symbol_of(id).kind != SymbolKind::MaskTensor) return value;
      const uint32_t zero = emit({.op = Op::Literal, .lane = Lane::Value});
      return emit({.op = Op::Ne, .lane = Lane::Mask, .arity = 2, .args = {value, zero}});
    }
    throw_error(ErrorKind::Value,
                fmt::format("expression: symbol '{}' is neither an input nor a scalar of the kernel",
                            g_.symbol_of(id).name));
  }

  const Graph& g_;
  ComputeType type_;
  std::vector<Want> lane_;
  std::vector<uint32_t> done_;
  std::vector<Place> places_;
  Lowered out_;
};

}  // namespace

Lowered lower(const Graph& g, const Kernel& kernel) {
  Graph copy = g;
  std::vector<NodeId> roots;
  for (NodeId root : kernel.outputs) roots.push_back(simplify(copy, root));
  Lowering lowering(copy, kernel.type);
  for (size_t i = 0; i < kernel.inputs.size(); ++i) lowering.place(kernel.inputs[i], i, false);
  for (size_t i = 0; i < kernel.scalars.size(); ++i) lowering.place(kernel.scalars[i], i, true);
  for (NodeId root : roots) lowering.output(root);
  return lowering.take();
}

Lowered lower_function(uint16_t function, ComputeType type) {
  const Function& f = functions()[function];
  Graph g;
  Kernel kernel{.type = type};
  static constexpr std::string_view kNames[] = {"x", "y", "z"};
  std::vector<Binding> names;
  for (int i = 0; i < f.arity; ++i) {
    kernel.inputs.push_back(g.symbol(kNames[i]));
    names.push_back({kNames[i], kernel.inputs.back()});
  }
  for (const DefinitionConstant& c : definition_constants()) {
    if (is_floating(type)) names.push_back({c.name, g.literal(type == ComputeType::Float32 ? c.f32 : c.f64)});
  }
  kernel.outputs.push_back(parse_bound(g, f.body_for(type), names));
  return lower(g, kernel);
}

void check(const Graph& g, NodeId root, ComputeType type) {
  Kernel kernel{.outputs = {root}, .type = type};
  kernel.inputs = symbols_of(g, kernel.outputs);
  lower(g, kernel);
}

bool runs_on_integers(const Graph& g, NodeId root) {
  try {
    check(g, root, ComputeType::Int64);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace tenon::expr
