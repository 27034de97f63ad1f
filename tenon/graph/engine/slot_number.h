// SlotNumber: a number of a region as a slot of its expression takes it, from one run to the next. Used by
// what runs regions. Holds nothing of the graph.
#pragma once

#include <optional>
#include <span>

#include "tenon/graph/ir/lowering.h"
#include "tenon/graph/ir/region.h"

namespace tenon::graph {

class SlotNumber {
 public:
  SlotNumber(const Graph& graph, const Region& region, const NumberSource& source);

  /// `numbers` are the graph's. Throws what the member's call throws for a number that does not fit.
  void put(uint64_t& slot, std::span<const Scalar> numbers) const {
    put_number(slot, rule_, constant_ ? *constant_ : numbers[number_], op_);
  }

 private:
  uint32_t number_ = 0;             // of the graph,
  std::optional<Scalar> constant_;  // or an attribute of a call
  LoweredNumber rule_;
  const char* op_;
};

}  // namespace tenon::graph
