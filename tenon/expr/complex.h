// Complex numbers by lowering: a complex value is a pair of real nodes of the same DAG, so that printers, the
// interpreter and every instruction set run complex expressions without knowing them.
// Used by tenon/iter, which splits interleaved elements into planes of real and imaginary parts. Knows no
// tensors.
#pragma once

#include <cstdint>

#include "tenon/expr/expr.h"

namespace tenon::expr {

/// What of a kernel is complex; bits are positions among its inputs or scalars.
struct ComplexOperands {
  uint32_t inputs = 0;
  uint32_t scalars = 0;
  /// Inputs of which the expression sees the conjugate, whether they are complex or not.
  uint32_t conjugated = 0;
  bool conjugated_output = false;
  bool operator==(const ComplexOperands&) const noexcept = default;
};

/// The kernel over real planes that computes `kernel`, which has one output: a complex input or scalar
/// becomes two, real part first; so does the output, unless it is a mask or `real_output` is set. Numbers
/// and operands that are not complex stay real: a product with one is C's (ISO C99, annex G), not that with
/// a zero imaginary part. Throws Error{NotImplemented} for what complex numbers do not have (an order,
/// rounding, erf).
Kernel split_complex(Graph& g, const Kernel& kernel, const ComplexOperands& which, bool real_output);

/// Whether the expression is a complex-differentiable function of its operands, comparisons apart: without
/// abs, conj, real, imag, angle and sgn. Only then is its derivative on complex operands the formal one.
bool is_holomorphic(const Graph& g, NodeId root);

}  // namespace tenon::expr
