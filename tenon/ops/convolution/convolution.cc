// conv1d to conv3d and their transposed kin: the rules of batches and paddings, made of convolution.
#include <fmt/core.h>

#include "tenon/core/copy_report.h"
#include "tenon/generated/convolution/bodies.h"
#include "tenon/generated/convolution/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/ops/convolution/geometry.h"

namespace tenon::ops {
namespace {

struct Call {
  const char* op;
  int64_t spatial;
  bool transposed;
};

/// Runs convolution for a batch, or for one entry without a dimension for it.
Tensor convolve(const Call& call, const Tensor& input, const Tensor& weight, const Tensor& bias,
                IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, IntArrayRef output_padding,
                int64_t groups) {
  const int64_t batched = call.spatial + 2;
  TENON_CHECK(input.dim() == batched || input.dim() == batched - 1, Shape,
              fmt::format("{}: expected {}D (unbatched) or {}D (batched) `input`, got {}", call.op,
                          batched - 1, batched, to_string(input.sizes())));
  TENON_CHECK(weight.dim() == batched, Shape,
              fmt::format("{}: expected `weight` of {} dimensions, got {}", call.op, batched,
                          to_string(weight.sizes())));
  const bool single = input.dim() == batched - 1;
  try {
    const Tensor result = tenon::convolution(single ? input.unsqueeze(0) : input, weight, bias, stride,
                                             padding, dilation, call.transposed, output_padding, groups);
    return single ? result.squeeze(0) : result;
  } catch (Error& e) {
    e.set_operator(call.op);
    throw;
  }
}

Tensor forward(const char* op, int64_t spatial, const Tensor& input, const Tensor& weight, const Tensor& bias,
               IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
  const int64_t zero = 0;
  return convolve({op, spatial, false}, input, weight, bias, stride, padding, dilation, IntArrayRef(zero),
                  groups);
}

/// padding "same": so much that the result has the size of the input. Where that is an odd number, the end
/// gets one more than the beginning.
Tensor padded(const char* op, int64_t spatial, const Tensor& input, const Tensor& weight, const Tensor& bias,
              IntArrayRef stride, std::string_view padding, IntArrayRef dilation, int64_t groups) {
  TENON_CHECK(padding == "same" || padding == "valid", Value,
              fmt::format("{}: `padding` must be \"same\", \"valid\" or numbers, got \"{}\"", op, padding));
  const int64_t zero = 0;
  if (padding == "valid")
    return forward(op, spatial, input, weight, bias, stride, IntArrayRef(zero), dilation, groups);
  TENON_CHECK(weight.dim() == spatial + 2, Shape,
              fmt::format("{}: expected `weight` of {} dimensions, got {}", op, spatial + 2,
                          to_string(weight.sizes())));
  ConvolutionNumbers n;
  try {
    n = convolution_numbers(static_cast<size_t>(spatial), stride, IntArrayRef(zero), dilation,
                            IntArrayRef(zero));
  } catch (Error& e) {
    e.set_operator(op);
    throw;
  }
  Dims both, front;
  for (size_t i = 0; i < static_cast<size_t>(spatial); ++i) {
    TENON_CHECK(n.stride[i] == 1, Value,
                fmt::format("{}: `padding` \"same\" is not defined for strides other than 1, got stride {}",
                            op, to_string(n.stride)));
    const int64_t total = n.dilation[i] * (weight.sizes()[i + 2] - 1);
    both.push_back((total + 1) / 2);
    front.push_back((total + 1) / 2 - total / 2);
  }
  // Symmetric padding by the larger half gives one result too many at the beginning.
  Tensor result = forward(op, spatial, input, weight, bias, stride, both, dilation, groups);
  bool cut = false;
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t more = front[static_cast<size_t>(i)], dim = result.dim() - spatial + i;
    if (more == 0) continue;
    result = result.narrow(dim, more, result.size(dim) - more);
    cut = true;
  }
  if (!cut) return result;
  report_copy(op, "padding", "\"same\" is not the same at both ends", result.nbytes());
  return result.contiguous();
}

}  // namespace

Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,
              IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
  return forward("conv1d", 1, input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,
              IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
  return forward("conv2d", 2, input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,
              IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
  return forward("conv3d", 3, input, weight, bias, stride, padding, dilation, groups);
}

Tensor conv1d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,
                      std::string_view padding, IntArrayRef dilation, int64_t groups) {
  return padded("conv1d", 1, input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv2d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,
                      std::string_view padding, IntArrayRef dilation, int64_t groups) {
  return padded("conv2d", 2, input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv3d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,
                      std::string_view padding, IntArrayRef dilation, int64_t groups) {
  return padded("conv3d", 3, input, weight, bias, stride, padding, dilation, groups);
}

Tensor conv_transpose1d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,
                        IntArrayRef padding, IntArrayRef output_padding, int64_t groups,
                        IntArrayRef dilation) {
  return convolve({"conv_transpose1d", 1, true}, input, weight, bias, stride, padding, dilation,
                  output_padding, groups);
}
Tensor conv_transpose2d_input(const Tensor& input, const Tensor& weight, const Tensor& bias,
                              IntArrayRef stride, IntArrayRef padding, IntArrayRef output_padding,
                              int64_t groups, IntArrayRef dilation) {
  return convolve({"conv_transpose2d", 2, true}, input, weight, bias, stride, padding, dilation,
                  output_padding, groups);
}
Tensor conv_transpose3d_input(const Tensor& input, const Tensor& weight, const Tensor& bias,
                              IntArrayRef stride, IntArrayRef padding, IntArrayRef output_padding,
                              int64_t groups, IntArrayRef dilation) {
  return convolve({"conv_transpose3d", 3, true}, input, weight, bias, stride, padding, dilation,
                  output_padding, groups);
}

}  // namespace tenon::ops
