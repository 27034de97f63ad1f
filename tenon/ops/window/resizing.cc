// Resizing by interpolation: nearest, linear and cubic, along 1 to 3 axes.
#include <fmt/core.h>

#include <array>
#include <cmath>

#include "tenon/generated/window/bodies.h"
#include "tenon/generated/window/functions.h"
#include "tenon/generated/window/shapes.h"
#include "tenon/ops/device_stubs.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/window/by_rank.h"
#include "tenon/ops/window/spatial.h"

namespace tenon::ops {
namespace {

/// PyTorch's name of a mode for a number of axes.
std::string resize_name(int64_t mode, size_t rank) {
  constexpr std::array<const char*, 3> kLinearNames = {"upsample_linear", "upsample_bilinear",
                                                       "upsample_trilinear"};
  switch (mode) {
    case kNearest:
      return with_rank("upsample_nearest", rank);
    case kNearestExact:
      return with_rank("_upsample_nearest_exact", rank);
    case kLinear:
      return with_rank(kLinearNames[rank - 1], rank);
    case kCubic:
      return with_rank("upsample_bicubic", rank);
    default:
      return with_rank(mode == kLinearMean ? "_upsample_bilinear" : "_upsample_bicubic", rank) + "_aa";
  }
}

bool copies(int64_t mode) { return mode == kNearest || mode == kNearestExact; }

/// Checks the arguments that forward and backward share; `result` has `output_size` as its last sizes.
std::string checked_resize(IntArrayRef input_size, IntArrayRef output_size, int64_t mode,
                           std::span<const double> scales) {
  const size_t rank = output_size.size();
  TENON_CHECK(mode >= kNearest && mode <= kCubicMean, Value, fmt::format(": no mode of resizing {}", mode));
  TENON_CHECK(rank >= 1 && rank <= 3 && (mode < kCubic || rank == 2), Value,
              fmt::format("{}: `output_size` must have {} numbers, got {}", resize_name(mode, 2),
                          mode >= kCubic ? "2" : "1, 2 or 3", rank));
  std::string op = resize_name(mode, rank);
  check_spatial(input_size, rank, op.c_str(), true);
  TENON_CHECK(scales.empty() || scales.size() == rank, Value,
              fmt::format("{}: expected {} scales, one for each axis, got {}", op, rank, scales.size()));
  for (const int64_t n : output_size) {
    TENON_CHECK(
        n > 0, Value,
        fmt::format("{}: `output_size` must be greater than zero, got {}", op, to_string(output_size)));
  }
  for (const double scale : scales) {
    TENON_CHECK(!(scale > 0) || std::isfinite(1 / scale), Value,
                fmt::format("{}: a scale must be finite and not denormal, got {}", op, scale));
  }
  return op;
}

/// How far apart the places of two neighbouring outputs are in the input; PyTorch's nearest modes compute it
/// in float32.
template <class T>
T step_of(int64_t inputs, int64_t outputs, double scale) {
  return scale > 0 ? static_cast<T>(1.0 / scale) : static_cast<T>(inputs) / static_cast<T>(outputs);
}

Axis nearest_axis(int64_t inputs, int64_t outputs, double scale, bool exact) {
  Axis axis = Axis::listed(inputs, outputs);
  axis.places.reserve(static_cast<size_t>(outputs));
  const auto step = step_of<float>(inputs, outputs, scale);
  const auto last = static_cast<double>(inputs - 1);  // what a tiny scale leads beyond
  for (int64_t o = 0; o < outputs; ++o) {
    double place = static_cast<double>(o);
    if (exact)
      place = static_cast<double>(static_cast<float>((place + 0.5) * static_cast<double>(step)));
    else if (outputs == 2 * inputs)
      place = place / 2;
    else if (outputs != inputs)
      place = static_cast<double>(static_cast<float>(o) * step);
    axis.add(place < last ? static_cast<int64_t>(place) : inputs - 1);
    axis.next();
  }
  return axis;
}

/// The position of output `o` in the input.
double place_of(int64_t o, int64_t inputs, int64_t outputs, bool align_corners, double scale) {
  const auto x = static_cast<double>(o);
  if (align_corners)
    return outputs > 1 ? x * (static_cast<double>(inputs - 1) / static_cast<double>(outputs - 1)) : 0;
  return (x + 0.5) * step_of<double>(inputs, outputs, scale) - 0.5;
}

Axis linear_axis(int64_t inputs, int64_t outputs, bool align_corners, double scale) {
  Axis axis = Axis::listed(inputs, outputs);
  for (int64_t o = 0; o < outputs; ++o) {
    const double place = outputs == inputs
                             ? static_cast<double>(o)
                             : std::max(place_of(o, inputs, outputs, align_corners, scale), 0.0);
    const int64_t low = static_cast<int64_t>(std::min(std::floor(place), static_cast<double>(inputs - 1)));
    const double part = std::clamp(place - static_cast<double>(low), 0.0, 1.0);
    axis.add(low, 1 - part);
    axis.add(std::min(low + 1, inputs - 1), part);
    axis.next();
  }
  return axis;
}

/// Keys (1981), IEEE Trans. ASSP 29, with a = -0.75; places beyond the ends are the ends.
Axis cubic_axis(int64_t inputs, int64_t outputs, bool align_corners, double scale) {
  constexpr double kA = -0.75;
  const auto near = [](double x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; };
  const auto far = [](double x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
  Axis axis = Axis::listed(inputs, outputs);
  for (int64_t o = 0; o < outputs; ++o) {
    const double place = place_of(o, inputs, outputs, align_corners, scale);
    const double first = std::clamp(std::floor(place), -4.0, static_cast<double>(inputs + 4));
    const double part = std::clamp(place - first, 0.0, 1.0);
    const std::array<double, 4> weights = {far(part + 1), near(part), near(1 - part), far(2 - part)};
    for (int64_t t = 0; t < 4; ++t)
      axis.add(std::clamp<int64_t>(static_cast<int64_t>(first) - 1 + t, 0, inputs - 1),
               weights[static_cast<size_t>(t)]);
    axis.next();
  }
  return axis;
}

/// The weight of an element at distance `x`, in linear (half as wide) or cubic interpolation. Cubic here has
/// a = -0.5, as in Pillow and PyTorch.
double filter(double x, bool cubic) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (!cubic) return x < 1 ? 1 - x : 0;
  if (x < 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * kA - 4 * kA : 0;
}

/// Interpolation whose kernel is as wide as the distance of outputs, where that is more than one input:
/// weights add up to 1.
Axis mean_axis(int64_t inputs, int64_t outputs, bool align_corners, double scale, bool cubic) {
  Axis axis = Axis::listed(inputs, outputs);
  const double step = !align_corners ? step_of<double>(inputs, outputs, scale)
                      : outputs > 1  ? static_cast<double>(inputs - 1) / static_cast<double>(outputs - 1)
                                     : 0;
  const double wide = std::max(step, 1.0), reach = (cubic ? 2 : 1) * wide;
  const auto last = static_cast<double>(inputs);
  for (int64_t o = 0; o < outputs; ++o) {
    const double center = step * (static_cast<double>(o) + 0.5);
    const auto begin = static_cast<int64_t>(std::clamp(center - reach + 0.5, 0.0, last - 1)),
               end = static_cast<int64_t>(std::clamp(center + reach + 0.5, 0.0, last));
    double total = 0;
    std::vector<double> weights;
    for (int64_t i = begin; i < end; ++i) {
      weights.push_back(filter((static_cast<double>(i) - center + 0.5) / wide, cubic));
      total += weights.back();
    }
    for (int64_t i = begin; i < end; ++i) {
      const double weight = weights[static_cast<size_t>(i - begin)];
      axis.add(i, total == 0 ? weight : weight / total);
    }
    axis.next();
  }
  return axis;
}

std::vector<Axis> resize_axes(IntArrayRef inputs, IntArrayRef outputs, int64_t mode, bool align_corners,
                              std::span<const double> scales) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const double scale = scales.empty() ? 0 : scales[i];
    if (copies(mode))
      axes.push_back(nearest_axis(inputs[i], outputs[i], scale, mode == kNearestExact));
    else if (mode == kLinear)
      axes.push_back(linear_axis(inputs[i], outputs[i], align_corners, scale));
    else if (mode == kCubic)
      axes.push_back(cubic_axis(inputs[i], outputs[i], align_corners, scale));
    else
      axes.push_back(mean_axis(inputs[i], outputs[i], align_corners, scale, mode == kCubicMean));
  }
  return axes;
}

}  // namespace

namespace shape {

void upsample(OutputSpecs& out, HeaderRef self, IntArrayRef output_size, int64_t mode, bool,
              std::span<const double> scales) {
  const std::string op = checked_resize(self.sizes(), output_size, mode, scales);
  if (!copies(mode)) check_inexact(self.dtype(), false, op.c_str());
  set_spatial(out, 0, self, with_spatial(self.sizes(), output_size), self.dtype());
}

void upsample_backward(OutputSpecs& out, HeaderRef grad, IntArrayRef input_size, int64_t mode, bool,
                       std::span<const double> scales) {
  checked_numel(input_size, kThisCall);
  TENON_CHECK(grad.dim() == static_cast<int64_t>(input_size.size()) && grad.dim() >= 3, Shape,
              fmt::format(": the gradient {} and the input {} must have 3, 4 or 5 dimensions each",
                          to_string(grad.sizes()), to_string(input_size)));
  const IntArrayRef output_size = spatial_sizes(grad.sizes(), grad.sizes().size() - 2);
  const std::string op = checked_resize(input_size, output_size, mode, scales) + "_backward";
  check_gradient_sizes(grad, with_spatial(input_size, output_size), op.c_str());
  check_inexact(grad.dtype(), copies(mode), op.c_str());
  set_spatial(out, 0, grad, input_size, grad.dtype());
}

}  // namespace shape

void upsample(const Tensor& self, IntArrayRef output_size, int64_t mode, bool align_corners,
              std::span<const double> scales, Tensor& out) {
  if (out.numel() == 0) return;
  const std::vector<Axis> axes =
      resize_axes(spatial_sizes(self.sizes(), output_size.size()), output_size, mode, align_corners, scales);
  if (copies(mode))
    axes_copy_stub(self.device(), self, axes, Scalar(0), out);
  else
    axes_sum_stub(self.device(), self, axes, false, out);
}

void upsample_backward(const Tensor& grad, IntArrayRef input_size, int64_t mode, bool align_corners,
                       std::span<const double> scales, Tensor& out) {
  if (out.numel() == 0) return;
  const size_t rank = input_size.size() - 2;
  std::vector<Axis> axes = resize_axes(spatial_sizes(input_size, rank), spatial_sizes(grad.sizes(), rank),
                                       mode, align_corners, scales);
  for (Axis& axis : axes) axis = axis.transposed();
  axes_sum_stub(grad.device(), grad, axes, false, out);
}

namespace {

std::vector<double> numbers(Scales scales) {
  std::vector<double> result;
  for (const std::optional<double> scale : scales) result.push_back(scale.value_or(0));
  return result;
}

void check_rank(IntArrayRef output_size, int64_t mode, size_t rank) {
  TENON_CHECK(output_size.size() == rank, Value,
              fmt::format("{}: `output_size` must have {} numbers, got {}", resize_name(mode, rank), rank,
                          to_string(output_size)));
}

}  // namespace

Tensor resize(const Tensor& self, IntArrayRef output_size, ResizeMode mode, bool align_corners,
              Scales scales) {
  check_rank(output_size, mode, scales.size());
  return tenon::_upsample(self, output_size, mode, align_corners, numbers(scales));
}

Tensor resize_backward(const Tensor& grad, IntArrayRef output_size, IntArrayRef input_size, ResizeMode mode,
                       bool align_corners, Scales scales) {
  const size_t rank = scales.size();
  check_rank(output_size, mode, rank);
  TENON_CHECK(grad.sizes().size() == rank + 2 && spatial_sizes(grad.sizes(), rank) == output_size, Shape,
              fmt::format("{}_backward: the gradient {} does not have `output_size` {}",
                          resize_name(mode, rank), to_string(grad.sizes()), to_string(output_size)));
  return tenon::_upsample_backward(grad, input_size, mode, align_corners, numbers(scales));
}

Tensor resize_by(const Tensor& input, std::optional<IntArrayRef> output_size,
                 std::optional<std::span<const double>> scale_factors, ResizeMode mode, bool align_corners,
                 size_t rank) {
  const std::string op = resize_name(mode, rank);
  TENON_CHECK(output_size.has_value() != scale_factors.has_value(), Value,
              fmt::format("{}: expected one of `output_size` and `scale_factors`", op));
  if (output_size) {
    check_rank(*output_size, mode, rank);
    return tenon::_upsample(input, *output_size, mode, align_corners, std::span<const double>());
  }
  TENON_CHECK(
      scale_factors->size() == rank, Value,
      fmt::format("{}: `scale_factors` must have {} numbers, got {}", op, rank, scale_factors->size()));
  check_spatial(input.sizes(), rank, op.c_str(), true);
  Dims sizes;
  for (size_t i = 0; i < rank; ++i) {
    const double size = std::floor(static_cast<double>(input.sizes()[i + 2]) * (*scale_factors)[i]);
    TENON_CHECK(size >= 0 && size < 0x1p62, Value,
                fmt::format("{}: `scale_factors` has {}, which gives no size", op, (*scale_factors)[i]));
    sizes.push_back(static_cast<int64_t>(size));
  }
  return tenon::_upsample(input, sizes, mode, align_corners, *scale_factors);
}

}  // namespace tenon::ops
