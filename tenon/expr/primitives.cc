#include "tenon/expr/primitives.h"

#include <fmt/format.h>

#include "tenon/core/error.h"
#include "tenon/expr/function.h"

namespace tenon::expr {

namespace {

bool is_logic(Op op) { return info(op).rule == TypeRule::Bitwise; }

bool runs(const Primitive& p) {
  if (p.op == Op::Call) {
    return !functions()[p.function].internal && functions()[p.function].runs_in(p.type);
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

}  // namespace

const std::vector<Primitive>& primitives() {
  static const std::vector<Primitive> all = [] {
    std::vector<Primitive> list;
    const auto add = [&list](Primitive p) {
      if (runs(p)) list.push_back(p);
    };
    for (ComputeType type : kComputeTypes) {
      for (int i = 0; i < kNumOps; ++i) {
        const Op op = static_cast<Op>(i);
        if (op == Op::Call) continue;
        add({.op = op, .type = type});
        if (is_logic(op)) add({.op = op, .type = type, .on_masks = true});
      }
      for (uint16_t f = 0; f < functions().size(); ++f) add({.op = Op::Call, .function = f, .type = type});
    }
    return list;
  }();
  return all;
}

uint16_t find_primitive(const Primitive& wanted) {
  const auto& all = primitives();
  for (size_t i = 0; i < all.size(); ++i) {
    const Primitive& p = all[i];
    if (p.op == wanted.op && p.type == wanted.type && p.on_masks == wanted.on_masks &&
        (p.op != Op::Call || p.function == wanted.function)) {
      return static_cast<uint16_t>(i);
    }
  }
  return kNoPrimitive;
}

Kernel primitive_kernel(Graph& g, const Primitive& p) {
  const bool call = p.op == Op::Call;
  const int arity = call ? functions()[p.function].arity : info(p.op).arity;
  const std::string_view op_name = call ? functions()[p.function].name : info(p.op).name;
  Kernel kernel{.name = fmt::format("{}{}_{}", p.on_masks ? "mask_" : "op_", op_name, suffix(p.type)),
                .type = p.type};
  static constexpr std::string_view kNames[] = {"x", "y", "z"};
  for (int i = 0; i < arity; ++i) {
    const bool mask = p.on_masks || (p.op == Op::Where && i == 0);
    kernel.inputs.push_back(g.symbol(kNames[i], mask ? SymbolKind::MaskTensor : SymbolKind::Tensor));
  }
  kernel.outputs.push_back(call ? g.call(op_name, kernel.inputs) : g.make(p.op, kernel.inputs));
  return kernel;
}

}  // namespace tenon::expr
