#include "tenon/nn/conv.h"

#include <fmt/format.h>

#include <cmath>

#include "tenon/generated/convolution/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/nn/init.h"

namespace tenon::nn {

Conv2d::Conv2d(int64_t in_channels, int64_t out_channels, Size2d kernel_size, Conv2dOptions options)
    : options_(options) {
  const int64_t groups = options.groups;
  TENON_CHECK(in_channels >= 0 && out_channels >= 0, Value,
              fmt::format("Conv2d: channels must not be negative, got {} and {}", in_channels, out_channels));
  TENON_CHECK(groups > 0 && in_channels % groups == 0 && out_channels % groups == 0, Value,
              fmt::format("Conv2d: {} and {} channels cannot be divided into {} groups", in_channels,
                          out_channels, groups));
  TENON_CHECK(kernel_size.height > 0 && kernel_size.width > 0, Value,
              fmt::format("Conv2d: kernel_size must be positive, got {}", to_string(kernel_size.dims())));
  weight = register_parameter(
      "weight",
      empty({out_channels, in_channels / groups, kernel_size.height, kernel_size.width}, options.dtype));
  if (options.bias) bias = register_parameter("bias", empty({out_channels}, options.dtype));
  reset_parameters();
}

void Conv2d::reset_parameters() {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  const int64_t fan_in = weight.size(1) * weight.size(2) * weight.size(3);
  if (!bias.defined() || fan_in == 0) return;
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  init::uniform_(bias, -bound, bound);
}

std::string Conv2d::extra_repr() const {
  std::string text = fmt::format("{}, {}, kernel_size=({}, {}), stride={}", weight.size(1) * options_.groups,
                                 weight.size(0), weight.size(2), weight.size(3), options_.stride.pair_text());
  if (options_.padding != Size2d(0)) text += ", padding=" + options_.padding.pair_text();
  if (options_.dilation != Size2d(1)) text += ", dilation=" + options_.dilation.pair_text();
  if (options_.groups != 1) text += fmt::format(", groups={}", options_.groups);
  return bias.defined() ? text : text + ", bias=False";
}

Tensor Conv2d::forward(const Tensor& input) {
  return conv2d(input, weight, bias, options_.stride.dims(), options_.padding.dims(),
                options_.dilation.dims(), options_.groups);
}

}  // namespace tenon::nn
