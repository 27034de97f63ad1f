#include "backends/cpu/region/blocks.h"

#include <algorithm>

namespace tenon::cpu {

const graph::Node& anchor_node(const graph::Region& region) { return region.members[region.anchor_member]; }

const graph::Geometry& result_of(const graph::Graph& g, const graph::Region& region) {
  return g.geometry(g.defs(anchor_node(region))[0].geometry);
}

bool has_rows(const Dims& sizes, const Dims& loop) {
  return sizes.size() == loop.size() && !loop.empty() && sizes[0] == loop[0] && loop[0] != 1;
}

namespace {

/// The tensors among an anchor's arguments; absent ones have no geometry.
std::vector<const graph::Geometry*> operands(const graph::Graph& g, const graph::Node& anchor) {
  std::vector<const graph::Geometry*> all;
  for (const graph::Use& u : g.uses(anchor)) {
    if (u.geometry != graph::kNone) all.push_back(&g.geometry(u.geometry));
  }
  return all;
}

}  // namespace

bool operand_has_rows(const graph::Graph& g, const graph::Region& region, size_t operand) {
  const graph::Node& anchor = anchor_node(region);
  if (region.kind == graph::RegionKind::Convolution) return operand == 0;
  const Dims& result = result_of(g, region).sizes;
  if (result.size() == 3) return true;  // a batch of products
  const size_t left = anchor.op.traits().anchor.left;
  return operand == left || (operand < left && has_rows(operands(g, anchor)[operand]->sizes, result));
}

bool writes_operands(const graph::Graph& g, const graph::Node& node) {
  const graph::Region& region = *node.region;
  const auto is_written = [&](graph::ValueId value) {
    const std::span<const graph::Def> defs = g.defs(node);
    return value != graph::kNone && std::any_of(defs.begin(), defs.end(), [&](const graph::Def& d) {
             return g.values[d.value].storage == g.values[value].storage;
           });
  };
  for (const graph::Use& u : g.uses(anchor_node(region))) {
    if (is_written(u.value)) return true;
  }
  for (const graph::RegionPart& part : region.prologue) {
    for (const uint32_t i : part.inputs) {
      if (is_written(g.uses(node)[i].value)) return true;
    }
  }
  return false;
}

uint32_t kept_result(const graph::Graph& g, const graph::Node& node) {
  const graph::Region& region = *node.region;
  const graph::Geometry& result = result_of(g, region);
  const auto fits = [&](uint32_t number) {
    const graph::Def& d = g.defs(node)[number];
    const graph::Value& value = g.values[d.value];
    const graph::Geometry& geometry = g.geometry(d.geometry);
    return geometry.dtype == result.dtype && geometry.sizes == result.sizes &&
           !g.storages[value.storage].is_input && value.previous == graph::kNone;
  };
  if (region.epilogue.empty()) return fits(0) ? 0 : graph::kNone;
  const expr::Expression& e = *region.epilogue.expression;
  for (const expr::Slot& output : e.outputs()) {
    const expr::Node& value = e[output.node];
    if (value.op != expr::Op::Load || output.part != expr::Part::Whole) continue;
    if (region.epilogue.inputs[e.inputs()[value.bits].operand] != graph::kAnchorResult) continue;
    if (const uint32_t number = region.epilogue.outputs[output.operand]; fits(number)) return number;
  }
  return graph::kNone;
}

graph::RegionPart epilogue_without(const graph::Region& region, uint32_t kept) {
  if (region.epilogue.empty()) return {};
  graph::RegionPart part = region.epilogue.copy();
  const auto at = std::find(part.outputs.begin(), part.outputs.end(), kept);
  if (at == part.outputs.end()) return part;
  const auto operand = static_cast<size_t>(at - part.outputs.begin());
  part.outputs.erase(at);
  expr::ExpressionParts parts = expr::parts_of(*part.expression);
  std::erase_if(parts.outputs, [&](const expr::Slot& slot) { return slot.operand == operand; });
  for (expr::Slot& slot : parts.outputs) slot.operand -= slot.operand > operand;
  part.expression = parts.outputs.empty() ? nullptr : expr::make_expression(parts);
  return part;
}

AnchorShape::AnchorShape(const graph::Graph& g, const graph::Region& region) {
  const graph::Node& anchor = anchor_node(region);
  const graph::Geometry& result = result_of(g, region);
  const std::vector<const graph::Geometry*> all = operands(g, anchor);
  if (region.kind == graph::RegionKind::Convolution) {
    // Of one image, without a dimension for the batch, the first one has channels.
    is_whole = all[0]->sizes.size() != all[1]->sizes.size();
    batch = is_whole || result.sizes.empty() ? 1 : result.sizes[0];
    m = result.numel() / std::max<int64_t>(batch, 1);
    k = all[1]->numel() / std::max<int64_t>(all[1]->sizes[0], 1);
    packed = all[1]->numel();
    return;
  }
  const Dims& sizes = result.sizes;
  const size_t ndim = sizes.size();
  batch = ndim == 3 ? sizes[0] : 1;
  m = sizes[ndim - 2];
  n = sizes[ndim - 1];
  k = all[anchor.op.traits().anchor.left]->sizes.back();
  packed = n * k;
}

}  // namespace tenon::cpu
