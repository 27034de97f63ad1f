// RowScratch: the memory that one thread needs for a row call, in one block: where the caller has
// room if the call is small, so that a softmax of ten numbers asks for no memory.
// Used by row_worker.cc. Knows sizes; nothing of what is computed.
#pragma once

#include <memory>
#include <span>

#include "backends/cpu/rows/row_call.h"
#include "backends/cpu/rows/row_plan.h"

namespace tenon::cpu {

struct RowScratch {
  using Bytes = char*;

  /// Bytes that a small call needs at most.
  static constexpr size_t kSmall = 4096, kAlign = 128;

  /// `piece`: places that a kernel takes at a time; `room`: memory of the caller's, aligned to kAlign, which
  /// is taken if it suffices.
  RowScratch(const RowCall& call, const expr::RowPasses& cut, int64_t piece, std::span<char> room);

  bool is_small() const { return nbytes_ <= kSmall; }
  /// What pass p computes for its reducers, for all rows of the group.
  Bytes temp(size_t p, uint16_t index) const { return temps[2 * first_reducer[p] + index]; }

  SmallVector<Bytes, 8> buffers;      ///< By operand: packed elements.
  SmallVector<Bytes, 8> row_buffers;  ///< By operand: values of rows.
  SmallVector<Bytes, 8> values, spread, kept;
  SmallVector<Bytes, 8> temps;           ///< By pass and reducer, two each.
  SmallVector<size_t, 8> first_reducer;  ///< By pass: how many the passes before it have.
  Bytes position = nullptr;
  int64_t temp_bytes;  ///< Of a row, at most.

 private:
  struct Want {
    Bytes* to;
    int64_t bytes;
  };
  void place(std::span<const Want> wanted, std::span<char> room);

  size_t nbytes_ = 0;
  std::unique_ptr<char[]> memory_;
};

}  // namespace tenon::cpu
