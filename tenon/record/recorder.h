// Recorder: what one thread records while a program runs, and when that is computed. A call that reaches the
// key Record either waits, as a node of the segment, or runs at once, after what it reads has been computed.
// Used by scopes (compile.h) and by storages whose bytes are asked for. Knows no operator in particular.
#pragma once

#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tenon/record/compile.h"
#include "tenon/record/report.h"
#include "tenon/record/segment.h"
#include "tenon/record/slot_map.h"
#include "tenon/record/trie.h"

namespace tenon::record {

class RecordedSegment;

/// What a thread has done since it began; for reports and tests.
struct Counts {
  uint64_t recorded = 0;   ///< Calls.
  uint64_t ran_now = 0;    ///< Calls.
  uint64_t segments = 0;   ///< Computed.
  uint64_t planned = 0;    ///< Segments that had no plan yet, here and in the cache.
  uint64_t loaded = 0;     ///< Segments whose plan an earlier process had made.
  uint64_t new_nodes = 0;  ///< Calls that had not been recorded there before.
};

class Recorder final : public PendingWork, private graph::CallStorages {
 public:
  /// The thread's.
  static Recorder& current();

  /// Opens a scope, and returns its number; `program` names where its calls were recorded before. An inner
  /// scope adds to the outer one. `size` is how large what the program is given is, in elements; negative if
  /// that is not known. Where joined calls saved less than recording costs in the last runs of a program
  /// that were given as much, nothing is recorded but now and then.
  uint64_t begin(uint64_t program, const ScopeOptions& options, int64_t size = -1);
  /// Closes it; the outermost one computes what was recorded, and throws what that throws. Throws
  /// Error{Runtime} for a scope that is not open on this thread, and, having closed them as well, where
  /// scopes inside it are open.
  void end(uint64_t scope);
  bool is_open() const noexcept { return !scopes_.empty(); }
  /// The program does not run again: what this thread knows of it is dropped.
  void forget(uint64_t program);
  /// What became of a program's calls on this thread.
  struct Summary {
    std::vector<PlannedSegment> plans;  ///< In the order in which they were made.
    ProgramReport report;
    uint64_t num_nodes = 0;    ///< Calls that differ, or follow others.
    uint64_t num_skipped = 0;  ///< Runs that were not recorded.
    uint64_t num_cleared = 0;  ///< How often all plans were forgotten.
  };
  Summary summary(uint64_t program);
  /// The calling thread's trie of a program; null if it has not run here. The pointer stays valid.
  const Trie* trie(uint64_t program) const noexcept;

  /// `capture` gets what the open scope, an outermost one, records; null: nobody does any more.
  void capture(RecordedSegment* capture) noexcept { capture_ = capture; }
  /// Tells the capture, if there is one, why the program cannot run again as a segment.
  void refuse_capture(const char* why);
  /// Tells it that the program has asked where a tensor begins in its storage.
  void note_offset_read();

  /// A call at the key Record.
  void call(const OperatorHandle& op, DispatchKeySet keys, Stack& stack);
  /// Computes what was recorded. Throws the first error. `by`: the call that needs it; null if it is none.
  void flush(const char* why, const OperatorInfo* by = nullptr);
  /// As `flush`, but that the next recorded call or the end of the scope throws.
  void flush_without_throwing(const char* why);

  void materialize(StorageImpl& storage) override;
  /// See RecordingHooks.
  void before_access(StorageImpl& storage);
  static void before_write(StorageImpl& storage);

  /// In a forked child: what other threads have recorded cannot be computed any more.
  static void after_fork() noexcept;

  Counts counts();
  /// Why calls ran at once, and what made segments end; how often.
  std::map<std::string, uint64_t> reasons();

 private:
  friend class CallKey;
  friend class TypedCall;
  struct Program {
    Trie trie;
    ProgramReport report;
    // Recorded runs in a row that saved nothing, and the most that one of them was given; how many runs from
    // now on need not be recorded, and how many were not.
    uint32_t in_vain = 0, to_skip = 0;
    int64_t size = 0;
    uint64_t num_skipped = 0;
  };
  class Lock;
  /// Why a segment is computed, for which call if it is one, and the line.
  struct Cause {
    const char* why;
    const OperatorInfo* by;
    SourceMark line;
  };
  /// Asked for while the thread may still look at its program: not while others run in its place.
  static Cause cause(const char* why, const OperatorInfo* by = nullptr) noexcept;
  static constexpr size_t kMaxCalls = 4096;
  static constexpr size_t kLongBytes = size_t{128} << 10;
  /// Of all inputs; once they are more, of those that only the segment still holds.
  static constexpr size_t kMaxHeldBytes = size_t{128} << 20;

  const char* reason_to_run_now(const OperatorInfo& info, const Stack& stack, size_t first) const;
  const char* refuses(const Tensor& t) const;
  /// As RecordCall decides.
  bool is_small(const OperatorInfo& info, const Stack& stack, size_t first) const;
  void run_now(const OperatorInfo& info, const char* why, DispatchKeySet keys, Stack& stack);
  void compute_others(const Stack& stack, size_t first);
  bool record(const OperatorInfo& info, Stack& stack, size_t first, const TrieNode*& refused);

  TrieNode* infer(const OperatorInfo& info, const Stack& stack, size_t first);
  std::pair<graph::StorageId, int64_t> place_of(const Tensor& t) const override;
  graph::StorageId next() const override { return static_cast<graph::StorageId>(segment_.slots.size()); }
  /// Throws what the call throws for a number that integers cannot hold.
  void check_number(const TrieNode& node) const {
    if (node.filled) tenon::check_fits(numbers_.back(), *node.filled, node.info->schema->name.c_str());
  }
  void append(TrieNode* node, SourceMark line);
  void add_written(size_t nbytes) noexcept {
    written_bytes_.store(written_bytes_.load(std::memory_order_relaxed) + nbytes, std::memory_order_relaxed);
  }
  Tensor make_output(const Output& output);
  void push_results(const TrieNode& node, Stack& stack, size_t first);
  bool has_to_check_caps() const noexcept {
    return segment_.calls.size() + 1 >= kMaxCalls || input_bytes_ > kMaxHeldBytes || flush_state_ != 0;
  }
  void check_caps(Lock& lock);

  /// The storage's number in the segment; kNoSlot if it has none.
  uint32_t slot_of(const StorageImpl& storage) const noexcept {
    // What the segment computes knows its number itself.
    if (storage.is_pending() && storage.work() == this) return storage.place();
    return slots_by_storage_.find(&storage);
  }
  /// A new slot, whose first tensor is `first`.
  uint32_t add_input(const TensorImpl& first);
  /// Whether computing the segment takes so long that others should run meanwhile.
  bool is_long() const noexcept { return written_bytes_.load(std::memory_order_relaxed) > kLongBytes; }
  bool holds(const StorageImpl& storage) const noexcept { return slot_of(storage) != kNoSlot; }
  /// Without the lock, which it takes.
  bool holds_now(const StorageImpl& storage);
  /// The segment's plan, which is made if there is none yet.
  PlannedSegment& plan_for(const std::vector<bool>& wanted, const Cause& cause);
  void show(RecordedSegment& capture, const std::vector<bool>& wanted, const Cause& cause) const;
  std::exception_ptr compute(Lock& lock, const Cause& cause);
  std::exception_ptr compute_own(const Cause& cause);
  void throw_late_error();
  /// Whether a run of the program now_ is not worth recording.
  bool is_to_skip(int64_t size) const noexcept;
  /// A recorded run of it has ended.
  void note_run() noexcept;
  /// What comes next begins a segment behind one that ended at a node.
  void begin_segment(TrieNode* behind) noexcept;

  std::vector<uint64_t> scopes_;  // that are open, the outermost first
  ScopeOptions options_;
  uint64_t program_ = 0;
  Program* now_ = nullptr;  // of the open scope
  Trie* trie_ = nullptr;    // its own
  std::unordered_map<uint64_t, Program> programs_;
  int64_t size_ = -1;         // of what the program was given
  bool skips_ = false;        // the scope, and those in it, are not recorded
  int64_t saved_ = 0;         // nanoseconds, by what the scope's plans have joined
  uint64_t flush_state_ = 0;  // of random flushes, which tests ask for

  // Of the segment; another thread that wants its results locks it.
  std::mutex mutex_;
  Segment segment_;
  SlotMap slots_by_storage_;
  TrieNode* cursor_ = nullptr;
  TrieNode* ended_at_ = nullptr;  // where the segment before it did; the root if it is the scope's first
  size_t input_bytes_ = 0;
  std::atomic<size_t> written_bytes_{0};  // by the segment's calls
  RecordedSegment* capture_ = nullptr;
  bool left_behind_ = false;  // by a fork of another thread
  bool running_ = false;
  std::exception_ptr late_error_;  // of a flush that another thread asked for

  std::vector<uint64_t> key_;
  std::vector<Scalar> numbers_;     // of the call
  uint64_t special_arguments_ = 0;  // those of its numbers that are part of the key
  Counts counts_;
  std::map<std::pair<const OperatorInfo*, const char*>, uint64_t> reasons_;  // null: of flushes
};

}  // namespace tenon::record
