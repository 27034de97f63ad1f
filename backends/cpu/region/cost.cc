#include "backends/cpu/region/cost.h"

#include <algorithm>

namespace tenon::cpu {
namespace {

// Nanoseconds, as measured on a machine with 1 MB of second-level cache for each core.
constexpr double kHotByte = 0.01, kWarmByte = 0.025, kColdByte = 0.04;
constexpr double kCall = 700;            // of an operator by itself
constexpr double kInnerCall = 900;       // of one on slices, or of an expression on them
constexpr double kLibraryCall = 5000;    // with what describes each operand
constexpr double kPackedElement = 0.12;  // of the right operand

int64_t bytes_of(const graph::Geometry& geometry) {
  return geometry.numel() * static_cast<int64_t>(item_size(geometry.dtype));
}

/// One pass over a tensor, `together` bytes at a time.
double pass(int64_t bytes, int64_t together) {
  return static_cast<double>(bytes) * (together <= kHotBytes    ? kHotByte
                                       : together <= kWarmBytes ? kWarmByte
                                                                : kColdByte);
}

double passes(const graph::Graph& g, const graph::Node& node) {
  double ns = 0;
  const auto add = [&](graph::GeometryId id) {
    if (id == graph::kNone) return;
    const int64_t bytes = bytes_of(g.geometry(id));
    ns += pass(bytes, bytes);
  };
  for (const graph::Use& u : g.uses(node)) add(u.geometry);
  for (const graph::Def& d : g.defs(node)) add(d.geometry);
  return ns;
}

/// What is made on the way, and what is used with it.
struct Inner {
  int64_t moved = 0;   ///< Bytes that go by rows, once for each time that they are written or read.
  int64_t used = 0;    ///< Bytes that go by rows: these, and what the epilogue reads and stores with them.
  int64_t whole = 0;   ///< Of operands that are made once.
  int64_t result = 0;  ///< Of the anchor.
  int calls = 1;       ///< On each block.

  Inner(const graph::Graph& g, const graph::Node& node) {
    const graph::Region& region = *node.region;
    size_t operand = 0;
    for (const graph::Use& u : g.uses(anchor_node(region))) {
      if (u.geometry == graph::kNone) continue;
      const size_t number = operand++;
      if (region.prologue[number].empty()) continue;
      (operand_has_rows(g, region, number) ? used : whole) += bytes_of(g.geometry(u.geometry));
      ++calls;
    }
    result = bytes_of(result_of(g, region));
    // What is kept is written to its own memory, which is a pass of the node's.
    const bool kept = kept_result(g, node) != graph::kNone;
    moved = 2 * used + (kept ? result : 2 * result);
    used += kept ? 0 : result;
    for (const graph::Def& d : g.defs(node)) used += bytes_of(g.geometry(d.geometry));
    for (const uint32_t i : region.epilogue.inputs) {
      if (i == graph::kAnchorResult) continue;
      const graph::Geometry& geometry = g.geometry(g.uses(node)[i].geometry);
      if (has_rows(geometry.sizes, result_of(g, region).sizes)) used += bytes_of(geometry);
    }
    calls += !region.epilogue.empty();
  }
};

struct Model {
  const graph::Region& region;
  AnchorShape shape;
  Inner inner;
  Blocks blocks;
  int64_t step = 0;  // of rows, where blocks of any number of them have the same bits

  Model(const graph::Graph& g, const graph::Node& node)
      : region(*node.region), shape(g, region), inner(g, node) {
    const Dims& sizes = result_of(g, region).sizes;
    const bool one_piece = shape.is_whole || sizes.empty() || (!region.over.empty() && region.over[0] == 1);
    blocks.rows = one_piece ? 1 : sizes[0];
    blocks.at_once = std::max<int64_t>(blocks.rows, 1);
    const bool matrices = region.kind == graph::RegionKind::Convolution || sizes.size() == 3;
    blocks.row_work = (matrices ? shape.m : 1) * shape.n * shape.k;
    if (blocks.rows <= 1 || writes_operands(g, node)) return;
    // Tiles of a product have up to six rows; few of them do not pay for what is packed.
    step = matrices ? 1 : 24;
    for (Blocks other = {blocks.rows, step, blocks.row_work}; other.at_once < blocks.rows;
         other.at_once *= 2) {
      if (together(other) < together(blocks)) blocks = other;
    }
    const int64_t wanted = graph::knob(region, "rows", blocks.at_once);
    blocks.at_once = std::clamp(wanted, int64_t{1}, blocks.rows);
  }

  double together(const Blocks& b) const {
    const int64_t count = (b.rows + b.at_once - 1) / b.at_once;
    const int64_t at_once = inner.used / std::max<int64_t>(b.rows, 1) * b.at_once;
    const double ns = kCall + pass(inner.moved, at_once) + 2 * pass(inner.whole, inner.whole) +
                      static_cast<double>(count * inner.calls) * kInnerCall;
    // A batch packs each matrix once, however it is cut.
    const bool batch = shape.batch > 1 && region.kind == graph::RegionKind::Matmul;
    return ns + (batch ? packing() : static_cast<double>(count) * packing());
  }
  double packing() const { return static_cast<double>(shape.packed) * kPackedElement; }
};

}  // namespace

Blocks choose_blocks(const graph::Graph& g, const graph::Node& node) { return Model(g, node).blocks; }

std::vector<graph::Knobs> block_sizes(const graph::Graph& g, const graph::Node& node) {
  constexpr size_t kMost = 6;
  const Model model(g, node);
  std::vector<graph::Knobs> sizes;
  if (model.step == 0) return sizes;
  for (int64_t n = model.step; n < model.blocks.rows && sizes.size() < kMost; n *= 2) {
    if (n != model.blocks.at_once) sizes.push_back({{"rows", n}});
  }
  if (model.blocks.at_once < model.blocks.rows) sizes.push_back({{"rows", model.blocks.rows}});
  return sizes;
}

namespace {

double apart(const graph::Graph& g, const Model& model) {
  double ns = model.packing();
  for (const graph::Node& member : model.region.members) ns += kCall + passes(g, member);
  return ns;
}

}  // namespace

graph::RegionCost cost_of(const graph::Graph& g, const graph::Node& node) {
  const Model model(g, node);
  return {.together = model.together(model.blocks) + passes(g, node), .apart = apart(g, model)};
}

graph::RegionCost cost_in_one_call(const graph::Graph& g, const graph::Node& node, bool has_rest) {
  const Model model(g, node);
  double together = kLibraryCall + passes(g, node) + 2 * pass(model.inner.whole, model.inner.whole);
  if (model.region.kind == graph::RegionKind::Convolution) {
    const graph::Geometry& images = g.geometry(g.uses(anchor_node(model.region))[0].geometry);
    const int64_t bytes = bytes_of(images), made = bytes_of(result_of(g, model.region));
    together += 2 * kInnerCall + pass(bytes, bytes) + 2 * pass(made, made);
  }
  if (has_rest) together += kInnerCall + 2 * pass(model.inner.result, model.inner.result);
  return {.together = together, .apart = apart(g, model)};
}

}  // namespace tenon::cpu
