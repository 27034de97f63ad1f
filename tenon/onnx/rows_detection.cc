// Boxes in images.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/onnx/node_call.h"
#include "tenon/onnx/rows.h"
#include "tenon/ops/factory/from_data.h"
#include "tenon/ops/tensor_operators.h"

namespace tenon::onnx {
namespace {

using N = NodeCall;

struct Box {
  float low[2], high[2];

  float area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

Box box_of(const double* values, bool is_centered) {
  Box box;
  for (size_t i = 0; i < 2; ++i) {
    const auto a = static_cast<float>(values[i]), b = static_cast<float>(values[i + 2]);
    box.low[i] = is_centered ? a - b / 2 : std::min(a, b);
    box.high[i] = is_centered ? a + b / 2 : std::max(a, b);
  }
  return box;
}
/// Intersection over union.
float overlap(const Box& a, const Box& b) {
  float common = 1;
  for (size_t i = 0; i < 2; ++i)
    common *= std::max(std::min(a.high[i], b.high[i]) - std::max(a.low[i], b.low[i]), 0.0f);
  const float all = a.area() + b.area() - common;
  return common > 0 && a.area() > 0 && b.area() > 0 && all > 0 ? common / all : 0;
}

void non_max_suppression(N& n) {
  const IntArrayRef sizes = n.tensor(0).sizes(), of_scores = n.tensor(1).sizes();
  TENON_NODE_CHECK(n,
                   sizes.size() == 3 && of_scores.size() == 3 && sizes[2] == 4 && sizes[0] == of_scores[0] &&
                       sizes[1] == of_scores[2],
                   Shape, fmt::format("boxes {} and scores {}", to_string(sizes), to_string(of_scores)));
  const std::vector<double> boxes = n.numbers(0), scores = n.numbers(1);
  const int64_t most = n.has(2) ? n.integer(2) : 0;
  const auto limit = static_cast<float>(n.has(3) ? n.number(3) : 0);
  const double least = n.has(4) ? n.number(4) : -INFINITY;
  const bool is_centered = n.flag("center_point_box", false);
  const auto count = static_cast<size_t>(sizes[1]);
  std::vector<int64_t> found;
  for (int64_t row = 0; most > 0 && row < of_scores[0] * of_scores[1]; ++row) {
    const double* const score = scores.data() + static_cast<size_t>(row) * count;
    const int64_t image = row / of_scores[1];
    std::vector<size_t> order;
    for (size_t i = 0; i < count; ++i)
      if (score[i] > least) order.push_back(i);
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return score[a] > score[b]; });
    std::vector<Box> kept;
    for (const size_t i : order) {
      const Box box = box_of(boxes.data() + (static_cast<size_t>(image) * count + i) * 4, is_centered);
      if (std::ranges::any_of(kept, [&](const Box& other) { return overlap(box, other) > limit; })) continue;
      kept.push_back(box);
      found.insert(found.end(), {image, row % of_scores[1], static_cast<int64_t>(i)});
      if (static_cast<int64_t>(kept.size()) == most) break;
    }
  }
  n.set(tensor(found, TensorOptions(kInt64)).reshape({-1, 3}));
}

constexpr int64_t kMostSamples = 1 << 16;

/// Along one axis of a region: for each sample the two elements that it reads.
struct Samples {
  int64_t bins = 0, each = 0;
  std::vector<int64_t> places;
  std::vector<double> weights;
};
Samples samples_of(float begin, float length, int64_t bins, int64_t ratio, int64_t size) {
  const float bin = length / static_cast<float>(bins);
  const float most = static_cast<float>(kMostSamples), each = bin > 0 ? std::min(std::ceil(bin), most) : 0;
  Samples s{bins, ratio > 0 ? ratio : static_cast<int64_t>(each)};
  for (int64_t i = 0; i < bins * s.each; ++i) {
    float at = begin + static_cast<float>(i / s.each) * bin +
               (static_cast<float>(i % s.each) + 0.5f) * bin / static_cast<float>(s.each);
    const bool is_outside = !(at >= -1 && at <= static_cast<float>(size));
    at = is_outside ? 0 : std::clamp(at, 0.0f, static_cast<float>(size - 1));
    const auto low = static_cast<int64_t>(at);
    const double part = at - static_cast<float>(low);
    s.places.insert(s.places.end(), {low, std::min(low + 1, size - 1)});
    s.weights.insert(s.weights.end(), {is_outside ? 0 : 1 - part, is_outside ? 0 : part});
  }
  return s;
}
/// The means of a bin's samples as a matrix [bins, size].
Tensor mean_matrix(const Samples& s, int64_t size, const Tensor& like) {
  std::vector<double> all(static_cast<size_t>(s.bins * size));
  for (size_t i = 0; i < s.places.size(); ++i)
    all[static_cast<size_t>(static_cast<int64_t>(i) / (2 * s.each) * size + s.places[i])] +=
        s.weights[i] / static_cast<double>(s.each);
  return tensor(all, options_like(like)).reshape({s.bins, size});
}
/// The elements that samples read, times their weights, along dimension `dim` of an image.
Tensor taken(const Tensor& image, int64_t dim, const Samples& s) {
  const TensorOptions options = options_like(image);
  Dims shape(3, 1);
  shape[static_cast<size_t>(dim)] = -1;
  return index_select(image, dim, tensor(s.places, TensorOptions(options).dtype(kInt64))) *
         tensor(s.weights, options).reshape(shape);
}

/// Numbers of regions, `columns` of each, whose image is checked by `image_of(region)`.
std::vector<double> regions_of(N& n, size_t columns) {
  const IntArrayRef sizes = n.tensor(1).sizes();
  TENON_NODE_CHECK(
      n, n.tensor(0).sizes().size() == 4 && sizes.size() == 2 && sizes[1] == static_cast<int64_t>(columns),
      Shape, fmt::format("input {} and regions {}", to_string(n.tensor(0).sizes()), to_string(sizes)));
  return n.numbers(1);
}
Tensor image_of(N& n, const Tensor& x, int64_t image) {
  TENON_NODE_CHECK(n, 0 <= image && image < x.sizes()[0], Index,
                   fmt::format("a region of image {} of {}", image, x.sizes()[0]));
  return select(x, 0, image);
}
void set_regions(N& n, const std::vector<Tensor>& found, int64_t height, int64_t width) {
  const Tensor& x = n.tensor(0);
  n.set(found.empty() ? zeros({0, x.sizes()[1], height, width}, options_like(x)) : stack(found, 0));
}

void roi_align(N& n) {
  const Tensor& x = n.tensor(0);
  const std::vector<double> rois = regions_of(n, 4);
  const Dims images = n.ints(2);
  TENON_NODE_CHECK(n, images.size() * 4 == rois.size(), Shape, "`batch_indices` does not fit `rois`");
  const std::string_view mode = n.text("mode", "avg");
  TENON_NODE_CHECK(n, mode == "avg" || mode == "max", Value, fmt::format("attribute `mode` is '{}'", mode));
  const bool is_shifted = n.text("coordinate_transformation_mode",
                                 n.opset() < 16 ? "output_half_pixel" : "half_pixel") == "half_pixel";
  const int64_t ratio = n.integer("sampling_ratio", 0);
  const int64_t bins[] = {n.integer("output_height", 1), n.integer("output_width", 1)};
  TENON_NODE_CHECK(n, bins[0] > 0 && bins[1] > 0 && std::max({bins[0], bins[1], ratio}) <= kMostSamples,
                   Value, fmt::format("an output of {} by {} of {} samples", bins[0], bins[1], ratio));
  const auto scale = static_cast<float>(n.number("spatial_scale", 1));
  std::vector<Tensor> found;
  for (size_t r = 0; r < images.size(); ++r) {
    Samples along[2];
    for (size_t i = 0; i < 2; ++i) {
      const double* const roi = rois.data() + 4 * r + (1 - i);
      const float shift = is_shifted ? 0.5f : 0.0f, begin = static_cast<float>(roi[0]) * scale - shift;
      const float length = static_cast<float>(roi[2]) * scale - shift - begin;
      along[i] =
          samples_of(begin, is_shifted ? length : std::max(length, 1.0f), bins[i], ratio, x.sizes()[i + 2]);
    }
    const Tensor image = image_of(n, x, images[r]);
    const auto& [y, w] = along;
    if (y.each == 0 || w.each == 0)
      found.push_back(zeros({x.sizes()[1], bins[0], bins[1]}, options_like(x)));
    else if (mode == "avg")
      found.push_back(matmul(matmul(mean_matrix(y, x.sizes()[2], x), image),
                             transpose(mean_matrix(w, x.sizes()[3], x), 0, 1)));
    else
      found.push_back(amax(
          taken(taken(image, 1, y), 2, w).reshape({-1, bins[0], 2 * y.each, bins[1], 2 * w.each}), {2, 4}));
  }
  set_regions(n, found, bins[0], bins[1]);
}

void max_roi_pool(N& n) {
  const Tensor& x = n.tensor(0);
  const std::vector<double> rois = regions_of(n, 5);
  const auto shape = n.ints("pooled_shape");
  TENON_NODE_CHECK(n, shape && shape->size() == 2 && (*shape)[0] > 0 && (*shape)[1] > 0, Value,
                   "attribute `pooled_shape` has not two numbers");
  const double scale = n.number("spatial_scale", 1);
  std::vector<Tensor> found;
  for (size_t r = 0; r < rois.size(); r += 5) {
    const Tensor image = image_of(n, x, static_cast<int64_t>(rois[r]));
    std::vector<std::pair<int64_t, int64_t>> bins[2];
    for (size_t i = 0; i < 2; ++i) {
      const int64_t begin = std::llround(rois[r + 2 - i] * scale),
                    end = std::llround(rois[r + 4 - i] * scale), size = x.sizes()[i + 2], count = (*shape)[i];
      const float bin = static_cast<float>(std::max<int64_t>(end - begin + 1, 1)) / static_cast<float>(count);
      for (int64_t b = 0; b < count; ++b) {
        const auto low = static_cast<int64_t>(std::floor(static_cast<float>(b) * bin)),
                   high = static_cast<int64_t>(std::ceil(static_cast<float>(b + 1) * bin));
        bins[i].emplace_back(std::clamp<int64_t>(low + begin, 0, size),
                             std::clamp<int64_t>(high + begin, 0, size));
      }
    }
    std::vector<Tensor> all;
    for (const auto& [top, bottom] : bins[0])
      for (const auto& [left, right] : bins[1])
        all.push_back(top < bottom && left < right
                          ? amax(slice(slice(image, 1, top, bottom), 2, left, right), {1, 2})
                          : zeros({x.sizes()[1]}, options_like(x)));
    found.push_back(stack(all, 1).reshape({-1, (*shape)[0], (*shape)[1]}));
  }
  set_regions(n, found, (*shape)[0], (*shape)[1]);
}

constexpr auto kDetectionRows = std::to_array<Row>({
    {"MaxRoiPool", 1, max_roi_pool},
    {"NonMaxSuppression", 10, non_max_suppression},
    {"RoiAlign", 10, roi_align},
});

}  // namespace

std::span<const Row> detection_rows() noexcept { return kDetectionRows; }

}  // namespace tenon::onnx
