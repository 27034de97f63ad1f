// When what was recorded is computed: at a flush, for another thread, before memory is written by others.
#include <algorithm>
#include <new>
#include <optional>

#include "tenon/core/error.h"
#include "tenon/core/interrupt.h"
#include "tenon/core/stream.h"
#include "tenon/graph/plan/instance.h"
#include "tenon/record/recorder_parts.h"
#include "tenon/record/replay.h"

namespace tenon::record {
namespace {

// Steps run on the bytes of the segment's storages, which stay as others see them until all is done: pending,
// with their versions. A replay's steps run on Replay::Memory.
class SegmentMemory final : public graph::RunMemory {
 public:
  explicit SegmentMemory(Segment& segment) : slots_(segment.slots), calls_(segment.calls) {}

  char* given(uint32_t slot) override {
    const SlotState& state = slots_[slot];
    return reinterpret_cast<char*>(state.storage->address_now()) + state.begin;
  }

  // An input that only the segment holds by now: its memory is free for what comes next. Foreign memory goes
  // at the end, as its owner may take locks.
  void release(uint32_t slot) override {
    SlotState& state = slots_[slot];
    const bool ours =
        state.is_input && state.storage->is_recorded() && !state.is_written && state.storage->allocator();
    if (!ours || state.storage.use_count() > 0) return;
    state.storage->remove_recorder();
    state.storage = {};
  }

  void keep(uint32_t slot, Storage made) override {
    StorageImpl* const seen = pending(slot);
    if (!seen) return;
    if (made && made->address_now() != seen->address_now()) seen->take_bytes(*made);
    seen->set_done();
  }
  // What nobody wants is not computed either: it dies with the segment.
  void fail(uint32_t slot, const std::exception_ptr& error) override {
    if (StorageImpl* const seen = pending(slot)) seen->set_failed(error);
  }
  SourceMark line(uint32_t call) const override { return calls_[call].line; }

  /// After the run.
  void finish() {
    for (SlotState& slot : slots_) {
      if (slot.is_input && slot.is_written) slot.storage->set_done();
    }
  }

 private:
  /// A result of the segment.
  StorageImpl* pending(uint32_t slot) const {
    const SlotState& state = slots_[slot];
    return !state.is_input && state.storage && state.storage->is_pending() ? &*state.storage : nullptr;
  }

  std::vector<SlotState>& slots_;
  const std::vector<RecordedCall>& calls_;
};

}  // namespace

PlannedSegment& Recorder::plan_for(const std::vector<bool>& wanted, const Cause& cause) {
  auto planned = std::ranges::find_if(cursor_->plans, [&](const auto& p) { return p.plan->serves(wanted); });
  if (planned == cursor_->plans.end()) {
    std::shared_ptr<const graph::Plan> plan = plan_of(segment_, wanted, options_, PlanFor::Segment);
    ++(plan->is_loaded() ? counts_.loaded : counts_.planned);
    planned = cursor_->plans.insert(
        planned,
        {.plan = std::move(plan), .number = trie_->count_plan(), .num_calls = segment_.calls.size()});
  }
  ++planned->runs;
  planned->ended = cause.why;
  planned->ended_by = cause.by;
  planned->first_line = segment_.calls.front().line;
  planned->last_line = segment_.calls.back().line;
  return *planned;
}

void Recorder::show(RecordedSegment& capture, const std::vector<bool>& wanted, const Cause& cause) const {
  if (cause.why != kScopeEnd) capture.refuse(cause.why, cause.line);
  if (capture.is_refused()) return;
  capture.take(segment_, wanted, plan_of(segment_, wanted, options_, PlanFor::Replay), is_long());
}

Recorder::Cause Recorder::cause(const char* why, const OperatorInfo* by) noexcept {
  return {why, by, why == kScopeEnd ? SourceMark() : note_source(nullptr)};
}

std::exception_ptr Recorder::compute(Lock& lock, const Cause& cause) {
  if (segment_.calls.empty() && segment_.slots.empty()) return nullptr;
  running_ = true;
  const Uninterrupted whole;  // others may wait for what is computed
  std::exception_ptr error;
  // Without a call there may be storages, of calls that were not recorded after all.
  if (!segment_.calls.empty()) {
    ++counts_.segments;
    try {
      ++reasons_[{nullptr, cause.why}];
      if (cause.why != kScopeEnd) ProgramReport::add(now_->report.forced, cause.by, cause.why, cause.line);
      const std::vector<bool> wanted = wanted_slots(segment_);
      PlannedSegment& planned = plan_for(wanted, cause);
      saved_ += planned.plan->saves();
      if (capture_) [[unlikely]]
        show(*capture_, wanted, cause);
      std::unique_ptr<graph::Instance> instance = planned.plan->take_instance();
      instance->put_numbers(segment_.numbers);
      SegmentMemory memory(segment_);
      error = instance->run(&memory);
      memory.finish();
      // From the second run on: a segment that comes once leaves nothing.
      if (planned.runs > 1) planned.plan->give_back(std::move(instance));
    } catch (...) {
      // No memory is left for a plan: nothing is computed, and reading a result throws this error.
      error = std::current_exception();
      for (SlotState& slot : segment_.slots) {
        if (!slot.storage || !slot.storage->is_pending()) continue;
        slot.is_input ? slot.storage->set_done() : slot.storage->set_failed(error);
      }
    }
  }
  for (SlotState& slot : segment_.slots) {
    if (slot.storage) slot.storage->remove_recorder();
  }
  lock.garbage = std::move(segment_.slots);
  segment_.slots.clear();
  segment_.calls.clear();
  segment_.numbers.clear();
  slots_by_storage_.clear();
  input_bytes_ = 0;
  written_bytes_.store(0, std::memory_order_relaxed);
  TrieNode* ended_at = cursor_ == trie_->root() ? ended_at_ : cursor_;
  if (trie_->is_full()) {
    trie_->clear();
    ended_at = trie_->root();
  }
  begin_segment(ended_at);
  running_ = false;
  return error;
}

std::exception_ptr Recorder::compute_own(const Cause& cause) {
  // Given up before the lock is taken, and taken back behind it: whoever waits for the lock may hold it.
  std::optional<WaitScope> others_run;
  if (is_long()) others_run.emplace();
  Lock lock(*this);
  return compute(lock, cause);
}

void Recorder::flush(const char* why, const OperatorInfo* by) {
  const std::exception_ptr error = compute_own(cause(why, by));
  throw_late_error();
  if (error) std::rethrow_exception(error);
}

void Recorder::flush_without_throwing(const char* why) {
  if (std::exception_ptr error = compute_own(cause(why))) {
    const Lock lock(*this);
    late_error_ = std::move(error);
  }
}

void Recorder::throw_late_error() {
  std::exception_ptr error;
  {
    const Lock lock(*this);
    error = std::exchange(late_error_, nullptr);
  }
  if (error) [[unlikely]]
    std::rethrow_exception(error);
}

void Recorder::materialize(StorageImpl& storage) {
  std::exception_ptr error;
  const bool own = this == &current();
  const Cause cause = Recorder::cause(own ? "a value was read" : "another thread read a value");
  {
    std::optional<WaitScope> others_run;
    if (!own || is_long()) others_run.emplace();
    Lock lock(*this);
    TENON_CHECK(
        !left_behind_, Runtime,
        "this tensor was recorded by a thread that does not exist in a forked process; read it before "
        "the fork");
    if (!holds(storage)) return;  // another thread was first
    error = compute(lock, cause);
    if (error && !own) late_error_ = std::exchange(error, nullptr);
  }
  if (error) std::rethrow_exception(error);
}

bool Recorder::holds_now(const StorageImpl& storage) {
  const Lock lock(*this);
  return holds(storage);
}

void Recorder::refuse_capture(const char* why) {
  if (capture_) capture_->refuse(why);
}

void Recorder::note_offset_read() {
  if (capture_) capture_->note_offset_read();
}

void Recorder::before_access(StorageImpl& storage) {
  // The caller may write at the address: what was recorded to read it comes first.
  if (holds_now(storage)) flush("the address of an input was asked for");
  refuse_capture("a value was read");
}

void Recorder::after_fork() noexcept {
  const Recorder* const own = &current();
  for (Recorder* recorder : recorders().all) {
    if (recorder == own) continue;
    new (&recorder->mutex_) std::mutex;  // whoever held it is gone
    recorder->left_behind_ = true;
  }
  new (&recorders().mutex) std::mutex;
  recorders().free.clear();
}

void Recorder::before_write(StorageImpl& storage) {
  Recorder& own = current();
  if (!recording_here() && own.holds_now(storage))
    own.flush("an input is written by a call that is not recorded");
  std::vector<Recorder*> others;
  {
    const std::lock_guard lock(recorders().mutex);
    if (recorders().all.size() == 1) return;
    others = recorders().all;
  }
  for (Recorder* other : others) {
    if (other == &own || other->left_behind_) continue;
    const Cause cause = Recorder::cause("another thread writes an input");
    const WaitScope others_run;
    Lock lock(*other);
    if (!other->holds(storage)) continue;
    if (std::exception_ptr error = other->compute(lock, cause)) other->late_error_ = error;
  }
}

}  // namespace tenon::record
