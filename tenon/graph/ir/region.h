// Region: nodes of a graph that run as one. Made by the fuser, run by engines. A region of pointwise
// operators and reductions is one typed expression, its body; one around an anchor (a matrix product, a
// convolution) has a typed expression before each of the anchor's operands and one after its result. These
// are its parts, each of which may be empty.
//
// What runs a region sees expressions and slots. Its members stay what they were: for reports, for the line
// that an error names, and for running them one by one.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/expr/expression.h"
#include "tenon/graph/ir/graph.h"
#include "tenon/graph/ir/lowering.h"

namespace tenon::graph {

enum class RegionKind : uint8_t {
  Flat,    ///< Each element by itself.
  Rows,    ///< Reductions over the last dims.
  Matmul,  ///< Around an anchor, as Convolution is.
  Convolution,
};
inline constexpr int kNumRegionKinds = 4;
/// "flat", "rows", "matmul", "convolution": as texts have it.
std::string_view name(RegionKind kind) noexcept;
/// The operator of a region's node, an entry of its own for each kind: "tenon::region_matmul(Tensor[]
/// inputs, Scalar[] numbers) -> Tensor[]" is apart from aten::mm.
OperatorHandle region_operator(RegionKind kind);
/// The kind of the regions whose nodes have this operator; nothing for other operators.
std::optional<RegionKind> region_kind(OperatorHandle op);
/// By its full name, "aten::add.Tensor"; those of regions are there, too.
std::optional<OperatorHandle> find_operator(std::string_view full_name);

/// A number that a region takes: one of a member's call. Numbers that the joined expression no longer uses
/// are checked, too, as the call would.
struct NumberSource {
  uint32_t member = 0;
  uint32_t slot = 0;     ///< Of the member's own expression.
  LoweredArgument from;  ///< Which follows from both.
};

/// The input of an epilogue that is the anchor's result.
inline constexpr uint32_t kAnchorResult = kNone;

/// A prologue, body or epilogue of a region: a typed expression with what its operands and numbers are.
struct RegionPart {
  expr::ExpressionPtr expression;  ///< Null: the part is empty.
  /// Of each input operand (both parts of a complex value are one), the place among the uses of the region's
  /// node; kAnchorResult in an epilogue.
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> numbers;  ///< Of each number slot, the place among the region's numbers.
  /// Of each output operand, the place among the defs of the region's node. In a prologue: none, its one
  /// output is the anchor's operand.
  std::vector<uint32_t> outputs;

  bool empty() const noexcept { return !expression; }
  RegionPart copy() const;
};
/// Settings of an engine, each with its name: {"rows", 24}.
using Knobs = std::vector<std::pair<std::string, int64_t>>;

struct Region {
  std::string name;  ///< "region_3_mul_add_relu": unique in its graph.
  RegionKind kind = RegionKind::Flat;
  /// The member that is the anchor of a matrix product or convolution; kNone in other regions.
  uint32_t anchor_member = kNone;
  /// 1 for the dimensions that make up a row, where the body or the epilogue works on rows; else empty.
  Dims over;
  /// One for each tensor operand of the anchor.
  std::vector<RegionPart> prologue;
  RegionPart body;  ///< Of regions without an anchor member, whose other parts are empty.
  RegionPart epilogue;
  std::vector<NumberSource> numbers;  ///< Of all members, in order.
  /// What runs it, by name. Empty: the first engine that takes it, or, around an anchor, the one whose model
  /// says the least.
  std::string engine;
  Knobs knobs;  ///< Those of the engine that are not as it chooses them itself.
  /// The nodes that it was made of, in order, none of them a region. Values that members alone write and read
  /// are in no def of the region's node.
  std::vector<Node> members;

  RegionPtr copy() const;
};

/// The calls of a graph in order, those of a region's members in its place.
template <class G, class F>
void each_call(G& graph, F&& f) {
  for (auto& node : graph.nodes) {
    if (!node.region) {
      f(node);
      continue;
    }
    for (auto& member : node.region->members) f(member);
  }
}

/// That of a region, or else `otherwise`.
int64_t knob(const Region& region, std::string_view name, int64_t otherwise);
/// Throws Error{NotImplemented} for a knob that is none of these.
void check_knobs(const Region& region, std::initializer_list<std::string_view> known);

}  // namespace tenon::graph
