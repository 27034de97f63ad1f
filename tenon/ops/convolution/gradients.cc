#include "tenon/ops/convolution/gradients.h"

#include <fmt/core.h>

#include "tenon/generated/complex/functions.h"
#include "tenon/generated/convolution/bodies.h"
#include "tenon/generated/convolution/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/ops/convolution/geometry.h"

namespace tenon::ops {
namespace {

Tensor conjugated(const Tensor& t) { return t.is_complex() ? tenon::conj(t) : t; }

Tensor convolve(const Tensor& input, const Tensor& weight, const ConvolutionNumbers& n, bool transposed,
                int64_t groups) {
  return tenon::convolution(input, weight, {}, n.stride, n.padding, n.dilation, transposed, n.output_padding,
                            groups);
}

/// A transposed convolution gives the smallest size that a convolution could have had. How much is missing.
Dims missing(IntArrayRef size, IntArrayRef grad, IntArrayRef kernel, const ConvolutionNumbers& n) {
  Dims more;
  for (size_t i = 0; i < n.stride.size(); ++i) {
    more.push_back(size[i + 2] - ((grad[i + 2] - 1) * n.stride[i] - 2 * n.padding[i] +
                                  (kernel[i + 2] - 1) * n.dilation[i] + 1));
  }
  return more;
}

}  // namespace

Tensor convolution_input_gradient(const Tensor& grad, IntArrayRef input_size, const Tensor& weight,
                                  IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                  bool transposed, int64_t groups) {
  const int64_t zero = 0;
  ConvolutionNumbers n =
      convolution_numbers(weight.sizes().size() - 2, stride, padding, dilation, IntArrayRef(zero));
  for (const int64_t s : input_size) {
    if (s == 0) return tenon::zeros(input_size, grad.options());
  }
  if (!transposed) n.output_padding = missing(input_size, grad.sizes(), weight.sizes(), n);
  Tensor result = convolve(grad, weight, n, !transposed, groups);
  // Where a transposed one has more output padding than a stride, its result could have had more inputs.
  for (int64_t d = 2; d < result.dim(); ++d) {
    const int64_t size = input_size[static_cast<size_t>(d)];
    if (result.size(d) > size) result = result.narrow(d, 0, size);
  }
  return result;
}

Tensor convolution_grad_output_gradient(const Tensor& weight, const Tensor& input, IntArrayRef size,
                                        IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                        bool transposed, int64_t groups) {
  const int64_t zero = 0;
  ConvolutionNumbers n =
      convolution_numbers(weight.sizes().size() - 2, stride, padding, dilation, IntArrayRef(zero));
  if (transposed) n.output_padding = missing(size, input.sizes(), weight.sizes(), n);
  return convolve(input, weight, n, transposed, groups);
}

Tensor convolution_bias_gradient(const Tensor& grad) {
  Dims dims{0};
  for (int64_t d = 2; d < grad.dim(); ++d) dims.push_back(d);
  return tenon::sum(grad, IntArrayRef(dims), false, grad.dtype());
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(
    const Tensor& grad_output, const Tensor& input, const Tensor& weight,
    std::optional<IntArrayRef> bias_sizes, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
    bool transposed, IntArrayRef output_padding, int64_t groups, std::span<const bool> output_mask) {
  TENON_CHECK(weight.dim() >= 3 && input.dim() == weight.dim(), Shape,
              fmt::format("convolution_backward: `input` {} and `weight` {} must both have 3 to 5 dimensions",
                          to_string(input.sizes()), to_string(weight.sizes())));
  Dims expected;
  try {
    const ConvolutionNumbers n =
        convolution_numbers(weight.sizes().size() - 2, stride, padding, dilation, output_padding);
    expected = convolution_size(input.sizes(), weight.sizes(), n, transposed, groups);
  } catch (Error& e) {
    e.set_operator("convolution_backward");
    throw;
  }
  TENON_CHECK(grad_output.sizes() == IntArrayRef(expected), Shape,
              fmt::format("convolution_backward: expected `grad_output` of shape {}, got {}",
                          to_string(expected), to_string(grad_output.sizes())));
  if (bias_sizes) {
    TENON_CHECK(bias_sizes->size() == 1 && (*bias_sizes)[0] == expected[1], Shape,
                fmt::format("convolution_backward: expected `bias_sizes` of [{}], got {}", expected[1],
                            to_string(*bias_sizes)));
  }
  TENON_CHECK(output_mask.size() == 3, Value,
              fmt::format("convolution_backward: expected `output_mask` of 3 truth values, got {}",
                          output_mask.size()));
  std::tuple<Tensor, Tensor, Tensor> result;
  if (output_mask[0]) {
    std::get<0>(result) = convolution_input_gradient(grad_output, input.sizes(), conjugated(weight), stride,
                                                     padding, dilation, transposed, groups);
  }
  if (output_mask[1]) {
    std::get<1>(result) = tenon::_convolution_weight_gradient(grad_output, conjugated(input), weight.sizes(),
                                                              stride, padding, dilation, transposed, groups);
  }
  if (output_mask[2]) std::get<2>(result) = convolution_bias_gradient(grad_output);
  return result;
}

}  // namespace tenon::ops
