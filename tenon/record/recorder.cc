#include "tenon/record/recorder.h"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>

#include "tenon/core/error.h"
#include "tenon/core/stream.h"
#include "tenon/core/thread_state.h"
#include "tenon/dispatch/library.h"
#include "tenon/record/gate.h"

namespace tenon::record {
namespace {

constexpr DispatchKeySet kRecord{Functionality::Record};
constexpr const char* kScopeEnd = "the scope ended";

bool recording_here() noexcept {
  return thread_state.included.has(Functionality::Record) &&
         !thread_state.excluded.has(Functionality::Record);
}

// All recorders there ever were: they are handed on from threads that end to threads that begin, since
// storages refer to them.
struct Recorders {
  std::mutex mutex;
  std::vector<Recorder*> all, free;
};
Recorders& recorders() {
  static Recorders& r = *new Recorders;
  return r;
}

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
    auto* library = new Library(Library::Kind::Impl, "_", "Record", SourceLocation::here());
    library->fallback(CppFunction::make_from_boxed_function<&record_call>());
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

template <class F>
void each_tensor(const Stack& stack, size_t first, F&& f) {
  for (size_t i = first; i < stack.size(); ++i) {
    if (stack.tag(i) == CellTag::Tensor) f(stack.at<Tensor>(i), i - first);
    if (stack.tag(i) == CellTag::TensorList) {
      for (const Tensor& t : stack.at<std::vector<Tensor>>(i)) f(t, i - first);
    }
  }
}

}  // namespace

thread_local constinit Gate gate;

void record_boxed(const Kernel&, const OperatorHandle& op, DispatchKeySet keys, Stack& stack) {
  Recorder::current().call(op, keys, stack);
}

class Recorder::Lock {
 public:
  explicit Lock(Recorder& r) : lock_(r.mutex_, std::defer_lock) {
    if (!tenon::detail::single_threaded()) lock_.lock();
  }
  std::vector<SlotState> garbage;  // freed when the lock is, as owners of memory may take locks of their own

 private:
  std::unique_lock<std::mutex> lock_;
};

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

void Recorder::call(const OperatorHandle& op, DispatchKeySet keys, Stack& stack) {
  const OperatorInfo& info = operator_info(op);
  if (depth_ == 0) [[unlikely]] {
    // A worker with the state of a thread that records: what it does, that thread waits for.
    const ExcludeDispatchKeyGuard below(kRecord);
    return op.redispatch_boxed(keys.below(Functionality::Record), stack);
  }
  if (info.kind == OperatorInfo::Kind::Transparent)
    return op.redispatch_boxed(keys.below(Functionality::Record), stack);
  throw_late_error();
  const size_t first = stack.size() - info.schema->arguments.size();
  if (info.kind == OperatorInfo::Kind::Recorded && is_small(info, stack, first)) {
    ++gate.num_passed;
    const ExcludeDispatchKeyGuard below(kRecord);
    return op.redispatch_boxed(keys.below(Functionality::Record), stack);
  }
  if (const char* now = reason_to_run_now(info, stack, first)) return run_now(info, now, keys, stack);
  compute_others(stack, first);
  const TrieNode* refused = nullptr;
  if (record(info, stack, first, refused)) return;
  if (refused->passes)
    op.redispatch_boxed(keys.below(Functionality::Record), stack);
  else
    run_now(info, refused->now, keys, stack);
}

const char* Recorder::refuses(const Tensor& t) const {
  if (!t.defined()) return nullptr;
  const TensorImpl& impl = *t.impl();
  if (!impl.device().is_cpu()) return "a tensor is not on the host";
  if (impl.layout() != Layout::Strided || impl.extra()) return "a tensor is not strided";
  if (!impl.keys().has(Functionality::Dense)) return "a tensor has a kernel of another kind";
  if (!has_arithmetic(impl.dtype())) return "a tensor has a dtype without arithmetic";
  const StorageImpl& storage = *impl.storage();
  if (storage.allocator() != &cpu_allocator() || !storage.resizable()) {
    if (storage.allocator() && storage.resizable()) return "its memory is pinned";
    if (!options_.trust_shared && !storage.is_pending())
      return "its memory is shared with NumPy, DLPack or another owner: clone() it to record";
  }
  return nullptr;
}

const char* Recorder::reason_to_run_now(const OperatorInfo& info, const Stack& stack, size_t first) const {
  if (info.kind == OperatorInfo::Kind::Now) return info.reason;
  const char* why = nullptr;
  each_tensor(stack, first, [&](const Tensor& t, size_t) {
    if (!why) why = refuses(t);
  });
  if (why) return why;
  for (size_t i = first; i < stack.size(); ++i) {
    if (stack.tag(i) == CellTag::Device && !stack.at<Device>(i).is_cpu())
      return "it makes a tensor on a device";
    if (stack.tag(i) == CellTag::DType && !has_arithmetic(stack.at<DType>(i)))
      return "it makes a tensor of a dtype without arithmetic";
    if (stack.tag(i) == CellTag::Layout && stack.at<Layout>(i) != Layout::Strided)
      return "it makes a tensor that is not strided";
    if (stack.tag(i) == CellTag::Bool && stack.at<bool>(i) &&
        info.schema->arguments[i - first].name == "pin_memory")
      return "it makes pinned memory";
  }
  return nullptr;
}

bool Recorder::is_small(const OperatorInfo& info, const Stack& stack, size_t first) const {
  if (options_.threshold <= 0) return false;
  const int64_t limit = options_.threshold * info.scale;
  bool small = true;
  each_tensor(stack, first, [&](const Tensor& t, size_t i) {
    if (!t.defined()) return;
    // What is written, recorded calls may still have to read.
    const bool written = ((info.written >> i) & 1u) != 0;
    const bool waits = written ? t.storage()->is_recorded() : t.storage()->is_pending();
    small = small && t.numel() <= limit && !waits;
  });
  return small;
}

// What other threads have recorded, and this call reads.
void Recorder::compute_others(const Stack& stack, size_t first) {
  each_tensor(stack, first, [&](const Tensor& t, size_t) {
    if (t.defined() && t.storage()->is_pending() && t.storage()->work() != this) (void)t.storage().address();
  });
}

void Recorder::run_now(const OperatorInfo& info, const char* why, DispatchKeySet keys, Stack& stack) {
  ++counts_.ran_now;
  ++reasons_[{&info, why}];
  ProgramReport::add(now_->report.ran_now, &info, why, note_source(stack.caller()));
  const size_t first = stack.size() - info.schema->arguments.size();
  bool needs_flush = false;
  each_tensor(stack, first, [&](const Tensor& t, size_t i) {
    if (!t.defined() || !t.storage()->is_recorded()) return;
    const bool written = ((info.written >> i) & 1u) != 0;
    needs_flush |= (t.storage()->is_pending() || written) && holds(*t.storage());
  });
  if (needs_flush) flush(why);
  const ExcludeDispatchKeyGuard below(kRecord);
  info.op.redispatch_boxed(keys.below(Functionality::Record), stack);
}

bool Recorder::record(const OperatorInfo& info, Stack& stack, size_t first, const TrieNode*& refused) {
  Lock lock(*this);
  TENON_CHECK(!running_, Internal, "a recorded program called an operator that is to be recorded");
  CallKey key(info, *this);
  for (size_t i = 0; i < info.schema->arguments.size(); ++i) key.boxed(stack, first + i, i);
  key.end();
  TrieNode* node = trie_->find(cursor_, key_);
  if (!node) {
    ++counts_.new_nodes;
    const TrieNode* const known = cursor_->expected;
    node = infer(info, stack, first);
    if (known && !known->now && !node->now)
      ProgramReport::add(now_->report.left, &info, difference(*node, *known), note_source(stack.caller()));
  }
  if (node->now || node->passes) {
    refused = node;
    return false;
  }
  check_number(*node);
  append(node, note_source(stack.caller()));
  push_results(*node, stack, first);
  check_caps(lock);
  return true;
}

// --- New nodes ---------------------------------------------------------------------------------------------

namespace {

Geometry geometry_of(const TensorImpl& t) {
  return {t.dtype(), t.sizes().to_dims(), t.strides().to_dims(), t.offset()};
}

// The tensors of a call as meta tensors, of which those that share memory do so as well.
class MetaTensors {
 public:
  Tensor of(const Tensor& t, uint32_t slot) {
    if (!t.defined() || t.impl()->is_wrapped_number())
      return t;  // numbers keep their values, which are checked
    for (const auto& [original, copy] : tensors_) {
      if (original == t.impl()) return copy;
    }
    const auto known = std::ranges::find(slots_, slot);
    const auto index = static_cast<size_t>(known - slots_.begin());
    if (known == slots_.end()) {
      slots_.push_back(slot);
      storages_.push_back(Storage::allocate(t.storage().nbytes(), Device(kMetaBackend)));
    }
    const TensorImpl& impl = *t.impl();
    tensors_.emplace_back(&impl, Tensor(TensorImpl::make(storages_[index], impl.dtype(), impl.sizes(),
                                                         impl.strides(), impl.offset())));
    return tensors_.back().second;
  }
  bool made(const Storage& storage) const { return std::ranges::find(storages_, storage) != storages_.end(); }

 private:
  std::vector<std::pair<const TensorImpl*, Tensor>> tensors_;
  std::vector<uint32_t> slots_;
  std::vector<Storage> storages_;
};

bool unchanged(const Tensor& before, const Tensor& now, const Storage& storage) {
  return std::ranges::equal(before.sizes(), now.sizes()) &&
         std::ranges::equal(before.strides(), now.strides()) &&
         before.storage_offset() == now.storage_offset() && before.dtype() == now.dtype() &&
         now.storage() == storage;
}

}  // namespace

uint32_t Recorder::add_input(const Storage& storage) {
  const auto slot = static_cast<uint32_t>(segment_.slots.size());
  storage->add_recorder();
  slots_by_storage_.add(&*storage, slot);
  input_bytes_ += storage.nbytes();
  segment_.slots.push_back({.storage = storage, .is_input = true});
  return slot;
}

TrieNode* Recorder::infer(const OperatorInfo& info, const Stack& stack, size_t first) {
  TrieNode* const node = trie_->add(cursor_, key_);
  node->info = &info;
  MetaTensors metas;
  Stack meta;
  struct Written {
    Tensor original, copy;
    Storage storage;
    size_t nbytes;
  };
  std::vector<Written> written;
  const auto add_operand = [&](const Tensor& t, size_t argument) {
    Operand o;
    if (t.defined()) {
      o = {.slot = slot_of(*t.storage()),
           .written = ((info.written >> argument) & 1u) != 0,
           .wrapped_number = t.impl()->is_wrapped_number(),
           .geometry = geometry_of(*t.impl())};
    }
    node->operands.push_back(o);
    Tensor copy = metas.of(t, o.slot);
    if (o.written && t.defined()) written.push_back({t, copy, copy.storage(), copy.storage().nbytes()});
    return copy;
  };
  for (size_t i = 0; i < info.schema->arguments.size(); ++i) {
    const size_t at = first + i;
    ArgumentSource from{.tag = stack.tag(at), .first = static_cast<uint16_t>(node->operands.size())};
    if (from.tag == CellTag::Tensor) {
      from.kind = ArgumentSource::Kind::Tensor;
      meta.push(add_operand(stack.at<Tensor>(at), i));
    } else if (from.tag == CellTag::TensorList) {
      from.kind = ArgumentSource::Kind::TensorList;
      std::vector<Tensor> list;
      for (const Tensor& t : stack.at<std::vector<Tensor>>(at)) list.push_back(add_operand(t, i));
      from.count = static_cast<uint16_t>(list.size());
      meta.push(std::move(list));
    } else {
      const uint64_t numbers = info.numbers & ~special_arguments_;
      const bool number = ((numbers >> i) & 1u) != 0 && from.tag != CellTag::None;
      if (number) from.kind = ArgumentSource::Kind::Number;
      if (info.schema->arguments[i].type.base == schema::BaseType::Device)
        meta.push(Device(kMetaBackend));
      else
        meta.push_copy(stack, at);
    }
    if (from.kind == ArgumentSource::Kind::Attribute)
      node->prototype.push_copy(stack, at);
    else
      node->prototype.push_none();
    node->arguments.push_back(from);
  }
  const auto runs_now = [&](const char* why) {
    node->now = why;
    return node;
  };
  try {
    const ThreadStateGuard<&ThreadState::included> nothing_more{DispatchKeySet()};
    const ExcludeDispatchKeyGuard below(kRecord | kAutogradKeys);
    const ThreadStateGuard<&ThreadState::inference_mode> normal{false};
    info.op.redispatch_boxed(DispatchKeySet(Functionality::Dense, kMetaBackend), meta);
  } catch (const std::exception&) {
    // What is wrong with the call says the call itself; and what depends on values has none before it runs.
    return runs_now("the results' shapes depend on values, or the call fails");
  }
  for (const Written& w : written) {
    if (!unchanged(w.original, w.copy, w.storage) || w.storage.nbytes() != w.nbytes)
      return runs_now("it changes the shape of a tensor that it writes");
  }
  if (info.fills) {
    for (const Written& w : written) node->filled = w.original.dtype();
    for (size_t i = 0; i < info.results.size(); ++i) {
      if (info.results[i] < 0) node->filled = meta.at<Tensor>(i).dtype();
    }
  }
  std::vector<std::pair<Storage, uint32_t>> made;
  auto next_slot = static_cast<uint32_t>(segment_.slots.size());
  for (size_t i = 0; i < info.results.size(); ++i) {
    if (info.results[i] >= 0) {
      node->results.push_back({Result::Kind::Argument, static_cast<uint16_t>(info.results[i])});
      continue;
    }
    const Tensor* const t = meta.tag(i) == CellTag::Tensor ? &meta.at<Tensor>(i) : nullptr;
    if (!t || !t->defined()) {
      node->results.push_back({Result::Kind::Undefined});
      continue;
    }
    if (metas.made(t->storage())) {
      node->passes = true;
      return node;
    }
    if (t->layout() != Layout::Strided || !t->is_meta())
      return runs_now("its result is no strided tensor of the host");
    const auto known = std::ranges::find(made, t->storage(), &std::pair<Storage, uint32_t>::first);
    const bool makes = known == made.end();
    const uint32_t slot = makes ? next_slot++ : known->second;
    if (makes) made.emplace_back(t->storage(), slot);
    node->outputs.push_back(
        {slot, t->storage().nbytes(), makes, t->storage().version(), geometry_of(*t->impl())});
    node->results.push_back({Result::Kind::Output});
  }
  return node;
}

void Recorder::append(TrieNode* node, SourceMark line) {
  ++counts_.recorded;
  segment_.calls.push_back({node, static_cast<uint32_t>(segment_.numbers.size()), line});
  segment_.numbers.insert(segment_.numbers.end(), numbers_.begin(), numbers_.end());
  cursor_ = node;
  for (const Operand& o : node->operands) {
    if (!o.written || o.slot == kNoSlot) continue;
    SlotState& slot = segment_.slots[o.slot];
    slot.is_written = true;
    add_written(slot.storage.nbytes());
    if (!slot.storage->is_pending()) slot.storage->set_pending(this, o.slot);
  }
}

Tensor Recorder::make_output(const Output& o) {
  if (o.makes_storage) {
    Storage storage = Storage::deferred(o.nbytes, this, o.slot);
    add_written(o.nbytes);
    storage->add_recorder();
    for (uint64_t v = 0; v < o.version; ++v) storage->bump_version();
    segment_.slots.push_back({.storage = std::move(storage), .is_written = true});
  }
  return Tensor(TensorImpl::make(segment_.slots[o.slot].storage, o.geometry.dtype, o.geometry.sizes,
                                 o.geometry.strides, o.geometry.offset));
}

void Recorder::push_results(const TrieNode& node, Stack& stack, size_t first) {
  size_t next = 0;
  const size_t before = stack.size();
  for (const Result& result : node.results) {
    switch (result.kind) {
      case Result::Kind::Argument:
        stack.push_copy(stack, first + result.argument);
        break;
      case Result::Kind::Undefined:
        stack.push(Tensor());
        break;
      case Result::Kind::Output:
        stack.push(make_output(node.outputs[next++]));
        break;
    }
  }
  stack.erase(first, before - first);
}

void Recorder::check_caps(Lock& lock) {
  const char* why = nullptr;
  if (segment_.calls.size() >= kMaxCalls) why = "4,096 calls were recorded";
  if (input_bytes_ > kMaxHeldBytes) {
    input_bytes_ = 0;
    for (const SlotState& slot : segment_.slots) {
      if (slot.is_input && slot.storage.use_count() == 0) input_bytes_ += slot.storage.nbytes();
    }
    if (input_bytes_ > kMaxHeldBytes) why = "128 MB of inputs are held by recorded calls alone";
  }
  if (flush_state_ != 0) {
    flush_state_ = flush_state_ * 6364136223846793005u + 1442695040888963407u;
    if (flush_state_ >> 61 == 0) why = "segments are cut at random";
  }
  if (!why) return;
  if (const std::exception_ptr error = compute(lock, why)) std::rethrow_exception(error);
}

// --- Computing ---------------------------------------------------------------------------------------------

std::exception_ptr Recorder::compute(Lock& lock, const char* why) {
  if (segment_.calls.empty() && segment_.slots.empty()) return nullptr;
  running_ = true;
  ++counts_.segments;
  ++reasons_[{nullptr, why}];
  if (why != kScopeEnd) ProgramReport::add(now_->report.forced, nullptr, why, note_source(nullptr));
  const std::vector<bool> wanted = wanted_slots(segment_);
  auto planned = std::ranges::find_if(cursor_->plans, [&](const auto& p) { return p.plan->serves(wanted); });
  if (planned == cursor_->plans.end()) {
    ++counts_.planned;
    trie_->count_plan();
    planned = cursor_->plans.insert(planned,
                                    {.plan = std::make_shared<const Plan>(segment_, wanted, options_.relaxed),
                                     .num_calls = segment_.calls.size()});
  }
  ++planned->runs;
  planned->ended = why;
  if (!segment_.calls.empty()) {
    planned->first_line = segment_.calls.front().line;
    planned->last_line = segment_.calls.back().line;
  }
  const std::exception_ptr error = planned->plan->run(segment_);
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
  if (trie_->is_full()) trie_->clear();
  cursor_ = trie_->root();
  running_ = false;
  return error;
}

void Recorder::flush(const char* why) {
  std::exception_ptr error;
  {
    // Given up before the lock is taken, and taken back behind it: whoever waits for the lock may hold it.
    std::optional<WaitScope> others_run;
    if (is_long()) others_run.emplace();
    Lock lock(*this);
    error = compute(lock, why);
  }
  throw_late_error();
  if (error) std::rethrow_exception(error);
}

void Recorder::throw_late_error() {
  if (late_error_) [[unlikely]]
    std::rethrow_exception(std::exchange(late_error_, nullptr));
}

void Recorder::materialize(StorageImpl& storage) {
  std::exception_ptr error;
  const bool own = this == &current();
  {
    std::optional<WaitScope> others_run;
    if (!own || is_long()) others_run.emplace();
    Lock lock(*this);
    TENON_CHECK(
        !left_behind_, Runtime,
        "this tensor was recorded by a thread that does not exist in a forked process; read it before "
        "the fork");
    if (!holds(storage)) return;  // another thread was first
    error = compute(lock, own ? "a value was read" : "another thread read a value");
    if (error && !own) late_error_ = std::exchange(error, nullptr);
  }
  if (error) std::rethrow_exception(error);
}

void Recorder::before_access(StorageImpl& storage) {
  // Whoever asks for an address may write there: what was recorded to read it comes first.
  if (!running_ && holds(storage)) flush("the address of an input was asked for");
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
  if (!recording_here() && own.holds(storage))
    own.flush("an input is written by a call that is not recorded");
  std::vector<Recorder*> others;
  {
    const std::lock_guard lock(recorders().mutex);
    if (recorders().all.size() == 1) return;
    others = recorders().all;
  }
  for (Recorder* other : others) {
    if (other == &own || other->left_behind_) continue;
    const WaitScope others_run;
    Lock lock(*other);
    if (!other->holds(storage)) continue;
    if (std::exception_ptr error = other->compute(lock, "another thread writes an input"))
      other->late_error_ = error;
  }
}

}  // namespace tenon::record
