// Shapes of convolutions.
#include <fmt/core.h>

#include "tenon/generated/convolution/shapes.h"
#include "tenon/ops/convolution/geometry.h"

namespace tenon::ops::shape {
namespace {

void check_dtypes(HeaderRef a, HeaderRef b, const char* a_name, const char* b_name) {
  TENON_CHECK(a.dtype() == b.dtype(), Type,
              fmt::format(": `{}` is {}, `{}` is {}; expected both to have the same dtype", b_name,
                          name(b.dtype()), a_name, name(a.dtype())));
  TENON_CHECK(a.dtype() != DType::Bool && has_arithmetic(a.dtype()), NotImplemented,
              fmt::format(": not implemented for {}", name(a.dtype())));
}

size_t check_rank(HeaderRef input, IntArrayRef weight) {
  TENON_CHECK(weight.size() >= 3 && weight.size() <= 5, Shape,
              fmt::format(": expected `weight` of 3 to 5 dimensions, got {}", to_string(weight)));
  TENON_CHECK(input.sizes().size() == weight.size(), Shape,
              fmt::format(": expected `input` of {} dimensions as `weight` {}, got {}", weight.size(),
                          to_string(weight), to_string(input.sizes())));
  return weight.size() - 2;
}

}  // namespace

void convolution(OutputSpecs& out, HeaderRef input, HeaderRef weight, HeaderRef bias, IntArrayRef stride,
                 IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                 int64_t groups) {
  const size_t spatial = check_rank(input, weight.sizes());
  const ConvolutionNumbers numbers = convolution_numbers(spatial, stride, padding, dilation, output_padding);
  const Dims sizes = convolution_size(input.sizes(), weight.sizes(), numbers, transposed, groups);
  check_dtypes(input, weight, "input", "weight");
  if (bias.defined()) {
    TENON_CHECK(bias.dim() == 1 && bias.numel() == sizes[1], Shape,
                fmt::format(": for `weight` {}, expected `bias` to be 1-dimensional with {} elements, got {}",
                            to_string(weight.sizes()), sizes[1], to_string(bias.sizes())));
    check_dtypes(input, bias, "input", "bias");
  }
  out.set_strided(0, sizes, convolution_strides(sizes, input), input.dtype());
}

void convolution_weight_gradient(OutputSpecs& out, HeaderRef grad_output, HeaderRef input,
                                 IntArrayRef weight_size, IntArrayRef stride, IntArrayRef padding,
                                 IntArrayRef dilation, bool transposed, int64_t groups) {
  const size_t spatial = check_rank(input, weight_size);
  const int64_t zero = 0;
  const ConvolutionNumbers numbers =
      convolution_numbers(spatial, stride, padding, dilation, IntArrayRef(zero));
  check_dtypes(input, grad_output, "input", "grad_output");
  check_rank(grad_output, weight_size);
  // The convolution whose result `grad_output` has the shape of, or, transposed, that which takes it back.
  const IntArrayRef from = transposed ? grad_output.sizes() : input.sizes();
  const IntArrayRef to = transposed ? input.sizes() : grad_output.sizes();
  const Dims expected = convolution_size(from, weight_size, numbers, false, groups);
  // More output padding than a stride leaves room for results that no input had.
  bool fits = to == IntArrayRef(expected);
  if (transposed && to[0] == expected[0] && to[1] == expected[1]) {
    fits = true;
    for (size_t d = 2; d < to.size(); ++d) fits &= to[d] <= expected[d];
  }
  TENON_CHECK(fits, Shape,
              fmt::format(": `grad_output` {} does not fit `input` {} and a weight of {}",
                          to_string(grad_output.sizes()), to_string(input.sizes()), to_string(weight_size)));
  out.set(0, weight_size, input.dtype());
}

}  // namespace tenon::ops::shape
