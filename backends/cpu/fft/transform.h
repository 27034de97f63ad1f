// Transforms of lines in memory: one line, or as many as a panel has. Used by backends/cpu/ops/fft.cc, which
// walks over tensors. Independent of tensors but for its memory.
#pragma once

#include <utility>

#include "backends/cpu/fft/kernels.h"
#include "backends/cpu/fft/plan.h"
#include "tenon/core/tensor.h"

namespace tenon::cpu {

/// Two pairs of planes: data, and what a pass writes.
template <class T>
class FftSpace {
 public:
  /// For `length` elements of each of `lanes` lines. Throws Error{OutOfMemory}.
  FftSpace(int64_t length, int64_t lanes);

  FftPlanes<T> data() const { return planes_[0]; }
  FftPlanes<T> spare() const { return planes_[1]; }
  void swap() { std::swap(planes_[0], planes_[1]); }
  /// Real parts of the data are imaginary ones, and the other way round.
  void turn() { std::swap(planes_[0].re, planes_[0].im); }

 private:
  Tensor memory_;
  FftPlanes<T> planes_[2];
};

/// Lines of complex or real elements; steps are in parts, whole numbers of either sign.
template <class T>
struct FftLines {
  T* re;
  T* im;              ///< Null for real elements.
  int64_t step;       ///< From an element of a line to the next.
  int64_t lane_step;  ///< From a line to the next.
};

/// The forward transform of the data of a space that has plan.capacity() elements for each of `lanes` lines,
/// 1 or kFftLanes; not scaled. Its result is the data then.
template <class T>
void fft_forward(const FftPlan<T>& plan, FftSpace<T>& space, int64_t lanes);

/// How many of `used` lines: all of a panel with kFftLanes lanes, or one with 1.
struct FftBundle {
  int64_t lanes, used;
};

/// Lines of a bundle; `space` has plan.capacity() elements for each of its lanes.
template <class T>
void fft_complex(const FftPlan<T>& plan, FftSpace<T>& space, FftLines<const T> in, FftLines<T> out,
                 FftBundle bundle, bool forward, T scale);
/// The same of real lines: n real elements to n / 2 + 1 complex ones, or with `whole` to all n.
template <class T>
void fft_from_real(const RealFftPlan<T>& plan, FftSpace<T>& space, int64_t n, FftLines<const T> in,
                   FftLines<T> out, FftBundle bundle, bool whole, T scale);
/// n / 2 + 1 complex elements to n real ones; imaginary parts of the first and of element n / 2 are ignored.
template <class T>
void fft_to_real(const RealFftPlan<T>& plan, FftSpace<T>& space, int64_t n, FftLines<const T> in,
                 FftLines<T> out, FftBundle bundle, T scale);

}  // namespace tenon::cpu
