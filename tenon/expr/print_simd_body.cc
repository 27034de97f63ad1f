#include "tenon/expr/print_simd_body.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "tenon/core/error.h"
#include "tenon/expr/function.h"

namespace tenon::expr {

namespace {

std::string literal_text(uint64_t bits, Type type) {
  if (type == Type::F32) {
    const float f = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (std::isnan(f)) return "std::numeric_limits<float>::quiet_NaN()";
    if (std::isinf(f)) return fmt::format("{}std::numeric_limits<float>::infinity()", f < 0 ? "-" : "");
    return fmt::format("{:a}f", f);
  }
  if (type == Type::F64) {
    const double d = std::bit_cast<double>(bits);
    if (std::isnan(d)) return "std::numeric_limits<double>::quiet_NaN()";
    if (std::isinf(d)) return fmt::format("{}std::numeric_limits<double>::infinity()", d < 0 ? "-" : "");
    return fmt::format("{:a}", d);
  }
  return item_size(type) == 4 ? fmt::format("static_cast<int32_t>(0x{:x}u)", static_cast<uint32_t>(bits))
                              : fmt::format("static_cast<int64_t>(0x{:x}u)", bits);
}

}  // namespace

std::string_view element_name(Type t) {
  constexpr std::string_view kNames[] = {"float", "double", "int32_t", "int64_t"};
  return kNames[compute_index(t)];
}

std::string_view tag(Type t) {
  constexpr std::string_view kTags[] = {"F32", "F64", "I32", "I64"};
  return kTags[compute_index(t)];
}

std::string_view bits_tag(Type t) { return tag(pattern_of(t)); }

SimdBody::SimdBody(const Expression& e, Type main, std::string load)
    : e_(e), main_(main), load_(std::move(load)), chosen_(e.num_nodes) {
  std::vector<int> uses(e.num_nodes);
  for (const Node& n : e.nodes()) {
    for (int i = 0; i < n.arity; ++i) ++uses[n.args[i]];
  }
  for (const Node& n : e.nodes()) {
    for (int i = 1; n.op == Op::Where && n.type == main && i < 3; ++i) {
      const Node& a = e[n.args[i]];
      chosen_[n.args[i]] = a.op == Op::Call && functions()[a.bits].costly && uses[n.args[i]] == 1;
    }
  }
}

std::string SimdBody::declaration(NodeId id) const {
  const Node& n = e_[id];
  if (chosen_[id]) return "";
  if (n.op == Op::Where && (chosen_[n.args[1]] || chosen_[n.args[2]])) return choice(id, n);
  // A change of sign may be part of each fma() that it is for.
  return fmt::format("{}const auto v{} = {};\n", n.op == Op::Neg ? "[[maybe_unused]] " : "", id, value(n));
}

std::string SimdBody::stored(NodeId id) const {
  const Node& n = e_[id];
  if (n.op == Op::Cast) return as_number(n);
  if (n.op == Op::RoundTo) return fmt::format("v{}", n.args[0]);
  return n.type == main_ ? fmt::format("v{}", id) : fmt::format("hn::BitCast(d, v{})", id);
}

std::string SimdBody::arg(const Node& n, int i) const { return fmt::format("v{}", n.args[i]); }

// A choice between calls: one that no element needs is left out.
std::string SimdBody::choice(NodeId id, const Node& n) const {
  const auto branch = [&](int i) { return chosen_[n.args[i]] ? value(e_[n.args[i]]) : arg(n, i); };
  const std::string mask = arg(n, 0), v = fmt::format("v{}", id);
  std::string text = fmt::format("auto {} = {};\n", v, chosen_[n.args[2]] ? arg_or_zero(n, 1) : arg(n, 2));
  if (chosen_[n.args[1]] && chosen_[n.args[2]])
    text += fmt::format("if (!hn::AllFalse(d, {})) {} = {};\n", mask, v, branch(1));
  if (chosen_[n.args[2]])
    return text + fmt::format("if (!hn::AllTrue(d, {0})) {1} = hn::IfThenElse({0}, {1}, {2});\n", mask, v,
                              branch(2));
  return text +
         fmt::format("if (!hn::AllFalse(d, {0})) {1} = hn::IfThenElse({0}, {2}, {1});\n", mask, v, branch(1));
}

// A float that is neither NaN nor zero: between it and x, one instruction chooses.
bool SimdBody::is_limit(NodeId id) const {
  const Node& n = e_[id];
  if (n.op != Op::Literal) return false;
  const double number = n.type == Type::F32   ? std::bit_cast<float>(static_cast<uint32_t>(n.bits))
                        : n.type == Type::F64 ? std::bit_cast<double>(n.bits)
                                              : 0;
  return number != 0 && !std::isnan(number);
}

std::string SimdBody::arg_or_zero(const Node& n, int i) const {
  return chosen_[n.args[i]] ? "hn::Zero(d)" : arg(n, i);
}

std::string SimdBody::as_number(const Node& n) const {
  return fmt::format("hn::IfThenElseZero({}, hn::Set(d, {}{{1}}))", arg(n, 0), element_name(main_));
}

std::string SimdBody::value(const Node& n) const {
  const bool bits = n.type != Type::Mask && n.type != main_;
  const std::string_view d = bits ? "di" : "d";
  switch (n.op) {
    case Op::Literal:
      if (n.type == Type::Mask) return fmt::format("hn::{}(d)", n.bits != 0 ? "MaskTrue" : "MaskFalse");
      return fmt::format("hn::Set({}, {})", d, literal_text(n.bits, n.type));
    case Op::Load:
      return fmt::format(fmt::runtime(load_), n.bits);
    case Op::Number:
      return fmt::format("hn::Set({}, number<{}>(numbers, {}))", d, element_name(n.type), n.bits);
    case Op::Call:
      return call(fmt::format("{}_{}", functions()[n.bits].name, suffix(main_)), n, "");
    case Op::Cast:
      return as_number(n);
    case Op::Add:
      return call("hn::Add", n, "");
    case Op::Sub:
      return call("hn::Sub", n, "");
    case Op::Mul:
      return call("hn::Mul", n, "");
    case Op::Div:
      return call("hn::Div", n, "");
    case Op::TruncDiv:
      return call("trunc_div", n, d);
    case Op::Fmod:
      return call("truncated_mod", n, d);
    case Op::Neg:
      return call("hn::Neg", n, "");
    case Op::Abs:
      return call("hn::Abs", n, "");
    case Op::Sqrt:
      return call("hn::Sqrt", n, "");
    case Op::Fma:
      return fma(n, d);
    case Op::Min:
      return call(is_limit(n.args[1]) ? "no_more_than" : "minimum", n, d);
    case Op::Max:
      return call(is_limit(n.args[1]) ? "no_less_than" : "maximum", n, d);
    case Op::Floor:
      return call("hn::Floor", n, "");
    case Op::Ceil:
      return call("hn::Ceil", n, "");
    case Op::Trunc:
      return call("hn::Trunc", n, "");
    case Op::Round:
      return call("hn::Round", n, "");
    case Op::IntPow:
      return call("integer_power", n, d);
    case Op::Eq:
      return compare("hn::Eq", n);
    // Not(Eq): Highway's Ne is ordered on some targets, and integers have no Ge and Le.
    case Op::Ne:
      if (n.args[0] == n.args[1] && !on_bits(n) && is_floating(main_))
        return fmt::format("is_nan({})", arg(n, 0));
      return fmt::format("hn::Not({})", compare("hn::Eq", n));
    case Op::Lt:
      return compare("hn::Lt", n);
    case Op::Gt:
      return compare("hn::Gt", n);
    case Op::Le:
      return at_most(n, "hn::Le", "hn::Gt");
    case Op::Ge:
      return at_most(n, "hn::Ge", "hn::Lt");
    case Op::And:
      return call("hn::And", n, "");
    case Op::Or:
      return call("hn::Or", n, "");
    case Op::Xor:
      return call("hn::Xor", n, "");
    case Op::Not:
      return call("hn::Not", n, "");
    case Op::Where:
      return bits ? fmt::format("hn::IfThenElse(hn::RebindMask(di, {}), {}, {})", arg(n, 0), arg(n, 1),
                                arg(n, 2))
                  : call("hn::IfThenElse", n, "");
    case Op::Bits:
      return fmt::format("hn::BitCast(di, {})", arg(n, 0));
    case Op::FromBits:
      return fmt::format("hn::BitCast(d, {})", arg(n, 0));
    case Op::ShiftLeft:
      return fmt::format("hn::ShiftLeft<{}>({})", n.bits, arg(n, 0));
    case Op::ShiftRight:
      return fmt::format("hn::ShiftRight<{}>({})", n.bits, arg(n, 0));
    case Op::ShiftRightLogical:
      return fmt::format(
          "hn::BitCast({0}, hn::ShiftRight<{1}>(hn::BitCast(hn::RebindToUnsigned<decltype({0})>(), "
          "{2})))",
          d, n.bits, arg(n, 0));
    case Op::PiReduce:
      return fmt::format("pi_reduce<{}>({}, {})", n.bits, d, arg(n, 0));
    default:
      throw_error(ErrorKind::Internal, fmt::format("print_simd: `{}`", info(n.op).name));
  }
}

std::string SimdBody::call(std::string_view function, const Node& n, std::string_view first) const {
  std::string text = fmt::format("{}({}", function, first);
  for (int i = 0; i < n.arity; ++i) {
    text += fmt::format("{}{}", i == 0 && first.empty() ? "" : ", ", arg(n, i));
  }
  return text + ")";
}

// The compiler does not join a change of sign, which is an operation on bits, with what follows.
std::string SimdBody::fma(const Node& n, std::string_view d) const {
  const auto negated = [&](int i) { return is_floating(n.type) && e_[n.args[i]].op == Op::Neg; };
  const auto arg_of = [&](int i) { return fmt::format("v{}", e_[n.args[i]].args[0]); };
  if (negated(0)) return fmt::format("fused_neg_mul_add({}, {}, {}, {})", d, arg_of(0), arg(n, 1), arg(n, 2));
  if (negated(2)) return fmt::format("fused_mul_sub({}, {}, {}, {})", d, arg(n, 0), arg(n, 1), arg_of(2));
  return call("fused_mul_add", n, d);
}

bool SimdBody::on_bits(const Node& n) const { return e_[n.args[0]].type != main_; }

std::string SimdBody::compare(std::string_view function, const Node& n) const {
  const std::string text = call(function, n, "");
  return on_bits(n) ? fmt::format("hn::RebindMask(d, {})", text) : text;
}

std::string SimdBody::at_most(const Node& n, std::string_view of_floats, std::string_view opposite) const {
  const bool integer = on_bits(n) || !is_floating(main_);
  return integer ? fmt::format("hn::Not({})", compare(opposite, n)) : compare(of_floats, n);
}

}  // namespace tenon::expr
