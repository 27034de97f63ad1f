// How bound plans run.
#include <algorithm>
#include <cstring>

#include "tenon/core/kernel_report.h"
#include "tenon/core/thread_state.h"
#include "tenon/ops/copy/elements.h"
#include "tenon/record/bound_plan.h"

namespace tenon::record {
namespace {

bool is_same(const Scalar& a, const Scalar& b) noexcept {
  if (a.kind() != b.kind()) return false;
  if (a.is_integral()) return a.to_int() == b.to_int();
  // By their bits, as zeros of both signs differ.
  const auto x = a.to_complex(), y = b.to_complex();
  return std::memcmp(&x, &y, sizeof x) == 0;
}

}  // namespace

void BoundPlan::put_number(Call& call, const Call::Number& n) const {
  const Scalar& value = numbers_[n.number];
  const CellTag tag = call.arguments.tag(n.argument);
  if (tag == CellTag::Scalar) call.arguments.at<Scalar>(n.argument) = value;
  if (tag == CellTag::Float) call.arguments.at<double>(n.argument) = value.to_double();
  if (tag == CellTag::Int) call.arguments.at<int64_t>(n.argument) = value.to_int();
}

void BoundPlan::set_number(uint32_t i, const Scalar& value) {
  if (is_same(numbers_[i], value)) return;
  numbers_[i] = value;
  numbers_changed_ = true;
}

void BoundPlan::put_numbers() {
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
  numbers_changed_ = false;
}

std::exception_ptr BoundPlan::run(std::span<Storage> storages) {
  const ThreadStateGuard<&ThreadState::included> nothing_more{DispatchKeySet()};
  const ThreadStateGuard<&ThreadState::excluded> below{DispatchKeySet(Functionality::Record) | kAutogradKeys};
  const ThreadStateGuard<&ThreadState::inference_mode> normal{false};
  Failures failures(slots_.size());
  for (const uint32_t slot : inputs_) put(slot, *storages[slot]);
  if (numbers_changed_) put_numbers();
  for (Step& step : steps_) run_step(step, failures);
  for (const uint32_t slot : of_runs_) {
    if (slots_[slot].kind == Slot::Kind::Result && !failures.first()) storages[slot] = std::move(made_[slot]);
    release(slot);
  }
  return failures.first();
}

void BoundPlan::run_step(Step& step, Failures& failures) {
  const Plan::Step& plan = *step.plan;
  try {
    const bool done = plan.loop ? run_loop(step, failures) : plan.anchored && run_anchored(step, failures);
    if (!done) {
      for (const uint32_t call : plan.calls) failures.run_call(calls_[call], [&] { compute(call); });
    }
  } catch (...) {
    // In the middle of a region, which may have written some of its results.
    failures.note(std::current_exception());
    for (const uint32_t call : plan.calls) {
      for (const Output& o : calls_[call].node->outputs) failures.fail(o.slot, std::current_exception());
    }
  }
  for (const uint32_t slot : step.last_uses) release(slot);
}

// False: nothing was written; the calls are to be run one by one, of which some may fail.
bool BoundPlan::run_loop(Step& step, const Failures& failures) {
  const Plan::Loop& loop = *step.plan->loop;
  const auto has_failed = [&](const Step::Place& p) { return failures.has(p.slot); };
  if (!step.numbers_fit) return false;
  if (failures.any() && std::ranges::any_of(step.places, has_failed)) return false;
  try {
    for (size_t i = 0; i < step.places.size(); ++i) {
      const auto [slot, offset] = step.places[i];
      if (i < loop.takes_over.size()) take_over(slot, loop.takes_over[i]);
      operands_[i] = memory(slot) + offset;
    }
  } catch (const std::exception&) {
    // There is no memory. Calls by themselves read what others of them overwrite.
    for (size_t i = 0; i < loop.takes_over.size(); ++i) {
      if (loop.takes_over[i] != kNoSlot) release(step.places[i].slot);
    }
    return false;
  }
  loop.step.run(operands_.data(), step.numbers.data());
  if (kernel_reporting()) [[unlikely]]
    report_region(calls_, step.plan->calls, loop.step.region().name(), loop.step.engine());
  return true;
}

// A result may have the memory that an input leaves. What is kept is written again by the next run.
void BoundPlan::take_over(uint32_t slot, uint32_t from) noexcept {
  if (from == kNoSlot || addresses_[slot] || !made_[from]) return;
  made_[slot] = made_[from];
  put(slot, *made_[slot]);
}

// As run_loop. What fails once something is written that the calls would read fails as a whole.
bool BoundPlan::run_anchored(Step& step, Failures& failures) {
  const Plan::Anchored& region = *step.plan->anchored;
  bool has_written = false;
  try {
    for (const auto* operands : {&region.uses, &region.defs}) {
      for (const Operand& o : *operands) {
        if (failures.has(o.slot)) return false;
        memory(o.slot);
      }
    }
    region.program->run({step.uses, step.defs, numbers_}, has_written);
    if (kernel_reporting()) [[unlikely]]
      report_region(calls_, step.plan->calls, region.name.c_str(), region.engine);
  } catch (const std::exception&) {
    if (!has_written) return false;
    const std::exception_ptr error = explained(std::current_exception(), calls_[step.plan->calls.back()]);
    failures.note(error);
    for (const Operand& o : region.defs) failures.fail(o.slot, error);
  }
  return true;
}

void BoundPlan::compute(uint32_t index) {
  const TrieNode& node = *calls_[index].node;
  if (!bound_[index]) bound_[index] = make_call(calls_[index]);
  const Call& call = *bound_[index];
  for (const Operand& o : node.operands) {
    if (o.slot != kNoSlot) memory(o.slot);
  }
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
void BoundPlan::keep(const TrieNode& node, const Output& promised, const Tensor& result) {
  const bool same = lies_as_recorded(*node.info, promised, result);
  const bool is_operand = std::ranges::any_of(node.operands, [&](const Operand& o) {
    return o.slot != kNoSlot && shells_[o.slot] == result.storage();
  });
  if (same && !is_operand && promised.makes_storage && !kept_[promised.slot]) {
    made_[promised.slot] = result.storage();
    put(promised.slot, *result.storage());
    return;
  }
  // Another tensor over what an earlier result made.
  if (same && !is_operand && made_[promised.slot] == result.storage()) return;
  memory(promised.slot);
  const Storage& memory = kept_[promised.slot] ? kept_[promised.slot] : made_[promised.slot];
  const Geometry& g = promised.geometry;
  ops::copy_elements(Tensor(TensorImpl::make(memory, g.dtype, g.sizes, g.strides, g.offset)), result,
                     node.info->op.name().data());
}

void BoundPlan::put(uint32_t slot, const StorageImpl& memory) noexcept {
  addresses_[slot] = reinterpret_cast<char*>(memory.address_now());
  if (shells_[slot]) shells_[slot]->rebind(memory.address_now());
}

void BoundPlan::make_memory(uint32_t slot) {
  if (slots_[slot].kind == Slot::Kind::Input) return;  // of no bytes
  made_[slot] = Storage::allocate(slots_[slot].nbytes);
  put(slot, *made_[slot]);
}

void BoundPlan::release(uint32_t slot) noexcept {
  made_[slot] = {};
  addresses_[slot] = nullptr;
}

}  // namespace tenon::record
