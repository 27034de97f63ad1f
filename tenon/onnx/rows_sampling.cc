// Operators that read images at places which other tensors give.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/generated/window/functions.h"
#include "tenon/onnx/node_call.h"
#include "tenon/onnx/rows.h"
#include "tenon/ops/factory/from_data.h"
#include "tenon/ops/tensor_operators.h"

namespace tenon::onnx {
namespace {

using N = NodeCall;

enum class Mode : uint8_t { Nearest, Linear, Cubic };
enum class Outside : uint8_t { Zeros, Border, Reflection };

struct SamplingMethod {
  Mode mode = Mode::Linear;
  Outside outside = Outside::Zeros;
  bool aligned = true;  ///< Images end at the centers of their first and last elements.
};

/// Reflected at both ends, as often as it takes.
Tensor reflected(const Tensor& x, int64_t size, bool aligned) {
  const double low = aligned ? 0 : -0.5, length = static_cast<double>(aligned ? size - 1 : size);
  if (length == 0) return zeros_like(x);
  const Tensor at = remainder(x - Scalar(low), Scalar(2 * length));
  return Scalar(low + length) - abs(Scalar(length) - at);
}
Tensor brought_inside(const Tensor& x, int64_t size, const SamplingMethod& m) {
  if (m.outside == Outside::Reflection) return reflected(x, size, m.aligned);
  return m.outside == Outside::Border ? clamp(x, Scalar(0), Scalar(size - 1)) : x;
}

/// What one dimension contributes: elements by index, and how much of each.
struct Tap {
  Tensor index, weight;
};
std::vector<Tap> taps_of(Tensor at, int64_t size, const SamplingMethod& m) {
  if (m.mode == Mode::Nearest) at = round(at);
  // Cubic interpolation has the border's elements outside, not the border's value.
  if (m.mode != Mode::Cubic || m.outside != Outside::Border) at = brought_inside(at, size, m);
  const Tensor low = m.mode == Mode::Nearest ? at : floor(at), part = at - low, rest = Scalar(1) - part;
  constexpr double kA = -0.75;  // Keys (1981), IEEE Trans. ASSP 29
  const auto near = [](const Tensor& x) { return (x * Scalar(kA + 2) - Scalar(kA + 3)) * x * x + Scalar(1); };
  const auto far = [](const Tensor& x) {
    return ((x * Scalar(kA) - Scalar(5 * kA)) * x + Scalar(8 * kA)) * x - Scalar(4 * kA);
  };
  std::vector<Tap> taps;
  if (m.mode == Mode::Nearest)
    taps = {{low, Tensor()}};
  else if (m.mode == Mode::Linear)
    taps = {{low, rest}, {low + Scalar(1), part}};
  else
    taps = {{low - Scalar(1), far(part + Scalar(1))},
            {low, near(part)},
            {low + Scalar(1), near(rest)},
            {low + Scalar(2), far(rest + Scalar(1))}};
  for (Tap& tap : taps) {
    const Tensor index = round(brought_inside(tap.index, size, m)).detach();
    if (m.outside == Outside::Zeros) {
      const Tensor is_inside = logical_and(index >= Scalar(0), index <= Scalar(size - 1)).to(at.dtype());
      tap.weight = tap.weight.defined() ? tap.weight * is_inside : is_inside;
    }
    tap.index = clamp(index, Scalar(0), Scalar(size - 1)).to(kInt64);
  }
  return taps;
}

/// Elements of images [images, channels, sizes..] at places, [images, places] for each dimension after the
/// second: [images, channels, places].
Tensor sampled(const Tensor& x, const std::vector<Tensor>& at, const SamplingMethod& m) {
  const Tensor flat = x.reshape({x.sizes()[0], x.sizes()[1], -1});
  const Dims shape{x.sizes()[0], x.sizes()[1], at[0].sizes()[1]};
  std::vector<Tap> all{{}};
  for (size_t i = 0; i < at.size(); ++i) {
    std::vector<Tap> next;
    const int64_t size = x.sizes()[i + 2];
    for (const Tap& tap : taps_of(at[i], size, m))
      for (const Tap& before : all) {
        const bool both = before.weight.defined() && tap.weight.defined();
        next.push_back({before.index.defined() ? before.index * Scalar(size) + tap.index : tap.index,
                        both                      ? before.weight * tap.weight
                        : before.weight.defined() ? before.weight
                                                  : tap.weight});
      }
    all = std::move(next);
  }
  Tensor out;
  for (const Tap& tap : all) {
    Tensor part = gather(flat, 2, expand(unsqueeze(tap.index, 1), shape));
    if (tap.weight.defined()) part = part * unsqueeze(tap.weight, 1);
    out = out.defined() ? out + part : part;
  }
  return out;
}

void grid_sample(N& n) {
  const Tensor &x = n.tensor(0), &grid = n.tensor(1);
  const size_t rank = x.sizes().size() - std::min<size_t>(2, x.sizes().size());
  TENON_NODE_CHECK(n,
                   rank > 0 && grid.sizes().size() == rank + 2 && grid.sizes()[0] == x.sizes()[0] &&
                       grid.sizes()[rank + 1] == static_cast<int64_t>(rank),
                   Shape, fmt::format("input {} and grid {}", to_string(x.sizes()), to_string(grid.sizes())));
  SamplingMethod m;
  const std::string_view mode = n.text("mode", "linear"), outside = n.text("padding_mode", "zeros");
  // Before version 20: "bilinear", "bicubic".
  m.mode = mode == "nearest" ? Mode::Nearest : mode.ends_with("cubic") ? Mode::Cubic : Mode::Linear;
  TENON_NODE_CHECK(n, m.mode != Mode::Linear || mode.ends_with("linear"), Value,
                   fmt::format("attribute `mode` is '{}'", mode));
  m.outside = outside == "border"       ? Outside::Border
              : outside == "reflection" ? Outside::Reflection
                                        : Outside::Zeros;
  TENON_NODE_CHECK(n, m.outside != Outside::Zeros || outside == "zeros", Value,
                   fmt::format("attribute `padding_mode` is '{}'", outside));
  m.aligned = n.flag("align_corners", false);
  Dims sizes(grid.sizes().data(), rank + 1);
  sizes.insert(1, x.sizes()[1]);
  if (x.numel() == 0 || grid.numel() == 0)
    return n.set(zeros(sizes, TensorOptions(x.dtype()).device(x.device())));
  const Tensor real = is_integral(x.dtype(), true) ? x.to(grid.dtype()) : x;
  if ((rank == 2 || rank == 3) && real.dtype() == grid.dtype()) {
    const int64_t modes[] = {1, 0, 2};  // of Mode::Nearest, Linear and Cubic
    return n.set(grid_sampler(real, grid, modes[static_cast<size_t>(m.mode)], static_cast<int64_t>(m.outside),
                              m.aligned)
                     .to(x.dtype()));
  }
  std::vector<Tensor> at;
  for (size_t i = 0; i < rank; ++i) {
    const Tensor place = select(grid, -1, static_cast<int64_t>(rank - 1 - i)).reshape({x.sizes()[0], -1});
    const auto size = static_cast<double>(x.sizes()[i + 2]);
    at.push_back(m.aligned ? (place + Scalar(1)) * Scalar((size - 1) / 2)
                           : ((place + Scalar(1)) * Scalar(size) - Scalar(1)) * Scalar(0.5));
  }
  n.set(sampled(real, at, m).reshape(sizes).to(x.dtype()));
}

/// The places of an image's elements, from -1 to 1, after affine maps.
void affine_grid(N& n) {
  const Tensor& theta = n.tensor(0);
  const Dims size = n.ints(1);
  TENON_NODE_CHECK(n, size.size() >= 3 && theta.sizes().size() == 3, Shape,
                   fmt::format("maps {} and a size of {} numbers", to_string(theta.sizes()), size.size()));
  const bool aligned = n.flag("align_corners", false);
  const size_t rank = size.size() - 2;
  const TensorOptions options = options_like(theta);
  const Dims spatial(size.data() + 2, rank);
  std::vector<Tensor> columns;
  for (size_t i = rank; i-- > 0;) {
    std::vector<double> places;
    const auto count = static_cast<double>(spatial[i]);
    for (double at = 0; at < count; ++at)
      places.push_back(!aligned ? (2 * at + 1) / count - 1 : count > 1 ? 2 * at / (count - 1) - 1 : 0);
    Dims shape(rank, 1);
    shape[i] = -1;
    columns.push_back(expand(tensor(places, options).reshape(shape), spatial));
  }
  columns.push_back(ones(spatial, options));
  Dims sizes = size;
  sizes.erase(1);
  sizes.push_back(static_cast<int64_t>(rank));
  const Tensor base = stack(columns, -1).reshape({-1, static_cast<int64_t>(rank) + 1});
  n.set(matmul(base, transpose(theta, 1, 2)).reshape(sizes));
}

/// A convolution whose windows read at places that differ from the regular ones. Dai et al. (2017).
void deform_conv(N& n) {
  const Tensor &x = n.tensor(0), &weight = n.tensor(1), &offset = n.tensor(2);
  const size_t rank = x.sizes().size() - std::min<size_t>(2, x.sizes().size());
  TENON_NODE_CHECK(n, rank > 0 && weight.sizes().size() == rank + 2 && offset.sizes().size() == rank + 2,
                   Shape,
                   fmt::format("input {}, weights {} and offsets {}", to_string(x.sizes()),
                               to_string(weight.sizes()), to_string(offset.sizes())));
  const auto per_axis = [&](std::string_view name, size_t count, int64_t otherwise) {
    const Dims out = n.ints(name).value_or(Dims(count, otherwise));
    TENON_NODE_CHECK(n, out.size() == count, Value,
                     fmt::format("attribute `{}` has {} numbers, expected {}", name, out.size(), count));
    return out;
  };
  const Dims strides = per_axis("strides", rank, 1), dilations = per_axis("dilations", rank, 1),
             pads = per_axis("pads", 2 * rank, 0);
  const Dims kernel(weight.sizes().last(rank)), outputs(offset.sizes().last(rank));
  const int64_t groups = n.integer("group", 1), parts = n.integer("offset_group", 1), batch = x.sizes()[0],
                channels = x.sizes()[1], maps = weight.sizes()[0];
  int64_t taps = 1, places = 1;
  for (size_t i = 0; i < rank; ++i) taps *= kernel[i], places *= outputs[i];
  TENON_NODE_CHECK(
      n,
      groups > 0 && parts > 0 && taps > 0 && places > 0 && channels % parts == 0 && maps % groups == 0 &&
          channels == weight.sizes()[1] * groups &&
          offset.sizes()[1] == parts * taps * static_cast<int64_t>(rank),
      Shape,
      fmt::format("input {}, weights {} and offsets {} in {} groups and {} groups of offsets",
                  to_string(x.sizes()), to_string(weight.sizes()), to_string(offset.sizes()), groups, parts));
  Dims sizes = outputs;
  sizes.insert(0, maps);
  sizes.insert(0, batch);
  if (x.numel() == 0 || offset.numel() == 0)
    return n.set(zeros(sizes, TensorOptions(x.dtype()).device(x.device())));
  const Tensor moved = offset.reshape({batch * parts, taps, static_cast<int64_t>(rank), places});
  std::vector<Tensor> at;
  int64_t inner_taps = taps, inner_places = places;
  for (size_t i = 0; i < rank; ++i) {
    inner_taps /= kernel[i];
    inner_places /= outputs[i];
    std::vector<double> regular;
    for (int64_t t = 0; t < taps; ++t)
      for (int64_t o = 0; o < places; ++o)
        regular.push_back(static_cast<double>(o / inner_places % outputs[i] * strides[i] - pads[i] +
                                              t / inner_taps % kernel[i] * dilations[i]));
    at.push_back(select(moved, 2, static_cast<int64_t>(i)).reshape({batch * parts, -1}) +
                 tensor(regular, options_like(offset)));
  }
  Dims images{batch * parts, channels / parts};
  for (size_t i = 0; i < rank; ++i) images.push_back(x.sizes()[i + 2]);
  Tensor found = sampled(x.reshape(images), at, {});
  if (n.has(4)) found = found * n.tensor(4).reshape({batch * parts, 1, -1});
  Tensor out = matmul(weight.reshape({groups, maps / groups, -1}),
                      found.reshape({batch, groups, channels / groups * taps, places}))
                   .reshape(sizes);
  if (n.has(3)) {
    Dims shape(rank + 1, 1);
    shape[0] = -1;
    out = out + n.tensor(3).reshape(shape);
  }
  n.set(out);
}

constexpr auto kSamplingRows = std::to_array<Row>({
    {"AffineGrid", 20, affine_grid},
    {"DeformConv", 19, deform_conv},
    {"GridSample", 16, grid_sample},
});

}  // namespace

std::span<const Row> sampling_rows() noexcept { return kSamplingRows; }

}  // namespace tenon::onnx
