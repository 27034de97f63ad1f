// Views: which elements of memory a tensor has, as nodes that move them; and writing a part of a tensor.
//
// A view of dense memory is, in this order: a Reshape to dimensions that it takes apart or joins, a Slice, a
// Transpose, and an Expand of what has no stride. What does not fit this form (overlapping windows,
// diagonals) gathers by a list of places.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include "tenon/generated/factory/functions.h"
#include "tenon/onnx/save/saver.h"

namespace tenon::onnx {
namespace {

using graph::Geometry;

/// A dimension of a view that has more than one element and a stride.
struct Axis {
  int64_t size, stride;  // positive
  bool is_reversed;
  int64_t unit = 0, step = 1;  // stride = unit * step
};

struct Cut {
  std::vector<int64_t> units;  // products of the sizes that follow each dimension
  std::vector<Axis> axes;      // from the largest stride on
  int64_t offset = 0;          // of the lowest element
};

/// Dimensions that more than one element and a stride, by stride; none where two have the same.
std::optional<Cut> strided_axes(const Geometry& to, int64_t offset) {
  Cut cut{.offset = to.offset - offset};
  for (size_t d = 0; d < to.sizes.size(); ++d) {
    const int64_t stride = to.strides[d];
    if (to.sizes[d] == 1 || stride == 0) continue;
    cut.axes.push_back({to.sizes[d], std::abs(stride), stride < 0});
    if (stride < 0) cut.offset += (to.sizes[d] - 1) * stride;
  }
  std::ranges::stable_sort(cut.axes, std::ranges::greater(), &Axis::stride);
  for (size_t i = 1; i < cut.axes.size(); ++i)
    if (cut.axes[i].stride == cut.axes[i - 1].stride) return std::nullopt;
  return cut;
}

/// Chooses the dimensions that memory of these sizes is cut into, so that each axis is a slice of one.
bool choose_units(Cut& cut, IntArrayRef memory) {
  const int64_t total = std::accumulate(memory.begin(), memory.end(), int64_t{1}, std::multiplies());
  std::vector<int64_t> natural;
  for (int64_t rest = total; const int64_t size : memory) natural.push_back(rest /= size);
  if (natural.empty()) natural.push_back(1);
  const auto is_wanted = [&](int64_t unit) { return std::ranges::count(cut.axes, unit, &Axis::stride) > 0; };
  for (const int64_t unit : natural) {
    int64_t reach = cut.offset % unit;
    for (const Axis& axis : cut.axes) reach += axis.stride < unit ? (axis.size - 1) * axis.stride : 0;
    if (unit == 1 || reach < unit || is_wanted(unit)) cut.units.push_back(unit);
  }
  for (Axis& axis : cut.axes) {
    const auto at = std::ranges::find_if(cut.units, [&](int64_t unit) { return unit <= axis.stride; });
    const int64_t unit = *at, above = at == cut.units.begin() ? total : *(at - 1);
    if (axis.stride % unit != 0) return false;
    axis.unit = axis.stride;
    if (unit == axis.stride) continue;
    if (is_wanted(unit)) {
      if (above % axis.stride != 0) return false;
      cut.units.insert(at, axis.stride);
    } else {
      axis.unit = unit;
      axis.step = axis.stride / unit;
    }
  }
  for (size_t i = 0; i < cut.units.size(); ++i)
    if ((i == 0 ? total : cut.units[i - 1]) % cut.units[i] != 0) return false;
  for (size_t i = 1; i < cut.axes.size(); ++i)
    if (cut.axes[i].unit == cut.axes[i - 1].unit) return false;
  return true;
}

/// The order in which `from` has the dimensions of `to`; none if they are not the same ones.
std::optional<std::vector<int64_t>> order_of(const Geometry& from, const Geometry& to) {
  if (from.sizes.size() != to.sizes.size() || from.offset != to.offset) return std::nullopt;
  std::vector<int64_t> order;
  for (size_t d = 0; d < to.sizes.size(); ++d) {
    int64_t found = -1;
    for (size_t f = 0; f < from.sizes.size() && found < 0; ++f) {
      const bool same =
          from.sizes[f] == to.sizes[d] && (to.sizes[d] == 1 || from.strides[f] == to.strides[d]);
      if (same && std::ranges::count(order, static_cast<int64_t>(f)) == 0) found = static_cast<int64_t>(f);
    }
    if (found < 0) return std::nullopt;
    order.push_back(found);
  }
  return order;
}

bool is_contiguous(const Geometry& g) {
  int64_t stride = 1;
  for (size_t d = g.sizes.size(); d-- > 0;) {
    if (g.sizes[d] != 1 && g.strides[d] != stride) return false;
    stride *= g.sizes[d];
  }
  return true;
}

}  // namespace

Name Saver::view(const Held& from, const Geometry& to) {
  if (from.geometry.dtype != to.dtype) throw Unsaid{"it reads the bytes of another dtype"};
  if (to.numel() == 0) return constant(empty(to.sizes, TensorOptions(to.dtype)));
  if (const auto order = order_of(from.geometry, to)) return transpose(from.name, *order);
  const bool same_memory = from.geometry.offset == to.offset && from.geometry.numel() == to.numel();
  if (same_memory && is_contiguous(from.geometry) && is_contiguous(to))
    return reshape(from.name, from.geometry.sizes, to.sizes);
  return strided_view(from, to);
}

/// The elements in the order of memory, and their sizes there, without those of 1.
std::pair<Name, Dims> Saver::in_memory_order(const Held& from) {
  const Geometry& g = from.geometry;
  std::vector<int64_t> order;
  Dims squeezed, sizes;
  std::vector<int64_t> strides;
  for (size_t d = 0; d < g.sizes.size(); ++d) {
    if (g.sizes[d] == 1) continue;
    order.push_back(static_cast<int64_t>(squeezed.size()));
    squeezed.push_back(g.sizes[d]);
    strides.push_back(g.strides[d]);
  }
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](int64_t d) { return strides[static_cast<size_t>(d)]; });
  for (const int64_t d : order) sizes.push_back(squeezed[static_cast<size_t>(d)]);
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0; stride *= sizes[i])
    if (strides[static_cast<size_t>(order[i])] != stride) throw Unsaid{"a tensor's memory has gaps"};
  return {transpose(reshape(from.name, g.sizes, squeezed), order), sizes};
}

Name Saver::strided_view(const Held& from, const Geometry& to) {
  auto [x, memory] = in_memory_order(from);
  std::optional<Cut> cut = strided_axes(to, from.geometry.offset);
  if (!cut || !choose_units(*cut, memory)) return gather_view(from, to);
  const int64_t total = from.geometry.numel();
  Dims whole, sliced, axes_left;
  std::vector<int64_t> starts, ends, axes, steps;
  int64_t rest = cut->offset;
  for (size_t i = 0; i < cut->units.size(); ++i) {
    const int64_t unit = cut->units[i], size = (i == 0 ? total : cut->units[i - 1]) / unit;
    int64_t start = rest / unit;
    rest %= unit;
    const auto axis = std::ranges::find(cut->axes, unit, &Axis::unit);
    const bool is_left = axis != cut->axes.end();
    const int64_t count = is_left ? axis->size : 1, step = is_left ? axis->step : 1;
    int64_t last = start + (count - 1) * step;
    if (start < 0 || last >= size) return gather_view(from, to);
    whole.push_back(size);
    sliced.push_back(count);
    if (is_left) axes_left.push_back(count);
    const bool back = is_left && axis->is_reversed;
    if (count == size && !back) continue;
    if (back) std::swap(start, last);
    starts.push_back(start);
    ends.push_back(!back ? last + 1 : last > 0 ? last - 1 : std::numeric_limits<int64_t>::min());
    axes.push_back(static_cast<int64_t>(i));
    steps.push_back(back ? -step : step);
  }
  x = reshape(x, memory, whole);
  if (!axes.empty()) {
    std::vector<Name> inputs{x, ints(starts), ints(ends), ints(axes)};
    if (std::ranges::count(steps, 1) < std::ssize(steps)) inputs.push_back(ints(steps));
    x = node("Slice", std::move(inputs));
  }
  x = reshape(x, sliced, axes_left);
  // The order in which the view has them.
  std::vector<int64_t> order;
  Dims there, once = to.sizes;
  for (size_t d = 0; d < to.sizes.size(); ++d) {
    if (to.strides[d] == 0) once[d] = 1;
    if (to.sizes[d] == 1 || to.strides[d] == 0) continue;
    const auto at = std::ranges::find(cut->axes, std::abs(to.strides[d]), &Axis::stride);
    order.push_back(at - cut->axes.begin());
    there.push_back(to.sizes[d]);
  }
  return expand(reshape(transpose(x, order), there, once), once, to.sizes);
}

namespace {

/// The places of the elements of `g` in memory that begins at `offset`.
Tensor places_of(const Geometry& g, int64_t offset, Dims sizes) {
  constexpr int64_t kMost = int64_t{1} << 24;
  if (g.numel() > kMost) throw Unsaid{"its elements would need a list of more than 2^24 places"};
  Tensor out = empty(sizes, TensorOptions(kInt64));
  auto* to = static_cast<int64_t*>(out.data_ptr());
  std::vector<int64_t> index(g.sizes.size(), 0);
  for (int64_t i = 0; i < g.numel(); ++i) {
    int64_t place = g.offset - offset;
    for (size_t d = 0; d < index.size(); ++d) place += index[d] * g.strides[d];
    to[i] = place;
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < g.sizes[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

}  // namespace

Name Saver::gather_view(const Held& from, const Geometry& to) {
  const auto [x, memory] = in_memory_order(from);
  const Name flat = reshape(x, memory, Dims{from.geometry.numel()});
  return node("Gather", {flat, constant(places_of(to, from.geometry.offset, to.sizes))});
}

/// `base` with the elements of `at` replaced by those of `name`.
std::optional<Saver::Held> Saver::with_slice(const Held& base, const Geometry& at, const Name& name) {
  const Geometry& b = base.geometry;
  if (b.dtype != at.dtype) throw Unsaid{"it writes into memory of another dtype"};
  // A range along one dimension, or one place of it, which `at` then lacks.
  for (size_t axis = 0; axis < b.sizes.size(); ++axis) {
    Geometry with = at;
    if (at.sizes.size() + 1 == b.sizes.size()) {
      with.sizes.insert(axis, 1);
      with.strides.insert(axis, b.strides[axis]);
    }
    const int64_t stride = b.strides[axis],
                  length = with.sizes.size() == b.sizes.size() ? with.sizes[axis] : 0;
    Geometry whole = with;
    if (length == 0 || stride <= 0 || (at.offset - b.offset) % stride != 0) continue;
    whole.sizes[axis] = b.sizes[axis];
    whole.offset = b.offset;
    const int64_t start = (at.offset - b.offset) / stride, end = start + length;
    bool fits = end <= b.sizes[axis] && start >= 0 && whole.sizes == b.sizes;
    for (size_t d = 0; d < b.sizes.size(); ++d)
      fits = fits && (with.sizes[d] == 1 || with.strides[d] == b.strides[d]);
    if (!fits) continue;
    const auto part = [&](int64_t from, int64_t to) {
      return node("Slice", {base.name, ints(from), ints(to), ints(static_cast<int64_t>(axis))});
    };
    std::vector<Name> parts;
    if (start > 0) parts.push_back(part(0, start));
    parts.push_back(reshape(name, at.sizes, with.sizes));
    if (end < b.sizes[axis]) parts.push_back(part(end, b.sizes[axis]));
    return Held{node("Concat", std::move(parts), {{"axis", static_cast<int64_t>(axis)}}), b};
  }
  const auto [x, memory] = in_memory_order(base);
  const Dims flat{b.numel()}, count{at.numel()};
  const Name places = constant(places_of(at, b.offset, count));
  const Name written =
      node("ScatterElements", {reshape(x, memory, flat), places, reshape(name, at.sizes, count)},
           {{"axis", int64_t{0}}});
  return Held{written, Geometry{.dtype = b.dtype, .offset = b.offset, .sizes = flat, .strides = Dims{1}}};
}

}  // namespace tenon::onnx
