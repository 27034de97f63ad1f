// Conversion of elements between any two dtypes over two-dimensional strided blocks.
// Used by the iterator's tiles, by copies and by users' kernels through cpu_kernel. Knows no tensors.
#pragma once

#include <cstdint>

#include "tenon/core/dtype.h"

namespace tenon::cpu {

/// Strides in bytes of a block of `n1` rows of `n0` elements: `inner` from element to element, `outer` from
/// row to row.
struct BlockStrides {
  int64_t inner = 0;
  int64_t outer = 0;
};

/// Reads n1 x n0 elements at `src` and stores them converted at `dst`; the two do not overlap unless they are
/// the same elements of the same size. Any stride, negative and zero included.
using ConvertFn = void (*)(void* dst, BlockStrides dst_strides, const void* src, BlockStrides src_strides,
                           int64_t n0, int64_t n1);

/// The conversion from one dtype to another; null where there is none (quantized, 8-bit floats).
///
/// A complex element becomes a real one by its real part, and true where either part is not zero.
///
/// Integers wrap. A float becomes an integer by truncation toward zero to int64, INT64_MIN when it is NaN or
/// out of range, and wraps to narrower types from there; anything but zero is true, NaN included. Integers
/// and float64 become half types by way of float32. Equal dtypes copy bits.
ConvertFn convert_fn(DType from, DType to) noexcept;

}  // namespace tenon::cpu
