// LoopStep: a region that is one loop over elements or rows, ready to run at addresses. Used by plans, those
// of recorded programs and those of built graphs: what differs between them is who brings the memory. Holds
// no addresses and nothing of the graph.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tenon/graph/engine/slot_number.h"
#include "tenon/graph/ir/graph.h"
#include "tenon/graph/ir/region.h"
#include "tenon/iter/device_loop.h"
#include "tenon/iter/fused_kernel.h"

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

  /// Of a region without an anchor member, on the host or, as launches, on a device that runs expressions.
  /// Throws Error{Shape} or Error{Type} for a region that no loop can run.
  LoopStep(const Graph& graph, const Node& node);

  std::span<const Place> places() const noexcept { return places_; }  ///< Outputs, then inputs.
  size_t num_outputs() const noexcept { return num_outputs_; }
  size_t num_numbers() const noexcept { return numbers_.size(); }
  bool is_over_rows() const noexcept { return region_ && region_->is_over_rows(); }
  /// Why its device does not take it; empty on the host, and where it does.
  std::string refusal() const;
  /// What runs it: "rows", "simd", "jit" or "interpreter"; "launch" on a device.
  const char* engine() const noexcept;
  // Of one on the host.
  const tenon::FusedKernel& region() const noexcept { return *region_; }
  const FusedLoop& loop() const noexcept { return *loop_; }

  /// The numbers of its slots, as many as `num_numbers`, from those of the graph. Throws what the region's
  /// members would throw for them.
  void put_numbers(std::span<const Scalar> numbers, uint64_t* slots) const;
  /// `addresses` are those of the places. On a device it is work of the current stream; what the device
  /// declines after all runs on host copies, or throws Error{NotImplemented} where a member may not.
  void run(char* const* addresses, const uint64_t* slots) const {
    if (loop_) return loop_->run(addresses, slots);
    launch(addresses, slots);
  }

 private:
  void launch(char* const* addresses, const uint64_t* slots) const;

  std::unique_ptr<const tenon::FusedKernel> region_;
  std::unique_ptr<const FusedLoop> loop_;
  // In place of both, on a device.
  std::unique_ptr<const DeviceLoop> launch_;
  Device device_;
  std::string blocked_;  // a member that may not run on host copies
  std::vector<Place> places_;
  size_t num_outputs_ = 0;
  std::vector<SlotNumber> numbers_;  // by slot
  std::vector<SlotNumber> checked_;  // numbers of calls that no slot has, but that the calls would refuse
};

}  // namespace tenon::graph
