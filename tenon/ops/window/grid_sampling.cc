// Values of an image between its elements, at places that a grid names, and grids of affine maps.
#include <fmt/core.h>

#include <array>
#include <cmath>
#include <vector>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/generated/window/bodies.h"
#include "tenon/generated/window/functions.h"
#include "tenon/ops/tensor_operators.h"

namespace tenon::ops {
namespace {

enum Interpolation : int64_t { kBilinear, kNearest, kBicubic };
enum Padding : int64_t { kZeros, kBorder, kReflection };

/// The elements along one axis that a value is made of: for each, its place, whether it is in the image, and
/// its weight. All have one number for each place of the grid.
struct Taps {
  std::vector<Tensor> places, inside, weights;

  void add(const Tensor& place, int64_t size, const Tensor& weight) {
    inside.push_back((place >= 0).logical_and(place <= static_cast<double>(size - 1)));
    places.push_back(tenon::where(inside.back(), place, Scalar(0)).to(DType::Int64));
    weights.push_back(weight);
  }
};

/// Limits coordinates to the image. The gradient is 0 at the border, as in PyTorch.
Tensor clipped(const Tensor& x, int64_t size) {
  const auto last = static_cast<double>(size - 1);
  return tenon::where(x > 0, tenon::where(x < last, x, Scalar(last)), Scalar(0));
}

/// Reflects coordinates at the centres of the outer elements, or with align_corners false at their outer
/// edges.
Tensor reflected(const Tensor& x, int64_t size, bool align_corners) {
  const double low = align_corners ? 0 : -0.5;
  const double span = align_corners ? static_cast<double>(size - 1) : static_cast<double>(size);
  if (span == 0) return x * 0;
  const Tensor from = x - low, away = tenon::where(from < 0, -from, from);
  const Tensor extra = tenon::fmod(away, span), flips = tenon::floor(away.detach() / span);
  return tenon::where(tenon::remainder(flips, 2) == 0, extra + low, span - extra + low);
}

Tensor padded(const Tensor& x, int64_t size, int64_t padding, bool align_corners) {
  if (padding == kZeros) return x;
  return clipped(padding == kReflection ? reflected(x, size, align_corners) : x, size);
}

/// Coordinates from -1 to 1 as places among `size` elements.
Tensor places_of(const Tensor& grid, int64_t size, bool align_corners) {
  const double half = static_cast<double>(align_corners ? size - 1 : size) / 2;
  return align_corners ? (grid + 1) * half : (grid + 1) * half - 0.5;
}

/// The cubic convolution of Keys (1981) with a = -0.75, for the four elements around a place.
std::array<Tensor, 4> cubic_weights(const Tensor& t) {
  constexpr double a = -0.75;
  const auto near = [](const Tensor& x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](const Tensor& x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  const Tensor rest = 1 - t;
  return {far(t + 1), near(t), near(rest), far(rest + 1)};
}

Taps taps_of(const Tensor& grid, int64_t size, int64_t mode, int64_t padding, bool align_corners) {
  Taps taps;
  Tensor x = places_of(grid, size, align_corners);
  if (mode == kBicubic) {
    const Tensor below = tenon::floor(x.detach());
    const std::array<Tensor, 4> weights = cubic_weights(x - below);
    for (int64_t i = 0; i < 4; ++i)
      taps.add(padded(below + static_cast<double>(i - 1), size, padding, align_corners), size,
               weights[static_cast<size_t>(i)]);
    return taps;
  }
  x = padded(x, size, padding, align_corners);
  if (mode == kNearest) {
    // The weight is 1, with a gradient of zeros for the grid.
    const Tensor zero = tenon::where(tenon::abs(x.detach()) < INFINITY, x - x, Scalar(0));
    taps.add(tenon::round(x.detach()), size, zero + 1);
    return taps;
  }
  const Tensor below = tenon::floor(x.detach()), t = x - below;
  taps.add(below, size, 1 - t);
  taps.add(below + 1, size, t);
  return taps;
}

/// The rows of the image, where it is a matrix of elements by channels, and their weights: [taps, places].
struct Rows {
  std::vector<Tensor> rows, weights;
};

/// Adds an axis: each tap of the former axes, which `index`, `inside` and `weight` describe, with each of its
/// own.
void combine(const std::vector<Taps>& axes, IntArrayRef sizes, int64_t none, size_t axis, const Tensor& index,
             const Tensor& inside, const Tensor& weight, Rows& out) {
  if (axis == axes.size()) {
    out.rows.push_back(tenon::where(inside, index, Scalar(none)));
    out.weights.push_back(weight);
    return;
  }
  const Taps& taps = axes[axis];
  for (size_t i = 0; i < taps.places.size(); ++i) {
    const Tensor at = index * sizes[axis] + taps.places[i];
    const Tensor in = inside.defined() ? inside.logical_and(taps.inside[i]) : taps.inside[i];
    const Tensor by = weight.defined() ? weight * taps.weights[i] : taps.weights[i];
    combine(axes, sizes, none, axis + 1, at, in, by, out);
  }
}

void check_grid(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, const char* op,
                int64_t rank) {
  TENON_CHECK(
      input.dim() == rank + 2 && grid.dim() == rank + 2, Shape,
      fmt::format("{}: expected `input` and `grid` of {} dimensions, got {} and {}; a batch comes first", op,
                  rank + 2, to_string(input.sizes()), to_string(grid.sizes())));
  TENON_CHECK(input.size(0) == grid.size(0), Shape,
              fmt::format("{}: expected `grid` and `input` to have the same batch size, got {} and {}", op,
                          to_string(grid.sizes()), to_string(input.sizes())));
  TENON_CHECK(grid.size(-1) == rank, Shape,
              fmt::format("{}: expected `grid` to have size {} in its last dimension, got {}", op, rank,
                          to_string(grid.sizes())));
  for (int64_t d = 2; d < input.dim(); ++d)
    TENON_CHECK(input.size(d) > 0, Shape,
                fmt::format("{}: expected `input` to have elements in each channel, got {}", op,
                            to_string(input.sizes())));
  TENON_CHECK(is_floating_point(input.dtype()), Type,
              fmt::format("{}: not implemented for {}; convert `input` to a floating-point type", op,
                          name(input.dtype())));
  TENON_CHECK(input.dtype() == grid.dtype(), Type,
              fmt::format("{}: expected `grid` of the dtype of `input`, {}, got {}; convert one", op,
                          name(input.dtype()), name(grid.dtype())));
  TENON_CHECK(mode >= kBilinear && mode <= kBicubic, Value,
              fmt::format("{}: `interpolation_mode` must be 0 (bilinear), 1 (nearest) or 2 (bicubic), got {}",
                          op, mode));
  TENON_CHECK(
      padding >= kZeros && padding <= kReflection, Value,
      fmt::format("{}: `padding_mode` must be 0 (zeros), 1 (border) or 2 (reflection), got {}", op, padding));
}

Tensor sample(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, bool align_corners,
              const char* op, int64_t rank) {
  check_grid(input, grid, mode, padding, op, rank);
  const bool half = input.dtype() == DType::Float16 || input.dtype() == DType::BFloat16;
  const Tensor image = half ? input.to(DType::Float32) : input;
  const Tensor coordinates = half ? grid.to(DType::Float32) : grid;
  const IntArrayRef sizes(image.sizes().data() + 2, static_cast<size_t>(rank));
  std::vector<Taps> axes;
  for (int64_t d = 0; d < rank; ++d)  // the last coordinate is that of the first axis
    axes.push_back(taps_of(coordinates.select(-1, rank - 1 - d), sizes[static_cast<size_t>(d)], mode, padding,
                           align_corners));
  // One row more, of zeros: for what is outside.
  const int64_t batch = image.size(0), channels = image.size(1);
  int64_t none = batch;
  for (const int64_t size : sizes) none *= size;
  const Tensor elements = tenon::movedim(image, IntArrayRef(1), IntArrayRef(-1)).reshape({none, channels});
  const Tensor rows = tenon::constant_pad_nd(elements, Dims{0, 0, 0, 1}, Scalar(0));
  Dims lead(grid.sizes().size() - 1, 1);
  lead[0] = batch;
  const Tensor numbers =
      tenon::arange(batch, TensorOptions().dtype(DType::Int64).device(grid.device())).reshape(lead);
  Rows taps;
  combine(axes, sizes, none, 0, numbers, Tensor(), Tensor(), taps);
  const Tensor index = tenon::stack(taps.rows), weights = tenon::stack(taps.weights);
  Dims shape = index.sizes().to_dims();
  shape.push_back(channels);
  const Tensor values = tenon::index_select(rows, 0, index.reshape({index.numel()})).reshape(shape);
  const Tensor result = tenon::sum(values * weights.unsqueeze(-1), IntArrayRef(int64_t{0}));
  return tenon::movedim(result, IntArrayRef(-1), IntArrayRef(1)).contiguous().to(input.dtype());
}

}  // namespace

Tensor grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                       bool align_corners) {
  return sample(input, grid, mode, padding, align_corners, "grid_sampler_2d", 2);
}

Tensor grid_sampler_3d(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                       bool align_corners) {
  return sample(input, grid, mode, padding, align_corners, "grid_sampler_3d", 3);
}

Tensor grid_sampler(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                    bool align_corners) {
  TENON_CHECK(input.dim() == 4 || input.dim() == 5, Shape,
              fmt::format("grid_sampler: expected `input` of 4 or 5 dimensions, got {}; a batch comes first",
                          to_string(input.sizes())));
  return sample(input, grid, mode, padding, align_corners, "grid_sampler", input.dim() - 2);
}

Tensor affine_grid_generator(const Tensor& theta, IntArrayRef size, bool align_corners) {
  const size_t rank = size.size() - 2;
  TENON_CHECK(
      size.size() == 4 || size.size() == 5, Shape,
      fmt::format("affine_grid_generator: `size` must have 4 or 5 numbers, [N, C, H, W] or [N, C, D, H, "
                  "W], got {}",
                  to_string(size)));
  const auto axes = static_cast<int64_t>(rank);
  TENON_CHECK(
      theta.dim() == 3 && theta.size(0) == size[0] && theta.size(1) == axes && theta.size(2) == axes + 1,
      Shape,
      fmt::format("affine_grid_generator: `theta` must be [{}, {}, {}] for size {}, got {}", size[0], axes,
                  axes + 1, to_string(size), to_string(theta.sizes())));
  TENON_CHECK(
      is_floating_point(theta.dtype()), Type,
      fmt::format("affine_grid_generator: not implemented for {}; convert `theta` to a floating-point "
                  "type",
                  name(theta.dtype())));
  Dims sizes(rank + 1, 1);
  for (size_t d = 0; d < rank; ++d) {
    TENON_CHECK(
        size[d + 2] > 0, Value,
        fmt::format("affine_grid_generator: sizes must be greater than zero, got {}", to_string(size)));
    sizes[d] = size[d + 2];
  }
  std::vector<Tensor> columns;  // the last axis is the first coordinate
  sizes.back() = 1;
  for (size_t d = rank; d-- > 0;) {
    const int64_t steps = size[d + 2];
    Tensor line =
        steps == 1 ? tenon::zeros({1}, theta.options()) : tenon::linspace(-1, 1, steps, theta.options());
    if (!align_corners && steps > 1)
      line = line * (static_cast<double>(steps - 1) / static_cast<double>(steps));
    Dims shape(rank + 1, 1);
    shape[d] = steps;
    columns.push_back(line.reshape(shape).expand(sizes));
  }
  columns.push_back(tenon::ones({}, theta.options()).expand(sizes));
  Dims result{size[0]};
  for (size_t d = 0; d < rank; ++d) result.push_back(size[d + 2]);
  result.push_back(axes);
  const Tensor base = tenon::cat(columns, -1).reshape({1, -1, axes + 1}).expand({size[0], -1, axes + 1});
  return tenon::bmm(base, theta.transpose(1, 2)).reshape(result);
}

}  // namespace tenon::ops
