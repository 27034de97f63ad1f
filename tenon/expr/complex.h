// Complex numbers: a complex value is a pair of real nodes of the same DAG, so that printers, the interpreter
// and the instruction sets need not know complex numbers. Used by instantiate and by tenon/iter, which splits
// interleaved elements into planes of real and imaginary parts. Knows no tensors.
#pragma once

#include <cstdint>

#include "tenon/expr/expr.h"

namespace tenon::expr {

/// A value as real nodes; without an imaginary part it is real, or a mask.
struct ComplexParts {
  NodeId re = kNoNode;
  NodeId im = kNoNode;
  bool complex() const noexcept { return im != kNoNode; }
};

/// A symbol that is complex, and the symbols of its parts.
struct ComplexOperand {
  NodeId symbol;
  ComplexParts parts;
  bool conjugated = false;  ///< The expression sees its conjugate.
};

/// The parts of the outputs, or of their conjugates. Numbers and operands that are not listed stay real: a
/// product with one is C's (ISO C99, annex G), not that with a zero imaginary part. Throws
/// Error{NotImplemented} for what complex numbers do not have (an order, rounding, erf).
std::vector<ComplexParts> split_complex(Builder& g, Type type, std::span<const NodeId> outputs,
                                        std::span<const ComplexOperand> operands, bool conjugated);

/// Whether the expression is a complex-differentiable function of its operands, comparisons apart: without
/// abs, conj, real, imag, angle and sgn. Only then is its derivative on complex operands the formal one.
bool is_holomorphic(const Builder& g, NodeId root);

}  // namespace tenon::expr
