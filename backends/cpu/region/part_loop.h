// PartLoop: the expression of a RegionPart, run over some rows of its loop; and the numbers of a region. Used
// by the composed engine and oneDNN's.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tenon/core/tensor.h"
#include "tenon/graph/engine/slot_number.h"
#include "tenon/graph/ir/graph.h"
#include "tenon/graph/ir/region.h"
#include "tenon/iter/fused_kernel.h"

namespace tenon::cpu {

/// Rows [begin, end) of a tensor, along its first dimension.
Tensor rows_of(const Tensor& t, int64_t begin, int64_t end);

/// All numbers that the members of a region take, as their slots take them.
class SlotNumbers {
 public:
  SlotNumbers(const graph::Graph& g, const graph::Region& region);
  /// `numbers` are the graph's. Throws what the member's call throws for a number that does not fit.
  std::vector<uint64_t> values(std::span<const Scalar> numbers) const;

 private:
  std::vector<graph::SlotNumber> numbers_;
};

class PartLoop {
 public:
  /// `loop`: the sizes of what it stores; `over`: as of the region, where the part works on rows.
  PartLoop(const graph::Graph& g, const graph::Node& node, const graph::RegionPart& part, const Dims& loop,
           const Dims& over = {});

  /// Rows [begin, end) of the loop, to `outputs`, which have these rows alone, as `anchor` has. `uses` are
  /// those of the region's node, `numbers` those of the region.
  void run(std::span<const Tensor> outputs, std::span<const Tensor> uses, const Tensor& anchor,
           const std::vector<uint64_t>& numbers, int64_t begin, int64_t end) const;

 private:
  struct Input {
    uint32_t use = graph::kAnchorResult;
    bool has_rows = false;
  };
  std::unique_ptr<const FusedKernel> region_;
  int64_t rows_;
  std::vector<Input> inputs_;
  std::vector<uint32_t> numbers_;
};

}  // namespace tenon::cpu
