// Trie: what programs recorded before, operator by operator. A node is a call as it depends on nothing but
// what was recorded before it: operator, operands and their geometry, kinds of numbers; it knows the metadata
// of the results, and the plans of the segments that ended with it. A program that repeats itself walks
// along: no shape function, no planning. Used by the recorder of one thread. Knows nothing of storages and
// their bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "tenon/core/source_mark.h"
#include "tenon/dispatch/stack.h"
#include "tenon/graph/graph.h"
#include "tenon/record/operator_info.h"

namespace tenon::record {

class Plan;

inline constexpr uint32_t kNoSlot = ~uint32_t{0};

using graph::Geometry;

/// A tensor argument. `slot` is the number of its storage in the segment; kNoSlot if it is undefined. The
/// geometry's offset counts from SlotState::begin, and is perhaps negative.
struct Operand {
  uint32_t slot = kNoSlot;
  bool written = false;
  Geometry geometry = {};
};

/// An argument, in the schema's order.
struct ArgumentSource {
  enum class Kind : uint8_t {
    Attribute,   ///< The prototype's value.
    Tensor,      ///< Operand `first`.
    TensorList,  ///< `count` operands from `first` on.
    Number,      ///< The next number of the segment, a Scalar, double or int64 by `tag`.
  };
  Kind kind = Kind::Attribute;
  CellTag tag = CellTag::None;
  uint16_t first = 0, count = 0;
};

/// A new tensor that the call makes.
struct Output {
  uint32_t slot;
  size_t nbytes;       ///< Of the storage.
  bool makes_storage;  ///< False for a further tensor over the storage of an earlier one.
  uint64_t version;    ///< Of the storage: how often the operator has written its own result.
  Geometry geometry;
};

/// A result: the next output, a written argument, or an undefined tensor.
struct Result {
  enum class Kind : uint8_t { Output, Argument, Undefined } kind;
  uint16_t argument = 0;
};

/// A segment that ended with a call, where the same storages were wanted of it.
struct PlannedSegment {
  std::shared_ptr<const Plan> plan;
  uint64_t number = 0;  ///< Of the program's plans, in the order in which they were made.
  uint64_t runs = 0;
  size_t num_calls = 0;              ///< Recorded, needed or not.
  SourceMark first_line, last_line;  ///< Of the latest run, as what follows.
  const char* ended = "";
  const OperatorInfo* ended_by = nullptr;  ///< Null if it was no call.
};

struct TrieNode {
  TrieNode* parent = nullptr;
  TrieNode* expected = nullptr;  ///< The child that was recorded next the last time.
  /// The call that began the segment behind one that ended here, the last time.
  TrieNode* next_segment = nullptr;
  uint64_t hash = 0;
  std::vector<uint64_t> key;
  const OperatorInfo* info = nullptr;
  /// Why the call runs at once; null if it is recorded. What follows is empty then.
  const char* now = nullptr;
  /// The result is an argument or a view of one: the operator's body runs at once, on what is pending as
  /// well.
  bool passes = false;
  std::vector<ArgumentSource> arguments;
  std::vector<Operand> operands;
  Stack prototype;  ///< The arguments, without tensors and numbers.
  std::vector<Output> outputs;
  std::vector<Result> results;
  /// Of a fill, whose value the dtype has to hold.
  std::optional<DType> filled;
  std::vector<PlannedSegment> plans;

  bool is_recorded() const noexcept { return !now && !passes; }
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
