// Rows of `save`: what moves elements, by index or not, pads, resizes, sorts and sums along a dimension.
#include <algorithm>
#include <array>
#include <numeric>

#include "tenon/generated/factory/functions.h"
#include "tenon/iter/result_shape.h"
#include "tenon/onnx/save/saver.h"

namespace tenon::onnx {
namespace {

using C = SavedCall;
using Ints = std::vector<int64_t>;

int64_t dim_of(C& c, size_t argument, size_t tensor = 0) {
  const int64_t d = c.integer(argument);
  return d < 0 ? d + std::ssize(c.sizes(tensor)) : d;
}

// By index

Name int64_index(C& c, size_t i) { return c.s.cast(c.tensor(i), c.geometry(i).dtype, kInt64); }

void embedding(C& c) { c.result(c.s.node("Gather", {c.tensor(0), c.tensor(1)})); }
void index_select(C& c) {
  const Dims count{c.geometry(2).numel()};
  const Name index = c.s.reshape(c.tensor(2), c.sizes(2), count);
  c.result(c.s.node("Gather", {c.tensor(0), index}, {{"axis", dim_of(c, 1)}}));
}
void gather(C& c) {
  if (c.sizes(0).empty() || c.sizes(2).empty()) c.refuse("of tensors without dimensions");
  c.result(c.s.node("GatherElements", {c.tensor(0), c.tensor(2)}, {{"axis", dim_of(c, 1)}}));
}
void take(C& c) {
  const Dims count{c.geometry(0).numel()};
  c.result(c.s.node("Gather", {c.s.reshape(c.tensor(0), c.sizes(0), count), c.tensor(1)}));
}

/// What a list of indices selects: their dimensions, which follow each other, the indices as one tensor
/// [..., dimensions], and the shape that they broadcast to.
struct Indices {
  size_t first = 0, count = 0;
  Name places, single;  // `single`: of one dimension, the index as it is
  Dims shape;
};
Indices indices_of(C& c, size_t argument) {
  Indices out;
  const std::vector<Name> names = c.tensors(argument);
  const std::vector<graph::Geometry> geometries = c.geometries(argument);
  std::vector<Name> parts;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    if (out.count == 0) out.first = i;
    if (out.first + out.count != i) c.refuse("its indices have dimensions between them that it takes whole");
    if (geometries[i].dtype == kBool || geometries[i].dtype == kUInt8)
      c.refuse("a mask selects as many as it has true");
    ++out.count;
    out.shape = broadcast_shapes(out.shape, geometries[i].sizes, "onnx.save");
  }
  for (size_t i = out.first; i < out.first + out.count; ++i) {
    out.single = names[i];
    Name index = c.s.expand(c.s.cast(names[i], geometries[i].dtype, kInt64), geometries[i].sizes, out.shape);
    parts.push_back(c.s.node("Unsqueeze", {index, c.s.ints(-1)}));
  }
  out.places = parts.size() == 1 ? parts[0] : c.s.node("Concat", std::move(parts), {{"axis", int64_t{-1}}});
  return out;
}
/// The order of dimensions that has those from `first` on, `count` of them, before all others.
Ints to_front(size_t rank, size_t first, size_t count) {
  Ints order;
  for (size_t i = 0; i < count; ++i) order.push_back(static_cast<int64_t>(first + i));
  for (size_t i = 0; i < rank; ++i)
    if (i < first || i >= first + count) order.push_back(static_cast<int64_t>(i));
  return order;
}
Ints inverse(const Ints& order) {
  Ints out(order.size());
  for (size_t i = 0; i < order.size(); ++i) out[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return out;
}

void index(C& c) {
  const Indices at = indices_of(c, 1);
  if (at.count == 1) {
    c.result(c.s.node("Gather", {c.tensor(0), at.single}, {{"axis", static_cast<int64_t>(at.first)}}));
    return;
  }
  const Name x = c.s.transpose(c.tensor(0), to_front(c.sizes(0).size(), at.first, at.count));
  const Name found = c.s.node("GatherND", {x, at.places});
  c.result(c.s.transpose(found, inverse(to_front(c.result_sizes().size(), at.first, at.shape.size()))));
}

/// Writes `updates` at `places` [..., count], which name dimensions from `first` on.
void scatter_nd(C& c, size_t first, size_t count, const Name& places, const Name& updates,
                std::string_view reduction) {
  const Ints order = to_front(c.sizes(0).size(), first, count);
  WrittenAttributes attributes;
  if (!reduction.empty()) attributes.push_back({"reduction", std::string(reduction)});
  const Name x = c.s.transpose(c.tensor(0), order);
  c.result(c.s.transpose(c.s.node("ScatterND", {x, places, updates}, std::move(attributes)), inverse(order)));
}
void index_put(C& c) {
  const Indices at = indices_of(c, 1);
  // The shape of what is written: as indexing returns it, then with the indices' dimensions first.
  const Dims x = c.sizes(0).to_dims();
  Dims shape;
  for (size_t i = 0; i < at.first; ++i) shape.push_back(x[i]);
  for (const int64_t size : at.shape) shape.push_back(size);
  for (size_t i = at.first + at.count; i < x.size(); ++i) shape.push_back(x[i]);
  const Name values = c.s.transpose(c.s.expand(c.tensor(2), c.sizes(2), shape),
                                    to_front(shape.size(), at.first, at.shape.size()));
  scatter_nd(c, at.first, at.count, at.places, values, c.flag(3) ? "add" : "");
}

/// index_add, index_copy and index_fill: `values` has the shape of `self` with as many elements along `dim`
/// as there are indices.
void write_along(C& c, const Name& values, std::string_view reduction) {
  const auto dim = static_cast<size_t>(dim_of(c, 1));
  if (c.sizes(0).empty()) c.refuse("of tensors without dimensions");
  const Name places = c.s.reshape(int64_index(c, 2), c.sizes(2), Dims{c.geometry(2).numel(), 1});
  scatter_nd(c, dim, 1, places, c.s.transpose(values, to_front(c.sizes(0).size(), dim, 1)), reduction);
}
void index_add(C& c) {
  Name source = c.tensor(3);
  const Scalar alpha = c.number(4);
  if (alpha.is_complex() || alpha.to_double() != 1)
    source = c.s.node("Mul", {source, c.s.number(alpha, c.geometry(3).dtype)});
  write_along(c, source, "add");
}
void index_copy(C& c) { write_along(c, c.tensor(3), ""); }
void index_fill(C& c, const Name& value) {
  Dims shape = c.sizes(0).to_dims();
  if (!shape.empty()) shape[static_cast<size_t>(dim_of(c, 1))] = c.geometry(2).numel();
  write_along(c, c.s.expand(value, {}, shape), "");
}
void index_fill_number(C& c) { index_fill(c, c.s.number(c.number(3), c.geometry(0).dtype)); }
void index_fill_tensor(C& c) {
  index_fill(c, c.s.cast(c.tensor(3), c.geometry(3).dtype, c.geometry(0).dtype));
}

void scatter(C& c, const Name& updates, std::string_view reduction) {
  if (c.sizes(0).empty() || c.sizes(2).empty()) c.refuse("of tensors without dimensions");
  WrittenAttributes attributes{{"axis", dim_of(c, 1)}};
  if (!reduction.empty()) attributes.push_back({"reduction", std::string(reduction)});
  c.result(c.s.node("ScatterElements", {c.tensor(0), c.tensor(2), updates}, std::move(attributes)));
}
/// The part of the source that has the index's shape.
Name source_of(C& c) {
  const IntArrayRef from = c.sizes(3), to = c.sizes(2);
  if (std::ranges::equal(from, to)) return c.tensor(3);
  Ints axes(to.size());
  std::iota(axes.begin(), axes.end(), 0);
  return c.s.node("Slice", {c.tensor(3), c.s.ints(Ints(to.size(), 0)), c.s.ints(to), c.s.ints(axes)});
}
void scatter_src(C& c) { scatter(c, source_of(c), ""); }
void scatter_value(C& c) {
  scatter(c, c.s.expand(c.s.number(c.number(3), c.geometry(0).dtype), {}, c.sizes(2)), "");
}
void scatter_add(C& c) { scatter(c, source_of(c), "add"); }
void scatter_reduce(C& c) {
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"sum", "add"}, {"prod", "mul"}, {"amax", "max"}, {"amin", "min"}};
  const std::string reduce = c.text(4);
  const auto kind = std::ranges::find(kKinds, reduce, &std::pair<std::string_view, std::string_view>::first);
  if (kind == std::end(kKinds) || !c.flag(5))
    c.refuse("ONNX has sum, prod, amax and amin with include_self alone");
  scatter(c, source_of(c), kind->second);
}

// Whole tensors

void cat(C& c) {
  const std::vector<Name> names = c.tensors(0);
  const std::vector<graph::Geometry> geometries = c.geometries(0);
  std::vector<Name> parts;
  for (size_t i = 0; i < names.size(); ++i) {
    if (geometries[i].sizes == Dims{0} && c.result_sizes().size() != 1) continue;  // as PyTorch ignores it
    parts.push_back(c.s.cast(names[i], geometries[i].dtype, c.result_geometry().dtype));
  }
  const int64_t dim = c.integer(1);
  c.result(
      c.s.node("Concat", std::move(parts), {{"axis", dim < 0 ? dim + std::ssize(c.result_sizes()) : dim}}));
}

/// PyTorch's widths begin at the last dimension.
Name widths_of(C& c, const Ints& pad) {
  const size_t rank = c.sizes(0).size();
  Ints pads(2 * rank, 0);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    pads[rank - 1 - i] = pad[2 * i];
    pads[2 * rank - 1 - i] = pad[2 * i + 1];
  }
  return c.s.ints(pads);
}
void constant_pad(C& c) {
  c.result(
      c.s.node("Pad", {c.tensor(0), widths_of(c, c.ints(1)), c.s.number(c.number(2), c.geometry(0).dtype)}));
}
void pad_axes(C& c) {
  constexpr const char* kModes[] = {"reflect", "edge", "wrap"};
  const auto mode = static_cast<size_t>(c.integer(2));
  if (mode == 2 && c.s.opset() < 19) c.refuse("padding in a circle needs opset 19");
  c.result(c.s.node("Pad", {c.tensor(0), widths_of(c, c.ints(1))}, {{"mode", std::string(kModes[mode])}}));
}

void upsample(C& c) {
  enum { kNearest, kNearestExact, kLinear, kCubic, kLinearMean, kCubicMean };
  const int64_t mode = c.integer(2);
  const bool aligned = c.flag(3), nearest = mode <= kNearestExact;
  WrittenAttributes attributes{
      {"mode", std::string(nearest                                  ? "nearest"
                           : mode == kLinear || mode == kLinearMean ? "linear"
                                                                    : "cubic")},
      {"coordinate_transformation_mode", std::string(mode == kNearest      ? "asymmetric"
                                                     : aligned && !nearest ? "align_corners"
                                                                           : "half_pixel")}};
  if (nearest)
    attributes.push_back({"nearest_mode", std::string(mode == kNearest ? "floor" : "round_prefer_ceil")});
  if (mode == kCubic || mode == kCubicMean)
    attributes.push_back({"cubic_coeff_a", mode == kCubic ? -0.75F : -0.5F});
  if (mode >= kLinearMean) attributes.push_back({"antialias", int64_t{1}});
  const std::vector<double> scales = c.floats(4);
  const bool by_scale = !scales.empty() && std::ranges::all_of(scales, [](double s) { return s > 0; });
  if (!by_scale) {
    c.result(c.s.node("Resize", {c.tensor(0), "", "", c.s.ints(c.result_sizes())}, std::move(attributes)));
    return;
  }
  const auto rank = std::ssize(c.sizes(0));
  Tensor all = ones({rank}, TensorOptions(kFloat32));
  for (size_t i = 0; i < scales.size(); ++i)
    static_cast<float*>(all.data_ptr())[2 + i] = static_cast<float>(scales[i]);
  c.result(c.s.node("Resize", {c.tensor(0), "", c.s.constant(all)}, std::move(attributes)));
}

void grid_sample(C& c) {
  constexpr std::array<const char*, 3> kModes = {"linear", "nearest", "cubic"},
                                       kFormerModes = {"bilinear", "nearest", "bicubic"},
                                       kPaddings = {"zeros", "border", "reflection"};
  const bool former = c.s.opset() < 20;
  if (former && c.sizes(0).size() > 4) c.refuse("sampling of volumes needs opset 20");
  const auto mode = static_cast<size_t>(c.integer(2)), padding = static_cast<size_t>(c.integer(3));
  c.result(c.s.node("GridSample", {c.tensor(0), c.tensor(1)},
                    {{"mode", std::string((former ? kFormerModes : kModes)[mode])},
                     {"padding_mode", std::string(kPaddings[padding])},
                     {"align_corners", int64_t{c.flag(4)}}}));
}

// Along a dimension

void top(C& c, int64_t count, int64_t dim, bool largest, bool sorted) {
  if (c.sizes(0).empty()) c.refuse("of tensors without dimensions");
  const auto out = c.s.nodes("TopK", {c.tensor(0), c.s.ints(count)},
                             {{"axis", dim}, {"largest", int64_t{largest}}, {"sorted", int64_t{sorted}}}, 2);
  for (size_t i = 0; i < 2; ++i) c.result(out[i], i);
}
void sort(C& c) {
  const int64_t dim = dim_of(c, 1);
  top(c, c.sizes(0).empty() ? 1 : c.sizes(0)[static_cast<size_t>(dim)], dim, c.flag(2), true);
}
void sort_stable(C& c) {
  const int64_t dim = dim_of(c, 2);
  top(c, c.sizes(0).empty() ? 1 : c.sizes(0)[static_cast<size_t>(dim)], dim, c.flag(3), true);
}
void topk(C& c) { top(c, c.integer(1), dim_of(c, 2), c.flag(3), c.flag(4)); }
void cumsum(C& c) {
  const DType to = c.result_geometry().dtype;
  if (c.sizes(0).empty()) c.refuse("of tensors without dimensions");
  c.result(
      c.s.node("CumSum", {c.s.cast(c.tensor(0), c.geometry(0).dtype, to), c.s.number(dim_of(c, 1), kInt64)}));
}

constexpr SavedRow kMoveRows[] = {
    {"aten::_pad_axes", pad_axes},
    {"aten::_upsample", upsample},
    {"aten::cat", cat},
    {"aten::grid_sampler_2d", grid_sample},
    {"aten::grid_sampler_3d", grid_sample},
    {"aten::constant_pad_nd", constant_pad},
    {"aten::cumsum", cumsum},
    {"aten::embedding", embedding},
    {"aten::gather", gather},
    {"aten::index.Tensor", index},
    {"aten::index_add", index_add},
    {"aten::index_copy", index_copy},
    {"aten::index_fill.int_Scalar", index_fill_number},
    {"aten::index_fill.int_Tensor", index_fill_tensor},
    {"aten::index_put", index_put},
    {"aten::index_select", index_select},
    {"aten::scatter.src", scatter_src},
    {"aten::scatter.value", scatter_value},
    {"aten::scatter_add", scatter_add},
    {"aten::scatter_reduce.two", scatter_reduce},
    {"aten::sort", sort},
    {"aten::sort.stable", sort_stable},
    {"aten::take", take},
    {"aten::topk", topk},
};

}  // namespace

std::span<const SavedRow> move_rows() noexcept { return kMoveRows; }

}  // namespace tenon::onnx
