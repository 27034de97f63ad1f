// What copies and conversions are made of: kernels over dense rows, and between dense rows and strided ones.
// Used by convert.cc, copy.cc and fills, and by tests that compare instruction sets. Knows no tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "backends/cpu/cpu_target.h"
#include "tenon/core/dtype.h"

namespace tenon::cpu {

/// The dtypes whose elements are real numbers of a C++ type: tables of conversions have them in this order.
inline constexpr DType kRealDTypes[] = {DType::Bool,    DType::UInt8,  DType::Int8,    DType::Int16,
                                        DType::Int32,   DType::Int64,  DType::Float16, DType::BFloat16,
                                        DType::Float32, DType::Float64};
inline constexpr size_t kNumRealDTypes = std::size(kRealDTypes);
/// The place of a dtype in the list; kNumRealDTypes for any other.
constexpr size_t real_index(DType t) noexcept {
  size_t i = 0;
  while (i < kNumRealDTypes && kRealDTypes[i] != t) ++i;
  return i;
}

/// Whether a kernel converts from one dtype to the other; other pairs take several.
constexpr bool converts_directly(DType from, DType to) noexcept {
  if (from == to) return from == DType::Bool;
  if (item_size(from) == 1 && item_size(to) == 1) return from == DType::Bool || to == DType::Bool;
  if (item_size(from) <= 4 && item_size(to) <= 4) return true;
  if (to == DType::Bool) return true;
  if (item_size(from) < 4 || item_size(to) < 4) return false;
  return !(from == DType::Float32 && to == DType::Int64);
}

/// Elements are 1, 2, 4, 8 or 16 bytes long; a table of five has its kernels in that order.
inline constexpr size_t kNumElementSizes = 5;
/// 0 for 1 byte, 4 for 16.
constexpr size_t element_size_index(int64_t nbytes) noexcept {
  size_t i = 0;
  while (nbytes >> (i + 1) != 0) ++i;
  return i;
}

/// No pointer needs an alignment. Source and destination do not overlap unless they are the same elements of
/// the same size.
struct RowKernels {
  using Step = void (*)(void* dst, const void* src, size_t n);
  using Pack = void (*)(void* dst, const void* src, int64_t stride, size_t n);
  using Fill = void (*)(void* dst, const void* value, size_t n);
  using Spread = void (*)(void* dst, const void* src, int64_t stride, size_t n, size_t rows);
  using Transpose = void (*)(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, size_t rows,
                             size_t columns);
  using SplitPairs = void (*)(void* first, void* second, const void* src, size_t n);
  using JoinPairs = void (*)(void* dst, const void* first, const void* second, size_t n);
  using Stream = void (*)(void* dst, const void* src, size_t bytes);

  /// n elements, contiguous on both sides, from the dtype of the first index to that of the second;
  /// null where `converts_directly` says so. Integers widen and wrap, floats round to the nearest (ties to
  /// even), and a float becomes the low bits of what truncation to int64 gives, where NaN and what is out of
  /// range give INT64_MIN. Any byte but 0 is true.
  Step convert[kNumRealDTypes][kNumRealDTypes];
  /// n elements `stride` bytes apart, which may be negative, to contiguous ones.
  Pack pack[kNumElementSizes];
  /// n contiguous elements to `stride` bytes apart.
  Pack unpack[kNumElementSizes];
  /// n times one element.
  Fill fill[kNumElementSizes];
  /// Rows of n elements, one after the other: row r is n times the element at src + r * stride.
  Spread spread[kNumElementSizes];
  /// Element c of row r at `src` becomes element r of row c at `dst`; rows are strides (in bytes) apart,
  /// their elements contiguous.
  Transpose transpose[kNumElementSizes];
  /// n pairs of elements of 4 and of 8 bytes to two rows, and the reverse.
  SplitPairs split_pairs[2];
  JoinPairs join_pairs[2];
  /// Copies to memory past the caches; lines that `dst` begins or ends within go through them.
  Stream stream;
  /// Before another thread may read what was streamed.
  void (*end_stream)();
};

/// Those of one instruction set; the machine must have it.
const RowKernels& row_kernels(CpuTarget target) noexcept;
/// Those that this process runs.
const RowKernels& row_kernels();

}  // namespace tenon::cpu
