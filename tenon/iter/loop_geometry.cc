#include "tenon/iter/loop_geometry.h"

#include <fmt/core.h>

#include <algorithm>

#include "tenon/core/error.h"

namespace tenon::detail {

void LoopGeometry::place(const expr::Expression& e, std::span<const FusedOperand> outputs,
                         std::span<const FusedOperand> inputs) {
  const IntArrayRef sizes = outputs[0].sizes;
  for (const FusedOperand& o : outputs) {
    TENON_CHECK(o.sizes == sizes, Shape,
                fmt::format("region: outputs of shapes {} and {}", to_string(sizes), to_string(o.sizes)));
  }
  const size_t ndim = sizes.size();
  shape_.resize(ndim);
  for (size_t d = 0; d < ndim; ++d) {
    shape_[d] = sizes[ndim - 1 - d];
    numel_ *= shape_[d];
  }
  slots_.resize(size_t{e.num_outputs} + e.num_inputs);
  strides_.resize(std::max<size_t>(ndim, 1) * slots_.size());
  if (numel_ == 0) return;
  add_slots(outputs, e.outputs(), 0, 0);
  add_slots(inputs, e.inputs(), e.num_outputs, outputs.size());
  sort_dimensions();
  reverse_dimensions();
  merge_dimensions();
}

void LoopGeometry::add_slots(std::span<const FusedOperand> operands, std::span<const expr::Slot> slots,
                             size_t first, size_t before) {
  for (size_t k = 0; k < slots.size(); ++k) {
    const expr::Slot& slot = slots[k];
    const FusedOperand& o = operands[slot.operand];
    TENON_CHECK(o.dtype == slot.dtype, Type,
                fmt::format("region: operand {} is {}, expected {}", before + slot.operand, name(o.dtype),
                            name(slot.dtype)));
    const auto whole = static_cast<int64_t>(item_size(o.dtype)),
               item = static_cast<int64_t>(item_size(real_dtype(o.dtype)));
    slots_[first + k] = {.operand = static_cast<uint16_t>(before + slot.operand),
                         .offset = slot.part == expr::Part::Im ? item : 0,
                         .item = item,
                         .used = before == 0 || slot.node != expr::kNoNode};
    const size_t own = o.sizes.size();
    bool fits = own <= shape_.size();
    for (size_t d = 0; fits && d < own; ++d) {
      const int64_t size = o.sizes[own - 1 - d];
      fits = size == shape_[d] || size == 1;
      // Of one element strides may be any numbers.
      if (size != 1) stride(d, first + k) = o.strides[own - 1 - d] * whole;
    }
    TENON_CHECK(fits, Shape,
                fmt::format("region: operand {} of shape {} does not broadcast to the outputs' shape",
                            before + slot.operand, to_string(o.sizes)));
  }
}

// As TensorIterator orders them: by the strides of the first operand that tells, innermost first.
void LoopGeometry::sort_dimensions() {
  const size_t ndim = shape_.size();
  const auto compare = [&](size_t a, size_t b) {
    for (size_t i = 0; i < slots_.size(); ++i) {
      const int64_t sa = std::abs(stride(a, i)), sb = std::abs(stride(b, i));
      if (sa == 0 || sb == 0) continue;
      if (sa != sb) return sa < sb ? -1 : 1;
      if (shape_[a] > shape_[b]) return 1;
    }
    return 0;
  };
  for (size_t i = 1; i < ndim; ++i) {
    size_t at = i;
    for (size_t before = i; before-- > 0;) {
      const int c = compare(before, at);
      if (c < 0) break;
      if (c == 0) continue;
      std::swap(shape_[before], shape_[at]);
      for (size_t k = 0; k < slots_.size(); ++k) std::swap(stride(before, k), stride(at, k));
      at = before;
    }
  }
}

void LoopGeometry::reverse_dimensions() {
  for (size_t d = 0; d < shape_.size(); ++d) {
    bool backwards = false, forwards = false;
    for (size_t i = 0; i < slots_.size(); ++i) {
      backwards |= stride(d, i) < 0;
      forwards |= stride(d, i) > 0;
    }
    if (!backwards || forwards) continue;
    for (size_t i = 0; i < slots_.size(); ++i) {
      slots_[i].offset += stride(d, i) * (shape_[d] - 1);
      stride(d, i) = -stride(d, i);
    }
  }
}

// Dimensions of one element go, and two become one where one stride serves both in every operand.
void LoopGeometry::merge_dimensions() {
  size_t count = 0;
  for (size_t d = 0; d < shape_.size(); ++d) {
    if (shape_[d] == 1) continue;
    bool merges = count > 0;
    for (size_t i = 0; merges && i < slots_.size(); ++i)
      merges = shape_[count - 1] * stride(count - 1, i) == stride(d, i);
    if (merges) {
      shape_[count - 1] *= shape_[d];
      continue;
    }
    shape_[count] = shape_[d];
    for (size_t i = 0; i < slots_.size(); ++i) stride(count, i) = stride(d, i);
    ++count;
  }
  shape_.resize(std::max<size_t>(count, 1));
  if (count > 0) return;
  shape_[0] = 1;
  for (size_t i = 0; i < slots_.size(); ++i) stride(0, i) = slots_[i].item;
}

}  // namespace tenon::detail
