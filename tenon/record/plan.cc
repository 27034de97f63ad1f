#include "tenon/record/plan.h"

#include <algorithm>
#include <optional>

#include "tenon/graph/region.h"
#include "tenon/record/lift.h"

namespace tenon::record {
Plan::Plan(const Segment& segment, std::vector<bool> wanted, bool relaxed) : wanted_(std::move(wanted)) {
  Lifted lifted = lift(segment, wanted_);
  graph::EngineTuner tuner({.relaxed = relaxed});
  // A fault of the fuser's or an engine's costs time and no results: the calls run one by one.
  try {
    report_ = graph::fuse(lifted.graph, {.tuner = &tuner, .rows = true, .relaxed = relaxed});
  } catch (const std::exception&) {
    lifted = lift(segment, wanted_);
  }
  for (const graph::Node& node : lifted.graph.nodes) {
    Step& step = steps_.emplace_back();
    if (!node.region) {
      step.calls.push_back(lifted.call_of(node));
      continue;
    }
    for (const graph::Node& member : node.region->members) step.calls.push_back(lifted.call_of(member));
    try {
      if (node.region->anchor_member != graph::kNone)
        step.anchored = make_anchored(lifted.graph, node, relaxed);
      else
        step.loop = std::make_unique<Loop>(lifted.graph, node);
    } catch (const std::exception& e) {
      const graph::Node& last = node.region->members.back();
      report_.left.push_back({last.op, last.line, e.what()});
    }
  }
  moved_ = std::move(lifted.moved);
  find_last_uses(segment);
}

std::unique_ptr<const Plan::Anchored> Plan::make_anchored(const graph::Graph& g, const graph::Node& node,
                                                          bool relaxed) {
  auto made = std::make_unique<Anchored>();
  made->name = node.region->name;
  const graph::Engine& engine = graph::engine_of(g, node, {.relaxed = relaxed});
  made->engine = engine.name;
  made->program = engine.build(g, node);
  const auto operand = [&](graph::ValueId value, graph::GeometryId id) {
    const graph::Geometry& from = g.geometry(id);
    Operand o;
    o.slot = g.values[value].storage;
    o.geometry = {from.dtype, from.sizes, from.strides, from.offset};
    o.wrapped_number = from.wrapped_number;
    return o;
  };
  for (const graph::Use& u : g.uses(node)) made->uses.push_back(operand(u.value, u.geometry));
  for (const graph::Def& d : g.defs(node)) made->defs.push_back(operand(d.value, d.geometry));
  return made;
}

void Plan::find_last_uses(const Segment& segment) {
  std::vector<bool> used_later = wanted_;
  for (size_t s = steps_.size(); s-- > 0;) {
    Step& step = steps_[s];
    const auto use = [&](uint32_t slot) {
      if (slot == kNoSlot || used_later[slot]) return;
      used_later[slot] = true;
      step.last_uses.push_back(slot);
    };
    for (const uint32_t call : step.calls) {
      const TrieNode& node = *segment.calls[call].node;
      for (const Output& o : node.outputs) use(o.slot);
      for (const Operand& o : node.operands) use(o.slot);
    }
    if (step.loop) reuse_memory(segment, step, *step.loop);
  }
}

void Plan::reuse_memory(const Segment& segment, const Step& step, Loop& loop) {
  // Below, memory costs nothing.
  constexpr size_t kWorthIt = 4096;
  using Place = graph::LoopStep::Place;
  const std::span<const Place> places = loop.step.places();
  const auto count = [&](uint32_t slot) { return std::ranges::count(places, slot, &Place::storage); };
  std::vector<uint32_t> free;
  for (const uint32_t slot : step.last_uses) {
    if (!segment.slots[slot].is_input && count(slot) == 1) free.push_back(slot);
  }
  for (size_t i = 0; i < loop.step.num_outputs(); ++i) {
    const Place& output = places[i];
    // A value of a row is stored when it is known, and the row's operands may be read again.
    if (output.of_rows) continue;
    const SlotState& state = segment.slots[output.storage];
    const size_t nbytes = state.storage.nbytes();
    if (state.is_input || nbytes < kWorthIt || count(output.storage) != 1) continue;
    const auto fits = [&](const Place& p) {
      return p.geometry == output.geometry && segment.slots[p.storage].storage.nbytes() == nbytes;
    };
    for (const Place& input : places.subspan(loop.step.num_outputs())) {
      const auto found = std::ranges::find(free, input.storage);
      if (found == free.end() || !fits(input)) continue;
      loop.takes_over[i] = input.storage;
      free.erase(found);
      break;
    }
  }
}

bool Plan::serves(const std::vector<bool>& wanted) const noexcept {
  if (wanted.size() != wanted_.size()) return false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] && !wanted_[i]) return false;
  }
  return true;
}

}  // namespace tenon::record
