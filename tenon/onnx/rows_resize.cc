// Resize and Upsample: nearest, linear and cubic, along one axis after another.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/generated/window/functions.h"
#include "tenon/onnx/node_call.h"
#include "tenon/onnx/rows.h"
#include "tenon/ops/factory/from_data.h"
#include "tenon/ops/tensor_operators.h"

namespace tenon::onnx {
namespace {

using N = NodeCall;

/// How a node resizes, whatever the axis.
struct Method {
  std::string_view mode, coordinates, nearest;
  double cubic_a = -0.75, outside = 0;
  bool exclude_outside = false, antialias = false;
};

struct ResizedAxis {
  int64_t inputs = 0, outputs = 0;
  double scale = 1;
  double start = 0, end = 1;  ///< The part of the input that "tf_crop_and_resize" takes.
};

/// Where output `o` is among the inputs, computed in T.
template <class T>
double place_in(const Method& m, const ResizedAxis& a, int64_t o) {
  const T at = static_cast<T>(o), last = static_cast<T>(a.inputs - 1),
          last_output = static_cast<T>(a.outputs - 1);
  const T half = 0.5, scale = static_cast<T>(a.scale), half_pixel = (at + half) / scale - half;
  const auto start = static_cast<T>(a.start), end = static_cast<T>(a.end);
  if (m.coordinates == "half_pixel") return half_pixel;
  if (m.coordinates == "asymmetric") return at / scale;
  if (m.coordinates == "pytorch_half_pixel") return a.outputs > 1 ? half_pixel : 0;
  if (m.coordinates == "align_corners") return a.outputs > 1 ? at * last / last_output : 0;
  if (m.coordinates == "half_pixel_symmetric") {
    const T size = static_cast<T>(a.inputs);
    return size / 2 * (1 - static_cast<T>(a.outputs) / (scale * size)) + half_pixel;
  }
  if (m.coordinates == "tf_half_pixel_for_nn") return (at + half) / scale;
  return a.outputs > 1 ? start * last + at * (end - start) * last / last_output : half * (start + end) * last;
}
/// Which element is nearest, and which place is outside, is decided in float32, as other runtimes do.
double place_of(const Method& m, const ResizedAxis& a, int64_t o) {
  return m.mode == "nearest" || m.coordinates == "tf_crop_and_resize" ? place_in<float>(m, a, o)
                                                                      : place_in<double>(m, a, o);
}

/// The input that is nearest to a place.
int64_t nearest_to(const Method& m, double place, int64_t inputs) {
  const double found = m.nearest == "floor"               ? std::floor(place)
                       : m.nearest == "ceil"              ? std::ceil(place)
                       : m.nearest == "round_prefer_ceil" ? std::floor(place + 0.5)
                                                          : std::ceil(place - 0.5);
  return static_cast<int64_t>(std::clamp(found, 0.0, static_cast<double>(inputs - 1)));
}

/// The weight of an input at a distance. Keys (1981), IEEE Trans. ASSP 29.
double weight_at(const Method& m, double x) {
  const double a = m.cubic_a;
  x = std::abs(x);
  if (m.mode == "linear") return std::max(1 - x, 0.0);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// One axis of a tensor that is floating.
Tensor interpolated(const Tensor& x, size_t axis, const Method& m, const ResizedAxis& a) {
  const double step = m.antialias ? std::min(a.scale, 1.0) : 1;  // of the kernel, which antialias widens
  const auto first = static_cast<int64_t>(std::floor((m.mode == "linear" ? -1 : -2) / step)) + 1;
  const auto taps = static_cast<size_t>(2 - 2 * first), outputs = static_cast<size_t>(a.outputs);
  std::vector<std::vector<int64_t>> places(taps, std::vector<int64_t>(outputs));
  std::vector<std::vector<double>> weights(taps, std::vector<double>(outputs));
  std::vector<double> is_outside(outputs);
  for (size_t o = 0; o < outputs; ++o) {
    const double place = place_of(m, a, static_cast<int64_t>(o)), low = std::ceil(place) - 1;
    is_outside[o] = place < 0 || place > static_cast<double>(a.inputs - 1);
    double total = 0;
    for (size_t t = 0; t < taps; ++t) {
      const int64_t at = static_cast<int64_t>(low) + first + static_cast<int64_t>(t);
      const int64_t inside = std::clamp<int64_t>(at, 0, a.inputs - 1);
      double weight = weight_at(m, (static_cast<double>(at) - place) * step);
      if (m.exclude_outside && at != inside) weight = 0;
      places[t][o] = inside;
      weights[t][o] = weight;
      total += weight;
    }
    if (m.antialias || m.exclude_outside)
      for (size_t t = 0; t < taps; ++t) weights[t][o] /= total;
  }
  Dims shape(x.sizes().size(), 1);
  shape[axis] = a.outputs;
  Tensor out;
  for (size_t t = 0; t < taps; ++t) {
    const bool is_last = t + 1 == taps && !out.defined();
    if (!is_last && std::ranges::all_of(weights[t], [](double weight) { return weight == 0; })) continue;
    const Tensor part =
        index_select(x, static_cast<int64_t>(axis), tensor(places[t], options_like(x, kInt64))) *
        tensor(weights[t], options_like(x, x.dtype())).reshape(shape);
    out = out.defined() ? out + part : part;
  }
  if (m.coordinates == "tf_crop_and_resize" && std::ranges::count(is_outside, 1.0) > 0)
    out = where(tensor(is_outside, options_like(x, kBool)).reshape(shape), Scalar(m.outside), out);
  return out;
}
Tensor nearest(const Tensor& x, size_t axis, const Method& m, const ResizedAxis& a) {
  std::vector<int64_t> places;
  std::vector<double> is_outside;
  for (int64_t o = 0; o < a.outputs; ++o) {
    const double place = place_of(m, a, o);
    places.push_back(nearest_to(m, place, a.inputs));
    is_outside.push_back(place < 0 || place > static_cast<double>(a.inputs - 1));
  }
  const Tensor out = index_select(x, static_cast<int64_t>(axis), tensor(places, options_like(x, kInt64)));
  if (m.coordinates != "tf_crop_and_resize" || std::ranges::count(is_outside, 1.0) == 0) return out;
  Dims shape(x.sizes().size(), 1);
  shape[axis] = a.outputs;
  const Scalar outside =
      is_integral(x.dtype(), true) ? Scalar(static_cast<int64_t>(m.outside)) : Scalar(m.outside);
  return where(tensor(is_outside, options_like(x, kBool)).reshape(shape), outside, out);
}

/// The mode of Tenon's operator that computes the same, or -1.
int64_t operator_mode(const Tensor& x, const Method& m, const std::vector<ResizedAxis>& axes) {
  const size_t num_dims = axes.size();
  if (num_dims < 3 || num_dims > 5 || m.antialias || m.exclude_outside) return -1;
  const bool half_pixel = m.coordinates.ends_with("half_pixel"), aligned = m.coordinates == "align_corners";
  for (size_t i = 0; i < num_dims; ++i) {
    const ResizedAxis& a = axes[i];
    if (i < 2 ? a.outputs != a.inputs || a.scale != 1 : a.outputs == 0 || a.inputs == 0) return -1;
    if (i < 2) continue;
    if (m.mode == "nearest") {
      // Which inputs it takes depends on roundings but where each is repeated.
      if (a.outputs % a.inputs != 0) return -1;
      for (int64_t o = 0; o < a.outputs; ++o)
        if (nearest_to(m, place_of(m, a, o), a.inputs) != o / (a.outputs / a.inputs)) return -1;
    } else if (m.coordinates == "pytorch_half_pixel" && a.outputs == 1) {
      return -1;
    }
  }
  if (m.mode == "nearest") return m.coordinates == "tf_crop_and_resize" ? -1 : 0;
  if ((!half_pixel && !aligned) || !is_floating_point(x.dtype())) return -1;
  if (m.mode == "linear") return 2;
  return num_dims == 4 && m.cubic_a == -0.75 ? 3 : -1;
}

Tensor resized(const Tensor& x, const Method& m, const std::vector<ResizedAxis>& axes) {
  if (const int64_t mode = operator_mode(x, m, axes); mode >= 0 && x.numel() > 0) {
    Dims sizes;
    std::vector<double> scales;
    for (size_t i = 2; i < axes.size(); ++i) {
      sizes.push_back(axes[i].outputs);
      scales.push_back(mode == 0 ? 0 : axes[i].scale);
    }
    return _upsample(x, sizes, mode, m.coordinates == "align_corners", scales);
  }
  const bool is_nearest = m.mode == "nearest";
  // Weights are floating.
  Tensor out = is_nearest || is_floating_point(x.dtype()) ? x : x.to(kFloat32);
  for (size_t i = axes.size(); i-- > 0;) {
    const ResizedAxis& a = axes[i];
    const bool whole = m.coordinates != "tf_crop_and_resize" || (a.start == 0 && a.end == 1);
    if (a.inputs == a.outputs && a.scale == 1 && whole) continue;
    if (a.outputs == 0)
      out = slice(out, static_cast<int64_t>(i), 0, 0);
    else
      out = is_nearest ? nearest(out, i, m, a) : interpolated(out, i, m, a);
  }
  return out.to(x.dtype());
}

void check(N& n, const Method& m) {
  constexpr std::string_view kCoordinates[] = {
      "half_pixel",           "asymmetric",           "align_corners",     "pytorch_half_pixel",
      "half_pixel_symmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
  constexpr std::string_view kNearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  TENON_NODE_CHECK(n, m.mode == "nearest" || m.mode == "linear" || m.mode == "cubic", NotImplemented,
                   fmt::format("attribute `mode` is '{}'", m.mode));
  TENON_NODE_CHECK(n, std::ranges::count(kCoordinates, m.coordinates) > 0, NotImplemented,
                   fmt::format("attribute `coordinate_transformation_mode` is '{}'", m.coordinates));
  TENON_NODE_CHECK(n, std::ranges::count(kNearest, m.nearest) > 0, NotImplemented,
                   fmt::format("attribute `nearest_mode` is '{}'", m.nearest));
}

/// Input i, unless it is absent or empty.
std::vector<double> given(N& n, size_t i) { return n.has(i) ? n.numbers(i) : std::vector<double>(); }

void set_scale(N& n, ResizedAxis& a, double scale) {
  TENON_NODE_CHECK(n, scale > 0 && scale < 0x1p31, Value, fmt::format("a scale of {}", scale));
  a.scale = scale;
  // In float32, as the standard's shape inference; like that, it ignores the part that is cropped.
  a.outputs = static_cast<int64_t>(std::floor(static_cast<float>(a.inputs) * static_cast<float>(scale)));
}

std::vector<ResizedAxis> axes_of(const Tensor& x) {
  std::vector<ResizedAxis> axes;
  for (const int64_t size : x.sizes()) axes.push_back({size, size});
  return axes;
}

void resize(N& n) {
  const Tensor& x = n.tensor(0);
  const bool first = n.opset() < 11;
  Method m;
  m.mode = n.text("mode", "nearest");
  m.coordinates = n.text("coordinate_transformation_mode", first ? "asymmetric" : "half_pixel");
  m.nearest = n.text("nearest_mode", first ? "floor" : "round_prefer_floor");
  m.cubic_a = n.number("cubic_coeff_a", -0.75);
  m.outside = n.number("extrapolation_value", 0);
  m.exclude_outside = n.flag("exclude_outside", false);
  m.antialias = n.flag("antialias", false);
  check(n, m);
  std::vector<ResizedAxis> axes = axes_of(x);
  Dims which(axes.size());
  for (size_t i = 0; i < which.size(); ++i) which[i] = static_cast<int64_t>(i);
  if (const auto some = n.ints("axes")) which = *some;
  const size_t count = which.size();
  const auto axis = [&](size_t i) -> ResizedAxis& {
    return axes[static_cast<size_t>(n.axis(which[i], axes.size()))];
  };
  const auto check_count = [&](const char* input, size_t found, size_t expected) {
    TENON_NODE_CHECK(n, found == expected, Value,
                     fmt::format("input `{}` has {} elements, expected {}", input, found, expected));
  };
  const std::vector<double> scales = given(n, first ? 1 : 2), sizes = first ? scales : given(n, 3);
  if (m.coordinates == "tf_crop_and_resize") {
    const std::vector<double> roi = given(n, 1);
    check_count("roi", roi.size(), 2 * count);
    for (size_t i = 0; i < count; ++i) axis(i).start = roi[i], axis(i).end = roi[count + i];
  }
  if (!scales.empty()) {
    check_count("scales", scales.size(), count);
    for (size_t i = 0; i < count; ++i) set_scale(n, axis(i), scales[i]);
  } else {
    check_count("sizes", sizes.size(), count);
    const std::string_view policy = n.text("keep_aspect_ratio_policy", "stretch");
    TENON_NODE_CHECK(n, policy == "stretch" || policy == "not_larger" || policy == "not_smaller", Value,
                     fmt::format("attribute `keep_aspect_ratio_policy` is '{}'", policy));
    std::vector<double> each;
    for (size_t i = 0; i < count; ++i) each.push_back(sizes[i] / static_cast<double>(axis(i).inputs));
    for (size_t i = 0; i < count; ++i) {
      ResizedAxis& a = axis(i);
      TENON_NODE_CHECK(n, sizes[i] >= 0 && sizes[i] < 0x1p53, Value, fmt::format("a size of {}", sizes[i]));
      a.scale = each[i];
      a.outputs = static_cast<int64_t>(sizes[i]);
      if (policy == "stretch") continue;
      a.scale = policy == "not_larger" ? *std::ranges::min_element(each) : *std::ranges::max_element(each);
      a.outputs = static_cast<int64_t>(std::floor(a.scale * static_cast<double>(a.inputs) + 0.5));
    }
  }
  for (const ResizedAxis& a : axes)
    TENON_NODE_CHECK(n, a.inputs > 0 || a.outputs == 0, Shape,
                     fmt::format("an empty input of shape {}", to_string(x.sizes())));
  n.set(resized(x, m, axes));
}

void upsample(N& n) {
  const Tensor& x = n.tensor(0);
  Method m{.mode = n.text("mode", "nearest"), .coordinates = "asymmetric", .nearest = "floor"};
  if (m.mode.ends_with("linear")) m.mode = "linear";
  check(n, m);
  std::vector<ResizedAxis> axes = axes_of(x);
  const std::vector<double> scales = n.opset() < 9 ? n.numbers("scales") : n.numbers(1);
  TENON_NODE_CHECK(n, scales.size() == axes.size(), Value,
                   fmt::format("{} scales of {} dimensions", scales.size(), axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) set_scale(n, axes[i], scales[i]);
  n.set(resized(x, m, axes));
}

constexpr auto kResizeRows = std::to_array<Row>({
    {"Resize", 10, resize},
    {"Upsample", 7, upsample},
});

}  // namespace

std::span<const Row> resize_rows() noexcept { return kResizeRows; }

}  // namespace tenon::onnx
