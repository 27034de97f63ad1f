// Trie: what programs recorded before, operator by operator. A node is a call as it depends on nothing but
// what was recorded before it: operator, operands and their geometry, kinds of numbers; it knows the metadata
// of the results, and the plans of the segments that ended with it. A program that repeats itself walks
// along: no shape function, no planning. Used by the recorder of one thread. Knows nothing of storages and
// their bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "tenon/core/source_mark.h"
#include "tenon/graph/ir/describe_call.h"
#include "tenon/graph/plan/plan.h"

namespace tenon::record {

inline constexpr uint32_t kNoSlot = graph::kNone;

using graph::ArgumentSource;
using graph::Geometry;
using graph::Operand;
using graph::OperatorInfo;
using graph::Output;
using graph::Result;

/// A segment that ended with a call, where the same storages were wanted of it.
struct PlannedSegment {
  std::shared_ptr<const graph::Plan> plan;
  uint64_t number = 0;  ///< Of the program's plans, in the order in which they were made.
  uint64_t runs = 0;
  size_t num_calls = 0;              ///< Recorded, needed or not.
  SourceMark first_line, last_line;  ///< Of the latest run, as what follows.
  const char* ended = "";
  const OperatorInfo* ended_by = nullptr;  ///< Null if it was no call.
};

/// A call as it was recorded behind others; its storages are the slots of its segment.
struct TrieNode : graph::Call {
  TrieNode* parent = nullptr;
  TrieNode* expected = nullptr;  ///< The child that was recorded next the last time.
  /// The call that began the segment behind one that ended here, the last time.
  TrieNode* next_segment = nullptr;
  uint64_t hash = 0;
  std::vector<uint64_t> key;
  /// Whether it is recorded. If not, the rest of the call is empty.
  graph::CallKind kind;
  std::vector<PlannedSegment> plans;

  bool is_recorded() const noexcept { return !kind.now && !kind.passes; }
};

class Trie {
 public:
  /// Beyond this many nodes or plans, a program begins anew.
  static constexpr size_t kMaxNodes = size_t{1} << 15, kMaxPlans = 1024;

  Trie() : root_(std::make_unique<TrieNode>()) {}

  TrieNode* root() noexcept { return root_.get(); }
  /// The child with that key; null if there is none.
  TrieNode* find(TrieNode* parent, std::span<const uint64_t> key);
  TrieNode* add(TrieNode* parent, std::span<const uint64_t> key);
  /// The number of a new plan.
  uint64_t count_plan() noexcept { return ++num_plans_; }
  bool is_full() const noexcept { return nodes_.size() > kMaxNodes || num_plans_ > kMaxPlans; }
  /// How often everything was forgotten.
  uint64_t num_cleared() const noexcept { return num_cleared_; }
  /// Calls f(node) for all nodes, the root included.
  template <class F>
  void each(F&& f) const {
    f(*root_);
    for (const auto& [hash, node] : nodes_) f(*node);
  }
  /// Forgets everything. Nobody stands at a node but the root.
  void clear();

 private:
  std::unique_ptr<TrieNode> root_;
  std::unordered_multimap<uint64_t, std::unique_ptr<TrieNode>> nodes_;
  size_t num_plans_ = 0;
  uint64_t num_cleared_ = 0;
};

}  // namespace tenon::record
