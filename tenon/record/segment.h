// Segment: what was recorded since the last flush: calls, the storages that they use, the values of numbers.
// Filled in by the recorder, run by plans.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tenon/core/scalar.h"
#include "tenon/core/source_mark.h"
#include "tenon/core/storage.h"
#include "tenon/graph/ir/program.h"
#include "tenon/record/compile.h"
#include "tenon/record/trie.h"

namespace tenon::record {

/// A storage that the calls of a segment read or write.
struct SlotState {
  Storage storage;
  bool is_input = false;  ///< It had bytes when it was first used.
  bool is_written = false;
  /// Of an input, in bytes: about where the first tensor over it begins. Offsets of operands count from here,
  /// so that the batches of one tensor are alike.
  size_t begin = 0;

  /// In elements.
  int64_t begin_of(DType dtype) const noexcept {
    return begin == 0 ? 0 : static_cast<int64_t>(begin / item_size(dtype));
  }
};

struct RecordedCall {
  TrieNode* node;
  uint32_t first_number;
  SourceMark line;
};

struct Segment {
  std::vector<RecordedCall> calls;
  std::vector<SlotState> slots;
  std::vector<Scalar> numbers;
};

/// The slots that somebody else than the segment holds, or that had bytes before and were written.
std::vector<bool> wanted_slots(const Segment& segment);
/// What a plan of a segment is made for. Calls that no region is formed of run as operators, which is what
/// they are in the program; in a replay they are loops, where they can, as a loop needs no tensors.
enum class PlanFor : uint8_t { Segment, Replay };
/// The plan of the calls that `wanted` slots follow from, and of those that may fail: found or made.
std::shared_ptr<const graph::Plan> plan_of(const Segment& segment, const std::vector<bool>& wanted,
                                           const ScopeOptions& options, PlanFor purpose);

}  // namespace tenon::record
