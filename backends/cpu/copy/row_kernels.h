// What copies and conversions are made of: kernels over dense rows, and between dense rows and strided ones.
// Used by convert.cc, copy.cc and fills, and by tests that compare instruction sets. Knows no tensors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/cpu_target.h"

namespace tenon::cpu {

/// One step of a conversion: its source and its result. U8, I8, ... are dtypes; Bool results are 0 and 1.
/// Integers widen and wrap, floats round to the nearest (ties to even), and a float becomes the low bits of
/// what truncation to int64 gives, where NaN and what is out of range give INT64_MIN.
enum class ConversionStep : uint8_t {
  U8_Bool,
  I16_Bool,
  I32_Bool,
  I64_Bool,
  F32_Bool,
  F64_Bool,
  U8_I32,
  I8_I32,
  I16_I32,
  I32_I8,
  I32_I16,
  I32_I64,
  I64_I32,
  I32_F32,
  I32_F64,
  I64_F32,
  I64_F64,
  F16_F32,
  BF16_F32,
  F32_F16,
  F32_BF16,
  F32_F64,
  F64_F32,
  F32_I32,
  F64_I32,
  F64_I64,
};
inline constexpr size_t kNumConversionSteps = static_cast<size_t>(ConversionStep::F64_I64) + 1;

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
  using Transpose = void (*)(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, size_t rows,
                             size_t columns);
  using SplitPairs = void (*)(void* first, void* second, const void* src, size_t n);
  using JoinPairs = void (*)(void* dst, const void* first, const void* second, size_t n);
  using Stream = void (*)(void* dst, const void* src, size_t bytes);

  /// n elements, one beside the other on both sides.
  Step steps[kNumConversionSteps];
  /// n elements `stride` bytes apart, which may be negative, to one beside the other.
  Pack pack[kNumElementSizes];
  /// n elements beside each other to `stride` bytes apart.
  Pack unpack[kNumElementSizes];
  /// n times one element.
  Fill fill[kNumElementSizes];
  /// Element c of row r at `src` becomes element r of row c at `dst`; rows are strides (in bytes) apart,
  /// their elements beside each other.
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
