// The gradients of convolutions, which are convolutions again. Used by formulas of derivatives and by
// convolution_backward.
#pragma once

#include "tenon/core/tensor.h"

namespace tenon::ops {

/// By the input, of the given size; `weight` is conjugated already.
Tensor convolution_input_gradient(const Tensor& grad, IntArrayRef input_size, const Tensor& weight,
                                  IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                  bool transposed, int64_t groups);
/// Of a weight's gradient by the gradient that it was computed from, which has the given size.
Tensor convolution_grad_output_gradient(const Tensor& weight, const Tensor& input, IntArrayRef size,
                                        IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                        bool transposed, int64_t groups);
/// By the bias: the sum over all dimensions but that of channels.
Tensor convolution_bias_gradient(const Tensor& grad);

}  // namespace tenon::ops
