// Primitives: the kernels of one op or function each that the tile interpreter runs, numbered.
// Used by their printer at build and by the interpreter, which look up the same list in the same order.
#pragma once

#include <vector>

#include "tenon/expr/expr.h"

namespace tenon::expr {

/// One op or function in one compute type. Masks go in and out as 1 and 0 of the compute type.
struct Primitive {
  Op op = Op::Call;
  uint16_t function = 0;  ///< Of Call.
  ComputeType type = ComputeType::Float32;
  bool on_masks = false;  ///< Of And, Or, Xor, Not: logic instead of bits.
};

inline constexpr uint16_t kNoPrimitive = 0xFFFF;

/// All of them, in a fixed order: a primitive's number is its position.
const std::vector<Primitive>& primitives();
/// The number of one; kNoPrimitive if its type cannot run it.
uint16_t find_primitive(const Primitive& wanted);
/// The kernel of one, its expression built in `g`: inputs x, y, z.
Kernel primitive_kernel(Graph& g, const Primitive& p);

}  // namespace tenon::expr
