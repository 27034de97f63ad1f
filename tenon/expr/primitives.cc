#include "tenon/expr/primitives.h"

#include <fmt/format.h>

#include "tenon/expr/builder.h"
#include "tenon/expr/function.h"
#include "tenon/expr/instantiate.h"

namespace tenon::expr {

namespace {

bool is_logic(Op op) { return info(op).rule == TypeRule::Bitwise; }

bool runs(const Primitive& p) {
  if (p.op == Op::Call) {
    const Function& f = functions()[p.function];
    return (!f.internal || f.kernel) && f.runs_in(p.type);
  }
  switch (info(p.op).rule) {
    case TypeRule::Floating:
      return is_floating(p.type);
    case TypeRule::Integer:
      return !is_floating(p.type);
    case TypeRule::Bitwise:
      return p.on_masks || !is_floating(p.type);
    case TypeRule::Any:
      // Rounding an integer is lowered away.
      return is_floating(p.type) ||
             !(p.op == Op::Floor || p.op == Op::Ceil || p.op == Op::Trunc || p.op == Op::Round);
    case TypeRule::Compare:
    case TypeRule::Select:
      return true;
    default:
      return false;  // leaves; bit patterns are for definitions
  }
}

size_t row_of(const Primitive& p) {
  const size_t op = p.op == Op::Call ? 2 * kNumOps + p.function : 2 * static_cast<size_t>(p.op) + p.on_masks;
  return op * kNumComputeTypes + static_cast<size_t>(compute_index(p.type));
}

}  // namespace

const std::vector<Primitive>& primitives() {
  // Never freed, as all that kernels read: a thread may run one while the process ends.
  static const auto& all = *new const std::vector<Primitive>([] {
    std::vector<Primitive> list;
    const auto add = [&list](Primitive p) {
      if (runs(p)) list.push_back(p);
    };
    for (Type type : kComputeTypes) {
      for (int i = 0; i < kNumOps; ++i) {
        const Op op = static_cast<Op>(i);
        if (op == Op::Call) continue;
        add({.op = op, .type = type});
        if (is_logic(op)) add({.op = op, .type = type, .on_masks = true});
      }
      for (uint16_t f = 0; f < functions().size(); ++f) add({.op = Op::Call, .function = f, .type = type});
    }
    return list;
  }());
  return all;
}

uint16_t find_primitive(const Primitive& wanted) {
  // By op or function, logic and type.
  static const auto& index = *new const std::vector<uint16_t>([] {
    std::vector<uint16_t> by_row((2 * kNumOps + functions().size()) * kNumComputeTypes, kNoPrimitive);
    for (size_t i = 0; i < primitives().size(); ++i)
      by_row[row_of(primitives()[i])] = static_cast<uint16_t>(i);
    return by_row;
  }());
  return is_compute_type(wanted.type) ? index[row_of(wanted)] : kNoPrimitive;
}

ExpressionPtr primitive_expression(const Primitive& p) {
  const bool call = p.op == Op::Call;
  const int arity = call ? functions()[p.function].arity : info(p.op).arity;
  static constexpr std::string_view kNames[] = {"x", "y", "z"};
  Builder g;
  NodeId args[3];
  for (int i = 0; i < arity; ++i) {
    const bool mask = p.on_masks || (p.op == Op::Where && i == 0);
    args[i] = g.symbol(kNames[i], mask ? SymbolKind::MaskTensor : SymbolKind::Tensor);
  }
  const std::span<const NodeId> list(args, static_cast<size_t>(arity));
  const NodeId root = call ? g.call(functions()[p.function].name, list) : g.make(p.op, list);
  return instantiate(*g.finish({root}), {.compute = p.type});
}

std::string kernel_name(const Primitive& p) {
  const std::string_view name = p.op == Op::Call ? functions()[p.function].name : info(p.op).name;
  return fmt::format("{}{}_{}", p.on_masks ? "mask_" : "op_", name, suffix(p.type));
}

}  // namespace tenon::expr
