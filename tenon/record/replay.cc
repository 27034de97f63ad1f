#include "tenon/record/replay.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tenon/core/stream.h"
#include "tenon/record/recorder.h"

namespace tenon::record {

void SegmentCopy::refuse(std::string why, SourceMark line) {
  if (is_refused()) return;
  reason_ = std::move(why);
  line_ = line;
}

void SegmentCopy::take(const Segment& segment, const std::vector<bool>& wanted,
                       std::shared_ptr<const Plan> plan, bool is_long) {
  taken_ = true;
  is_long_ = is_long;
  calls_ = segment.calls;
  numbers_ = segment.numbers;
  plan_ = std::move(plan);
  for (size_t i = 0; i < segment.slots.size(); ++i) {
    const SlotState& slot = segment.slots[i];
    slots_.push_back({.storage = slot.is_input || wanted[i] ? slot.storage : Storage(),
                      .is_input = slot.is_input,
                      .is_written = slot.is_written,
                      .is_wanted = wanted[i],
                      .nbytes = slot.storage.nbytes(),
                      .begin = slot.begin});
  }
}

namespace {

// What nobody sees keeps its memory between runs, if it is not larger.
constexpr size_t kKeptBytes = 4096;

// The place of the argument called `name` among the numbers of a call; -1 if it has none of that name.
int number_of_argument(const TrieNode& node, std::string_view name) {
  int number = 0;
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    if (node.arguments[i].kind != ArgumentSource::Kind::Number) continue;
    if (node.info->schema->arguments[i].name == name) return number;
    ++number;
  }
  return -1;
}

// Attention without dropout has a seed and an offset, and takes nothing from the stream.
bool drops_nothing(const RecordedCall& call, std::span<const Scalar> numbers) {
  const int chance = number_of_argument(*call.node, "dropout_p");
  return chance >= 0 && numbers[call.first_number + static_cast<uint32_t>(chance)].to_double() == 0;
}

}  // namespace

Replay::Replay(SegmentCopy& capture, PhiloxState before, PhiloxState after)
    : plan_(std::move(capture.plan_)), is_long_(capture.is_long_), num_blocks_(after.offset - before.offset) {
  segment_.calls = std::move(capture.calls_);
  segment_.numbers = std::move(capture.numbers_);
  for (size_t i = 0; i < capture.slots_.size(); ++i) {
    const SegmentCopy::Slot& slot = capture.slots_[i];
    const bool is_fresh = !slot.is_input && slot.is_wanted;
    kinds_.push_back({slot.is_input, is_fresh, is_fresh ? slot.storage.version() : 0});
    SlotState state{
        .is_input = slot.is_input, .is_written = slot.is_written, .begin = slot.begin, .nbytes = slot.nbytes};
    const bool is_inner = !slot.is_input && !slot.is_wanted;
    if (is_inner && slot.nbytes <= kKeptBytes) state.storage = Storage::allocate(slot.nbytes);
    segment_.slots.push_back(std::move(state));
  }
  for (const RecordedCall& call : segment_.calls) {
    const int seed = number_of_argument(*call.node, "seed"),
              offset = number_of_argument(*call.node, "offset");
    if (seed < 0 || offset < 0 || drops_nothing(call, segment_.numbers)) continue;
    RandomNumber random{call.first_number + static_cast<uint32_t>(seed),
                        call.first_number + static_cast<uint32_t>(offset), 0};
    random.position = static_cast<uint64_t>(segment_.numbers[random.offset].to_int()) - before.offset;
    const bool ours = static_cast<uint64_t>(segment_.numbers[random.seed].to_int()) == before.seed &&
                      random.position < num_blocks_;
    if (!ours) capture.refuse("it draws random numbers from a generator of its own", call.line);
    random_.push_back(random);
  }
}

std::optional<uint32_t> Replay::number_of(std::string_view op, uint32_t slot,
                                          std::string_view argument) const {
  std::optional<uint32_t> found;
  for (const RecordedCall& call : segment_.calls) {
    const bool writes = std::ranges::any_of(call.node->operands,
                                            [&](const Operand& o) { return o.written && o.slot == slot; });
    if (!writes || call.node->info->schema->name != op) continue;
    const int number = number_of_argument(*call.node, argument);
    if (found || number < 0) return {};
    found = call.first_number + static_cast<uint32_t>(number);
  }
  return found;
}

void Replay::run(std::span<Storage> storages) {
  for (size_t i = 0; i < kinds_.size(); ++i) {
    if (kinds_[i].is_input) segment_.slots[i].storage = storages[i];
  }
  if (num_blocks_ > 0) {
    const PhiloxState taken = default_generator()->take(num_blocks_);
    for (const RandomNumber& random : random_) {
      segment_.numbers[random.seed] = Scalar(static_cast<int64_t>(taken.seed));
      segment_.numbers[random.offset] = Scalar(static_cast<int64_t>(taken.offset + random.position));
    }
  }
  std::exception_ptr error;
  {
    std::optional<WaitScope> others_run;
    if (is_long_) others_run.emplace();
    error = plan_->run(segment_, memory_);
  }
  for (size_t i = 0; i < kinds_.size(); ++i) {
    if (kinds_[i].is_input) segment_.slots[i].storage = {};
    if (kinds_[i].is_fresh && !error) {
      storages[i] = std::move(memory_[i]);
      storages[i]->forget_versions();
      for (uint64_t v = 0; v < kinds_[i].version; ++v) storages[i]->bump_version();
    }
    memory_[i] = {};
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace tenon::record
