#include "tenon/record/recorder.h"

#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tenon/dispatch/library.h"
#include "tenon/record/gate.h"
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

// The fallback that records is there from the first scope on: until then, tables have no such kernel.
void start_recording() {
  static const bool started = [] {
    static constexpr RecordingHooks kHooks{
        [](StorageImpl& s) {
          if (recording_here()) Recorder::current().before_access(s);
        },
        [](StorageImpl& s) { Recorder::before_write(s); },
        [] {
          if (recording_here()) Recorder::current().flush("the default dtype or strict mode was switched");
        }};
    recording_hooks.store(&kHooks, std::memory_order_release);
    static Library& library = *new Library(Library::Kind::Impl, "_", "Record", SourceLocation::here());
    library.fallback(CppFunction::make_from_boxed_function<&record_call>());
    pthread_atfork(nullptr, nullptr, [] { Recorder::after_fork(); });
    return true;
  }();
  (void)started;
}

// TENON_FLUSH=random:SEED cuts segments anywhere: the results must not show it. 0: it does not.
uint64_t random_flush_seed() {
  static const uint64_t seed = [] {
    const char* text = std::getenv("TENON_FLUSH");
    const std::string_view value = text ? text : "";
    if (!value.starts_with("random:")) return uint64_t{0};
    return uint64_t{std::strtoull(text + std::strlen("random:"), nullptr, 10)} * 2 + 1;
  }();
  return seed;
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

std::map<std::string, uint64_t> Recorder::reasons() const {
  std::map<std::string, uint64_t> texts;
  for (const auto& [reason, count] : reasons_) {
    const auto& [info, why] = reason;
    texts[info ? info->schema->name + ": " + why : std::string("flush: ") + why] += count;
  }
  if (gate.num_passed > 0) texts["small calls"] = gate.num_passed;
  return texts;
}

void Recorder::begin(uint64_t program, const Options& options) {
  start_recording();
  if (depth_++ > 0) return;
  options_ = options;
  program_ = program;
  now_ = &programs_[program];
  trie_ = &now_->trie;
  if (trie_->is_full()) trie_->clear();
  cursor_ = trie_->root();
  flush_state_ = random_flush_seed();
  gate.threshold = options.threshold;
  thread_state.included |= kRecord;
}

void Recorder::forget(uint64_t program) {
  if (depth_ == 0 || program != program_) programs_.erase(program);
}

const Recorder::Program* Recorder::program(uint64_t number) const noexcept {
  const auto known = programs_.find(number);
  return known == programs_.end() ? nullptr : &known->second;
}

void Recorder::end() {
  if (--depth_ > 0) return;
  thread_state.included = DispatchKeySet(thread_state.included.bits() & ~kRecord.bits());
  flush(kScopeEnd);
}

}  // namespace tenon::record
