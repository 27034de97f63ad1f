// im2col and col2im, which PyTorch's modules call Unfold and Fold: windows of images as columns, and columns
// added up to images.
#include <fmt/core.h>

#include "tenon/generated/window/bodies.h"
#include "tenon/generated/window/shapes.h"
#include "tenon/ops/device_stubs.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/window/spatial.h"

namespace tenon::ops {
namespace {

/// Windows of an image [.., channels, size[0], size[1]] and how many there are.
struct Blocks {
  Dims size, kernel, dilation, padding, stride;
  Dims count;

  int64_t places() const { return kernel[0] * kernel[1]; }
  int64_t columns() const { return count[0] * count[1]; }
};

Blocks checked_blocks(const char* op, IntArrayRef size, IntArrayRef kernel_size, IntArrayRef dilation,
                      IntArrayRef padding, IntArrayRef stride) {
  Blocks b{size.to_dims(),
           per_axis(kernel_size, 2, op, "kernel_size"),
           per_axis(dilation, 2, op, "dilation"),
           per_axis(padding, 2, op, "padding"),
           per_axis(stride, 2, op, "stride"),
           {}};
  for (size_t i = 0; i < 2; ++i) {
    const auto positive = [&](const Dims& values, const char* argument) {
      TENON_CHECK(values[i] > 0, Value,
                  fmt::format("{}: `{}` must be greater than zero, got {}", op, argument, to_string(values)));
    };
    positive(b.kernel, "kernel_size");
    positive(b.dilation, "dilation");
    positive(b.stride, "stride");
    TENON_CHECK(b.padding[i] >= 0, Value,
                fmt::format("{}: `padding` must not be negative, got {}", op, to_string(b.padding)));
    int64_t extent = 0, room = 0;
    const bool fits = !__builtin_mul_overflow(b.kernel[i] - 1, b.dilation[i], &extent) &&
                      extent < INT64_MAX / 4 && b.padding[i] < INT64_MAX / 4 &&
                      !__builtin_add_overflow(b.size[i], 2 * b.padding[i], &room) &&
                      b.stride[i] < INT64_MAX / 4;
    TENON_CHECK(fits, Value, fmt::format("{}: windows are larger than int64 can count", op));
    room -= extent + 1;
    TENON_CHECK(room >= 0, Shape,
                fmt::format("{}: a window of {} does not fit into size {} with padding {}", op, extent + 1,
                            b.size[i], b.padding[i]));
    b.count.push_back(room / b.stride[i] + 1);
  }
  int64_t n = 0;
  TENON_CHECK(!__builtin_mul_overflow(b.kernel[0], b.kernel[1], &n) &&
                  !__builtin_mul_overflow(b.count[0], b.count[1], &n),
              Value, fmt::format("{}: windows are more than int64 can count", op));
  return b;
}

/// Calls f(plane of the columns at one place of the window, axes from the image to it) for every place, in
/// order. `columns` is [.., channels * places, count].
template <class F>
void for_each_place(const Blocks& b, const Tensor& columns, F&& f) {
  const size_t ndim = columns.sizes().size();
  const int64_t channels = columns.sizes()[ndim - 2] / b.places();
  const int64_t of_row = columns.strides()[ndim - 2], of_column = columns.strides()[ndim - 1];
  Dims sizes(columns.sizes().data(), ndim - 2), strides(columns.strides().data(), ndim - 2);
  for (const int64_t n : {channels, b.count[0], b.count[1]}) sizes.push_back(n);
  for (const int64_t s : {of_row * b.places(), of_column * b.count[1], of_column}) strides.push_back(s);
  for (int64_t i = 0; i < b.kernel[0]; ++i) {
    for (int64_t j = 0; j < b.kernel[1]; ++j) {
      const Axis axes[] = {
          Axis::windows(b.size[0], b.count[0], 1, b.stride[0], b.padding[0] - i * b.dilation[0], 1),
          Axis::windows(b.size[1], b.count[1], 1, b.stride[1], b.padding[1] - j * b.dilation[1], 1),
      };
      f(make_view(columns, sizes, strides, columns.storage_offset() + (i * b.kernel[1] + j) * of_row), axes);
    }
  }
}

}  // namespace

namespace shape {

void im2col(OutputSpecs& out, HeaderRef self, IntArrayRef kernel_size, IntArrayRef dilation,
            IntArrayRef padding, IntArrayRef stride) {
  check_spatial(self.sizes(), 2, "im2col");
  const Blocks b =
      checked_blocks("im2col", spatial_sizes(self.sizes(), 2), kernel_size, dilation, padding, stride);
  const size_t ndim = self.sizes().size();
  Dims sizes(self.sizes().data(), ndim - 2);
  TENON_CHECK(!__builtin_mul_overflow(sizes[ndim - 3], b.places(), &sizes[ndim - 3]), Shape,
              "im2col: the result is larger than int64 can count");
  sizes.push_back(b.columns());
  out.set(0, sizes, self.dtype());
}

void col2im(OutputSpecs& out, HeaderRef self, IntArrayRef output_size, IntArrayRef kernel_size,
            IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  const Dims size = per_axis(output_size, 2, "col2im", "output_size");
  TENON_CHECK(size[0] > 0 && size[1] > 0, Value,
              fmt::format("col2im: `output_size` must be greater than zero, got {}", to_string(size)));
  const Blocks b = checked_blocks("col2im", size, kernel_size, dilation, padding, stride);
  check_spatial(self.sizes(), 1, "col2im");
  const size_t ndim = self.sizes().size();
  const int64_t rows = self.sizes()[ndim - 2], columns = self.sizes()[ndim - 1];
  TENON_CHECK(
      rows % b.places() == 0, Shape,
      fmt::format("col2im: dimension {} of `self` {} must be a multiple of the {} places of `kernel_size` {}",
                  ndim - 2, to_string(self.sizes()), b.places(), to_string(b.kernel)));
  TENON_CHECK(columns == b.columns(), Shape,
              fmt::format("col2im: `self` {} must have {} x {} = {} columns for `output_size` {}",
                          to_string(self.sizes()), b.count[0], b.count[1], b.columns(), to_string(size)));
  check_inexact(self.dtype(), true, "col2im");
  Dims sizes(self.sizes().data(), ndim - 2);
  sizes.push_back(rows / b.places());
  for (const int64_t n : size) sizes.push_back(n);
  out.set(0, sizes, self.dtype());
}

}  // namespace shape

void im2col(const Tensor& self, IntArrayRef kernel_size, IntArrayRef dilation, IntArrayRef padding,
            IntArrayRef stride, Tensor& out) {
  if (out.numel() == 0) return;
  const Blocks b =
      checked_blocks("im2col", spatial_sizes(self.sizes(), 2), kernel_size, dilation, padding, stride);
  for_each_place(b, out, [&](Tensor plane, std::span<const Axis> axes) {
    axes_copy_stub(self.device(), self, axes, Scalar(0), plane);
  });
}

void col2im(const Tensor& self, IntArrayRef output_size, IntArrayRef kernel_size, IntArrayRef dilation,
            IntArrayRef padding, IntArrayRef stride, Tensor& out) {
  if (out.numel() == 0) return;
  const Blocks b = checked_blocks("col2im", per_axis(output_size, 2, "col2im", "output_size"), kernel_size,
                                  dilation, padding, stride);
  // Half types add up in float32.
  const bool half = item_size(out.dtype()) == 2;
  Tensor sum = half ? make_empty(out.sizes(), DType::Float32, out.device()) : out;
  zero_elements(sum);
  for_each_place(b, self, [&](const Tensor& plane, std::span<const Axis> axes) {
    const Axis back[] = {axes[0].transposed(), axes[1].transposed()};
    axes_sum_stub(self.device(), plane, back, true, sum);
  });
  if (half) copy_elements(out, sum, "col2im");
}

}  // namespace tenon::ops
