// Sizes of convolutions: checks of their arguments and the shape of the result. Used by the shape functions
// and bodies of this family and by the formulas of its gradients. Knows headers; nothing of elements.
#pragma once

#include "tenon/core/tensor_header.h"

namespace tenon::ops {

/// The numbers of a convolution, one for each spatial dimension.
struct ConvolutionNumbers {
  Dims stride, padding, dilation, output_padding;
};

/// Repeats lists of one number, and throws where a number or a count is not allowed. Errors name the
/// called operator.
ConvolutionNumbers convolution_numbers(size_t spatial, IntArrayRef stride, IntArrayRef padding,
                                       IntArrayRef dilation, IntArrayRef output_padding);

/// [N, out, *] of a convolution of `input` [N, C, *] with `weight`. Throws unless they fit each other.
Dims convolution_size(IntArrayRef input, IntArrayRef weight, const ConvolutionNumbers& numbers,
                      bool transposed, int64_t groups);

/// The strides of a result of these sizes: channels-last where `like` is, else contiguous.
Dims convolution_strides(IntArrayRef sizes, HeaderRef like);

}  // namespace tenon::ops
