// AnchorOperands: the tensor operands of a region's anchor; a prologue may make some. Used by the
// engines of regions around anchors.
#pragma once

#include <memory>
#include <vector>

#include "backends/cpu/region/part_loop.h"
#include "tenon/graph/engine/engine.h"

namespace tenon::cpu {

class AnchorOperands {
 public:
  AnchorOperands(const graph::Graph& g, const graph::Node& node);

  struct Operand {
    uint32_t use = graph::kNone;  ///< Among those of the region's node, where no prologue makes it.
    std::unique_ptr<const PartLoop> prologue;
    DType dtype = DType::Float32;
    Dims sizes, strides;
    int64_t offset = 0;
    size_t nbytes = 0;  ///< Of its storage.
  };
  size_t size() const noexcept { return all_.size(); }
  const Operand& operator[](size_t i) const noexcept { return all_[i]; }

  /// All of one, made where a prologue makes it, as the calls of the prologue would leave it: a library takes
  /// it or leaves it by its strides. `numbers` are the region's.
  Tensor whole(size_t i, const graph::RegionProgram::Arguments& arguments,
               const std::vector<uint64_t>& numbers) const;

 private:
  std::vector<Operand> all_;
};

}  // namespace tenon::cpu
