// A call at the key Record: it waits, or runs at once.
#include <utility>

#include "tenon/core/error.h"
#include "tenon/record/record_call.h"
#include "tenon/record/recorder_parts.h"
#include "tenon/record/replay.h"
#include "tenon/record/sink_scope.h"

namespace tenon::record {

thread_local constinit CallSink* call_sink = nullptr;

SinkScope::SinkScope(CallSink& sink)
    : included_(DispatchKeySet(kRecord)),
      excluded_(DispatchKeySet(kAutogradKeys)),
      outer_(std::exchange(call_sink, &sink)),
      threshold_(std::exchange(gate.threshold, 0)) {
  start_recording();
}

SinkScope::~SinkScope() {
  call_sink = outer_;
  gate.threshold = threshold_;
}

namespace {

// Neither the call nor what it calls is recorded.
void run_at_once(const OperatorHandle& op, DispatchKeySet keys, Stack& stack) {
  const ExcludeDispatchKeyGuard below(kRecord);
  op.redispatch_boxed(keys.below(Functionality::Record), stack);
}

}  // namespace

void Recorder::call(const OperatorHandle& op, DispatchKeySet keys, Stack& stack) {
  const OperatorInfo& info = graph::operator_info(op);
  if (call_sink) [[unlikely]] {
    if (info.kind != OperatorInfo::Kind::Transparent) return call_sink->call(info, stack);
    call_sink->enter(info, stack);
    return op.redispatch_boxed(keys.below(Functionality::Record), stack);
  }
  if (scopes_.empty()) [[unlikely]] {
    // A worker with the state of a thread that records: what it does, that thread waits for.
    return run_at_once(op, keys, stack);
  }
  if (info.kind == OperatorInfo::Kind::Transparent)
    return op.redispatch_boxed(keys.below(Functionality::Record), stack);
  throw_late_error();
  const size_t first = stack.size() - info.schema->arguments.size();
  if (info.kind == OperatorInfo::Kind::Recorded && is_small(info, stack, first)) {
    ++gate.num_passed;
    return run_at_once(op, keys, stack);
  }
  if (const char* now = reason_to_run_now(info, stack, first)) return run_now(info, now, keys, stack);
  compute_others(stack, first);
  const TrieNode* refused = nullptr;
  if (record(info, stack, first, refused)) return;
  if (refused->kind.passes)
    op.redispatch_boxed(keys.below(Functionality::Record), stack);
  else
    run_now(info, refused->kind.now, keys, stack);
}

const char* Recorder::refuses(const Tensor& t) const {
  if (!t.defined()) return nullptr;
  const TensorImpl& impl = *t.impl();
  if (!impl.device().is_cpu()) return "a tensor is not on the host";
  if (impl.layout() != Layout::Strided || impl.extra()) return "a tensor is not strided";
  if (!impl.keys().has(Functionality::Dense)) return "a tensor has a kernel of another kind";
  if (!has_arithmetic(impl.dtype())) return "a tensor has a dtype without arithmetic";
  const StorageImpl& storage = *impl.storage();
  if (!storage.is_private()) {
    if (!options_.trust_shared && !storage.is_pending())
      return "its memory is shared with NumPy, DLPack or another owner: clone() it to record";
  } else if (storage.allocator() && storage.allocator() != &cpu_allocator()) {
    return "its memory is pinned";
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
    const bool written = ((info.written >> i) & 1u) != 0;
    small = small && (written ? passes<Tensor&>(t, limit) : passes<const Tensor&>(t, limit));
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
  bool needs_flush = false;
  {
    const Lock lock(*this);
    ++counts_.ran_now;
    ++reasons_[{&info, why}];
    const SourceMark line = note_source(stack.caller());
    ProgramReport::add(now_->report.ran_now, &info, why, line);
    if (capture_) [[unlikely]]
      capture_->refuse(info.schema->name + " runs at once: " + why, line);
    each_tensor(stack, stack.size() - info.schema->arguments.size(), [&](const Tensor& t, size_t i) {
      if (!t.defined() || !t.storage()->is_recorded()) return;
      const bool written = ((info.written >> i) & 1u) != 0;
      needs_flush |= (t.storage()->is_pending() || written) && holds(*t.storage());
    });
  }
  if (needs_flush) flush(why, &info);
  run_at_once(info.op, keys, stack);
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
    if (node->is_recorded()) cursor_->expected = node;
    if (known && node->is_recorded())
      ProgramReport::add(now_->report.left, &info, difference(*node, *known), note_source(stack.caller()));
  }
  if (!node->is_recorded()) {
    refused = node;
    return false;
  }
  check_number(*node);
  append(node, note_source(stack.caller()));
  push_results(*node, stack, first);
  check_caps(lock);
  return true;
}

TrieNode* Recorder::infer(const OperatorInfo& info, const Stack& stack, size_t first) {
  TrieNode* const node = trie_->add(cursor_, key_);
  node->kind =
      graph::describe_call(*node, info, stack, first, info.numbers & ~special_arguments_, *this, kCPU);
  return node;
}

void Recorder::append(TrieNode* node, SourceMark line) {
  if (capture_) [[unlikely]]
    line = capture_->line_of_program(line);
  ++counts_.recorded;
  segment_.calls.push_back({node, static_cast<uint32_t>(segment_.numbers.size()), line});
  segment_.numbers.insert(segment_.numbers.end(), numbers_.begin(), numbers_.end());
  if (cursor_ == trie_->root()) ended_at_->next_segment = node;
  cursor_ = node;
  for (const Operand& o : node->operands) {
    if (!o.written || o.storage == kNoSlot) continue;
    SlotState& slot = segment_.slots[o.storage];
    slot.is_written = true;
    add_written(slot.storage.nbytes());
    if (!slot.storage->is_pending()) slot.storage->set_pending(this, o.storage);
  }
}

Tensor Recorder::make_output(const Output& o) {
  if (o.makes_storage) {
    Storage storage = Storage::deferred(o.nbytes, this, o.storage);
    add_written(o.nbytes);
    storage->add_recorder();
    for (uint64_t v = 0; v < o.version; ++v) storage->bump_version();
    segment_.slots.push_back({.storage = std::move(storage), .is_written = true});
  }
  return Tensor(TensorImpl::make(segment_.slots[o.storage].storage, o.geometry.dtype, o.geometry.sizes,
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
  if (const std::exception_ptr error = compute(lock, cause(why))) std::rethrow_exception(error);
}

}  // namespace tenon::record
