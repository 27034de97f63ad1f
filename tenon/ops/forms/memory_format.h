// Layouts, memory formats and pinned memory of new tensors. Used by the shape functions of factories and
// copies.
#pragma once

#include <optional>

#include "tenon/core/scalar.h"
#include "tenon/ops/forms/output_spec.h"

namespace tenon::ops::shape {

/// Throws unless the layout is strided and pinned memory is asked of the host alone; then outputs are in it.
void set_memory(OutputSpecs& out, std::optional<Layout> layout, bool pin_memory, Device device,
                const char* op);
inline void check_memory(OutputSpecs& out, std::optional<Layout> layout, std::optional<bool> pin_memory,
                         Device device, const char* op) {
  const bool pins = pin_memory.value_or(false);
  if (layout.value_or(Layout::Strided) != Layout::Strided || pins) [[unlikely]]
    set_memory(out, layout, pins, device, op);
}

/// The strides of a channels-last format. Throws Error{Shape} unless the sizes have the format's number of
/// dimensions.
Dims channels_last_strides(IntArrayRef sizes, MemoryFormat format, const char* op);
/// The same of images (4 dimensions) or volumes (5).
Dims channels_last_strides(IntArrayRef sizes);
inline bool is_channels_last(MemoryFormat format) {
  return format == MemoryFormat::ChannelsLast || format == MemoryFormat::ChannelsLast3d;
}

/// Whether dimension 1 of a batch of images or volumes has the smallest stride, as PyTorch's
/// suggest_memory_format says.
bool lies_channels_last(IntArrayRef sizes, IntArrayRef strides);

/// Sets output 0 to the sizes of `self` in a memory format.
void set_in_format(OutputSpecs& out, HeaderRef self, DType dtype, MemoryFormat format, const char* op,
                   Elements elements = Elements::Any);

/// Whether filling with the value is the same as allocating zeros.
inline bool is_zero(const Scalar& value) { return value.is_integral() && value.to_int() == 0; }
inline Elements elements_of(const Scalar& value) { return is_zero(value) ? Elements::Zero : Elements::Any; }

}  // namespace tenon::ops::shape
