// How the composed engine cuts a region around an anchor into blocks of rows: of the first dimension of the
// result, which has rows of a product, matrices of a batch or images of a convolution. Used by composed.cc,
// which runs the blocks, and by cost.cc, which chooses their size.
#pragma once

#include <cstdint>

#include "tenon/graph/ir/graph.h"
#include "tenon/graph/ir/region.h"

namespace tenon::cpu {

/// Bytes that stay in the second-level cache next to what passes through it; and those that stay in part.
inline constexpr int64_t kHotBytes = int64_t{1} << 18, kWarmBytes = int64_t{1} << 20;

struct Blocks {
  int64_t rows = 1;  ///< Of the result.
  /// Of a block: all where that is faster, and where the bits of some rows alone
  /// might not be those of the whole call.
  int64_t at_once = 1;
  /// Multiplications and additions of a row.
  int64_t row_work = 0;
};

/// What an anchor multiplies; one matrix for each image of a convolution.
struct AnchorShape {
  AnchorShape(const graph::Graph& g, const graph::Region& region);

  int64_t m = 1, n = 1, k = 1;
  int64_t batch = 1;
  int64_t packed = 0;     ///< Elements of the operand that each block packs again.
  bool is_whole = false;  ///< Blocks of rows are not for it.
};

const graph::Node& anchor_node(const graph::Region& region);
const graph::Geometry& result_of(const graph::Graph& g, const graph::Region& region);
/// Whether operand number `operand` of the anchor is cut with the rows of the result.
bool operand_has_rows(const graph::Graph& g, const graph::Region& region, size_t operand);
/// Whether a tensor of these sizes has a row of its own for each row of a loop, rather than one for all.
bool has_rows(const Dims& sizes, const Dims& loop);
/// Whether a region writes what its anchor, or what makes its operands, reads: then the anchor is done before
/// anything is written.
bool writes_operands(const graph::Graph& g, const graph::Node& node);
/// The place among the node's defs of one that is the anchor's result as it is: the anchor can write it
/// there. kNone where there is none, or where that memory is also an input or an earlier value.
uint32_t kept_result(const graph::Graph& g, const graph::Node& node);
/// A region's epilogue without what stores def number `kept` (kNone: all of it).
graph::RegionPart epilogue_without(const graph::Region& region, uint32_t kept);

}  // namespace tenon::cpu
