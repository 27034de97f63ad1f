// Instance: a plan that runs again and again: what does not change from one run to the next is made once:
// tensors and other arguments of calls, numbers of loops. A run puts in where the memory is. Used by the
// recorder for segments, and by replays. Does not know where memory comes from.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tenon/record/plan.h"
#include "tenon/record/running.h"

namespace tenon::record {

/// Where the bytes of one run are, by slot.
class SlotMemory {
 public:
  /// What offsets of a slot's operands count from, in memory that is there before the run; null where the run
  /// makes the memory.
  virtual char* given(uint32_t slot) = 0;
  /// Nothing reads the slot any more. Memory that the run has made for it is gone.
  virtual void release(uint32_t) {}
  /// After the last step, of a slot that a step has used: its memory, if the run has made it.
  virtual void keep(uint32_t slot, Storage made) = 0;
  /// Of a slot without bytes, because what computes it has failed.
  virtual void fail(uint32_t, const std::exception_ptr&) {}

 protected:
  ~SlotMemory() = default;
};

/// For one run at a time.
class Instance {
 public:
  explicit Instance(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}

  /// Runs on calls of the same trie nodes as those that the plan was made for. What fails leaves out what
  /// depends on it. Returns the first error, null if there is none.
  std::exception_ptr run(std::span<const RecordedCall> calls, std::span<const Scalar> numbers,
                         SlotMemory& memory);

 private:
  struct Step {
    const Plan::Step* plan;
    // Of a loop: its numbers as it takes them.
    std::vector<uint64_t> numbers = {};
    bool numbers_fit = true;  ///< Else a member has to throw for one of them.
    // Of a region around a product or a convolution.
    std::vector<Tensor> uses = {}, defs = {};
  };
  /// A call as its kernel takes it.
  struct Call {
    struct Number {
      size_t argument;
      uint32_t number;
    };
    Stack arguments;
    std::vector<Number> numbers = {};
    const Kernel* kernel = nullptr;  ///< One that borrows the arguments; null for others.
  };

  void prepare(std::span<const Scalar> numbers);
  void make_step(const Plan::Step& step);
  Tensor tensor(const Operand& o, int64_t shift);
  Call make_call(const RecordedCall& call);
  void put_number(Call& call, const Call::Number& n) const;
  void put_numbers();

  void run_step(Step& step);
  void run_call(uint32_t index);
  bool run_loop(Step& step);
  bool run_region(Step& step);
  void take_over(uint32_t slot, uint32_t from) noexcept;
  void compute(uint32_t index);
  void keep(const TrieNode& node, const Output& promised, const Tensor& result);

  /// The address that offsets of a slot's tensors count from, in its memory, which is made if there is none.
  char* memory(uint32_t slot) {
    if (!is_used_[slot]) [[unlikely]]
      find_memory(slot);
    return addresses_[slot];
  }
  void find_memory(uint32_t slot);
  void put(uint32_t slot, char* bytes) noexcept;
  void release(uint32_t slot) noexcept;
  /// In elements.
  int64_t shift(const Operand& o) const noexcept {
    return static_cast<int64_t>(plan_->offset_shift_[o.storage] / item_size(o.geometry.dtype));
  }

  std::shared_ptr<const Plan> plan_;
  std::vector<Scalar> numbers_;
  std::vector<Step> steps_;
  std::vector<std::optional<Call>> bound_;  // by call; made when a call first runs by itself
  std::vector<Storage> shells_;             // by slot: the storage by which calls see it, wherever it is
  std::vector<char*> operands_;             // of a loop

  // Of a run.
  std::span<const RecordedCall> calls_;
  SlotMemory* memory_ = nullptr;
  std::optional<Failures> failures_;
  // By slot: whether a step has asked for its memory, where that is, and whether the run has made it.
  std::vector<uint8_t> is_used_;
  std::vector<uint32_t> used_;  // those slots, some of which were released since
  std::vector<char*> addresses_;
  std::vector<Storage> made_;
};

}  // namespace tenon::record
