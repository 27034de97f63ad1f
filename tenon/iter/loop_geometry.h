// LoopGeometry: the places of a flat expression's slots in a loop over operands of known geometry, which has
// as few dimensions as there can be. What loops of regions have in common, on the host (FusedLoop) and on
// devices (DeviceLoop).
#pragma once

#include <span>

#include "tenon/core/dims.h"
#include "tenon/core/dtype.h"
#include "tenon/expr/expression.h"

namespace tenon {

/// The layout of an operand's elements; as in a tensor's header.
struct FusedOperand {
  DType dtype;
  IntArrayRef sizes, strides;
};

namespace detail {

class LoopGeometry {
 protected:
  struct SlotPlace {
    uint16_t operand;  // outputs, then inputs
    int64_t offset;    // in bytes: of the part, and of dimensions that are walked backwards
    int64_t item;
    bool used;  // by the expression
  };

  /// Throws Error{Shape} where the operands do not fit each other, Error{Type} for another dtype than the
  /// slot's.
  void place(const expr::Expression& expression, std::span<const FusedOperand> outputs,
             std::span<const FusedOperand> inputs);

  int64_t stride(size_t d, size_t slot) const noexcept { return strides_[d * slots_.size() + slot]; }
  int64_t& stride(size_t d, size_t slot) noexcept { return strides_[d * slots_.size() + slot]; }
  bool dense(size_t slot) const noexcept { return stride(0, slot) == slots_[slot].item; }

  int64_t numel_ = 1;
  SmallVector<SlotPlace, 8> slots_;   // outputs first
  Dims shape_;                        // of the loop, innermost first
  SmallVector<int64_t, 24> strides_;  // [dimension][slot], in bytes

 private:
  void add_slots(std::span<const FusedOperand> operands, std::span<const expr::Slot> slots, size_t first,
                 size_t before);
  void sort_dimensions();
  void reverse_dimensions();
  void merge_dimensions();
};

}  // namespace detail
}  // namespace tenon
