#include <algorithm>
#include <vector>

#include "tenon/expr/spec.h"
#include "tenon/graph/ir/region.h"
#include "tenon/graph/ir/verify_parts.h"

namespace tenon::graph {
namespace {

class RegionVerifier {
 public:
  RegionVerifier(const Graph& graph, const Node& node) : g_(graph), node_(node), region_(*node.region) {}

  void check() {
    const bool anchored = region_.kind == RegionKind::Matmul || region_.kind == RegionKind::Convolution;
    require((region_.kind == RegionKind::Rows) <= !region_.over.empty() &&
                (region_.kind == RegionKind::Flat) <= region_.over.empty(),
            "a region says which dimensions make up its rows, if it has any");
    for (const int64_t d : region_.over)
      require(d == 0 || d == 1, "a dimension is one of a row's, or it is not");
    require(region_.body.empty() == anchored, "a region has either an anchor member or a body");
    require(
        anchored || (region_.prologue.empty() && region_.epilogue.empty() && region_.anchor_member == kNone),
        "only a region around an anchor has other parts than its body");
    if (anchored) {
      require(region_.anchor_member < region_.members.size(), "the anchor of a region is one of its members");
      size_t tensors = 0;
      for (const Use& u : g_.uses(region_.members[region_.anchor_member])) tensors += u.geometry != kNone;
      require(region_.prologue.size() == tensors,
              "a region has a prologue for each tensor of its anchor: {}, not {}", tensors,
              region_.prologue.size());
    }
    for (const NumberSource& source : region_.numbers) {
      require(source.member < region_.members.size() &&
                  (source.from.argument == kNone ||
                   source.from.argument < g_.arguments(region_.members[source.member]).size()),
              "a number of a region is an argument of a member");
    }
    stored_.resize(g_.defs(node_).size());
    for (const RegionPart& p : region_.prologue) part(p, PartKind::Prologue);
    part(region_.body, PartKind::Body);
    part(region_.epilogue, PartKind::Epilogue);
    if (!anchored)
      require(std::find(stored_.begin(), stored_.end(), false) == stored_.end(),
              "the parts of a region store all that it writes");
  }

 private:
  enum class PartKind : uint8_t { Prologue, Body, Epilogue };
  void part(const RegionPart& p, PartKind kind) {
    if (p.empty()) {
      require(p.inputs.empty() && p.numbers.empty() && p.outputs.empty(), "an empty part has no operands");
      return;
    }
    const expr::Expression& e = *p.expression;
    require(e.level == expr::Level::Typed, "the expression of a part is typed");
    try {
      expr::check(e);
    } catch (const Error& error) {
      require(false, "{}", error.what());
    }
    const std::span<const Use> uses = g_.uses(node_);
    for (const expr::Slot& slot : e.inputs()) {
      require(slot.operand < p.inputs.size(), "a part has a use for each input of its expression");
      const uint32_t input = p.inputs[slot.operand];
      if (input == kAnchorResult) {
        require(kind == PartKind::Epilogue, "only an epilogue reads the anchor's result");
        continue;
      }
      require(input < uses.size(), "a part reads what its region's node reads");
      require(
          uses[input].geometry < g_.num_geometries() && g_.geometry(uses[input].geometry).dtype == slot.dtype,
          "an input of an expression has the dtype of its tensor");
    }
    require(p.numbers.size() == e.num_numbers, "a part has a number for each of its expression");
    for (size_t i = 0; i < p.numbers.size(); ++i) {
      require(p.numbers[i] < region_.numbers.size(), "a number of a part is one of its region's");
      require(dtype(region_.numbers[p.numbers[i]].from.rule.type) == e.numbers()[i].dtype,
              "a number of a part has the type of its slot");
    }
    if (kind == PartKind::Prologue) {
      const bool one = std::all_of(e.outputs().begin(), e.outputs().end(),
                                   [](const expr::Slot& slot) { return slot.operand == 0; });
      require(one && p.outputs.empty(), "a prologue gives one operand of the anchor");
      return;
    }
    const std::span<const Def> defs = g_.defs(node_);
    for (const expr::Slot& slot : e.outputs()) {
      require(slot.operand < p.outputs.size() && p.outputs[slot.operand] < defs.size(),
              "a part stores what its region's node writes");
      const uint32_t output = p.outputs[slot.operand];
      require(g_.geometry(defs[output].geometry).dtype == slot.dtype,
              "an output of an expression has the dtype of its tensor");
      stored_[output] = true;
    }
  }

  const Graph& g_;
  const Node& node_;
  const Region& region_;
  std::vector<bool> stored_;  // of the defs of the node
};

}  // namespace

void check_region(const Graph& graph, const Node& node) { RegionVerifier(graph, node).check(); }

}  // namespace tenon::graph
