#include "tenon/record/instance.h"

#include <algorithm>
#include <utility>

#include "tenon/core/kernel_report.h"
#include "tenon/core/thread_state.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::record {

void Instance::make_step(const Plan::Step& step) {
  Step& made = steps_.emplace_back(Step{.plan = &step});
  if (step.loop) {
    made.numbers.resize(step.loop->step.num_numbers());
    operands_.resize(std::max(operands_.size(), step.loop->step.places().size()));
  } else if (step.anchored) {
    for (const Operand& o : step.anchored->uses) made.uses.push_back(tensor(o, 0));
    for (const Operand& o : step.anchored->defs) made.defs.push_back(tensor(o, 0));
  }
}

/// `shift`: what its offset lacks, in elements.
Tensor Instance::tensor(const Operand& o, int64_t shift) {
  if (o.storage == kNoSlot) return {};
  Storage& shell = shells_[o.storage];
  if (!shell)
    shell = Storage::from_foreign(reinterpret_cast<Address>(addresses_[o.storage]), plan_->nbytes_[o.storage],
                                  kCPU, nullptr, nullptr);
  const Geometry& g = o.geometry;
  auto impl = TensorImpl::make(shell, g.dtype, g.sizes, g.strides, g.offset + shift);
  impl->set_wrapped_number(g.wrapped_number);
  return Tensor(std::move(impl));
}

Instance::Call Instance::make_call(const RecordedCall& call) {
  const TrieNode& node = *call.node;
  Call made;
  push_arguments(call, numbers_, made.arguments,
                 [&](const Operand& o) { return tensor(o, o.storage == kNoSlot ? 0 : shift(o)); });
  uint32_t number = call.first_number;
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    if (node.arguments[i].kind == ArgumentSource::Kind::Number) made.numbers.push_back({i, number++});
  }
  const Kernel& kernel = detail::find_kernel(node.info->op.entry(), kHostKeys);
  if (kernel.unboxed) made.kernel = &kernel;
  return made;
}

void Instance::put_number(Call& call, const Call::Number& n) const {
  const Scalar& value = numbers_[n.number];
  const CellTag tag = call.arguments.tag(n.argument);
  if (tag == CellTag::Scalar) call.arguments.at<Scalar>(n.argument) = value;
  if (tag == CellTag::Float) call.arguments.at<double>(n.argument) = value.to_double();
  if (tag == CellTag::Int) call.arguments.at<int64_t>(n.argument) = value.to_int();
}

void Instance::put_numbers() {
  for (Step& step : steps_) {
    if (!step.plan->loop) continue;
    try {
      step.plan->loop->step.put_numbers(numbers_, step.numbers.data());
      step.numbers_fit = true;
    } catch (const std::exception&) {
      step.numbers_fit = false;
    }
  }
  for (std::optional<Call>& call : bound_) {
    if (!call) continue;
    for (const Call::Number& n : call->numbers) put_number(*call, n);
  }
}

void Instance::prepare(std::span<const Scalar> numbers) {
  const bool is_new = steps_.empty();
  if (is_new) {
    const size_t num_slots = plan_->nbytes_.size();
    shells_.resize(num_slots);
    made_.resize(num_slots);
    addresses_.resize(num_slots);
    is_used_.resize(num_slots);
    bound_.resize(calls_.size());
    for (const Plan::Step& step : plan_->steps_) make_step(step);
  }
  if (!is_new && std::ranges::equal(numbers, numbers_, same_bits)) return;
  numbers_.assign(numbers.begin(), numbers.end());
  put_numbers();
}

std::exception_ptr Instance::run(std::span<const RecordedCall> calls, std::span<const Scalar> numbers,
                                 SlotMemory& memory) {
  const ThreadStateGuard<&ThreadState::included> nothing_more{DispatchKeySet()};
  const ThreadStateGuard<&ThreadState::excluded> below{DispatchKeySet(Functionality::Record) | kAutogradKeys};
  const ThreadStateGuard<&ThreadState::inference_mode> normal{false};
  calls_ = calls;
  memory_ = &memory;
  prepare(numbers);
  failures_.emplace(made_.size());
  for (Step& step : steps_) run_step(step);
  if (failures_->any()) {
    for (uint32_t slot = 0; slot < made_.size(); ++slot) {
      if (!is_used_[slot] && failures_->has(slot)) memory.fail(slot, failures_->of(slot));
    }
  }
  for (const uint32_t slot : used_) {
    if (std::exchange(is_used_[slot], uint8_t{0})) memory.keep(slot, std::move(made_[slot]));
  }
  used_.clear();
  std::exception_ptr error = failures_->first();
  failures_.reset();
  return error;
}

void Instance::run_step(Step& step) {
  const Plan::Step& plan = *step.plan;
  try {
    const bool done = plan.loop ? run_loop(step) : plan.anchored && run_region(step);
    if (!done) {
      for (const uint32_t call : plan.calls) run_call(call);
    }
  } catch (...) {
    // In the middle of a region, which may have written some of its results.
    const std::exception_ptr error = std::current_exception();
    failures_->note(error);
    for (const uint32_t call : plan.calls) {
      for (const Output& o : calls_[call].node->outputs) {
        release(o.storage);
        failures_->fail(o.storage, error);
      }
    }
  }
  for (const uint32_t slot : plan.last_uses) {
    release(slot);
    memory_->release(slot);
  }
}

void Instance::run_call(uint32_t index) {
  failures_->run_call(calls_[index], [&] { compute(index); });
  if (!failures_->any()) [[likely]]
    return;
  // A region that could not run may have found memory for the results.
  for (const Output& o : calls_[index].node->outputs) {
    if (o.makes_storage && failures_->has(o.storage)) release(o.storage);
  }
}

// False: nothing was written; the calls are to be run one by one, of which some may fail.
bool Instance::run_loop(Step& step) {
  const Plan::Loop& loop = *step.plan->loop;
  const std::span places = loop.step.places();
  if (!step.numbers_fit) return false;
  if (failures_->any() &&
      std::ranges::any_of(places, [&](const auto& p) { return failures_->has(p.storage); }))
    return false;
  try {
    for (size_t i = 0; i < places.size(); ++i) {
      const auto& place = places[i];
      if (i < loop.takes_over.size()) take_over(place.storage, loop.takes_over[i]);
      operands_[i] = memory(place.storage) + place.offset;
    }
  } catch (const std::exception&) {
    // There is no memory. Calls by themselves read what others of them overwrite.
    for (size_t i = 0; i < loop.takes_over.size(); ++i) {
      const uint32_t slot = places[i].storage, from = loop.takes_over[i];
      if (from != kNoSlot && made_[slot] == made_[from]) release(slot);
    }
    return false;
  }
  loop.step.run(operands_.data(), step.numbers.data());
  if (kernel_reporting()) [[unlikely]]
    report_region(calls_, step.plan->calls, loop.step.region().name(), loop.step.engine());
  return true;
}

// As run_loop. What fails once something is written that the calls would read fails as a whole.
bool Instance::run_region(Step& step) {
  const Plan::Anchored& region = *step.plan->anchored;
  bool clobbered_inputs = false;
  try {
    for (const auto* operands : {&region.uses, &region.defs}) {
      for (const Operand& o : *operands) {
        if (failures_->has(o.storage)) return false;
        memory(o.storage);
      }
    }
    region.program->run({step.uses, step.defs, numbers_}, clobbered_inputs);
    if (kernel_reporting()) [[unlikely]]
      report_region(calls_, step.plan->calls, region.name.c_str(), region.engine);
  } catch (const std::exception&) {
    if (!clobbered_inputs) return false;
    const std::exception_ptr error = explained(std::current_exception(), calls_[step.plan->calls.back()]);
    failures_->note(error);
    for (const Operand& o : region.defs) failures_->fail(o.storage, error);
  }
  return true;
}

void Instance::compute(uint32_t index) {
  const TrieNode& node = *calls_[index].node;
  for (const Operand& o : node.operands) {
    if (o.storage != kNoSlot) memory(o.storage);
  }
  if (!bound_[index]) bound_[index] = make_call(calls_[index]);
  const Call& call = *bound_[index];
  Stack stack;
  if (call.kernel && !detail::dispatch_trace_enabled.load(std::memory_order_relaxed)) [[likely]] {
    stack.lend(call.arguments);
    call.kernel->boxed(*call.kernel, node.info->op, kHostKeys, stack);
  } else {
    for (size_t i = 0; i < call.arguments.size(); ++i) stack.push_copy(call.arguments, i);
    call_kernel(node.info->op, stack);
  }
  size_t next = 0;
  for (size_t i = 0; i < node.results.size(); ++i) {
    if (node.results[i].kind == Result::Kind::Output) keep(node, node.outputs[next++], stack.at<Tensor>(i));
  }
}

// A result becomes the memory of its slot, if it lies as was said when it was recorded.
void Instance::keep(const TrieNode& node, const Output& promised, const Tensor& result) {
  const uint32_t slot = promised.storage;
  const bool same = lies_as_recorded(*node.info, promised, result);
  const bool is_operand = std::ranges::any_of(node.operands, [&](const Operand& o) {
    return o.storage != kNoSlot && shells_[o.storage] == result.storage();
  });
  if (same && !is_operand && promised.makes_storage) {
    made_[slot] = result.storage();
    return put(slot, reinterpret_cast<char*>(result.storage()->address_now()));
  }
  // Another tensor over what an earlier result made.
  if (same && !is_operand && made_[slot] == result.storage()) return;
  memory(slot);
  ops::copy_elements(tensor({.storage = slot, .geometry = promised.geometry}, 0), result,
                     node.info->op.name().data());
}

// A result may have the memory that an input leaves.
void Instance::take_over(uint32_t slot, uint32_t from) noexcept {
  if (from == kNoSlot || is_used_[slot] || !made_[from]) return;
  made_[slot] = made_[from];
  put(slot, addresses_[from]);
}

void Instance::find_memory(uint32_t slot) {
  if (char* const given = memory_->given(slot)) return put(slot, given - plan_->offset_shift_[slot]);
  made_[slot] = Storage::allocate(plan_->nbytes_[slot]);
  put(slot, reinterpret_cast<char*>(made_[slot]->address_now()));
}

void Instance::put(uint32_t slot, char* bytes) noexcept {
  if (!std::exchange(is_used_[slot], uint8_t{1})) used_.push_back(slot);
  addresses_[slot] = bytes;
  if (shells_[slot]) shells_[slot]->rebind(reinterpret_cast<Address>(bytes));
}

void Instance::release(uint32_t slot) noexcept {
  made_[slot] = {};
  is_used_[slot] = 0;
}

}  // namespace tenon::record
