// Products of weights and windows, which convolutions consist of. The bits of each element are those of
// Tenon's matrix product (gemm.h) of the same rows and columns. Used by backends/cpu/ops/convolution.cc.
// Knows pointers and strides; nothing of tensors, padding modes or gradients.
#pragma once

#include <span>

#include "backends/cpu/conv/windows.h"
#include "backends/cpu/cpu_target.h"

namespace tenon::cpu {

/// The weights by row and by row of Windows: element [i, c, d, h, w] is at the sum of its strides (bytes).
struct WindowWeights {
  const char* data = nullptr;
  int64_t item = 0;
  ConvertFn convert = nullptr;  ///< To the compute type.
  bool same_type = false;       ///< Whether the elements have the compute type already.
  int64_t row = 0, channel = 0;
  std::array<int64_t, kWindowAxes> tap{};
};

/// out = alpha * (weights x windows) + beta * out + bias. Strides count bytes.
template <class T>
struct WindowProduct {
  int64_t groups = 1;
  int64_t rows = 0;           ///< Of one group.
  Windows windows;            ///< Of the first group.
  int64_t windows_group = 0;  ///< From one group to the next.
  WindowWeights weights;      ///< Of the first group.
  int64_t weights_group = 0;
  const T* ordered = nullptr;  ///< All weights in order, contiguous; or null.
  const T* bias = nullptr;     ///< groups * rows numbers, or null.
  char* out = nullptr;         ///< Row 0, column 0 of the first group.
  int64_t out_group = 0, out_row = 0;
  PositionStrides out_positions;
  int64_t out_item = 0;
  bool out_same_type = false;                 ///< Whether results are stored as T.
  ConvertFn store = nullptr, load = nullptr;  ///< From T and to T; `load` where beta is not 0.
  T alpha = T(1), beta = T(0);
};

/// The gradient by the weights: out[i, c, taps] = alpha * sum over columns of grad[i, column] * windows[c,
/// taps, column] + beta * out, columns in ascending order.
template <class T>
struct WindowGradient {
  int64_t groups = 1;
  int64_t rows = 0;
  Windows windows;
  int64_t windows_group = 0;
  const char* grad = nullptr;
  int64_t grad_item = 0;
  ConvertFn convert = nullptr;
  bool grad_same_type = false;
  int64_t grad_group = 0, grad_row = 0;
  PositionStrides grad_positions;
  char* out = nullptr;
  int64_t out_item = 0;
  bool out_same_type = false;
  ConvertFn store = nullptr, load = nullptr;
  int64_t out_group = 0, out_row = 0, out_channel = 0;
  std::array<int64_t, kWindowAxes> out_tap{};
  T alpha = T(1), beta = T(0);
};

/// Part of a product: of one group, rows [row, row_end) of the result and columns [column, column_end).
struct ProductPart {
  int64_t group, row, row_end, column, column_end;
};

/// Computes all products, on several threads where that pays; puts weights in order first (`ordered`), and
/// returns how many bytes of them it copied. Rows and columns are at least one; channels may be none. T:
/// float, double, int32_t, int64_t (which wrap).
template <class T>
size_t window_products(std::span<WindowProduct<T>> products);
template <class T>
void window_gradient(const WindowGradient<T>& gradient);

/// What each instruction set exports; on the calling thread. A gradient's columns are rows of Windows.
template <class T>
struct WindowKernels {
  void (*product)(const WindowProduct<T>& product, const ProductPart& part) = nullptr;
  void (*gradient)(const WindowGradient<T>& gradient, const ProductPart& part) = nullptr;
  // Of floats alone:
  /// A product with vectors along rows.
  void (*turned)(const WindowProduct<T>& product, const ProductPart& part) = nullptr;
  /// Both where each group has one channel, for groups [row, row_end) of the part.
  void (*depthwise)(const WindowProduct<T>& product, const ProductPart& part) = nullptr;
  void (*depthwise_gradient)(const WindowGradient<T>& gradient, const ProductPart& part) = nullptr;
};
template <class T>
WindowKernels<T> window_kernels(CpuTarget target);

extern template size_t window_products(std::span<WindowProduct<float>>);
extern template size_t window_products(std::span<WindowProduct<double>>);
extern template size_t window_products(std::span<WindowProduct<int32_t>>);
extern template size_t window_products(std::span<WindowProduct<int64_t>>);
extern template void window_gradient(const WindowGradient<float>&);
extern template void window_gradient(const WindowGradient<double>&);
extern template void window_gradient(const WindowGradient<int32_t>&);
extern template void window_gradient(const WindowGradient<int64_t>&);

}  // namespace tenon::cpu
