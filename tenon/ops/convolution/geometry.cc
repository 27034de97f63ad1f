#include "tenon/ops/convolution/geometry.h"

#include <fmt/core.h>

#include "tenon/core/error.h"
#include "tenon/iter/geometry.h"
#include "tenon/ops/forms/memory_format.h"

namespace tenon::ops {
namespace {

Dims repeated(IntArrayRef numbers, size_t spatial, const char* argument) {
  TENON_CHECK(numbers.size() == 1 || numbers.size() == spatial, Value,
              fmt::format(": expected `{}` to be one number or {}, one for each spatial dimension, got {}",
                          argument, spatial, to_string(numbers)));
  return numbers.size() == 1 ? Dims(spatial, numbers[0]) : numbers.to_dims();
}

void check_at_least(const Dims& numbers, int64_t least, const char* argument) {
  for (const int64_t n : numbers) {
    TENON_CHECK(n >= least, Value,
                fmt::format(": `{}` must be {}, got {}", argument, least == 0 ? "non-negative" : "positive",
                            to_string(numbers)));
  }
}

/// (size - 1) * step + 1 + more, or an error where that does not fit.
int64_t extent(int64_t size, int64_t step, int64_t more) {
  int64_t n = 0;
  const bool fits = !__builtin_mul_overflow(size - 1, step, &n) && !__builtin_add_overflow(n, 1, &n) &&
                    !__builtin_add_overflow(n, more, &n);
  TENON_CHECK(fits, Value, ": sizes overflow: stride, dilation or padding is too large");
  return n;
}

}  // namespace

ConvolutionNumbers convolution_numbers(size_t spatial, IntArrayRef stride, IntArrayRef padding,
                                       IntArrayRef dilation, IntArrayRef output_padding) {
  ConvolutionNumbers n{repeated(stride, spatial, "stride"), repeated(padding, spatial, "padding"),
                       repeated(dilation, spatial, "dilation"),
                       repeated(output_padding, spatial, "output_padding")};
  check_at_least(n.stride, 1, "stride");
  check_at_least(n.padding, 0, "padding");
  check_at_least(n.dilation, 1, "dilation");
  check_at_least(n.output_padding, 0, "output_padding");
  return n;
}

Dims convolution_size(IntArrayRef input, IntArrayRef weight, const ConvolutionNumbers& numbers,
                      bool transposed, int64_t groups) {
  TENON_CHECK(groups > 0, Value, fmt::format(": `groups` must be positive, got {}", groups));
  TENON_CHECK(weight[0] % groups == 0 && weight[0] >= groups, Shape,
              fmt::format(": expected dimension 0 of `weight` {} to be divisible by groups={}",
                          to_string(weight), groups));
  const int64_t channels = transposed ? weight[0] : weight[1] * groups;
  TENON_CHECK(input[1] == channels, Shape,
              fmt::format(": for groups={} and `weight` {}, expected `input` {} to have {} channels, got {}",
                          groups, to_string(weight), to_string(input), channels, input[1]));
  Dims result{input[0], transposed ? weight[1] * groups : weight[0]};
  for (size_t i = 0; i + 2 < input.size(); ++i) {
    const int64_t size = input[i + 2], kernel = weight[i + 2];
    TENON_CHECK(kernel > 0, Shape,
                fmt::format(": `weight` {} has a spatial dimension of no elements", to_string(weight)));
    const int64_t reach = extent(kernel, numbers.dilation[i], 0);
    if (transposed) {
      const int64_t more = numbers.output_padding[i];
      TENON_CHECK(more < std::max(numbers.stride[i], numbers.dilation[i]), Value,
                  fmt::format(": `output_padding` must be smaller than either stride or dilation, got {} "
                              "with stride {} and dilation {}",
                              to_string(numbers.output_padding), to_string(numbers.stride),
                              to_string(numbers.dilation)));
      const int64_t full = extent(size, numbers.stride[i], extent(reach, 1, more) - 1);
      const int64_t cut = extent(3, numbers.padding[i], -1);
      TENON_CHECK(full - cut >= (size == 0 ? 0 : 1), Shape,
                  fmt::format(": the result of `input` {} and `weight` {} has no elements left in spatial "
                              "dimension {}: {} less twice the padding {}",
                              to_string(input), to_string(weight), i, full, numbers.padding[i]));
      result.push_back(full - cut);
    } else {
      const int64_t padded = extent(3, numbers.padding[i], size - 1);
      TENON_CHECK(padded >= reach, Shape,
                  fmt::format(": the kernel must not be larger than the padded `input`: spatial dimension {} "
                              "has {} elements with padding, the kernel {} with dilation",
                              i, padded, reach));
      result.push_back((padded - reach) / numbers.stride[i] + 1);
    }
  }
  return result;
}

Dims convolution_strides(IntArrayRef sizes, HeaderRef like) {
  if (like.dim() != 4 && like.dim() != 5) return contiguous_strides(sizes);
  const Dims last = shape::channels_last_strides(like.sizes());
  bool matches = !like.is_contiguous();
  for (size_t d = 0; d < last.size(); ++d) matches &= like.sizes()[d] == 1 || like.strides()[d] == last[d];
  return matches ? shape::channels_last_strides(sizes) : contiguous_strides(sizes);
}

}  // namespace tenon::ops
