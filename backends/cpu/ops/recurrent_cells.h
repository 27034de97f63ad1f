// What the cells of recurrent layers compute after the products, as expressions, and how an expression runs
// over rows. Used by recurrent.cc. Knows no tensors and no order of steps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tenon/core/dtype.h"
#include "tenon/iter/host.h"
#include "tenon/ops/recurrent/geometry.h"

namespace tenon::cpu {

enum class CellPart : uint8_t {
  Step,      ///< The new state.
  KeptStep,  ///< The same, and what Gradient reads.
  Gradient,  ///< By the gates, and by the state before.
  Sum,       ///< go + gh, for all cells.
  Unscaled,  ///< LSTM's state before its projection, from what is kept: o and c.
};

/// The program of a cell's part in float32 or float64, whose gates are in PyTorch's order or in ONNX's. Its
/// slots are what the expression's text lists.
const HostProgram& cell_program(ops::Cell cell, bool onnx_order, CellPart part, DType compute);

/// Row r of an operand is at data + r * row. All numbers count bytes.
struct RowSpan {
  std::byte* data = nullptr;
  int64_t row = 0;

  RowSpan from(int64_t r) const { return {data + r * row, row}; }
  RowSpan shifted(int64_t bytes) const { return {data + bytes, row}; }
};

/// The slots of a program that is called once for each row.
class RowSlots {
 public:
  /// Outputs first, then inputs, in the program's order.
  void add(RowSpan rows) { at_[count_] = rows.data, step_[count_++] = rows.row; }
  /// `n` slots, `bytes` apart.
  void add(RowSpan rows, int64_t n, int64_t bytes) {
    for (int64_t i = 0; i < n; ++i) add(rows.shifted(i * bytes));
  }
  void run(const HostProgram& program, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows && columns > 0; ++r) {
      program.run(at_, static_cast<size_t>(columns), nullptr);
      for (size_t i = 0; i < count_; ++i) at_[i] = static_cast<std::byte*>(at_[i]) + step_[i];
    }
  }

 private:
  static constexpr size_t kMost = 20;
  void* at_[kMost];
  int64_t step_[kMost];
  size_t count_ = 0;
};

}  // namespace tenon::cpu
