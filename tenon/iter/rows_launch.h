// RowsLaunch: one call of a row expression, as a device gets it: the typed expression, and addresses and
// strides for its slots. Used by row operators (ops/forms/rows.h) and by the devices that run them. Knows no
// tensors.
#pragma once

#include <atomic>
#include <span>

#include "tenon/core/dims.h"
#include "tenon/core/dtype.h"

namespace tenon {

namespace expr {
struct Expression;
}

/// The memory of one slot. Every operand has all dimensions of the loop; it is broadcast where its stride
/// is zero, as values of rows are along the row.
struct RowsOperand {
  char* data;
  DType dtype;             ///< As stored; the slot says what it is converted to or from.
  const int64_t* strides;  ///< In bytes, one for each dimension of the loop.
};

struct RowsLaunch {
  const char* name;                    ///< Of the operator, for reports.
  const expr::Expression& expression;  ///< Slots are dense in the compute type, places int64.
  std::atomic<void*>& made;            ///< What the device compiled it to; null at first.
  IntArrayRef sizes;
  const Dims& over;  ///< 1 for the dimensions that make up a row, which is taken in their logical order.
  std::span<const RowsOperand> inputs, outputs;  ///< By slot; outputs share no memory with inputs.
  const uint64_t* numbers;                       ///< By slot, 8 bytes each.
};

}  // namespace tenon
