// The loop of a row call: which dimensions rows differ in and which they lie along, merged where all operands
// agree, and how a stretch of an operand's elements is brought to and from dense memory.
// Used by run_rows.cc. Knows sizes, byte strides and dtypes; nothing of expressions.
#pragma once

#include <vector>

#include "tenon/iter/host.h"
#include "tenon/iter/rows_launch.h"

namespace tenon::cpu {

/// Dimensions of one operand, outermost first; sizes are shared by all operands.
struct RowDims {
  Dims sizes;
  std::vector<Dims> strides;  ///< By operand: inputs, then outputs.

  int64_t numel() const noexcept {
    int64_t n = 1;
    for (const int64_t s : sizes) n *= s;
    return n;
  }
  int64_t offset(size_t operand, int64_t i) const noexcept {
    int64_t bytes = 0;
    for (size_t d = sizes.size(); d-- > 0; i /= sizes[d]) bytes += i % sizes[d] * strides[operand][d];
    return bytes;
  }
  /// Whether the operand's elements, of `item` bytes, lie one after the other.
  bool dense(size_t operand, int64_t item) const noexcept {
    for (size_t d = sizes.size(); d-- > 0; item *= sizes[d]) {
      if (strides[operand][d] != item) return false;
    }
    return true;
  }
  int64_t inner() const noexcept { return sizes.empty() ? 1 : sizes.back(); }
  int64_t inner_stride(size_t operand) const noexcept { return sizes.empty() ? 0 : strides[operand].back(); }
};

struct RowGeometry {
  explicit RowGeometry(const RowsLaunch& launch);

  RowDims kept;   ///< What rows differ in.
  RowDims along;  ///< In logical order: the row.
  /// Takes dimension `d` of those kept away: what lies side by side in a panel.
  void split_lanes(size_t d);
  int64_t lanes = 1;
  std::vector<int64_t> lane_strides;  ///< By operand.
};

/// A panel of dense memory, `lanes` elements side by side for each place of the row (one: a row), and an
/// operand's elements of places [begin, begin + n).
struct RowStretch {
  const RowDims& along;
  size_t operand;
  int64_t begin, n;
  int64_t lanes = 1, lane_stride = 0;
};
/// Reads the operand, whose lane 0 and place 0 is at `base`, to `dense`.
void pack_rows(const RowStretch& s, const char* base, DType stored, char* dense, DType held);
/// Writes `dense` to the operand.
void unpack_rows(const RowStretch& s, char* base, DType stored, const char* dense, DType held);

}  // namespace tenon::cpu
