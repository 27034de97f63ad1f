#include "tenon/record/plan.h"

#include <algorithm>
#include <optional>

#include "tenon/graph/engine/tuner.h"
#include "tenon/graph/ir/region.h"
#include "tenon/record/fused.h"

namespace tenon::record {

std::shared_ptr<const Plan> Plan::make(const Segment& segment, const std::vector<bool>& wanted, bool relaxed,
                                       double tune_ms, PlanFor purpose) {
  graph::Assembled assembled = assemble(segment, wanted);
  cache::PlanCache& cache = cache::PlanCache::get();
  expr::Key key;
  if (cache.is_on()) {
    key = cache_key(assembled, relaxed, tune_ms, purpose);
    if (const std::vector<std::byte> bytes = cache.find(key); !bytes.empty()) {
      try {
        Fused fused = from_file(bytes, segment, std::move(assembled));
        std::shared_ptr<const Plan> plan(new Plan(segment, wanted, relaxed, fused, From::Cache));
        cache.count_loaded();
        return plan;
      } catch (const std::exception& e) {
        cache.reject(e.what());
        assembled = assemble(segment, wanted);
      }
    }
  }
  cache.count_planned();
  auto fused =
      std::make_shared<Fused>(fuse(segment, wanted, std::move(assembled), relaxed, tune_ms, purpose));
  if (graph::was_tuned(fused->report)) cache.count_tuned();
  std::shared_ptr<const Plan> plan(new Plan(segment, wanted, relaxed, *fused, From::Fuser));
  // A later process may have more time.
  if (cache.is_on() && fused->is_whole && !graph::ran_out_of_time(fused->report))
    cache.put(key, [fused] { return to_file(*fused); });
  return plan;
}

Plan::Plan(const Segment& segment, const std::vector<bool>& wanted, bool relaxed, const Fused& fused,
           From from)
    : wanted_(wanted),
      offset_shift_(fused.offset_shift),
      report_(fused.report),
      is_loaded_(from == From::Cache) {
  for (const SlotState& slot : segment.slots) nbytes_.push_back(slot.storage.nbytes());
  size_t next = 0;
  for (const graph::Node& node : fused.graph.nodes) {
    Step& step = steps_.emplace_back();
    const size_t count = node.region ? node.region->members.size() : 1;
    for (size_t i = 0; i < count; ++i) step.calls.push_back(fused.calls[next++]);
    if (!node.region) continue;
    try {
      if (node.region->anchor_member != graph::kNone)
        step.anchored = make_anchored(fused.graph, node, relaxed);
      else
        step.loop = std::make_unique<Loop>(fused.graph, node);
    } catch (const std::exception& e) {
      if (is_loaded_) throw;
      const graph::Node& last = node.region->members.back();
      report_.left.push_back({last.op, last.line, e.what()});
    }
  }
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
    return Operand{.storage = g.values[value].storage, .geometry = g.geometry(id)};
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
      for (const Output& o : node.outputs) use(o.storage);
      for (const Operand& o : node.operands) use(o.storage);
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

std::vector<uint32_t> Plan::written_by_regions() const {
  std::vector<uint32_t> slots;
  for (const Step& step : steps_) {
    if (step.loop) {
      for (const auto& place : step.loop->step.places().first(step.loop->step.num_outputs()))
        slots.push_back(place.storage);
    } else if (step.anchored) {
      for (const Operand& o : step.anchored->defs) slots.push_back(o.storage);
    }
  }
  return slots;
}

bool Plan::joins_calls() const noexcept {
  return std::ranges::any_of(steps_, [](const Step& step) { return step.loop || step.anchored; });
}

bool Plan::serves(const std::vector<bool>& wanted) const noexcept {
  if (wanted.size() != wanted_.size()) return false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] && !wanted_[i]) return false;
  }
  return true;
}

}  // namespace tenon::record
