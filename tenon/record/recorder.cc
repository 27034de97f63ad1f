#include "tenon/record/recorder.h"

#include <fmt/core.h>
#include <pthread.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "tenon/cache/plan_cache.h"
#include "tenon/core/error.h"
#include "tenon/dispatch/library.h"
#include "tenon/dispatch/trace.h"
#include "tenon/record/record_call.h"
#include "tenon/record/recorder_parts.h"

namespace tenon::record {

Recorders& recorders() {
  static Recorders& r = *new Recorders;
  return r;
}

namespace {

void record_call(const OperatorHandle& op, DispatchKeySet keys, Stack& stack) {
  Recorder::current().call(op, keys, stack);
}

}  // namespace

void start_recording() {
  static const bool started = [] {
    static constexpr RecordingHooks kHooks{
        [](StorageImpl& s) {
          if (recording_here()) Recorder::current().before_access(s);
        },
        [](StorageImpl& s) { Recorder::before_write(s); },
        [] {
          if (recording_here())
            Recorder::current().flush_without_throwing("a setting or a registration was changed");
        }};
    recording_hooks.store(&kHooks, std::memory_order_release);
    static Library& library = *new Library(Library::Kind::Impl, "_", "Record", SourceLocation::here());
    library.fallback(CppFunction::make_from_boxed_function<&record_call>());
    pthread_atfork(nullptr, nullptr, [] { Recorder::after_fork(); });
    return true;
  }();
  (void)started;
}

namespace {

// TENON_FLUSH=random:SEED cuts segments anywhere: the results must not show it. 0: it does not.
uint64_t random_flush_seed() {
  static const uint64_t state = [] {
    const char* const text = std::getenv("TENON_FLUSH");
    if (!text || !*text) return uint64_t{0};
    std::string_view digits = text;
    constexpr std::string_view kRandom = "random:";
    const bool is_random = digits.starts_with(kRandom);
    digits.remove_prefix(is_random ? kRandom.size() : 0);
    uint64_t seed = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), seed);
    if (is_random && error == std::errc() && end == digits.end()) return seed * 2 + 1;
    write_diagnostic(fmt::format("TENON_FLUSH: '{}' is not random:SEED; nothing is cut", text));
    return uint64_t{0};
  }();
  return state;
}

// No two scopes of a process have the same.
uint64_t new_scope() noexcept {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

thread_local constinit Gate gate;

void record_boxed(const Kernel&, const OperatorHandle& op, DispatchKeySet keys, Stack& stack) {
  Recorder::current().call(op, keys, stack);
}

Recorder& Recorder::current() {
  struct Owner {
    Recorder* recorder = nullptr;
    Owner() {
      const std::lock_guard lock(recorders().mutex);
      if (recorders().free.empty()) {
        recorders().all.push_back(new Recorder);
        recorders().free.push_back(recorders().all.back());
      }
      recorder = recorders().free.back();
      recorders().free.pop_back();
      recorder->scopes_.clear();  // a thread may end inside of them
    }
    ~Owner() {
      const std::lock_guard lock(recorders().mutex);
      recorders().free.push_back(recorder);
    }
  };
  static thread_local constinit Recorder* recorder TENON_FAST_TLS = nullptr;
  if (!recorder) [[unlikely]] {
    thread_local Owner owner;
    recorder = owner.recorder;
  }
  return *recorder;
}

Counts Recorder::counts() {
  const Lock lock(*this);
  return counts_;
}

std::map<std::string, uint64_t> Recorder::reasons() {
  const Lock lock(*this);
  std::map<std::string, uint64_t> texts;
  for (const auto& [reason, count] : reasons_) {
    const auto& [info, why] = reason;
    texts[info ? info->schema->name + ": " + why : std::string("flush: ") + why] += count;
  }
  if (gate.num_passed > 0) texts["small calls"] = gate.num_passed;
  return texts;
}

bool Recorder::is_to_skip(int64_t size) const noexcept {
  const bool is_asked_for = options_.threshold <= 0 || capture_ || flush_state_ != 0;
  return now_->to_skip > 0 && program_ != 0 && size >= 0 && size <= now_->size && !is_asked_for;
}

uint64_t Recorder::begin(uint64_t program, const ScopeOptions& options, int64_t size) {
  start_recording();
  scopes_.push_back(new_scope());
  if (scopes_.size() > 1) return scopes_.back();
  // Of a thread that has ended inside its scope.
  if (!segment_.calls.empty()) [[unlikely]]
    flush_without_throwing("another thread reads a value");
  options_ = options;
  if (!now_ || program != program_) now_ = &programs_[program];
  program_ = program;
  trie_ = &now_->trie;
  flush_state_ = random_flush_seed();
  size_ = size;
  skips_ = is_to_skip(size);
  if (skips_) {
    --now_->to_skip;
    ++now_->num_skipped;
    return scopes_.back();
  }
  saved_ = 0;
  if (trie_->is_full()) trie_->clear();
  begin_segment(trie_->root());
  gate.threshold = options.threshold;
  thread_state.included |= kRecord;
  return scopes_.back();
}

uint32_t Recorder::add_input(const TensorImpl& first) {
  const Storage& storage = first.storage();
  const auto slot = static_cast<uint32_t>(segment_.slots.size());
  storage->add_recorder();
  slots_by_storage_.add(&*storage, slot);
  input_bytes_ += storage.nbytes();
  // Every dtype's elements begin at a multiple of their size from there.
  const size_t begin = static_cast<size_t>(first.offset()) * item_size(first.dtype()) & ~size_t{15};
  segment_.slots.push_back({.storage = storage, .is_input = true, .begin = begin});
  return slot;
}

std::pair<graph::StorageId, int64_t> Recorder::place_of(const Tensor& t) const {
  const uint32_t slot = slot_of(*t.storage());
  return {slot, segment_.slots[slot].begin_of(t.dtype())};
}

void Recorder::begin_segment(TrieNode* behind) noexcept {
  ended_at_ = behind;
  cursor_ = trie_->root();
  cursor_->expected = behind->next_segment;
}

void Recorder::forget(uint64_t program) {
  if (!scopes_.empty() && program == program_) return;
  if (program == program_) now_ = nullptr;
  programs_.erase(program);
}

const Trie* Recorder::trie(uint64_t program) const noexcept {
  const auto known = programs_.find(program);
  return known == programs_.end() ? nullptr : &known->second.trie;
}

Recorder::Summary Recorder::summary(uint64_t program) {
  const Lock lock(*this);
  const auto known = programs_.find(program);
  if (known == programs_.end()) return {};
  const Trie& trie = known->second.trie;
  Summary made{.report = known->second.report,
               .num_skipped = known->second.num_skipped,
               .num_cleared = trie.num_cleared()};
  trie.each([&](const TrieNode& node) {
    ++made.num_nodes;
    made.plans.insert(made.plans.end(), node.plans.begin(), node.plans.end());
  });
  std::ranges::sort(made.plans, {}, &PlannedSegment::number);
  return made;
}

void Recorder::note_run() noexcept {
  // What a program is given decides most of its sizes; what else it uses, a recorded run now and then sees.
  constexpr uint32_t kTries = 2, kSkips = 31, kMostSkips = 255;
  if (saved_ > 0) {
    now_->in_vain = now_->to_skip = 0;
    now_->size = 0;
    return;
  }
  if (++now_->in_vain >= kTries)
    now_->to_skip = std::min(kMostSkips, (kSkips + 1) * (now_->in_vain - kTries + 1) - 1);
  now_->size = std::max(now_->size, size_);
}

void Recorder::end(uint64_t scope) {
  const auto open = std::ranges::find(scopes_, scope);
  TENON_CHECK(
      open != scopes_.end(), Runtime,
      "this recording scope is not open on this thread: it has ended already, with the scope around it "
      "perhaps, or another thread began it");
  const auto inside = scopes_.end() - open - 1;
  scopes_.erase(open, scopes_.end());
  if (scopes_.empty()) {
    if (std::exchange(skips_, false)) {
      throw_late_error();
    } else {
      thread_state.included = DispatchKeySet(thread_state.included.bits() & ~kRecord.bits());
      flush(kScopeEnd);
      note_run();
      if (cache::PlanCache::is_behind()) [[unlikely]]
        cache::PlanCache::get().write_if_due();
    }
  }
  TENON_CHECK(inside == 0, Runtime,
              fmt::format("a recording scope ended before {} that began inside of it, which ended with it",
                          inside == 1 ? "one" : "others"));
}

}  // namespace tenon::record
