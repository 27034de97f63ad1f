#include "tenon/graph/fuse/region_parts.h"

#include <algorithm>
#include <optional>

namespace tenon::graph {
namespace {

// Whether two numbers are converted and checked alike.
bool same(const LoweredNumber& a, const LoweredNumber& b) noexcept {
  return a.type == b.type && a.part == b.part && a.of_complex == b.of_complex && a.fills == b.fills &&
         a.nonnegative == b.nonnegative && a.nonzero == b.nonzero && a.truncates == b.truncates &&
         a.nonnegative_float == b.nonnegative_float && a.as_operands == b.as_operands && a.wanted == b.wanted;
}

constexpr expr::ValueName kAnchorName = kAnchorResult;

}  // namespace

expr::ValueName Names::of(const Use& use) {
  const auto found = std::find(uses_.begin(), uses_.end(), use);
  const auto name = static_cast<expr::ValueName>(found - uses_.begin());
  if (found == uses_.end()) uses_.push_back(use);
  return name;
}

uint32_t RegionNumbers::add(const Graph& graph, const Node& call, uint32_t member, uint32_t slot,
                            const LoweredArgument& from) {
  std::span<const uint32_t> number;
  if (from.argument != kNone) number = graph.numbers_of(graph.arguments(call)[from.argument]);
  numbers_.push_back(number.empty() ? kNone : number[0]);
  sources_.push_back({member, slot, from});
  for (uint32_t i = 0; i + 1 < sources_.size() && numbers_.back() != kNone; ++i) {
    if (numbers_[i] == numbers_.back() && same(sources_[i].from.rule, from.rule)) return i;
  }
  return static_cast<uint32_t>(sources_.size() - 1);
}

std::vector<uint32_t> RegionNumbers::used() const {
  std::vector<uint32_t> used;
  for (const uint32_t n : numbers_) {
    if (n != kNone && std::find(used.begin(), used.end(), n) == used.end()) used.push_back(n);
  }
  return used;
}

expr::Rank PartMaker::rank_of(const Use& use, const expr::Slot& slot, bool on_rows) const {
  if (!rows_) return slot.rank;
  return on_rows || g_.geometry(use.geometry).sizes == rows_->kept ? expr::Rank::Row : slot.rank;
}

void PartMaker::add(const Node& call, const LoweredCall& lowered, uint32_t member) {
  const std::span<const Use> uses = g_.uses(call);
  const std::span<const Def> defs = g_.defs(call);
  SmallVector<expr::JoinInput, 8> inputs;
  SmallVector<uint32_t, 8> numbers;
  SmallVector<expr::ValueName, 8> outputs;
  // A flat call on values of rows.
  const bool on_rows =
      rows_ && lowered.over.empty() && rows_->is_of_rows(g_.geometry(defs[0].geometry).sizes);
  for (size_t i = 0; i < lowered.inputs.size(); ++i) {
    const Use& use = uses[lowered.inputs[i]];
    inputs.push_back({names_.of(use), rank_of(use, lowered.expression->inputs()[i], on_rows)});
  }
  for (uint32_t i = 0; i < lowered.numbers.size(); ++i)
    numbers.push_back(numbers_.add(g_, call, member, i, lowered.numbers[i]));
  for (const uint32_t i : lowered.outputs) outputs.push_back(names_.of(defs[i]));
  joiner_.add(*lowered.expression, {inputs.data(), inputs.size()}, {numbers.data(), numbers.size()},
              {outputs.data(), outputs.size()});
}

void PartMaker::add_anchor_result(const Def& result) {
  const DType dtype = g_.geometry(result.geometry).dtype;
  const std::optional<Lowered> copy = lower_copy(dtype, dtype);
  TENON_CHECK(copy, Internal, "graph: the result of an anchor has no arithmetic");
  const std::vector<expr::JoinInput> inputs(copy->expression->num_inputs, {kAnchorName});
  const std::vector<expr::ValueName> outputs(copy->expression->num_outputs, names_.of(result));
  joiner_.add(*copy->expression, inputs, {}, outputs);
}

RegionPart PartMaker::finish(std::span<const expr::ValueName> wanted) {
  expr::Joined joined = joiner_.finish(wanted);
  RegionPart part;
  part.expression = std::move(joined.expression);
  part.inputs = std::move(joined.inputs);
  part.numbers = std::move(joined.numbers);
  return part;
}

RegionPart rest_of_epilogue(const Graph& graph, const Node& node, const Def& made,
                            std::span<const uint32_t> members) {
  const Region& region = *node.region;
  Names names;
  RegionNumbers numbers;
  std::optional<RowShape> rows;
  if (!region.over.empty()) rows.emplace(graph.geometry(made.geometry).sizes, region.over);
  PartMaker maker(graph, names, numbers, rows ? &*rows : nullptr, true);
  maker.add_anchor_result(made);
  for (const uint32_t i : members) {
    const std::shared_ptr<const LoweredCall> lowered = lower_call(graph, region.members[i]);
    TENON_CHECK(lowered, Internal, "graph: a member of an epilogue is no expression");
    maker.add(region.members[i], *lowered, i);
  }
  std::vector<expr::ValueName> wanted;
  std::vector<uint32_t> outputs;
  for (uint32_t i = 0; i < graph.defs(node).size(); ++i) {
    const Def& def = graph.defs(node)[i];
    if (def.value == made.value) continue;
    wanted.push_back(names.of(def));
    outputs.push_back(i);
  }
  RegionPart part = maker.finish(wanted);
  part.outputs = std::move(outputs);
  const std::span<const Use> uses = graph.uses(node);
  for (uint32_t& input : part.inputs) {
    if (input == kAnchorResult) continue;
    const auto found = std::find(uses.begin(), uses.end(), names[input]);
    TENON_CHECK(found != uses.end(), Internal, "graph: an epilogue reads what its region does not");
    input = static_cast<uint32_t>(found - uses.begin());
  }
  // The region has the numbers of all its members.
  const std::vector<NumberSource> sources = numbers.take();
  for (uint32_t& number : part.numbers) {
    const NumberSource& wanted_number = sources[number];
    const auto found = std::find_if(region.numbers.begin(), region.numbers.end(), [&](const NumberSource& n) {
      return n.member == wanted_number.member && n.slot == wanted_number.slot;
    });
    number = static_cast<uint32_t>(found - region.numbers.begin());
  }
  return part;
}

}  // namespace tenon::graph
