// Conversion of elements between any two dtypes over two-dimensional strided blocks.
// Used by the iterator's tiles, by copies and by users' kernels through cpu_kernel. Knows no tensors.
#pragma once

#include "tenon/iter/host.h"

namespace tenon::cpu {

/// The conversion from one dtype to another; null where there is none (quantized, 8-bit floats).
///
/// A complex element becomes a real one by its real part, and true where either part is not zero.
///
/// Integers wrap. A float becomes an integer by truncation toward zero to int64, INT64_MIN when it is NaN or
/// out of range, and wraps to narrower types from there, uint64 too from 2^63 to 2^64; anything but zero is
/// true, NaN included. Integers and float64 become half types by way of float32. Equal dtypes copy bits.
ConvertFn convert_fn(DType from, DType to) noexcept;

}  // namespace tenon::cpu
