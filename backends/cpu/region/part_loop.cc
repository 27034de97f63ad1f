#include "backends/cpu/region/part_loop.h"

#include "backends/cpu/region/blocks.h"

namespace tenon::cpu {

Tensor rows_of(const Tensor& t, int64_t begin, int64_t end) {
  Dims sizes = t.sizes().to_dims();
  sizes[0] = end - begin;
  return make_view(t, sizes, t.strides(), t.storage_offset() + begin * t.strides()[0]);
}

SlotNumbers::SlotNumbers(const graph::Graph& g, const graph::Region& region) {
  for (const graph::NumberSource& from : region.numbers) numbers_.emplace_back(g, region, from);
}

std::vector<uint64_t> SlotNumbers::values(std::span<const Scalar> numbers) const {
  std::vector<uint64_t> values(numbers_.size());
  for (size_t i = 0; i < values.size(); ++i) numbers_[i].put(values[i], numbers);
  return values;
}

PartLoop::PartLoop(const graph::Graph& g, const graph::Node& node, const graph::RegionPart& part,
                   const Dims& loop, const Dims& over)
    : rows_(loop.empty() ? 1 : loop[0]), numbers_(part.numbers) {
  expr::ExpressionPtr e = expr::make_expression(expr::parts_of(*part.expression));
  inputs_.resize(part.inputs.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    inputs_[i].use = part.inputs[i];
    if (part.inputs[i] != graph::kAnchorResult)
      inputs_[i].has_rows = has_rows(g.geometry(g.uses(node)[part.inputs[i]].geometry).sizes, loop);
  }
  // Values of rows may lack the dimensions of these, and have the first one then too.
  for (const expr::Slot& slot : e->inputs()) {
    Input& input = inputs_[slot.operand];
    if (over.empty() || varies_along(slot.rank) || input.use == graph::kAnchorResult) continue;
    const Dims& sizes = g.geometry(g.uses(node)[input.use].geometry).sizes;
    input.has_rows |= !sizes.empty() && sizes.size() < loop.size() && sizes[0] == rows_ && rows_ != 1;
  }
  region_ = over.empty() ? std::make_unique<const FusedKernel>(std::move(e), node.region->name)
                         : std::make_unique<const FusedKernel>(std::move(e), over, node.region->name);
}

void PartLoop::run(std::span<const Tensor> outputs, std::span<const Tensor> uses, const Tensor& anchor,
                   const std::vector<uint64_t>& numbers, int64_t begin, int64_t end) const {
  std::vector<Tensor> inputs;
  for (const Input& input : inputs_) {
    if (input.use == graph::kAnchorResult)
      inputs.push_back(anchor);
    else
      inputs.push_back(input.has_rows && end - begin != rows_ ? rows_of(uses[input.use], begin, end)
                                                              : uses[input.use]);
  }
  SmallVector<uint64_t, 8> slots;
  for (const uint32_t i : numbers_) slots.push_back(numbers[i]);
  region_->run(outputs, inputs, slots.data());
}

}  // namespace tenon::cpu
