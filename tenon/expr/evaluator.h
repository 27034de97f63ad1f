// The evaluator: computes typed expressions one element at a time. It defines what they mean: printed
// kernels, the interpreter and devices give the same bits, where all NaNs count as equal. Used by tests, and
// by code that needs a value without a kernel. (reference.h differs: it computes in double with the C
// library, to measure accuracy.)
#pragma once

#include "tenon/expr/expression.h"

namespace tenon::expr {

/// Stores the outputs at one element. `inputs[i]` and `outputs[i]` point to the element of slot i, of a
/// complex one to the part; `numbers` has each number's bits in its slot's type, as in scalar.h. Outputs may
/// be the same memory as inputs.
void evaluate(const Expression& e, const void* const* inputs, const uint64_t* numbers, void* const* outputs);

/// One row of `length` places of an expression over rows. Slots have `length` consecutive elements,
/// or one where they are the same along the row.
void evaluate_row(const Expression& e, size_t length, const void* const* inputs, const uint64_t* numbers,
                  void* const* outputs);

}  // namespace tenon::expr
