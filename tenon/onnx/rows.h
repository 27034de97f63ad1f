// The tables of operators: one list of rows for each subject. Of this room alone.
#pragma once

#include <span>

#include "tenon/onnx/program.h"

namespace tenon::onnx {

std::span<const Row> pointwise_rows() noexcept;  ///< rows_pointwise.cc
std::span<const Row> shape_rows() noexcept;      ///< rows_shape.cc: what moves elements, and sizes.
std::span<const Row> index_rows() noexcept;      ///< rows_index.cc: by index, gather and scatter.
std::span<const Row> reduction_rows() noexcept;  ///< rows_reduction.cc: reductions, softmax, sorting.
std::span<const Row> matrix_rows() noexcept;     ///< rows_matrix.cc: products.
std::span<const Row> attention_rows() noexcept;  ///< rows_attention.cc
std::span<const Row> window_rows() noexcept;     ///< rows_window.cc: convolutions, pools.
std::span<const Row> resize_rows() noexcept;     ///< rows_resize.cc
std::span<const Row> norm_rows() noexcept;       ///< rows_norm.cc
std::span<const Row> recurrent_rows() noexcept;  ///< rows_recurrent.cc
std::span<const Row> control_rows() noexcept;    ///< rows_control.cc: graphs in graphs, sequences.
std::span<const Row> quantized_rows() noexcept;  ///< rows_quantized.cc
std::span<const Row> loss_rows() noexcept;       ///< rows_loss.cc: losses, and steps of optimizers.
std::span<const Row> random_rows() noexcept;     ///< rows_random.cc
std::span<const Row> signal_rows() noexcept;     ///< rows_signal.cc: windows, spectra.
std::span<const Row> detection_rows() noexcept;  ///< rows_detection.cc: boxes.
std::span<const Row> sampling_rows() noexcept;   ///< rows_sampling.cc: images at places that tensors give.

}  // namespace tenon::onnx
