// Replay: a recorded segment that runs again without the program that recorded it; SegmentCopy: what a
// recorder keeps of a program for that. Used by compile(pure=True), which guards what the program depends on.
// Knows nothing of where a replay's tensors come from.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/core/generator.h"
#include "tenon/record/bound_plan.h"
#include "tenon/record/segment.h"

namespace tenon::record {

class Recorder;

/// Handed to Recorder::capture before a program runs. Afterwards it has the one segment that the program
/// recorded, or says why there is none that could run without the program.
class SegmentCopy {
 public:
  struct Slot {
    Storage storage;  ///< Of inputs and of what is wanted.
    bool is_input = false, is_written = false, is_wanted = false;
    size_t nbytes = 0;
    size_t begin = 0;  ///< SlotState's.
  };

  /// Names the line of the program that is running, outside the binding's own code; called by `refuse`, with
  /// the recorder's lock. Null while no program runs.
  void set_place(std::string (*place)()) noexcept { find_place_ = place; }
  /// Notes why the program cannot run again as a segment. The first reason stays.
  void refuse(std::string why, SourceMark line = {});
  /// The segment as it is when its scope ends, before it is computed.
  void take(const Segment& segment, const std::vector<bool>& wanted, std::shared_ptr<const Plan> plan,
            bool is_long);

  bool is_refused() const noexcept { return !reason_.empty(); }
  const std::string& reason() const noexcept { return reason_; }
  SourceMark line() const noexcept { return line_; }
  /// What `set_place`'s function said; may be empty.
  const std::string& place() const noexcept { return place_; }
  bool is_taken() const noexcept { return taken_; }
  const std::vector<Slot>& slots() const noexcept { return slots_; }

 private:
  friend class Replay;
  std::string reason_, place_;
  SourceMark line_;
  std::string (*find_place_)() = nullptr;
  bool taken_ = false, is_long_ = false;
  std::vector<RecordedCall> calls_;
  std::vector<Scalar> numbers_;
  std::vector<Slot> slots_;
  std::shared_ptr<const Plan> plan_;
};

/// Belongs to the thread that captured it, and lives no longer than what that thread knows of the program.
class Replay {
 public:
  /// Takes the segment out of `capture`, which has one. `results` are the slots whose storages a run is to
  /// give. `before` is the state of the default generator when the program began; what random operators took
  /// from it, each run takes anew.
  Replay(SegmentCopy& capture, const std::vector<bool>& results, PhiloxState before, PhiloxState after);

  size_t num_slots() const noexcept { return plan_.num_slots(); }
  /// A number of a call.
  const Scalar& number(uint32_t i) const noexcept { return plan_.number(i); }
  /// Changes one that no plan depends on.
  void set_number(uint32_t i, const Scalar& value) { plan_.set_number(i, value); }
  /// The index of a number: `argument` of the one call of an operator called `op` ("add_") that writes a
  /// slot. None if there is no such call, or several.
  std::optional<uint32_t> number_of(std::string_view op, uint32_t slot, std::string_view argument) const;
  /// Computes. `storages` has those of the inputs, which have their bytes, and gets those of the results.
  /// Throws the first error; what was written before stays written.
  void run(std::span<Storage> storages);

 private:
  struct RandomNumber {
    uint32_t seed, offset;  ///< Indices of numbers.
    uint64_t position;      ///< Behind the offset at which the program began.
  };

  struct Result {
    uint32_t slot;
    uint64_t version;  ///< How often the program has written it.
  };

  BoundPlan plan_;
  bool is_long_;  // as far as is known: until a run was short
  std::vector<Result> results_;
  std::vector<RandomNumber> random_;
  uint64_t num_blocks_ = 0;  // of the default generator, that a run takes
};

}  // namespace tenon::record
