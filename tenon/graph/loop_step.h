// LoopStep: a region that is one loop over elements or rows, ready to run at addresses. Used by plans, those
// of recorded programs and those of built graphs: what differs between them is who brings the memory. Holds
// no addresses and nothing of the graph.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tenon/graph/graph.h"
#include "tenon/graph/region.h"
#include "tenon/iter/region.h"

namespace tenon::graph {

/// Immutable and safe to run from many threads at once.
class LoopStep {
 public:
  /// An operand.
  struct Place {
    StorageId storage;
    GeometryId geometry;
    int64_t offset;        ///< In bytes, of its elements at index [0, ..., 0].
    bool of_rows = false;  ///< Of an output: it has one value for each row.
  };

  /// Of a region without an anchor member. Throws Error{Shape} or Error{Type} for a region that no loop can
  /// run.
  LoopStep(const Graph& graph, const Node& node);

  std::span<const Place> places() const noexcept { return places_; }  ///< Outputs, then inputs.
  size_t num_outputs() const noexcept { return num_outputs_; }
  size_t num_numbers() const noexcept { return numbers_.size(); }
  const tenon::Region& region() const noexcept { return *region_; }
  /// What runs it: "rows", "simd", "jit" or "interpreter".
  const char* engine() const noexcept;
  const RegionLoop& loop() const noexcept { return *loop_; }

  /// The numbers of its slots, as many as `num_numbers`, from those of the graph. Throws what the region's
  /// members would throw for them.
  void put_numbers(std::span<const Scalar> numbers, uint64_t* slots) const;
  /// `addresses` are those of the places.
  void run(char* const* addresses, const uint64_t* slots) const { loop_->run(addresses, slots); }

 private:
  /// A number slot.
  struct Number {
    uint32_t number = 0;                  ///< Of the graph,
    std::optional<Scalar> constant = {};  ///< or an attribute of a call.
    LoweredNumber rule;
    const char* op = "";
  };
  static Number number_of(const Graph& graph, const Region& region, const NumberSource& source);

  std::unique_ptr<const tenon::Region> region_;
  std::unique_ptr<const RegionLoop> loop_;
  std::vector<Place> places_;
  size_t num_outputs_ = 0;
  std::vector<Number> numbers_;  // by slot
  std::vector<Number> checked_;  // numbers of calls that no slot has, but that the calls would refuse
};

}  // namespace tenon::graph
