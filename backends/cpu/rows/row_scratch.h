// RowScratch: the memory that one thread needs for a row call, which lies in one block: in place where the
// call is small, so that a softmax of ten numbers asks for no memory.
// Used by row_worker.cc. Knows sizes; nothing of what is computed.
#pragma once

#include <memory>

#include "backends/cpu/rows/row_call.h"
#include "backends/cpu/rows/row_plan.h"

namespace tenon::cpu {

struct RowScratch {
  using Bytes = char*;

  /// `piece`: places that a kernel takes at a time.
  RowScratch(const RowCall& call, const expr::RowPasses& cut, int64_t piece);

  /// Whether it lies here, and asks for no memory.
  bool is_in_place() const { return !memory_; }
  /// What pass p computes for its reducers, of row g of the group.
  Bytes temp(size_t p, uint16_t index, int64_t g) const {
    return temps[2 * first_reducer[p] + index] + g * temp_bytes;
  }

  SmallVector<Bytes, 8> buffers;      ///< By operand: packed elements.
  SmallVector<Bytes, 8> row_buffers;  ///< By operand: values of rows.
  SmallVector<Bytes, 8> values, spread, kept;
  SmallVector<Bytes, 8> temps;           ///< By pass and reducer, two each.
  SmallVector<size_t, 8> first_reducer;  ///< By pass: how many the passes before it have.
  Bytes position = nullptr;
  int64_t temp_bytes;

 private:
  struct Want {
    Bytes* to;
    int64_t bytes;
  };
  void want(Bytes& to, int64_t bytes);
  void place();

  static constexpr size_t kOwnBytes = 4096, kAlign = 128;
  SmallVector<Want, 32> wanted_;
  std::unique_ptr<char[]> memory_;
  alignas(kAlign) char own_[kOwnBytes];
};

}  // namespace tenon::cpu
