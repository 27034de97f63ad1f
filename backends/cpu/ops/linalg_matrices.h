// The driver of linear algebra: batches of matrices in tensors of any stride, read and written as lanes of
// small ones (linalg/lanes.h) or as one large one (linalg/blocked.h), several threads at work on a batch.
// Used by the kernels of this folder that are named linalg_*.
#pragma once

#include <algorithm>
#include <complex>
#include <memory>
#include <string>

#include "backends/cpu/linalg/blocked.h"
#include "backends/cpu/linalg/lanes.h"
#include "backends/cpu/ops/strided.h"
#include "tenon/core/parallel.h"
#include "tenon/core/tensor.h"

namespace tenon::cpu {

/// Matrices up to this order run in lanes, however many there are: the bits of one do not depend on the
/// batch.
inline constexpr int64_t kSmallOrder = 32;

/// A batch of matrices. T is float or double, the type of the parts; strides count Ts.
template <class T>
class Matrices {
 public:
  /// The last two dimensions of `t`; of a batch that `batch`, if given, broadcasts.
  explicit Matrices(const Tensor& t) : Matrices(t, Dims(t.sizes().data(), t.sizes().size() - 2), 2) {}
  Matrices(const Tensor& t, const Dims& batch) : Matrices(t, batch, 2) {}
  /// The last dimension of `t`, as columns.
  static Matrices vectors(const Tensor& t, const Dims& batch) { return Matrices(t, batch, 1); }
  static Matrices vectors(const Tensor& t) {
    return Matrices(t, Dims(t.sizes().data(), t.sizes().size() - 1), 1);
  }

  int64_t count() const { return count_; }
  T* at(int64_t i) const { return reinterpret_cast<T*>(base_ + batch_.offset(i)); }
  bool is_complex() const { return parts_ == 2; }
  int64_t parts() const { return parts_; }
  Matrices transposed(bool conj) const {
    Matrices m = *this;
    std::swap(m.rows, m.columns);
    std::swap(m.row, m.column);
    m.conj = is_complex() && conj != m.conj;
    return m;
  }

  /// Matrices [first, first + count) to lanes; lanes that are left over repeat the last one.
  void read_lanes(int64_t first, int64_t count, size_t lanes, T* to) const;
  void write_lanes(int64_t first, int64_t count, size_t lanes, const T* from) const;
  /// One matrix to or from planes.
  void read(int64_t i, BlockView<T> to) const;
  void write(int64_t i, BlockView<T> from) const;

  int64_t rows = 0, columns = 0, row = 0, column = 0;
  bool conj = false;

 private:
  Matrices(const Tensor& t, const Dims& batch, size_t own);
  bool dense() const {
    return !conj && batch_.sizes.size() <= 1 && column == parts_ && row == columns * parts_;
  }

  char* base_;
  StridedDims batch_;
  int64_t count_, parts_;
};

/// Memory for what a thread has at work; small amounts on the stack.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t size) : size_(size) {
    if (size > kOnStack)
      heap_ = std::make_unique_for_overwrite<char[]>(static_cast<size_t>(size) * sizeof(T) + 64);
    char* const p = heap_ ? heap_.get() : reinterpret_cast<char*>(stack_);
    next_ = reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(p) + 63) & ~uintptr_t{63});
  }
  /// The next `n` Ts, of a multiple of 64 bytes.
  T* take(int64_t n) {
    T* const p = next_;
    next_ += n;
    return p;
  }

 private:
  static constexpr int64_t kOnStack = 1024;
  alignas(64) T stack_[kOnStack];
  std::unique_ptr<char[]> heap_;
  T* next_;
  int64_t size_;
};

/// Calls f(first, count) for groups of matrices that fit the lanes, on several threads where `work` for each
/// matrix, in operations, pays for them.
template <class F>
void for_each_group(int64_t count, size_t lanes, int64_t work, F&& f) {
  const auto width = static_cast<int64_t>(lanes);
  const int64_t groups = (count + width - 1) / width;
  const int64_t grain = std::max<int64_t>(1, 200'000 / std::max<int64_t>(1, work * width));
  parallel_for(0, groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) f(g * width, std::min(width, count - g * width));
  });
}

/// Calls f(i) for each matrix; those of a batch are shared out to threads, one has its products on all of
/// them.
template <class F>
void for_each_matrix(int64_t count, F&& f) {
  if (count == 1) return f(0);
  parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

/// Calls f(T()) with the type of the parts of `t`.
template <class F>
void with_parts(const Tensor& t, F&& f) {
  if (real_dtype(t.dtype()) == DType::Float32)
    f(float());
  else
    f(double());
}

template <class T>
const typename LaneKernels<T>::Of& lane_kernels_of(bool is_complex) {
  const LaneKernels<T>& kernels = lane_kernels<T>();
  return is_complex ? kernels.complex : kernels.real;
}

/// Throws LinAlgError: "(Batch element 3): " and the text; without an entry if that is negative.
[[noreturn]] void throw_of_info(const std::string& text, int64_t entry);
/// Throws it for the first of `info` that is not 0: "(Batch element 3): " and what says(info) returns.
template <class F>
void check_info(const Tensor& info, F&& says) {
  const auto* const p = static_cast<const int32_t*>(info.data_ptr());
  for (int64_t i = 0; i < info.numel(); ++i) {
    if (p[i] != 0) [[unlikely]]
      throw_of_info(says(p[i]), info.dim() > 0 ? i : -1);
  }
}

/// Throws LinAlgError if a matrix has an element that is infinite or NaN: iterations would not end.
void check_finite(const Tensor& t, const char* argument);

}  // namespace tenon::cpu
