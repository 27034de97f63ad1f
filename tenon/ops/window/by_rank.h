// What PyTorch's names of padding, pooling and resizing are made of: one function for all numbers of axes.
// Called by the entries of window.yaml.
#pragma once

#include <initializer_list>

#include "tenon/core/tensor.h"

namespace tenon::ops {

enum PadMode : int64_t { kReflect, kReplicate, kCircular };

Dims negative(IntArrayRef pad, const char* op);
Tensor pad_as(const Tensor& self, IntArrayRef padding, PadMode mode, size_t rank);
Tensor pad_backward_as(const Tensor& grad, const Tensor& self, IntArrayRef padding, PadMode mode,
                       size_t rank);

Tensor average(size_t rank, const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
               IntArrayRef padding, bool ceil_mode, bool count_include_pad,
               std::optional<int64_t> divisor_override);
Tensor average_backward(size_t rank, const Tensor& grad, const Tensor& self, IntArrayRef kernel_size,
                        IntArrayRef stride, IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                        std::optional<int64_t> divisor_override);
std::tuple<Tensor, Tensor> maximum(size_t rank, const Tensor& self, IntArrayRef kernel_size,
                                   IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                   bool ceil_mode);
/// Places are found with the values only where a derivative will ask for them.
Tensor maximum_values(size_t rank, const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
                      IntArrayRef padding, IntArrayRef dilation, bool ceil_mode);
Tensor maximum_backward(size_t rank, const Tensor& grad, const Tensor& self, IntArrayRef kernel_size,
                        IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool ceil_mode,
                        const Tensor& indices);
Dims adaptive_size(const char* name, size_t rank, IntArrayRef output_size);
/// The gradient of _adaptive_avg_pool: one share, repeated, where a window has all of a plane.
Tensor adaptive_average_gradient(const Tensor& grad, IntArrayRef input_size, IntArrayRef output_size);
Tensor adaptive_average_backward(size_t rank, const Tensor& grad, const Tensor& self);
Tensor adaptive_maximum_backward(size_t rank, const Tensor& grad, const Tensor& self, const Tensor& indices);

/// The last two: with antialias.
enum ResizeMode : int64_t { kNearest, kNearestExact, kLinear, kCubic, kLinearMean, kCubicMean };
/// For each axis, the factor that a caller gave, if any.
using Scales = std::initializer_list<std::optional<double>>;

Tensor resize(const Tensor& self, IntArrayRef output_size, ResizeMode mode, bool align_corners,
              Scales scales);
Tensor resize_backward(const Tensor& grad, IntArrayRef output_size, IntArrayRef input_size, ResizeMode mode,
                       bool align_corners, Scales scales);
/// The result's sizes are given, or follow from a factor for each axis.
Tensor resize_by(const Tensor& input, std::optional<IntArrayRef> output_size,
                 std::optional<std::span<const double>> scale_factors, ResizeMode mode, bool align_corners,
                 size_t rank);

}  // namespace tenon::ops
