// Replay: a recorded segment that runs again without the program that recorded it; RecordedSegment: what a
// recorder keeps of a program for that. Used by compile(pure=True), which guards what the program depends on.
// Does not depend on where a replay's tensors come from.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/core/generator.h"
#include "tenon/graph/plan/instance.h"
#include "tenon/record/segment.h"

namespace tenon::record {

class Recorder;

/// Handed to Recorder::capture before a program runs. Afterwards it has the one segment that the program
/// recorded, or says why there is none that could run without the program.
class RecordedSegment {
 public:
  struct Slot {
    Storage storage;  ///< Of inputs and of what is wanted.
    bool is_input = false, is_written = false, is_wanted = false;
    size_t begin = 0;  ///< SlotState's.
  };

  /// Sets what notes the line of the program that is running, outside the binding's own code; `place` is
  /// called with the recorder's lock. Null while no program runs.
  void set_place(SourceMark (*place)()) noexcept { find_place_ = place; }
  /// The line of the program that is running; `line` if it is not known.
  SourceMark line_of_program(SourceMark line) const {
    const SourceMark found = find_place_ ? find_place_() : SourceMark();
    return found ? found : line;
  }
  /// Notes why the program cannot run again as a segment. The first reason stays.
  void refuse(std::string why, SourceMark line = {});
  /// The segment as it is when its scope ends, before it is computed.
  void take(const Segment& segment, const std::vector<bool>& wanted, std::shared_ptr<const graph::Plan> plan,
            bool is_long);

  bool is_refused() const noexcept { return !reason_.empty(); }
  const std::string& reason() const noexcept { return reason_; }
  SourceMark line() const noexcept { return line_; }
  bool is_taken() const noexcept { return taken_; }
  /// The program has asked where a tensor begins in its storage.
  void note_offset_read() noexcept { reads_offsets_ = true; }
  /// Whether calls use no bytes of a slot but those in [begin, end), and the program knows of no offsets.
  bool stays_within(uint32_t slot, int64_t begin, int64_t end) const;
  const std::vector<Slot>& slots() const noexcept { return slots_; }

 private:
  friend class Replay;
  std::string reason_;
  SourceMark line_;
  SourceMark (*find_place_)() = nullptr;
  bool taken_ = false, is_long_ = false, reads_offsets_ = false;
  std::vector<RecordedCall> calls_;
  std::vector<Scalar> numbers_;
  std::vector<Slot> slots_;
  std::shared_ptr<const graph::Plan> plan_;
};

/// Belongs to the thread that captured it, and lives no longer than what that thread knows of the program.
class Replay {
 public:
  /// Takes the segment out of `capture`, which has one. `results` are the slots whose storages a run is to
  /// give. `before` is the state of the default generator when the program began; what random operators took
  /// from it, each run takes anew.
  Replay(RecordedSegment& capture, const std::vector<bool>& results, PhiloxState before, PhiloxState after);

  size_t num_slots() const noexcept { return slots_.size(); }
  /// A number of a call.
  const Scalar& number(uint32_t i) const noexcept { return numbers_[i]; }
  /// Changes one that no plan depends on.
  void set_number(uint32_t i, const Scalar& value) { numbers_[i] = value; }
  /// The index of a number: `argument` of the one call of an operator called `op` ("add_") that writes a
  /// slot. None if there is no such call, or several.
  std::optional<uint32_t> number_of(std::string_view op, uint32_t slot, std::string_view argument) const;
  /// What a later run of the program, which this replay fits, records in its place.
  struct Difference {
    std::string what;  ///< "it records ... "
    SourceMark line;
  };
  /// The first difference in calls, storages and numbers. Both belong to one tree of the recorder, which has
  /// forgotten nothing since. `live`: indices of numbers that may differ.
  std::optional<Difference> difference(const Replay& now, std::span<const uint32_t> live) const;
  /// The first difference in what the program keeps of the storages, and in the versions of results.
  std::optional<Difference> difference_in_results(const Replay& now) const;
  /// The line of the first call that uses a slot; empty if none does.
  SourceMark line_of(uint32_t slot) const;
  /// Computes. `storages` has those of the inputs, which have their bytes, and gets those of the results.
  /// Throws the first error; what was written before stays written.
  void run(std::span<Storage> storages);

 private:
  struct RandomNumber {
    uint32_t seed, offset;  ///< Indices of numbers.
    uint64_t position;      ///< From the offset at which the program began.
    bool operator==(const RandomNumber&) const = default;
  };

  struct Result {
    uint32_t slot;
    uint64_t version;  ///< How often the program has written it.
    bool operator==(const Result&) const = default;
  };

  class Memory;
  struct Slot {
    enum class Kind : uint8_t {
      Input,   ///< Each run brings its storage.
      Result,  ///< Each run makes its storage, for the caller.
      Inner,   ///< Nobody sees it.
    };
    Kind kind;
    size_t begin;  ///< SlotState's.
    Storage kept;  ///< Of what nobody sees, and is small: memory that stays.
  };

  void keep_memory();
  /// Attention without dropout has a seed and an offset, and takes nothing from the stream.
  bool drops_nothing(const RecordedCall& call) const;
  std::exception_ptr compute(std::span<Storage> storages);

  std::vector<RecordedCall> calls_;
  std::vector<Scalar> numbers_;
  std::vector<Slot> slots_;
  std::shared_ptr<const graph::Plan> plan_;
  graph::Instance instance_;
  bool is_long_;              // as far as is known: until a run was short
  std::vector<bool> wanted_;  // slots that the program kept
  std::vector<Result> results_;
  std::vector<RandomNumber> random_;
  uint64_t num_blocks_ = 0;  // of the default generator, that a run takes
};

}  // namespace tenon::record
