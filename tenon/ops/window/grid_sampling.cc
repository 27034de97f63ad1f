// Values of an image between its elements, at places that a grid names, and grids of affine maps. A kernel
// computes values and gradients; a gradient that is differentiated itself is made of operators here.
#include <fmt/core.h>

#include <array>
#include <cmath>
#include <vector>

#include "tenon/core/thread_state.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/generated/window/bodies.h"
#include "tenon/generated/window/functions.h"
#include "tenon/generated/window/shapes.h"
#include "tenon/ops/tensor_operators.h"
#include "tenon/ops/window/grid.h"

namespace tenon::ops {
namespace {

/// How a call samples. `mode` and `padding` are numbers of its arguments.
struct Mode {
  Sampling mode;
  GridPadding padding;
  bool align_corners;

  Mode(int64_t mode, int64_t padding, bool align_corners)
      : mode(static_cast<Sampling>(mode)),
        padding(static_cast<GridPadding>(padding)),
        align_corners(align_corners) {}
};

/// The elements along one axis that a value is made of: for each, its place, whether it is in the image, its
/// weight, and the slope of its weight by the coordinate. All have one number for each place of the grid.
struct Taps {
  std::vector<Tensor> places, inside, weights, slopes;

  void add(const Tensor& place, int64_t size, const Tensor& weight, const Tensor& slope) {
    inside.push_back((place >= 0).logical_and(place <= static_cast<double>(size - 1)));
    places.push_back(tenon::where(inside.back(), place, Scalar(0)).to(DType::Int64));
    weights.push_back(weight);
    slopes.push_back(slope);
  }
};

/// A coordinate as a place among elements, and the slope of that place by the coordinate.
struct Place {
  Tensor at, slope;
};

/// Reflects at the centres of the outer elements, or with align_corners false at their outer edges.
void reflect(Place& x, int64_t size, bool align_corners) {
  const double low = align_corners ? 0 : -0.5;
  const double span = align_corners ? static_cast<double>(size - 1) : static_cast<double>(size);
  if (span == 0) {
    x = {x.at * 0, x.slope * 0};
    return;
  }
  const Tensor from = x.at - low, before = from < 0;
  const Tensor away = tenon::where(before, -from, from);
  const Tensor extra = tenon::fmod(away, span), even = tenon::remainder(tenon::floor(away / span), 2) == 0;
  x.at = tenon::where(even, extra + low, span - extra + low);
  x.slope = tenon::where(before.logical_xor(even), x.slope, -x.slope);
}

/// Brings places into the image. The slope is 0 at the border, as in PyTorch.
void pad(Place& x, int64_t size, const Mode& m) {
  if (m.padding == GridPadding::Zeros) return;
  if (m.padding == GridPadding::Reflection) reflect(x, size, m.align_corners);
  const auto last = static_cast<double>(size - 1);
  const Tensor above = x.at > 0, below = x.at < last;
  x.at = tenon::where(above, tenon::where(below, x.at, Scalar(last)), Scalar(0));
  x.slope = tenon::where(above.logical_and(below), x.slope, Scalar(0));
}

/// Coordinates from -1 to 1 among `size` elements.
Place place_of(const Tensor& grid, int64_t size, bool align_corners) {
  const double half = static_cast<double>(align_corners ? size - 1 : size) / 2;
  return {align_corners ? (grid + 1) * half : (grid + 1) * half - 0.5, tenon::full_like(grid, half)};
}

/// The cubic convolution of Keys (1981) with a = -0.75, for the four elements around a place.
void add_cubic(Taps& taps, const Place& x, int64_t size, const Mode& m) {
  constexpr double a = -0.75;
  const auto near = [](const Tensor& x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](const Tensor& x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  const auto near_slope = [](const Tensor& x) { return (3 * (a + 2) * x - 2 * (a + 3)) * x; };
  const auto far_slope = [](const Tensor& x) { return (3 * a * x - 10 * a) * x + 8 * a; };
  const Tensor below = tenon::floor(x.at.detach()), t = x.at - below, rest = 1 - t;
  const std::array<Tensor, 4> weights = {far(t + 1), near(t), near(rest), far(rest + 1)};
  const std::array<Tensor, 4> slopes = {far_slope(t + 1), near_slope(t), -near_slope(rest),
                                        -far_slope(rest + 1)};
  for (size_t i = 0; i < 4; ++i) {
    Place tap{below + (static_cast<double>(i) - 1), x.slope};
    pad(tap, size, m);
    taps.add(tap.at, size, weights[i], slopes[i] * x.slope);
  }
}

Taps taps_of(const Tensor& grid, int64_t size, const Mode& m) {
  Taps taps;
  Place x = place_of(grid, size, m.align_corners);
  if (m.mode == Sampling::Bicubic) {
    add_cubic(taps, x, size, m);
    return taps;
  }
  pad(x, size, m);
  const Tensor below = tenon::floor(x.at.detach()), t = x.at - below;
  taps.add(below, size, 1 - t, -x.slope);
  taps.add(below + 1, size, t, x.slope);
  return taps;
}

/// The elements of an image that its places are made of: their rows, where the image is a matrix of elements
/// by channels, and the slopes of their weights by each coordinate.
struct Reads {
  std::vector<Tensor> rows;
  std::vector<std::vector<Tensor>> slopes;  ///< For each axis.
};

/// Adds an axis: each tap of the former axes, which `index`, `inside` and `parts` describe, with each of its
/// own. `parts`: the weight, then its slopes by the former axes; undefined before the first one.
void combine(const std::vector<Taps>& axes, IntArrayRef sizes, int64_t none, const Tensor& index,
             const Tensor& inside, const std::vector<Tensor>& parts, Reads& out) {
  const size_t axis = parts.size() - 1;
  if (axis == axes.size()) {
    out.rows.push_back(tenon::where(inside, index, Scalar(none)));
    for (size_t d = 0; d < axis; ++d) out.slopes[d].push_back(parts[d + 1]);
    return;
  }
  const Taps& taps = axes[axis];
  for (size_t i = 0; i < taps.places.size(); ++i) {
    const Tensor in = axis > 0 ? inside.logical_and(taps.inside[i]) : taps.inside[i];
    std::vector<Tensor> with;
    for (const Tensor& part : parts) with.push_back(axis > 0 ? part * taps.weights[i] : taps.weights[i]);
    with.push_back(axis > 0 ? parts[0] * taps.slopes[i] : taps.slopes[i]);
    combine(axes, sizes, none, index * sizes[axis] + taps.places[i], in, with, out);
  }
}

/// The gradient by `grid`, of operators that have derivatives.
Tensor composed_grid_gradient(const Tensor& grad, const Tensor& input, const Tensor& grid, const Mode& m) {
  const bool half = input.dtype() == DType::Float16 || input.dtype() == DType::BFloat16;
  const auto computed = [&](const Tensor& t) { return half ? t.to(DType::Float32) : t; };
  const Tensor image = computed(input), coordinates = computed(grid);
  const int64_t rank = input.dim() - 2, batch = image.size(0), channels = image.size(1);
  const IntArrayRef sizes(image.sizes().data() + 2, static_cast<size_t>(rank));
  std::vector<Taps> axes;
  int64_t none = batch;
  for (int64_t d = 0; d < rank; ++d) {  // the last coordinate is that of the first axis
    const int64_t size = sizes[static_cast<size_t>(d)];
    axes.push_back(taps_of(coordinates.select(-1, rank - 1 - d), size, m));
    none *= size;
  }
  // One row more, of zeros: for what is outside.
  const Tensor elements = tenon::movedim(image, IntArrayRef(1), IntArrayRef(-1)).reshape({none, channels});
  const Tensor rows = tenon::constant_pad_nd(elements, Dims{0, 0, 0, 1}, Scalar(0));
  Dims lead(grid.sizes().size() - 1, 1);
  lead[0] = batch;
  const Tensor numbers =
      tenon::arange(batch, TensorOptions().dtype(DType::Int64).device(grid.device())).reshape(lead);
  Reads taps;
  taps.slopes.resize(static_cast<size_t>(rank));
  combine(axes, sizes, none, numbers, Tensor(), {Tensor()}, taps);
  const Tensor index = tenon::stack(taps.rows);
  Dims shape = index.sizes().to_dims();
  shape.push_back(channels);
  const Tensor values = tenon::index_select(rows, 0, index.reshape({index.numel()})).reshape(shape);
  const Tensor shares = tenon::sum(values * tenon::movedim(computed(grad), IntArrayRef(1), IntArrayRef(-1)),
                                   IntArrayRef(int64_t{-1}));
  std::vector<Tensor> columns;
  for (int64_t d = rank; d-- > 0;)
    columns.push_back(
        tenon::sum(shares * tenon::stack(taps.slopes[static_cast<size_t>(d)]), IntArrayRef(int64_t{0})));
  return tenon::stack(columns, -1).to(grid.dtype());
}

[[noreturn]] void refuse(const char* op, ErrorKind kind, const std::string& text) {
  throw_error(kind, fmt::format("{}: {}", op, text));
}

/// Checks the arguments of all operators that sample; `input_size` is that of the image.
void check_call(const char* op, size_t rank, IntArrayRef input_size, DType dtype, HeaderRef grid,
                int64_t mode, int64_t padding) {
  if (input_size.size() != rank + 2 || grid.sizes().size() != rank + 2)
    refuse(op, ErrorKind::Shape,
           fmt::format("expected `input` and `grid` of {} dimensions, got {} and {}; a batch comes first",
                       rank + 2, to_string(input_size), to_string(grid.sizes())));
  if (input_size[0] != grid.sizes()[0])
    refuse(op, ErrorKind::Shape,
           fmt::format("expected `grid` and `input` to have the same batch size, got {} and {}",
                       to_string(grid.sizes()), to_string(input_size)));
  if (grid.sizes()[rank + 1] != static_cast<int64_t>(rank))
    refuse(op, ErrorKind::Shape,
           fmt::format("expected `grid` to have size {} in its last dimension, got {}", rank,
                       to_string(grid.sizes())));
  for (size_t d = 2; d < input_size.size(); ++d)
    if (input_size[d] <= 0)
      refuse(op, ErrorKind::Shape,
             fmt::format("expected `input` to have elements in each channel, got {}", to_string(input_size)));
  if (!is_floating_point(dtype))
    refuse(op, ErrorKind::Type,
           fmt::format("not implemented for {}; convert `input` to a floating-point type", name(dtype)));
  if (dtype != grid.dtype())
    refuse(op, ErrorKind::Type,
           fmt::format("expected `grid` of the dtype of `input`, {}, got {}; convert one", name(dtype),
                       name(grid.dtype())));
  if (mode < 0 || mode > static_cast<int64_t>(Sampling::Bicubic))
    refuse(
        op, ErrorKind::Value,
        fmt::format("`interpolation_mode` must be 0 (bilinear), 1 (nearest) or 2 (bicubic), got {}", mode));
  if (padding < 0 || padding > static_cast<int64_t>(GridPadding::Reflection))
    refuse(op, ErrorKind::Value,
           fmt::format("`padding_mode` must be 0 (zeros), 1 (border) or 2 (reflection), got {}", padding));
}

/// The sizes of a result: batch and channels of the image, then the places of the grid.
Dims sampled_sizes(IntArrayRef input_size, HeaderRef grid) {
  Dims sizes = input_size.to_dims();
  for (size_t d = 2; d < sizes.size(); ++d) sizes[d] = grid.sizes()[d - 1];
  return sizes;
}

void set_sampled(OutputSpecs& out, const char* op, size_t rank, HeaderRef input, HeaderRef grid, int64_t mode,
                 int64_t padding) {
  check_call(op, rank, input.sizes(), input.dtype(), grid, mode, padding);
  out.set(0, sampled_sizes(input.sizes(), grid), input.dtype());
}

void check_gradient(const char* op, HeaderRef grad, HeaderRef input, HeaderRef grid, int64_t mode,
                    int64_t padding) {
  check_call(op, input.sizes().size() == 5 ? 3 : 2, input.sizes(), input.dtype(), grid, mode, padding);
  const Dims sizes = sampled_sizes(input.sizes(), grid);
  if (grad.sizes() != IntArrayRef(sizes) || grad.dtype() != input.dtype())
    refuse(op, ErrorKind::Shape,
           fmt::format("expected `grad_output` {} {} as the result, got {} {}", name(input.dtype()),
                       to_string(sizes), name(grad.dtype()), to_string(grad.sizes())));
}

}  // namespace

namespace shape {

void grid_sampler_2d(OutputSpecs& out, HeaderRef input, HeaderRef grid, int64_t mode, int64_t padding,
                     bool align_corners) {
  set_sampled(out, "grid_sampler_2d", 2, input, grid, mode, padding);
}

void grid_sampler_3d(OutputSpecs& out, HeaderRef input, HeaderRef grid, int64_t mode, int64_t padding,
                     bool align_corners) {
  set_sampled(out, "grid_sampler_3d", 3, input, grid, mode, padding);
}

void grid_sampler_input_backward(OutputSpecs& out, HeaderRef grad_output, HeaderRef input, HeaderRef grid,
                                 int64_t mode, int64_t padding, bool align_corners) {
  check_gradient("_grid_sampler_input_backward", grad_output, input, grid, mode, padding);
  out.set(0, input.sizes(), input.dtype(), Elements::Zero);
}

void grid_sampler_slopes(OutputSpecs& out, HeaderRef grad_output, HeaderRef input, HeaderRef grid,
                         int64_t mode, int64_t padding, bool align_corners) {
  check_gradient("_grid_sampler_slopes", grad_output, input, grid, mode, padding);
  out.set(0, grid.sizes(), grid.dtype());
}

}  // namespace shape

Tensor grid_sampler(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                    bool align_corners) {
  constexpr const char* kName = "grid_sampler";
  TENON_CHECK(input.dim() == 4 || input.dim() == 5, Shape,
              fmt::format("{}: expected `input` of 4 or 5 dimensions, got {}; a batch comes first", kName,
                          to_string(input.sizes())));
  const bool planes = input.dim() == 4;
  check_call(kName, planes ? 2 : 3, input.sizes(), input.dtype(), grid, mode, padding);
  return (planes ? tenon::grid_sampler_2d : tenon::grid_sampler_3d)(input, grid, mode, padding,
                                                                    align_corners);
}

Tensor grid_sampler_grid_backward(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                  int64_t mode, int64_t padding, bool align_corners) {
  check_gradient("_grid_sampler_grid_backward", grad_output, input, grid, mode, padding);
  const Mode m(mode, padding, align_corners);
  bool differentiated = false;
  for (const Tensor* t : {&grad_output, &input, &grid}) differentiated |= t->requires_grad();
  if (m.mode == Sampling::Nearest) return tenon::zeros_like(grid);
  if (!thread_state.grad_enabled || !differentiated)
    return tenon::_grid_sampler_slopes(grad_output, input, grid, mode, padding, align_corners);
  return composed_grid_gradient(grad_output, input, grid, m);
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
  Dims result{size[0]};
  for (size_t d = 0; d < rank; ++d) result.push_back(size[d + 2]);
  result.push_back(axes);
  // What has no room for the result says so before lines of its axes are filled.
  tenon::empty(result, theta.options());
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
  const Tensor base = tenon::cat(columns, -1).reshape({1, -1, axes + 1}).expand({size[0], -1, axes + 1});
  return tenon::bmm(base, theta.transpose(1, 2)).reshape(result);
}

}  // namespace tenon::ops
