// Primitives: the kernels of one op or function each that the tile interpreter runs, numbered.
// Used by their printer at build and by the interpreter, which look up the same list in the same order.
#pragma once

#include <string>
#include <vector>

#include "tenon/expr/expression.h"

namespace tenon::expr {

/// One op or function in one compute type. Masks go in and out as 1 and 0 of the compute type.
struct Primitive {
  Op op = Op::Call;
  uint16_t function = 0;  ///< Of Call.
  Type type = Type::F32;
  bool on_masks = false;  ///< Of And, Or, Xor, Not: logic instead of bits.
};

inline constexpr uint16_t kNoPrimitive = 0xFFFF;

/// All of them, in a fixed order: a primitive's number is its position.
const std::vector<Primitive>& primitives();
/// The number of one; kNoPrimitive if its type cannot run it.
uint16_t find_primitive(const Primitive& wanted);
/// The expression of one over inputs of its type.
ExpressionPtr primitive_expression(const Primitive& p);
/// "op_add_f32", "mask_and_f32", "op_exp_f64": the name of its kernel.
std::string kernel_name(const Primitive& p);

}  // namespace tenon::expr
