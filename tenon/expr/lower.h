// Lowering: an expression in one compute type, with literals as bit patterns and every node typed.
// What the printers and the interpreter start from; nobody else needs it.
#pragma once

#include <cstdint>
#include <vector>

#include "tenon/expr/expr.h"

namespace tenon::expr {

/// What a lowered node holds per element.
enum class Lane : uint8_t {
  Value,  ///< The compute type.
  Bits,   ///< The integer as wide as it; integer compute types have Value instead.
  Mask,
};

struct LoweredNode {
  Op op = Op::Literal;
  Lane lane = Lane::Value;
  uint8_t arity = 0;
  bool scalar = false;    ///< Of Symbol: a scalar instead of an input.
  bool uniform = false;   ///< The same in all elements of a call.
  uint16_t function = 0;  ///< Of Call.
  uint32_t args[3] = {};
  uint64_t bits = 0;  ///< Of Literal: the bit pattern in its type. Of Symbol: the position. Of shifts: the
                      ///< count. Of PiReduce: the part.
};

/// Nodes in an order in which operands come first, without those that nothing needs.
struct Lowered {
  ComputeType type = ComputeType::Float32;
  std::vector<LoweredNode> nodes;
  std::vector<uint32_t> outputs;
};

/// Lowers a kernel, simplified first. Throws Error{Type} if it cannot run in its type, Error{Value} if it
/// uses a symbol that is neither input nor scalar.
Lowered lower(const Graph& g, const Kernel& kernel);
/// Lowers the definition of a function; its parameters are inputs 0, 1, 2.
Lowered lower_function(uint16_t function, ComputeType type);

}  // namespace tenon::expr
