// BoundPlan: a recorded segment that runs again and again, with its plan: what does not change from one run
// to the next is made once: tensors and other arguments of calls, numbers of loops, memory of what nobody
// sees. A run puts in the addresses of what its caller brings. Used by replays.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tenon/record/plan.h"
#include "tenon/record/running.h"

namespace tenon::record {

/// For one thread, and one run at a time.
class BoundPlan {
 public:
  struct Slot {
    enum class Kind : uint8_t {
      Input,   ///< Each run brings its storage.
      Result,  ///< Each run makes its storage, for the caller.
      Inner,   ///< Nobody sees it.
    };
    Kind kind;
    size_t nbytes;
    size_t begin;  ///< SlotState's.
  };

  /// What a run needs of a segment whose plan that is.
  BoundPlan(std::shared_ptr<const Plan> plan, std::vector<RecordedCall> calls, std::vector<Scalar> numbers,
            std::vector<Slot> slots);

  size_t num_slots() const noexcept { return slots_.size(); }
  const std::vector<RecordedCall>& calls() const noexcept { return calls_; }
  const Scalar& number(uint32_t i) const noexcept { return numbers_[i]; }
  /// From the next run on. No plan may depend on it.
  void set_number(uint32_t i, const Scalar& value);

  /// `storages` has those of the inputs, which have their bytes, and gets those of the results. What fails
  /// leaves out what depends on it, and the results. Returns the first error, null if there is none.
  std::exception_ptr run(std::span<Storage> storages);

 private:
  struct Step {
    const Plan::Step* plan;
    // Of a loop: its operands, and its numbers as it takes them.
    struct Place {
      uint32_t slot;
      int64_t offset;  ///< In bytes, in its storage.
    };
    std::vector<Place> places = {};
    std::vector<uint64_t> numbers = {};
    bool numbers_fit = true;  ///< Else a member has to throw for one of them.
    // Of a region around a product or a convolution.
    std::vector<Tensor> uses = {}, defs = {};
    std::vector<uint32_t> last_uses = {};  ///< Of memory that a run makes.
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

  void make_step(const Plan::Step& step);
  void keep_memory();
  Tensor tensor(const Operand& o, size_t begin);
  Call make_call(const RecordedCall& call);
  void put_number(Call& call, const Call::Number& n) const;
  void put_numbers();

  void run_step(Step& step, Failures& failures);
  bool run_loop(Step& step, const Failures& failures);
  bool run_anchored(Step& step, Failures& failures);
  void take_over(uint32_t slot, uint32_t from) noexcept;
  void compute(uint32_t index);
  void keep(const TrieNode& node, const Output& promised, const Tensor& result);

  void put(uint32_t slot, const StorageImpl& memory) noexcept;
  /// The address of a slot's memory, which is made if it is not there yet.
  char* memory(uint32_t slot) {
    if (!addresses_[slot]) [[unlikely]]
      make_memory(slot);
    return addresses_[slot];
  }
  void make_memory(uint32_t slot);
  void release(uint32_t slot) noexcept;
  /// Where the offsets of a plan's regions count from, in bytes.
  size_t begin_in_graph(uint32_t slot) const noexcept { return slots_[slot].begin - plan_->moved_[slot]; }

  std::shared_ptr<const Plan> plan_;
  std::vector<RecordedCall> calls_;
  std::vector<Scalar> numbers_;
  bool numbers_changed_ = true;
  std::vector<Slot> slots_;
  std::vector<Step> steps_;
  std::vector<std::optional<Call>> bound_;  // by call; made when a call first runs by itself
  // By slot: memory that stays, the storage by which calls see it, wherever it is, and that of a run.
  std::vector<Storage> kept_, shells_, made_;
  std::vector<char*> addresses_;            // of a run; null where there is no memory yet
  std::vector<uint32_t> inputs_, of_runs_;  // slots: inputs, and those whose memory a run makes
  std::vector<char*> operands_;             // of a loop
};

}  // namespace tenon::record
