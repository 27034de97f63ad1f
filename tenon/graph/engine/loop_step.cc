#include "tenon/graph/engine/loop_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "tenon/core/error.h"
#include "tenon/dispatch/fallback_policy.h"

namespace tenon::graph {
namespace {

bool is_of_rows(const tenon::FusedKernel& region, size_t output) {
  const auto is_row = [&](const expr::Slot& slot) {
    return slot.operand == output && !varies_along(slot.rank);
  };
  return region.is_over_rows() && std::ranges::any_of(region.expression().outputs(), is_row);
}

/// What the region's engine and its knobs say.
HostProgramOptions options_of(const Region& region) {
  check_knobs(region, {"tile", "vectors", "streams"});
  using enum HostProgramOptions::Kind;
  const auto kind = region.engine == "jit" ? MachineCode : region.engine == "interpreter" ? Interpreter : Any;
  const auto at_least_0 = [&](std::string_view name) { return std::max<int64_t>(knob(region, name, 0), 0); };
  return {kind, static_cast<size_t>(at_least_0("tile")),
          static_cast<int>(std::min<int64_t>(at_least_0("vectors"), 64))};
}

}  // namespace

LoopStep::LoopStep(const Graph& g, const Node& node) : device_(g.device(node)) {
  const Region& region = *node.region;
  const RegionPart& body = region.body;
  std::vector<FusedOperand> outputs, inputs;
  const auto add = [&](std::vector<FusedOperand>& to, ValueId value, GeometryId geometry) {
    const Geometry& where = g.geometry(geometry);
    to.push_back({where.dtype, where.sizes, where.strides});
    places_.push_back(
        {g.values[value].storage, geometry, where.offset * static_cast<int64_t>(item_size(where.dtype))});
  };
  for (const uint32_t i : body.outputs) add(outputs, g.defs(node)[i].value, g.defs(node)[i].geometry);
  for (const uint32_t i : body.inputs) add(inputs, g.uses(node)[i].value, g.uses(node)[i].geometry);
  num_outputs_ = outputs.size();
  expr::ExpressionPtr expression = expr::make_expression(expr::parts_of(*body.expression));
  if (!device_.is_cpu()) {
    TENON_CHECK(region.over.empty(), NotImplemented,
                fmt::format("{} is over rows, and {} takes expressions over elements", region.name,
                            tenon::to_string(device_)));
    launch_ =
        std::make_unique<const DeviceLoop>(std::move(expression), region.name, device_, outputs, inputs);
    for (const Node& member : region.members) {
      std::string_view op = member.op.name();
      op.remove_prefix(std::min(op.rfind(':') + 1, op.size()));
      if (!part_falls_back(device_.backend, op)) blocked_ = op;
    }
  } else {
    region_ = region.over.empty() ? std::make_unique<const tenon::FusedKernel>(
                                        std::move(expression), region.name, options_of(region))
                                  : std::make_unique<const tenon::FusedKernel>(std::move(expression),
                                                                               region.over, region.name);
    std::optional<bool> streams;
    if (const int64_t wanted = knob(region, "streams", -1); wanted >= 0) streams = wanted != 0;
    loop_ = std::make_unique<const FusedLoop>(*region_, outputs, inputs, streams);
    for (size_t i = 0; i < num_outputs_; ++i) places_[i].of_rows = is_of_rows(*region_, i);
  }
  std::vector<bool> has_slot(region.numbers.size());
  for (const uint32_t i : body.numbers) {
    numbers_.emplace_back(g, region, region.numbers[i]);
    has_slot[i] = true;
  }
  for (size_t i = 0; i < region.numbers.size(); ++i) {
    if (!has_slot[i]) checked_.emplace_back(g, region, region.numbers[i]);
  }
}

void LoopStep::put_numbers(std::span<const Scalar> numbers, uint64_t* slots) const {
  for (const SlotNumber& n : numbers_) n.put(*slots++, numbers);
  uint64_t unused;
  for (const SlotNumber& n : checked_) n.put(unused, numbers);
}

std::string LoopStep::refusal() const {
  if (!launch_ || launch_->is_taken()) return {};
  return fmt::format("{} declines its operations, its dtypes or so many operands", tenon::to_string(device_));
}

void LoopStep::launch(char* const* addresses, const uint64_t* slots) const {
  if (launch_->run(addresses, slots)) return;
  TENON_CHECK(blocked_.empty(), NotImplemented,
              fmt::format("execute: {} declines a launch, and {} may not fall back",
                          tenon::to_string(device_), blocked_));
  launch_->run_on_host(addresses, slots);
}

const char* LoopStep::engine() const noexcept {
  if (launch_) return "launch";
  const HostKernel& kernel = region_->kernel();
  return region_->is_over_rows()             ? "rows"
         : kernel.compiled                   ? "simd"
         : kernel.program->is_machine_code() ? "jit"
                                             : "interpreter";
}

}  // namespace tenon::graph
