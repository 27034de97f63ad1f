// What PyTorch's names of convolutions are made of: one function for all numbers of axes. Called by the
// entries of convolution.yaml.
#pragma once

#include "tenon/core/tensor.h"

namespace tenon::ops {

struct ConvolutionName {
  const char* op;
  int64_t spatial;
  bool transposed = false;
};

/// Runs convolution for a batch, or for one entry without a dimension for it.
Tensor convolve(const ConvolutionName& name, const Tensor& input, const Tensor& weight, const Tensor& bias,
                IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, IntArrayRef output_padding,
                int64_t groups);
/// The same where `padding` is a word. "same": so much that the result has the size of the input. Where that
/// is an odd number, the end gets one more than the beginning.
Tensor convolve(const ConvolutionName& name, const Tensor& input, const Tensor& weight, const Tensor& bias,
                IntArrayRef stride, std::string_view padding, IntArrayRef dilation, int64_t groups);

}  // namespace tenon::ops
