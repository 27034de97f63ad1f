// Plan: how a recorded segment is computed: which of its calls are needed for what is left of its results, in
// which order, and when memory is given back. Found again whenever the same calls were recorded. Immutable
// once made. Used by the recorder, which keeps plans at trie nodes.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "tenon/core/scalar.h"
#include "tenon/core/source_mark.h"
#include "tenon/core/storage.h"
#include "tenon/record/trie.h"

namespace tenon::record {

/// A storage that the calls of a segment read or write.
struct SlotState {
  Storage storage;
  bool is_input = false;  ///< It had bytes, or was another program's result, when it was first used.
  bool is_written = false;
};

struct RecordedCall {
  TrieNode* node;
  uint32_t first_number;
  SourceMark line;
};

/// What was recorded since the last flush.
struct Segment {
  std::vector<RecordedCall> calls;
  std::vector<SlotState> slots;
  std::vector<Scalar> numbers;
};

/// The slots that somebody else than the segment holds, or that had bytes before and were written.
std::vector<bool> wanted_slots(const Segment& segment);

class Plan {
 public:
  Plan(const Segment& segment, std::vector<bool> wanted);

  /// Whether it computes all that is wanted now.
  bool serves(const std::vector<bool>& wanted) const noexcept;
  /// Runs on the segment, whose storages get their bytes. What fails leaves out what depends on it: such
  /// results throw the same when they are read. Returns the first error, null if there is none.
  std::exception_ptr run(Segment& segment) const;

  size_t num_steps() const noexcept { return steps_.size(); }

 private:
  struct Step {
    uint32_t call;
    std::vector<uint32_t> last_uses;  ///< Slots that nothing needs any more.
  };
  class Run;

  std::vector<bool> wanted_;
  std::vector<Step> steps_;
};

}  // namespace tenon::record
