#include "tenon/record/bound_plan.h"

#include <algorithm>
#include <iterator>

namespace tenon::record {
namespace {

// What nobody sees keeps its memory between runs, if it is not larger.
constexpr size_t kKeptBytes = 4096;

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
  impl->set_wrapped_number(o.geometry.wrapped_number);
  return Tensor(std::move(impl));
}

BoundPlan::Call BoundPlan::make_call(const RecordedCall& call) {
  const TrieNode& node = *call.node;
  Call made;
  push_arguments(call, numbers_, made.arguments,
                 [&](const Operand& o) { return tensor(o, o.slot == kNoSlot ? 0 : slots_[o.slot].begin); });
  uint32_t number = call.first_number;
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    if (node.arguments[i].kind == ArgumentSource::Kind::Number) made.numbers.push_back({i, number++});
  }
  const Kernel& kernel = detail::find_kernel(node.info->op.entry(), kHostKeys);
  if (kernel.unboxed) made.kernel = &kernel;
  return made;
}

}  // namespace tenon::record
