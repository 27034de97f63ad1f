// The loop of a row call: which dimensions rows differ in and which they extend along, merged where all
// operands agree, and how a stretch of an operand's elements is brought to and from dense memory. Used by
// run_rows.cc. Knows sizes, byte strides and dtypes; nothing of expressions.
#pragma once

#include "tenon/iter/host.h"
#include "tenon/iter/rows_launch.h"

namespace tenon::cpu {

/// Dimensions that all operands share, outermost first, and the strides of each operand: inputs, then
/// outputs.
class RowDims {
 public:
  explicit RowDims(size_t operands) : operands_(operands) {}

  Dims sizes;

  int64_t& stride(size_t operand, size_t d) noexcept { return strides_[d * operands_ + operand]; }
  int64_t stride(size_t operand, size_t d) const noexcept { return strides_[d * operands_ + operand]; }
  size_t operands() const noexcept { return operands_; }

  /// A further dimension within the others; its strides are set by the caller.
  void push_back(int64_t size) {
    sizes.push_back(size);
    strides_.resize(sizes.size() * operands_);
  }
  void erase(size_t d) noexcept {
    sizes.erase(d);
    for (size_t i = operands_; i-- > 0;) strides_.erase(d * operands_ + i);
  }

  int64_t numel() const noexcept {
    int64_t n = 1;
    for (const int64_t s : sizes) n *= s;
    return n;
  }
  int64_t offset(size_t operand, int64_t i) const noexcept {
    // No division where there is one dimension: a short row has little to hide it in.
    int64_t bytes = 0;
    size_t d = sizes.size();
    for (; d > 1; i /= sizes[d]) --d, bytes += i % sizes[d] * stride(operand, d);
    return d == 0 ? bytes : bytes + i * stride(operand, 0);
  }
  /// Whether the operand's elements, of `item` bytes, are contiguous.
  bool dense(size_t operand, int64_t item) const noexcept {
    for (size_t d = sizes.size(); d-- > 0; item *= sizes[d]) {
      if (stride(operand, d) != item) return false;
    }
    return true;
  }
  int64_t inner() const noexcept { return sizes.empty() ? 1 : sizes.back(); }
  int64_t inner_stride(size_t operand) const noexcept {
    return sizes.empty() ? 0 : stride(operand, sizes.size() - 1);
  }

 private:
  size_t operands_;
  SmallVector<int64_t, 16> strides_;
};

struct RowGeometry {
  explicit RowGeometry(const RowsLaunch& launch);

  RowDims kept;   ///< What rows differ in.
  RowDims along;  ///< In logical order: the row.
  /// Takes dimension `d` of those kept away: what is side by side in a panel.
  void split_lanes(size_t d);
  int64_t lanes = 1;
  Dims lane_strides;  ///< By operand.
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
