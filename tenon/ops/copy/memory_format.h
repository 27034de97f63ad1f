// How new tensors lie in memory: layouts, memory formats, pinned memory.
// Used by the shape functions of factories and copies.
#pragma once

#include <optional>

#include "tenon/core/scalar.h"
#include "tenon/ops/forms/output_spec.h"

namespace tenon::ops::shape {

[[noreturn]] void refuse_memory(std::optional<Layout> layout, Device device, const char* op);
/// Throws Error{NotImplemented} unless a strided tensor is asked for, in memory that `device` has.
inline void check_memory(std::optional<Layout> layout, std::optional<bool> pin_memory, Device device,
                         const char* op) {
  if (layout.value_or(Layout::Strided) != Layout::Strided || pin_memory.value_or(false)) [[unlikely]]
    refuse_memory(layout, device, op);
}

/// Strides of a channels-last format. Throws Error{Shape} unless it has that many dimensions.
Dims channels_last_strides(IntArrayRef sizes, MemoryFormat format, const char* op);
bool is_channels_last(MemoryFormat format);

/// Output 0 has the sizes of `self`, in a memory format.
void set_in_format(OutputSpecs& out, HeaderRef self, DType dtype, MemoryFormat format, const char* op,
                   Elements elements = Elements::Any);

/// Whether filling with it is the same as allocating zeros.
inline bool is_zero(const Scalar& value) { return value.is_integral() && value.to_int() == 0; }
inline Elements elements_of(const Scalar& value) { return is_zero(value) ? Elements::Zero : Elements::Any; }

}  // namespace tenon::ops::shape
