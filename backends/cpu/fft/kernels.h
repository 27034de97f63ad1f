// The loops of transforms over planes of real and imaginary parts. Compiled once per instruction set; used by
// transform.cc, and by tests that compare instruction sets. Each element's operations are the same in every
// instruction set, in a row alone and in a panel of rows.
#pragma once

#include "backends/cpu/cpu_target.h"
#include "backends/cpu/fft/plan.h"

namespace tenon::cpu {

/// Real and imaginary parts.
template <class T>
struct FftPlanes {
  T* re;
  T* im;
};

template <class T>
struct FftKernels {
  /// A pass from `in` to `out`: element (k, b, i) of [groups, radix, inner] to (c, k, i) of
  /// [radix, groups, inner], each of `lanes` parts: 1 or kFftLanes.
  void (*pass)(const FftPass& pass, const T* table, FftPlanes<const T> in, FftPlanes<T> out, int64_t lanes);
  /// Rows of n pairs, `step` parts apart in memory, to planes, where they are `to_step` apart.
  void (*split)(const T* from, int64_t step, FftPlanes<T> to, int64_t to_step, int64_t n, int64_t rows);
  /// The reverse; real parts times `real`, imaginary ones times `imag`.
  void (*join)(FftPlanes<const T> from, int64_t from_step, T* to, int64_t step, int64_t n, int64_t rows,
               T real, T imag);
  /// to = from * w, where w has n values: `table` has real parts, then from `step` on imaginary ones.
  void (*multiply)(FftPlanes<const T> from, const T* table, int64_t step, FftPlanes<T> to, int64_t n,
                   int64_t lanes);
  /// One row of a panel times w = a * b, with kFftLanes values of a, real parts then imaginary ones, and one
  /// b.
  void (*multiply_panel)(FftPlanes<const T> from, const T* a, const T* b, FftPlanes<T> to);
  /// kFftLanes rows of as many elements, transposed.
  void (*transpose)(const T* from, T* to);
  /// The transform of 2 n real numbers from that of their pairs: n values to n + 1.
  void (*twist)(FftPlanes<const T> from, const T* table, FftPlanes<T> to, int64_t n, int64_t lanes);
  /// The reverse, of n + 1 values to n, of twice the size; imaginary parts of the first and the last are 0.
  void (*untwist)(FftPlanes<const T> from, const T* table, FftPlanes<T> to, int64_t n, int64_t lanes);
};

/// Those that this process runs.
template <class T>
const FftKernels<T>& fft_kernels();

}  // namespace tenon::cpu
