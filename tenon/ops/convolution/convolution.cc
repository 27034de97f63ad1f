// conv1d to conv3d and their transposed kin: the rules of batches and paddings, made of convolution.
#include <fmt/core.h>

#include "tenon/core/copy_report.h"
#include "tenon/generated/convolution/bodies.h"
#include "tenon/generated/convolution/functions.h"
#include "tenon/ops/convolution/by_rank.h"
#include "tenon/ops/convolution/geometry.h"

namespace tenon::ops {

Tensor convolve(const ConvolutionName& name, const Tensor& input, const Tensor& weight, const Tensor& bias,
                IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, IntArrayRef output_padding,
                int64_t groups) {
  const int64_t batched = name.spatial + 2;
  TENON_CHECK(input.dim() == batched || input.dim() == batched - 1, Shape,
              fmt::format("{}: expected {}D (unbatched) or {}D (batched) `input`, got {}", name.op,
                          batched - 1, batched, to_string(input.sizes())));
  TENON_CHECK(weight.dim() == batched, Shape,
              fmt::format("{}: expected `weight` of {} dimensions, got {}", name.op, batched,
                          to_string(weight.sizes())));
  const bool single = input.dim() == batched - 1;
  try {
    const Tensor result = tenon::convolution(single ? input.unsqueeze(0) : input, weight, bias, stride,
                                             padding, dilation, name.transposed, output_padding, groups);
    return single ? result.squeeze(0) : result;
  } catch (Error& e) {
    e.set_operator(name.op);
    throw;
  }
}

Tensor convolve(const ConvolutionName& name, const Tensor& input, const Tensor& weight, const Tensor& bias,
                IntArrayRef stride, std::string_view padding, IntArrayRef dilation, int64_t groups) {
  const auto& [op, spatial, transposed] = name;
  TENON_CHECK(padding == "same" || padding == "valid", Value,
              fmt::format("{}: `padding` must be \"same\", \"valid\" or numbers, got \"{}\"", op, padding));
  if (padding == "valid") return convolve(name, input, weight, bias, stride, {0}, dilation, {0}, groups);
  TENON_CHECK(weight.dim() == spatial + 2, Shape,
              fmt::format("{}: expected `weight` of {} dimensions, got {}", op, spatial + 2,
                          to_string(weight.sizes())));
  ConvolutionNumbers n;
  try {
    n = convolution_numbers(static_cast<size_t>(spatial), stride, {0}, dilation, {0});
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
  Tensor result = convolve(name, input, weight, bias, stride, both, dilation, {0}, groups);
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

}  // namespace tenon::ops
