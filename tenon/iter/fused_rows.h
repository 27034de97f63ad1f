// RowsLoop: a region over rows and operands of known geometry, as what runs rows takes it. Internal to
// FusedLoop.
#pragma once

#include <memory>
#include <vector>

#include "tenon/iter/fused_kernel.h"
#include "tenon/iter/host.h"
#include "tenon/iter/rows_launch.h"

namespace tenon::detail {

class RowsLoop {
 public:
  RowsLoop(const FusedKernel& region, std::span<const FusedOperand> outputs,
           std::span<const FusedOperand> inputs);

  void run(char* const* addresses, const uint64_t* numbers) const;
  int64_t numel() const noexcept;

 private:
  struct Place {
    uint16_t operand;  // of addresses
    int64_t offset;    // of the part, in bytes
    bool of_row;
  };

  void find_sizes(std::span<const FusedOperand> operands, std::span<const expr::Slot> slots);
  void add_slots(std::span<const FusedOperand> operands, std::span<const expr::Slot> slots, size_t before);
  bool stands_for_rows(IntArrayRef sizes, bool kept) const;

  const FusedKernel& region_;
  Dims sizes_;
  std::vector<int64_t> strides_;       // by slot, a list for each
  std::vector<RowsOperand> operands_;  // by slot, without addresses; inputs first
  std::vector<Place> places_;          // the same
  std::unique_ptr<const HostRows> prepared_;
};

}  // namespace tenon::detail
