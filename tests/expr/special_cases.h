// Every operation, cast and rounding of expressions, over all combinations of what is special in its
// operands' types: for tests of what runs expressions.
#pragma once

#include <vector>

#include "tests/expr/random_typed.h"

namespace tenon::expr::testing {

using Bytes = std::vector<unsigned char>;

/// An operation over loads of these types, or a cast or rounding of one: an expression of it alone, and its
/// operands, all combinations of the types' special values.
struct SpecialCase {
  ExpressionPtr e;
  std::vector<Bytes> inputs;
};
inline SpecialCase special_case(Node n, const std::vector<Type>& operands) {
  Builder g;
  ExpressionParts parts;
  n.arity = static_cast<uint8_t>(operands.size());
  size_t count = 1;
  for (size_t i = 0; i < operands.size(); ++i) {
    parts.inputs.push_back({.dtype = dtype(operands[i]), .operand = static_cast<uint16_t>(i)});
    n.args[i] =
        g.add({.op = Op::Load, .type = operands[i], .flags = static_cast<uint8_t>(Rank::Element), .bits = i});
    count *= special_values(operands[i]).size();
  }
  const NodeId root = g.add(n);
  parts.outputs = {{.dtype = n.op == Op::RoundTo ? static_cast<DType>(n.bits) : dtype(n.type),
                    .rank = Rank::Element,
                    .node = root}};
  SpecialCase made{.e = g.finish(std::move(parts)), .inputs = {}};
  size_t run = 1;
  for (const Type t : operands) {
    const size_t item = item_size(dtype(t));
    const auto& values = special_values(t);
    Bytes& bytes = made.inputs.emplace_back(count * item);
    for (size_t i = 0; i < count; ++i)
      store_scalar(&bytes[i * item], dtype(t), values[i / run % values.size()]);
    run *= values.size();
  }
  return made;
}

/// Every operation, cast and rounding.
inline std::vector<SpecialCase> special_cases() {
  std::vector<SpecialCase> all;
  for (const Primitive& p : primitives()) {
    if (p.op == Op::Call) continue;
    const bool compare = info(p.op).rule == TypeRule::Compare;
    std::vector<Type> operands(info(p.op).arity, p.on_masks ? Type::Mask : p.type);
    if (p.op == Op::Where) operands[0] = Type::Mask;
    all.push_back(special_case({.op = p.op, .type = compare || p.on_masks ? Type::Mask : p.type}, operands));
  }
  constexpr Type kTypes[] = {Type::Mask, Type::F32, Type::F64, Type::I32, Type::I64};
  for (const Type from : kTypes) {
    for (const Type to : kTypes) {
      if (from != to) all.push_back(special_case({.op = Op::Cast, .type = to}, {from}));
    }
  }
  for (const DType d : kStored) {
    if (!is_narrower_than_carrier(d)) continue;
    all.push_back(special_case({.op = Op::RoundTo, .type = carrier(d), .bits = static_cast<uint64_t>(d)},
                               {carrier(d)}));
  }
  return all;
}

/// Of what only functions' definitions have: the bits of floats, and shifts.
inline std::vector<SpecialCase> special_cases_of_definitions() {
  std::vector<SpecialCase> all;
  for (const Type t : {Type::F32, Type::F64}) {
    all.push_back(special_case({.op = Op::Bits, .type = pattern_of(t)}, {t}));
    all.push_back(special_case({.op = Op::FromBits, .type = t}, {pattern_of(t)}));
  }
  for (const Type t : {Type::I32, Type::I64}) {
    for (const Op op : {Op::ShiftLeft, Op::ShiftRight, Op::ShiftRightLogical}) {
      for (const uint64_t places : {uint64_t{0}, uint64_t{1}, uint64_t{23}, 8 * item_size(t) - 1})
        all.push_back(special_case({.op = op, .type = t, .bits = places}, {t}));
    }
  }
  return all;
}

}  // namespace tenon::expr::testing
