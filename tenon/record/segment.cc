#include "tenon/record/segment.h"

namespace tenon::record {

std::vector<bool> wanted_slots(const Segment& segment) {
  std::vector<bool> wanted(segment.slots.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const SlotState& slot = segment.slots[i];
    wanted[i] = slot.is_written && (slot.is_input || slot.storage.use_count() > 0);
  }
  return wanted;
}

std::shared_ptr<const graph::Plan> plan_of(const Segment& segment, const std::vector<bool>& wanted,
                                           const ScopeOptions& options, PlanFor purpose) {
  graph::Program program;
  for (const RecordedCall& call : segment.calls)
    program.calls.push_back({call.node, call.first_number, call.line});
  for (size_t i = 0; i < segment.slots.size(); ++i) {
    const SlotState& slot = segment.slots[i];
    program.storages.push_back(
        {.nbytes = slot.storage.nbytes(), .is_input = slot.is_input, .is_output = wanted[i]});
  }
  for (const Scalar& number : segment.numbers) program.numbers.push_back(number.kind());
  graph::Assembled assembled = graph::assemble(program, graph::KeepErrors::Yes);
  return graph::Plan::find_or_make(
      std::move(assembled.graph),
      {.by_slot = true, .wanted = wanted, .offset_shift = std::move(assembled.offset_shift)},
      {.position = graph::configured_position(),
       .engines = {.relaxed = options.relaxed},
       .tune_ms = options.tune_ms,
       .single_calls = purpose == PlanFor::Replay});
}

}  // namespace tenon::record
