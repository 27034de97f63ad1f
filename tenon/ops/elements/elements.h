// Elements: filling, copying and reading tensors on any device without a call of the dispatcher. Used by
// operators with hand-written bodies, which run below Autograd and must not enter it again. Knows the device
// stubs.
#pragma once

#include "tenon/core/tensor.h"

namespace tenon::ops {

/// Copies `src`, broadcast and converted, to `dst`, also between devices. The two may overlap. Throws
/// Error{Shape} if `src` does not broadcast to `dst`, and Error{Runtime} if elements of `dst` share memory.
/// With `non_blocking`, a device may return before the bytes have arrived.
void copy_elements(const Tensor& dst, const Tensor& src, const char* op, bool non_blocking = false);

/// Throws what copy_elements throws for shapes and strides, and copies nothing.
void check_copy(HeaderRef dst, HeaderRef src, const char* op);

/// Warns, once in the process, that a conversion drops imaginary parts. To bool it does not: a number is true
/// where either part is.
void warn_of_dropped_parts(DType from, DType to);

/// Says that `op` is not implemented for a dtype without arithmetic, which no device makes up for.
[[noreturn]] void refuse_arithmetic(DType dtype, Device device, const char* op);
/// Throws Error{NotImplemented} unless has_arithmetic.
inline void check_arithmetic(DType dtype, Device device, const char* op) {
  if (!has_arithmetic(dtype)) [[unlikely]]
    refuse_arithmetic(dtype, device, op);
}
inline void check_arithmetic(HeaderRef t, const char* op) { check_arithmetic(t.dtype(), t.device(), op); }
/// Throws Error{NotImplemented} for dtypes without arithmetic and for complex dtypes.
void check_real(HeaderRef t, const char* op);

/// Sets every element; elements may share memory. Throws Error{Value} if an integer dtype cannot hold the
/// value (see check_fits).
void fill_elements(const Tensor& dst, const Scalar& value, const char* op);

/// Sets every element to the bits of zero.
void zero_elements(const Tensor& dst);

/// The only element of `self`. Throws Error{Runtime} for any other number of elements, and for a meta tensor.
Scalar read_scalar(const Tensor& self);

/// A copy with the same dtype, contiguous.
Tensor contiguous_copy(const Tensor& self);
/// `self`, or a contiguous copy of it.
Tensor as_contiguous(const Tensor& self);
/// `self`, or a converted copy.
Tensor as_dtype(const Tensor& self, DType dtype);
/// `self`, or a copy on `device`.
Tensor on_device(const Tensor& self, Device device);

/// The real (0) or imaginary (1) parts of a complex tensor, as a view outside autograd.
Tensor part_of(const Tensor& self, int64_t part);
/// A stride in complex elements, converted to a stride in their parts. It may wrap: a dimension without
/// elements may have any stride.
constexpr int64_t twice(int64_t stride) noexcept {
  return static_cast<int64_t>(2 * static_cast<uint64_t>(stride));
}

/// A new tensor, as the operator empty_like makes it.
Tensor empty_like(const Tensor& self, std::optional<DType> dtype, std::optional<Layout> layout,
                  std::optional<Device> device, std::optional<bool> pin_memory,
                  std::optional<MemoryFormat> memory_format);

/// A contiguous tensor of zeros. Large ones in host memory fresh from the system are not written.
Tensor make_zeros(IntArrayRef sizes, DType dtype, Device device);
/// Zeros of the given sizes, of the dtype and on the device of `like`.
Tensor zeros_on(IntArrayRef sizes, const Tensor& like);

/// Throws Error{Runtime} if two elements of `t`, which `op` is about to write, share memory.
void check_no_internal_overlap(HeaderRef t, const char* op);

/// `self` with another dtype and geometry, counted in elements of that dtype; it shares history as any view
/// does.
Tensor retyped_view(const Tensor& self, DType dtype, IntArrayRef sizes, IntArrayRef strides, int64_t offset);

}  // namespace tenon::ops
