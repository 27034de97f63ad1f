// Elements: filling, copying and reading tensors without a dispatcher call, on whatever device they are.
// Used by explicit operators, which run below Autograd and must not enter it again. Knows the device stubs.
#pragma once

#include "tenon/core/tensor.h"

namespace tenon::ops {

/// Writes `src`, broadcast and converted, to `dst`; between devices too. Overlap of the two is taken care of.
/// Throws Error{Shape} when `src` does not broadcast to `dst`, Error{Runtime} when elements of `dst` share a
/// place. `non_blocking`: a device may return before the bytes have arrived.
void copy_elements(const Tensor& dst, const Tensor& src, const char* op, bool non_blocking = false);

/// What copy_elements throws for shapes and strides.
void check_copy(HeaderRef dst, HeaderRef src, const char* op);

/// Throws Error{Value} unless an integer dtype can hold the value, a float truncated. An unsigned one also
/// takes the negative of what it can hold, which wraps (-1 is 255), as in PyTorch.
void check_fits(const Scalar& value, DType dtype, const char* op);

/// Throws Error{NotImplemented} unless has_arithmetic.
void check_arithmetic(DType dtype, const char* op);
/// The same for complex dtypes as well.
void check_real(DType dtype, const char* op);

/// Sets every element; elements may share a place, which gets the one value. Throws Error{Value} when an
/// integer dtype cannot hold the value (see check_fits).
void fill_elements(const Tensor& dst, const Scalar& value, const char* op);

/// Sets every element to the bits of zero.
void zero_elements(const Tensor& dst);

/// The one element of `self`. Throws Error{Runtime} for any other number of elements, or a meta tensor.
Scalar read_scalar(const Tensor& self);

/// A copy with the same dtype, contiguous.
Tensor contiguous_copy(const Tensor& self);
/// `self`, or a contiguous copy of it.
Tensor as_contiguous(const Tensor& self);
/// `self`, or a converted copy.
Tensor as_dtype(const Tensor& self, DType dtype);

/// The real (0) or imaginary (1) parts of a complex tensor, as a view outside autograd.
Tensor part_of(const Tensor& self, int64_t part);
/// A stride of complex elements in elements of their parts. A dimension without elements may have any stride.
constexpr int64_t twice(int64_t stride) noexcept {
  return static_cast<int64_t>(2 * static_cast<uint64_t>(stride));
}

/// A new tensor as the operator empty_like makes it.
Tensor empty_like(const Tensor& self, std::optional<DType> dtype, std::optional<Layout> layout,
                  std::optional<Device> device, std::optional<bool> pin_memory,
                  std::optional<MemoryFormat> memory_format);

/// A contiguous tensor of zeros. Large ones in host memory fresh from the system are not written.
Tensor make_zeros(IntArrayRef sizes, DType dtype, Device device);
/// Zeros of the given sizes, of the dtype and on the device of `like`.
Tensor zeros_on(IntArrayRef sizes, const Tensor& like);

/// Throws Error{Runtime} when two elements of `t`, which `op` is to write, lie in the same place.
void check_no_internal_overlap(HeaderRef t, const char* op);

}  // namespace tenon::ops
