// Operators that move elements, or compute sizes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/generated/window/functions.h"
#include "tenon/onnx/node_call.h"
#include "tenon/onnx/rows.h"

namespace tenon::onnx {
namespace {

using N = NodeCall;

Tensor of_ints(std::span<const int64_t> values) {
  Tensor out = empty({static_cast<int64_t>(values.size())}, TensorOptions(kInt64));
  std::ranges::copy(values, out.data_ptr<int64_t>());
  return out;
}
Dims with_axes(N& n, Dims axes, size_t num_dims) {
  for (int64_t& axis : axes) axis = n.axis(axis, num_dims);
  return axes;
}
std::optional<Dims> axes_of(N& n, size_t input, size_t num_dims) {
  std::optional<Dims> axes = n.ints("axes", input);
  return axes ? std::optional(with_axes(n, std::move(*axes), num_dims)) : std::nullopt;
}

void identity(N& n) { n.set(0, n.item(0)); }

void shape(N& n) {
  const auto sizes = n.tensor(0).sizes();
  const auto count = static_cast<int64_t>(sizes.size());
  const auto place = [&](std::string_view name, int64_t otherwise) {
    const int64_t at = n.integer(name, otherwise);
    return std::clamp<int64_t>(at < 0 ? at + count : at, 0, count);
  };
  const int64_t begin = place("start", 0), end = std::max(begin, place("end", count));
  Dims out;
  for (int64_t i = begin; i < end; ++i) out.push_back(sizes[static_cast<size_t>(i)]);
  n.set(of_ints(out));
}
void size(N& n) { n.set(scalar_tensor(n.tensor(0).numel(), TensorOptions(kInt64))); }

void reshape_of(N& n) {
  const Tensor& x = n.tensor(0);
  Dims sizes = n.ints(1);
  if (!n.flag("allowzero", false))
    for (size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] == 0) {
        TENON_NODE_CHECK(n, i < x.sizes().size(), Shape,
                         fmt::format("size {} of the new shape is taken from an input of {} dimensions", i,
                                     x.sizes().size()));
        sizes[i] = x.sizes()[i];
      }
  n.set(x.reshape(sizes));
}
void transpose_of(N& n) {
  const Tensor& x = n.tensor(0);
  Dims order(x.sizes().size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(order.size() - 1 - i);
  n.set(permute(x, n.ints("perm").value_or(order)));
}
void flatten_of(N& n) {
  const Tensor& x = n.tensor(0);
  int64_t axis = n.integer("axis", 1);
  const auto count = static_cast<int64_t>(x.sizes().size());
  if (axis < 0) axis += count;
  TENON_NODE_CHECK(n, 0 <= axis && axis <= count, Index, fmt::format("attribute `axis` is {}", axis));
  int64_t rows = 1, columns = 1;
  for (int64_t i = 0; i < count; ++i) (i < axis ? rows : columns) *= x.sizes()[static_cast<size_t>(i)];
  n.set(x.reshape({rows, columns}));
}
void squeeze_of(N& n) {
  const Tensor& x = n.tensor(0);
  const auto axes = axes_of(n, 1, x.sizes().size());
  if (!axes) return n.set(squeeze(x));
  for (const int64_t axis : *axes)
    TENON_NODE_CHECK(n, x.sizes()[static_cast<size_t>(axis)] == 1, Shape,
                     fmt::format("dimension {} of shape {} is not of size 1", axis, to_string(x.sizes())));
  n.set(squeeze(x, IntArrayRef(*axes)));
}
void unsqueeze_of(N& n) {
  Tensor out = n.tensor(0);
  std::optional<Dims> axes = n.ints("axes", 1);
  TENON_NODE_CHECK(n, axes.has_value(), Value, "`axes` are missing");
  Dims all = with_axes(n, *axes, out.sizes().size() + axes->size());
  std::ranges::sort(all);
  for (const int64_t axis : all) out = unsqueeze(out, axis);
  n.set(out);
}
void concat(N& n) {
  const std::vector<Tensor> parts = n.tensors();
  n.set(cat(parts, n.integer("axis", n.opset() < 4 ? 1 : 0)));
}
void split_of(N& n) {
  const Tensor& x = n.tensor(0);
  const int64_t axis = n.axis(n.integer("axis", 0), x.sizes().size());
  const int64_t size = x.sizes()[static_cast<size_t>(axis)];
  std::vector<Tensor> parts;
  if (const auto sizes = n.ints("split", 1)) {
    parts = split(x, IntArrayRef(*sizes), axis);
  } else {
    const auto count = n.integer("num_outputs", static_cast<int64_t>(n.num_outputs()));
    TENON_NODE_CHECK(n, count > 0 && count == static_cast<int64_t>(n.num_outputs()), Value,
                     fmt::format("attribute `num_outputs` is {}, of {} outputs", count, n.num_outputs()));
    const int64_t each = (size + count - 1) / count;
    Dims equal;
    for (int64_t i = 0; i < count; ++i) equal.push_back(std::clamp<int64_t>(size - i * each, 0, each));
    parts = split(x, IntArrayRef(equal), axis);
  }
  TENON_NODE_CHECK(n, parts.size() >= n.num_outputs(), Value,
                   fmt::format("it has {} outputs, and {} parts", n.num_outputs(), parts.size()));
  for (size_t i = 0; i < n.num_outputs(); ++i) n.set(i, parts[i]);
}

/// The first element that is read, and the place after the last one, as the standard clamps them: backward, a
/// start before the first element is that element.
Tensor sliced(const Tensor& x, int64_t axis, int64_t start, int64_t end, int64_t step) {
  const int64_t size = x.sizes()[static_cast<size_t>(axis)];
  const auto place = [&](int64_t at, int64_t low, int64_t high) {
    if (at < 0) at = at < -size ? low : at + size;
    return std::clamp(at, low, high);
  };
  if (step > 0) return slice(x, axis, place(start, 0, size), place(end, 0, size), step);
  if (size == 0) return x;
  // Backward: the elements are those of a flipped slice forward.
  const int64_t from = place(start, 0, size - 1), to = end < -size ? -1 : place(end, -1, size - 1);
  const int64_t stride = -step, count = from > to ? (from - to + stride - 1) / stride : 0;
  if (count == 0) return slice(x, axis, 0, 0);
  const int64_t first = from - (count - 1) * stride;
  return flip(slice(x, axis, first, from + 1, stride), {axis});
}
void slice_of(N& n) {
  Tensor out = n.tensor(0);
  const auto starts = n.ints("starts", 1), ends = n.ints("ends", 2);
  TENON_NODE_CHECK(n, starts && ends && starts->size() == ends->size(), Value,
                   "`starts` and `ends` do not fit");
  Dims all(starts->size());
  std::iota(all.begin(), all.end(), 0);
  const Dims axes = axes_of(n, 3, out.sizes().size()).value_or(all);
  const Dims steps = n.has(4) ? n.ints(4) : Dims(starts->size(), 1);
  TENON_NODE_CHECK(n, axes.size() == starts->size() && steps.size() == starts->size(), Value,
                   "`axes` or `steps` do not fit `starts`");
  for (size_t i = 0; i < axes.size(); ++i) {
    TENON_NODE_CHECK(n, axes[i] < static_cast<int64_t>(out.sizes().size()), Index,
                     "it has more axes than dimensions");
    TENON_NODE_CHECK(n, steps[i] != 0 && steps[i] != INT64_MIN, Value, "a step is 0");
    out = sliced(out, axes[i], (*starts)[i], (*ends)[i], steps[i]);
  }
  n.set(out);
}
void expand_of(N& n) {
  const Tensor& x = n.tensor(0);
  Dims sizes = n.ints(1);
  // Sizes of 1 keep those of the input.
  const auto own = x.sizes();
  while (sizes.size() < own.size()) sizes.insert(0, 1);
  for (size_t i = 0; i < own.size(); ++i) {
    int64_t& size = sizes[sizes.size() - own.size() + i];
    if (size == 1) size = own[i];
  }
  n.set(expand(x, sizes));
}
void tile_of(N& n) { n.set(tile(n.tensor(0), n.ints(1))); }

void pad_of(N& n) {
  const Tensor& x = n.tensor(0);
  const auto given = n.ints("pads", 1);
  TENON_NODE_CHECK(n, given && given->size() % 2 == 0, Value, "`pads` are missing");
  const size_t num_dims = x.sizes().size(), count = given->size() / 2;
  Dims all(count);
  std::iota(all.begin(), all.end(), 0);
  const Dims axes = n.has(3) ? with_axes(n, n.ints(3), num_dims) : all;
  TENON_NODE_CHECK(n, axes.size() == count && (n.has(3) || count == num_dims), Value,
                   fmt::format("{} `pads` of a tensor with {} dimensions", given->size(), num_dims));
  Dims before(num_dims), after(num_dims);
  for (size_t i = 0; i < count; ++i) {
    before[static_cast<size_t>(axes[i])] = (*given)[i];
    after[static_cast<size_t>(axes[i])] = (*given)[count + i];
  }
  const std::string_view mode = n.text("mode", "constant");
  Tensor out = x;
  if (mode == "constant") {
    Dims pads;
    for (size_t i = num_dims; i-- > 0;) {
      pads.push_back(before[i]);
      pads.push_back(after[i]);
    }
    const double value = n.opset() < 11 ? n.number("value", 0) : n.has(2) ? n.number(2) : 0;
    return n.set(constant_pad_nd(
        x, pads, is_integral(x.dtype(), true) ? Scalar(static_cast<int64_t>(value)) : Scalar(value)));
  }
  TENON_NODE_CHECK(n, mode == "reflect" || mode == "edge" || mode == "wrap", Value,
                   fmt::format("attribute `mode` is '{}'", mode));
  // By index, along one axis after another: which element each place has.
  for (size_t i = 0; i < num_dims; ++i) {
    if (before[i] == 0 && after[i] == 0) continue;
    constexpr int64_t kMost = int64_t{1} << 48;
    TENON_NODE_CHECK(n, std::max(before[i], after[i]) < kMost && std::min(before[i], after[i]) > -kMost,
                     Value, fmt::format("pads of {} and {} elements", before[i], after[i]));
    const int64_t size = x.sizes()[i], end = size + after[i];
    TENON_NODE_CHECK(n, size > 0 || -before[i] >= end, Shape, "an empty dimension has nothing to pad with");
    const Tensor from = empty({std::max<int64_t>(end + before[i], 0)}, TensorOptions(kInt64));
    int64_t* place = from.data_ptr<int64_t>();
    for (int64_t at = -before[i]; at < end; ++at) {
      const auto wrapped = [](int64_t a, int64_t b) { return (a % b + b) % b; };
      const int64_t period = std::max<int64_t>(2 * size - 2, 1), reflected = wrapped(at, period);
      *place++ = mode == "edge"   ? std::clamp<int64_t>(at, 0, size - 1)
                 : mode == "wrap" ? wrapped(at, size)
                                  : std::min(reflected, period - reflected) % size;
    }
    out = index_select(out, static_cast<int64_t>(i), from);
  }
  n.set(out);
}

void range(N& n) {
  const Tensor &start = n.tensor(0), &limit = n.tensor(1), &delta = n.tensor(2);
  const TensorOptions options(start.dtype());
  if (is_integral(start.dtype(), true)) {
    const int64_t from = n.integer(0), step = n.integer(2), to = n.integer(1);
    TENON_NODE_CHECK(n, step != 0, Value, "`delta` is 0");
    const bool is_empty = step > 0 ? from >= to : from <= to;
    return n.set(is_empty ? empty({0}, options) : arange(from, to, step, options));
  }
  (void)limit;
  (void)delta;
  const double from = n.number(0), to = n.number(1), step = n.number(2);
  TENON_NODE_CHECK(n, std::abs((to - from) / step) < 1e15, Value,
                   fmt::format("from {} to {} in steps of {}", from, to, step));
  const auto count = static_cast<int64_t>(std::max(std::ceil((to - from) / step), 0.0));
  n.set(add(mul(arange(count, options), Scalar(step)), Scalar(from)));
}
void constant_of_shape(N& n) {
  const Dims sizes = n.ints(0);
  const Tensor* const value = n.tensor("value");
  if (!value) return n.set(zeros(sizes, TensorOptions(kFloat32)));
  TENON_NODE_CHECK(n, value->numel() == 1, Value, "attribute `value` is not one element");
  n.set(expand(value->reshape({1}), sizes.empty() ? Dims{1} : sizes).reshape(sizes).contiguous());
}
void constant(N& n) {
  n.refuse(ErrorKind::NotImplemented, "a constant of strings, or of a type that Tenon does not have");
}
void eye_like(N& n) {
  const Tensor& x = n.tensor(0);
  TENON_NODE_CHECK(n, x.sizes().size() == 2, Shape, "its input is no matrix");
  const Tensor all = ones(x.sizes(), TensorOptions(n.dtype("dtype").value_or(x.dtype())));
  const int64_t k = n.integer("k", 0);
  n.set(triu(tril(all, k), k));
}
void trilu(N& n) {
  const int64_t k = n.has(1) ? n.integer(1) : 0;
  n.set(n.flag("upper", true) ? triu(n.tensor(0), k) : tril(n.tensor(0), k));
}

/// Channels become blocks of pixels.
void depth_to_space(N& n) {
  const Tensor& x = n.tensor(0);
  TENON_NODE_CHECK(n, x.sizes().size() == 4, Shape, "its input has not 4 dimensions");
  const int64_t b = n.integer("blocksize", 1), c = x.sizes()[1], h = x.sizes()[2], w = x.sizes()[3],
                m = x.sizes()[0];
  TENON_NODE_CHECK(n, 0 < b && b < (1 << 30) && c % (b * b) == 0, Shape,
                   fmt::format("{} channels in blocks of {} by {}", c, b, b));
  const Tensor out = n.text("mode", "DCR") == "DCR"
                         ? permute(x.reshape({m, b, b, c / (b * b), h, w}), {0, 3, 4, 1, 5, 2})
                         : permute(x.reshape({m, c / (b * b), b, b, h, w}), {0, 1, 4, 2, 5, 3});
  n.set(out.reshape({m, c / (b * b), h * b, w * b}));
}
void space_to_depth(N& n) {
  const Tensor& x = n.tensor(0);
  TENON_NODE_CHECK(n, x.sizes().size() == 4, Shape, "its input has not 4 dimensions");
  const int64_t b = n.integer("blocksize", 1), c = x.sizes()[1], h = x.sizes()[2], w = x.sizes()[3],
                m = x.sizes()[0];
  TENON_NODE_CHECK(n, b > 0 && h % b == 0 && w % b == 0, Shape,
                   fmt::format("an image of {} by {} in blocks of {}", h, w, b));
  const Tensor blocks = x.reshape({m, c, h / b, b, w / b, b});
  const Tensor out = n.text("mode", "DCR") == "DCR" ? permute(blocks, {0, 3, 5, 1, 2, 4})
                                                    : permute(blocks, {0, 1, 3, 5, 2, 4});
  n.set(out.reshape({m, c * b * b, h / b, w / b}));
}
/// Cut or filled with zeros to a shape, around the middle.
void center_crop_pad(N& n) {
  Tensor out = n.tensor(0);
  const Dims sizes = n.ints(1);
  const size_t num_dims = out.sizes().size();
  Dims axes(num_dims);
  std::iota(axes.begin(), axes.end(), 0);
  if (const auto given = n.ints("axes")) axes = with_axes(n, *given, num_dims);
  TENON_NODE_CHECK(n, axes.size() == sizes.size(), Value, "its shape does not fit its axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t size = out.sizes()[static_cast<size_t>(axes[i])], wanted = sizes[i];
    TENON_NODE_CHECK(n, wanted >= 0, Value, fmt::format("its shape has the size {}", wanted));
    if (wanted <= size) {
      out = slice(out, axes[i], (size - wanted) / 2, (size - wanted) / 2 + wanted);
      continue;
    }
    Dims pads(2 * num_dims, 0);
    const size_t place = 2 * (num_dims - 1 - static_cast<size_t>(axes[i]));
    pads[place] = (wanted - size) / 2;
    pads[place + 1] = wanted - size - pads[place];
    out = constant_pad_nd(out, pads, 0);
  }
  n.set(out);
}
/// The first `sequence_lens` steps of each sequence, the last one first.
void reverse_sequence(N& n) {
  const Tensor& x = n.tensor(0);
  const Dims lengths = n.ints(1);
  const int64_t batch = n.axis(n.integer("batch_axis", 1), x.sizes().size());
  const int64_t time = n.axis(n.integer("time_axis", 0), x.sizes().size());
  TENON_NODE_CHECK(n, static_cast<int64_t>(lengths.size()) == x.sizes()[static_cast<size_t>(batch)], Shape,
                   "`sequence_lens` does not fit the batch");
  std::vector<Tensor> out;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const Tensor one = slice(x, batch, static_cast<int64_t>(i), static_cast<int64_t>(i) + 1);
    out.push_back(
        cat(std::vector{flip(slice(one, time, 0, lengths[i]), {time}), slice(one, time, lengths[i])}, time));
  }
  n.set(out.empty() ? x : cat(out, batch));
}

constexpr auto kShapeRows = std::to_array<Row>({
    {"CenterCropPad", 18, center_crop_pad},
    {"Concat", 1, concat},
    {"Constant", 1, constant},
    {"ConstantOfShape", 9, constant_of_shape},
    {"DepthToSpace", 1, depth_to_space},
    {"Expand", 8, expand_of},
    {"EyeLike", 9, eye_like},
    {"Flatten", 1, flatten_of},
    {"Identity", 1, identity},
    {"Pad", 2, pad_of},
    {"Range", 11, range},
    {"Reshape", 5, reshape_of},
    {"ReverseSequence", 10, reverse_sequence},
    {"Shape", 1, shape},
    {"Size", 1, size},
    {"Slice", 1, slice_of},
    {"SpaceToDepth", 1, space_to_depth},
    {"Split", 2, split_of},
    {"Squeeze", 1, squeeze_of},
    {"Tile", 6, tile_of},
    {"Transpose", 1, transpose_of},
    {"Trilu", 14, trilu},
    {"Unsqueeze", 1, unsqueeze_of},
});

}  // namespace

std::span<const Row> shape_rows() noexcept { return kShapeRows; }

}  // namespace tenon::onnx
