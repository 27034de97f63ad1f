#include "tenon/record/bound_plan.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "tenon/core/kernel_report.h"
#include "tenon/core/thread_state.h"
#include "tenon/ops/copy/elements.h"

namespace tenon::record {
namespace {

// What nobody sees keeps its memory between runs, if it is not larger.
constexpr size_t kKeptBytes = 4096;

bool is_same(const Scalar& a, const Scalar& b) noexcept {
  if (a.kind() != b.kind()) return false;
  if (a.is_integral()) return a.to_int() == b.to_int();
  // Zeros of both signs differ, and a NaN is none that is known.
  const auto x = a.to_complex(), y = b.to_complex();
  return std::memcmp(&x, &y, sizeof x) == 0;
}

}  // namespace

BoundPlan::BoundPlan(std::shared_ptr<const Plan> plan, std::vector<RecordedCall> calls,
                     std::vector<Scalar> numbers, std::vector<Slot> slots)
    : plan_(std::move(plan)),
      calls_(std::move(calls)),
      numbers_(std::move(numbers)),
      slots_(std::move(slots)),
      bound_(calls_.size()),
      kept_(slots_.size()),
      shells_(slots_.size()),
      made_(slots_.size()),
      addresses_(slots_.size()) {
  keep_memory();
  for (uint32_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].kind == Slot::Kind::Input)
      inputs_.push_back(i);
    else if (!kept_[i])
      of_runs_.push_back(i);
  }
  for (const Plan::Step& step : plan_->steps_) make_step(step);
}

/// What regions make is small enough to stay. Calls bring the memory of their results.
void BoundPlan::keep_memory() {
  const auto keep = [&](uint32_t slot) {
    if (slots_[slot].kind != Slot::Kind::Inner || slots_[slot].nbytes > kKeptBytes || kept_[slot]) return;
    kept_[slot] = Storage::allocate(slots_[slot].nbytes);
    put(slot, *kept_[slot]);
  };
  for (const Plan::Step& step : plan_->steps_) {
    if (step.loop) {
      for (const auto& place : step.loop->step.places().first(step.loop->step.num_outputs()))
        keep(place.storage);
    } else if (step.anchored) {
      for (const Operand& o : step.anchored->defs) keep(o.slot);
    }
  }
}

void BoundPlan::make_step(const Plan::Step& step) {
  Step& made = steps_.emplace_back(Step{.plan = &step});
  if (step.loop) {
    const graph::LoopStep& loop = step.loop->step;
    for (const auto& p : loop.places())
      made.places.push_back({p.storage, static_cast<int64_t>(begin_in_graph(p.storage)) + p.offset});
    made.numbers.resize(loop.num_numbers());
    operands_.resize(std::max(operands_.size(), made.places.size()));
  } else if (step.anchored) {
    for (const Operand& o : step.anchored->uses) made.uses.push_back(tensor(o, begin_in_graph(o.slot)));
    for (const Operand& o : step.anchored->defs) made.defs.push_back(tensor(o, begin_in_graph(o.slot)));
  }
  std::ranges::copy_if(step.last_uses, std::back_inserter(made.last_uses),
                       [&](uint32_t slot) { return slots_[slot].kind == Slot::Kind::Inner && !kept_[slot]; });
}

/// `begin`: where its offset counts from, in bytes.
Tensor BoundPlan::tensor(const Operand& o, size_t begin) {
  if (o.slot == kNoSlot) return {};
  Storage& shell = shells_[o.slot];
  if (!shell)
    shell = Storage::from_foreign(reinterpret_cast<Address>(addresses_[o.slot]), slots_[o.slot].nbytes, kCPU,
                                  nullptr, nullptr);
  const auto first = static_cast<int64_t>(begin / item_size(o.geometry.dtype));
  auto impl = TensorImpl::make(shell, o.geometry.dtype, o.geometry.sizes, o.geometry.strides,
                               first + o.geometry.offset);
  impl->set_wrapped_number(o.wrapped_number);
  return Tensor(std::move(impl));
}

BoundPlan::Call BoundPlan::make_call(const RecordedCall& call) {
  const TrieNode& node = *call.node;
  Call made;
  const auto operand = [&](size_t i) {
    const Operand& o = node.operands[i];
    return tensor(o, o.slot == kNoSlot ? 0 : slots_[o.slot].begin);
  };
  uint32_t number = call.first_number;
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    const ArgumentSource& from = node.arguments[i];
    switch (from.kind) {
      case ArgumentSource::Kind::Attribute:
        made.arguments.push_copy(node.prototype, i);
        break;
      case ArgumentSource::Kind::Tensor:
        made.arguments.push(operand(from.first));
        break;
      case ArgumentSource::Kind::TensorList: {
        std::vector<Tensor> list;
        for (uint16_t k = 0; k < from.count; ++k) list.push_back(operand(size_t{from.first} + k));
        made.arguments.push(std::move(list));
        break;
      }
      case ArgumentSource::Kind::Number:
        if (from.tag == CellTag::Scalar) made.arguments.push(Scalar());
        if (from.tag == CellTag::Float) made.arguments.push(double{});
        if (from.tag == CellTag::Int) made.arguments.push(int64_t{});
        put_number(made, made.numbers.emplace_back(Call::Number{i, number++}));
        break;
    }
  }
  const Kernel& kernel = detail::find_kernel(node.info->op.entry(), kHostKeys);
  if (kernel.unboxed) made.kernel = &kernel;
  return made;
}

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
      for (const uint32_t call : plan.calls) run_call(call, failures);
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

void BoundPlan::run_call(uint32_t index, Failures& failures) {
  std::exception_ptr error = failures.inherited(*calls_[index].node);
  if (!error) {
    try {
      compute(index);
    } catch (...) {
      error = explained(std::current_exception(), calls_[index]);
      failures.note(error);
    }
  }
  if (error) failures.fail(*calls_[index].node, error);
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
