// Which operations of an expression the emitter has one instruction for: a node of codes() may replace
// several of the expression's, with the same bits. Knows no registers.
#pragma once

#include <vector>

#include "tenon/expr/expression.h"

namespace tenon::cpu::jit {

enum class Form : uint8_t {
  Plain,       ///< The node's operation.
  Same,        ///< Its first operand: bits(x), or a choice whose mask is known.
  Scale,       ///< scale(x, t) of the functions' definitions; the second operand is t, or t - rounder.
  PiReduce,    ///< where(mask, a, pi_reduce(x, part)) of mask, a and x: seldom more than a test of the mask.
  SelectBits,  ///< (x & c) | (y & ~c), c the third operand, a literal.
};

/// A node, with what else its instruction does.
struct Code : expr::Node {
  Form form = Form::Plain;
  bool minus_product = false;  ///< Of an fma.
  bool minus_addend = false;
  uint64_t rounder = 0;  ///< Of Scale: the bits of what is still to be taken from the second operand.
};

/// One for each node of a primitive expression. `avx512`: with the instructions that only it has.
std::vector<Code> select_codes(const expr::Expression& e, bool avx512);

}  // namespace tenon::cpu::jit
