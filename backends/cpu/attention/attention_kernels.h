// What attention does to a block of scores between its matrix products, for each instruction set.
// Used by attention.cc. Knows contiguous rows of one compute type; nothing of tensors.
#pragma once

#include <cstdint>

#include "backends/cpu/cpu_target.h"

namespace tenon::cpu {

/// Blocks are [rows, columns], dense. Sums of a row follow the tree of reductions (backends/cpu/reduce).
template <class T>
struct AttentionKernels {
  /// Raises largest[r] to the maximum of row r, subtracts it from the row, and sets change[r] to how much it
  /// was raised, negated. A row that is -inf so far stays so.
  void (*shift)(T* scores, int64_t rows, int64_t columns, T* largest, T* change);
  /// total[r] = total[r] * factor[r] + the sum of row r.
  void (*add_sums)(const T* weights, int64_t rows, int64_t columns, const T* factor, T* total);
  /// Row r times factor[r].
  void (*scale)(T* x, int64_t rows, int64_t columns, const T* factor);
  /// Row r divided by divisor[r]; zeros where that is 0.
  void (*divide)(T* x, int64_t rows, int64_t columns, const T* divisor);
  /// Row r minus shift[r]; minus 0 where that is -inf.
  void (*subtract)(T* x, int64_t rows, int64_t columns, const T* shift);
  /// out[r] = the sum of a[r, c] * b[r, c].
  void (*dot)(const T* a, const T* b, int64_t rows, int64_t columns, T* out);
  /// gradient = weights * (gradient - mean[r]).
  void (*gradient)(const T* weights, T* gradient, int64_t rows, int64_t columns, const T* mean);
};

/// Those of one instruction set; the machine must have it. T: float or double.
template <class T>
const AttentionKernels<T>& attention_kernels(CpuTarget target);

}  // namespace tenon::cpu
