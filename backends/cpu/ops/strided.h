// Reads and writes strided regions in logical order, as tiles of contiguous elements converted to one type.
// Used by kernels that compute on contiguous blocks of one compute type: reductions, softmax, scans. Knows
// sizes, byte strides and dtypes; nothing of operators.
#pragma once

#include <algorithm>

#include "backends/cpu/copy/convert.h"
#include "tenon/core/parallel.h"
#include "tenon/core/tensor.h"

namespace tenon::cpu {

/// Some dimensions of a tensor, outermost first, with strides in bytes.
struct StridedDims {
  Dims sizes, strides;

  void add(int64_t size, int64_t stride_bytes) {
    if (size == 1) return;
    if (!sizes.empty() && strides.back() == stride_bytes * size) {
      sizes.back() *= size;
      strides.back() = stride_bytes;
    } else {
      sizes.push_back(size);
      strides.push_back(stride_bytes);
    }
  }
  int64_t numel() const noexcept {
    int64_t n = 1;
    for (const int64_t s : sizes) n *= s;
    return n;
  }
  /// Bytes from the first element to element `i` in logical order.
  int64_t offset(int64_t i) const noexcept {
    if (sizes.size() == 1) return i * strides[0];
    int64_t bytes = 0;
    for (size_t d = sizes.size(); d-- > 0;) {
      bytes += i % sizes[d] * strides[d];
      i /= sizes[d];
    }
    return bytes;
  }
  /// Whether the elements are contiguous.
  bool dense(size_t item) const noexcept {
    return sizes.empty() || (sizes.size() == 1 && strides[0] == static_cast<int64_t>(item));
  }
};

/// All dimensions of `t`, or those whose mask is `which`.
inline StridedDims dims_of(const Tensor& t) {
  StridedDims d;
  const auto item = static_cast<int64_t>(t.itemsize());
  for (size_t i = 0; i < t.sizes().size(); ++i) d.add(t.sizes()[i], t.strides()[i] * item);
  return d;
}
inline StridedDims dims_where(const Tensor& t, const Dims& mask, bool which) {
  StridedDims d;
  const auto item = static_cast<int64_t>(t.itemsize());
  for (size_t i = 0; i < t.sizes().size(); ++i) {
    if ((mask[i] != 0) == which) d.add(t.sizes()[i], t.strides()[i] * item);
  }
  return d;
}

/// Elements of a tile: small enough to stay in the L1 cache next to what reads it.
inline constexpr int64_t kStridedTile = 1024;

/// Calls f(const T* tile, int64_t n) on all elements in logical order, converted; straight from memory where
/// they are dense and of type T already (`convert` null). Can be interrupted between tiles.
template <class T, class F>
void for_each_tile(const char* base, const StridedDims& dims, ConvertFn convert, F&& f) {
  const int64_t total = dims.numel();
  if (total == 0) return;
  if (!convert && dims.dense(sizeof(T))) {
    f(reinterpret_cast<const T*>(base), total);
    return;
  }
  const ConvertFn copy = convert ? convert : convert_fn(dtype_of<T>, dtype_of<T>);
  constexpr int64_t kItem = sizeof(T);
  alignas(64) T tile[kStridedTile];
  const size_t ndim = dims.sizes.size();
  const int64_t inner = ndim > 0 ? dims.sizes[ndim - 1] : 1,
                inner_stride = ndim > 0 ? dims.strides[ndim - 1] : 0;
  if (inner >= kStridedTile) {
    for (int64_t i = 0; i < total; i += inner) {
      const char* row = base + dims.offset(i);
      for (int64_t j = 0; j < inner; j += kStridedTile) {
        const int64_t n = std::min(kStridedTile, inner - j);
        copy(tile, {kItem, 0}, row + j * inner_stride, {inner_stride, 0}, n, 1);
        f(static_cast<const T*>(tile), n);
        if (j + n < inner) check_stop();
      }
    }
    return;
  }
  // Whole rows, several at a time where the next dimension out is regular.
  const int64_t rows = ndim > 1 ? dims.sizes[ndim - 2] : 1,
                row_stride = ndim > 1 ? dims.strides[ndim - 2] : 0;
  const int64_t at_once = std::max<int64_t>(kStridedTile / inner, 1);
  for (int64_t i = 0; i < total; i += inner * rows) {
    const char* block = base + dims.offset(i);
    for (int64_t r = 0; r < rows; r += at_once) {
      const int64_t n = std::min(at_once, rows - r);
      copy(tile, {kItem, kItem * inner}, block + r * row_stride, {inner_stride, row_stride}, inner, n);
      f(static_cast<const T*>(tile), n * inner);
      if (r + n < rows) check_stop();
    }
  }
}

/// Writes contiguous `from` to the elements of a region in logical order, converted.
template <class T>
void scatter(char* base, const StridedDims& dims, ConvertFn convert, const T* from) {
  const ConvertFn copy = convert ? convert : convert_fn(dtype_of<T>, dtype_of<T>);
  constexpr int64_t kItem = sizeof(T);
  const int64_t total = dims.numel();
  const size_t ndim = dims.sizes.size();
  const int64_t inner = ndim > 0 ? dims.sizes[ndim - 1] : 1,
                inner_stride = ndim > 0 ? dims.strides[ndim - 1] : 0;
  for (int64_t i = 0; i < total; i += inner) {
    copy(base + dims.offset(i), {inner_stride, 0}, from + i, {kItem, 0}, inner, 1);
  }
}

/// The conversion that reads `t` as T; null when it is T already. Throws Error{NotImplemented} when there is
/// none.
ConvertFn convert_from(DType dtype, DType compute, const char* op);

}  // namespace tenon::cpu
